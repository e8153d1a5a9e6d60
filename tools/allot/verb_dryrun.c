/* SPDX-License-Identifier: MIT */
/* allot dryrun: runs a CUDA program without a GPU and says what its memory would have been. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"
#include "dryrun_check.h"
#include "dryrun_html.h"
#include "dryrun_json.h"
#include "dryrun_ranks.h"
#include "dryrun_search_text.h"
#include "dryrun_signal.h"
#include "dryrun_sizes.h"
#include "verbs.h"

static const char *gpu = "a100-80";
static const char *limit;
static int gpus = 1;
static const char *events = "instant";
static int world;
static int rank;
static long long steps;
static int is_strict;
static const char *workspace;
static int wants_cudnn;
static const char *cudnn_library;
static const char *settings;
static char **booleans;
static const char *assert_peak;
static const char *record;
static const char *by;
static int wants_json;

static const struct poptOption OWN[] = {
    {"gpu", '\0', POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &gpu, 0,
     "The card: a name of `allot gpu list`, an imported one, or a profile file", "GPU"},
    {"limit", '\0', POPT_ARG_STRING, &limit, 0,
     "Its memory, all of it for the program; units are powers of 1024: 24GB is 24 GiB", "SIZE"},
    {"gpus", '\0', POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &gpus, 0, "How many of them", "N"},
    {"events", '\0', POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &events, 0,
     "When work is finished: instant (the least memory), sync (the most), lag", "instant|sync|lag"},
    {"world", '\0', POPT_ARG_INT, &world, 0, "Run one rank of a job of N, without the others", "N"},
    {"rank", '\0', POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &rank, 0, "Which rank", "N"},
    {"steps", '\0', POPT_ARG_LONGLONG, &steps, 0, "Stop after N optimizer steps", "N"},
    {"strict", '\0', POPT_ARG_NONE, &is_strict, 0, "Calls that are answered by guess fail", NULL},
    {"workspace", '\0', POPT_ARG_STRING, &workspace, 0,
     "Sizes that real hardware would tell, or a JSON file of them: cudnn=64MiB,nccl=200MiB",
     "NAME=SIZE,..."},
    {"cudnn", '\0', POPT_ARG_NONE, &wants_cudnn, 0,
     "Ask an installed cuDNN, 9.8 or newer, for its workspaces: the one that Python finds", NULL},
    {"cudnn-library", '\0', POPT_ARG_STRING, &cudnn_library, 0, "Ask this libcudnn.so.9", "FILE"},
    {"booleans", '\0', POPT_ARG_ARGV, &booleans, 0,
     "Answer booleans that the device would compute: likely, false, true, flip:N (every N-th is "
     "true), or LINE=one of them; several times",
     "RULE"},
    {"set", '\0', POPT_ARG_STRING, &settings, 0, "Further settings of the stand-in",
     "KEY:VALUE,..."},
    {"assert-peak", '\0', POPT_ARG_STRING, &assert_peak, 0,
     "Exit 1 if more is reserved at any time; units are powers of 1024", "SIZE"},
    {"record", 'o', POPT_ARG_STRING, &record, 0,
     "Keep the memory snapshot; with several ranks one each, for {rank} in its name", "FILE"},
    {"json", '\0', POPT_ARG_NONE, &wants_json, 0, "Print JSON", NULL},
    POPT_TABLEEND};

/** Of those that hold the memory at the peak, as in allot explain. */
static const struct poptOption HOLDERS[] = {
    {"top", 'n', POPT_ARG_STRING, &cli_report.top_text, 0,
     "Rows of who holds the memory (default: 8)", "N"},
    {"by", 'b', POPT_ARG_STRING, &by, 0, "line, stack, category, stream or pool (default: line)",
     "GROUP"},
    {"own", '\0', POPT_ARG_ARGV, &cli_report.own_prefixes, 0,
     "Count code under this folder as yours, though it is installed; may be repeated", "FOLDER"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {
    CLI_INCLUDE_OPTIONS(OWN, "Run:"), CLI_INCLUDE_OPTIONS(DRYRUN_SEARCH_OPTIONS, "Search:"),
    CLI_INCLUDE_OPTIONS(HOLDERS, "Report:"), CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL),
    POPT_TABLEEND};

/** The cuDNN to ask, made absolute; false after a message. */
static bool choose_cudnn(dryrun_request *out)
{
    static char path[PATH_MAX];
    out->cudnn = wants_cudnn != 0 ? "" : NULL;
    if (cudnn_library == NULL) {
        return true;
    }
    if (realpath(cudnn_library, path) == NULL) {
        cli_usage("--cudnn-library %s: %s", cudnn_library, strerror(errno));
        return false;
    }
    if (strchr(path, ',') != NULL) {
        cli_usage("--cudnn-library: a path without a comma is needed, not %s", path);
        return false;
    }
    out->cudnn = path;
    return true;
}

/** Read the options into a request; false after a message. */
static bool make_request(dryrun_request *out, uint64_t *peak_max)
{
    *out = (dryrun_request){.gpus = (unsigned)gpus,
                            .events = events,
                            .world = (unsigned)world,
                            .rank = (unsigned)rank,
                            .steps = (uint64_t)steps,
                            .is_strict = is_strict != 0,
                            .keeps_stdout = wants_json != 0,
                            .settings = settings,
                            .by = ALLOT_GROUP_LINE,
                            .booleans = booleans};
    *peak_max = 0;
    if (dryrun_find_gpu(gpu, &out->gpu) != ALLOT_STATUS_OK) {
        cli_fail(ALLOT_STATUS_NOT_FOUND);
        return false;
    }
    if (!dryrun_profile_file(gpu, out->profile)) {
        return false;
    }
    if (by != NULL && allot_group_parse(by, &out->by) != ALLOT_STATUS_OK) {
        cli_usage("--by: %s", allot_error_detail());
        return false;
    }
    if (dryrun_check_limit(limit, &out->limit) != CLI_OK ||
        dryrun_check_peak(assert_peak, peak_max) != CLI_OK ||
        dryrun_check_booleans(booleans) != CLI_OK) {
        return false;
    }
    if (!dryrun_read_workspaces(workspace, &out->workspaces) || !choose_cudnn(out)) {
        return false;
    }
    if (gpus < 1 || gpus > 64 || steps < 0) {
        cli_usage("--gpus takes 1 to 64, --steps a number from 0 on");
        return false;
    }
    if (world < 0 || rank < 0 || (rank >= world && rank != 0)) {
        cli_usage("--rank takes a number below that of --world");
        return false;
    }
    if (strcmp(events, "instant") != 0 && strcmp(events, "sync") != 0 &&
        strcmp(events, "lag") != 0) {
        cli_usage("--events takes instant, sync or lag");
        return false;
    }
    return true;
}

/** Copy a snapshot to where the user wants it. */
static cli_exit keep_file(const char *snapshot, const char *path)
{
    FILE *const from = snapshot[0] == '\0' ? NULL : fopen(snapshot, "rb");
    if (from == NULL) {
        fprintf(stderr, "allot: %s: there is no snapshot to keep\n", path);
        return CLI_FAILED;
    }
    FILE *to = NULL;
    cli_exit code = cli_open_output(path, &to);
    if (code == CLI_OK) {
        char buffer[1 << 16];
        size_t size = 0;
        while ((size = fread(buffer, 1, sizeof buffer, from)) > 0 &&
               fwrite(buffer, 1, size, to) == size) {
        }
        code = cli_close_output(path, to);
    }
    if (ferror(from) != 0) {
        fprintf(stderr, "allot: %s: cannot be read\n", snapshot);
        code = CLI_FAILED;
    }
    fclose(from);
    return code;
}

/** One snapshot, or one for each rank. */
static cli_exit keep_snapshots(const dryrun_result *result)
{
    cli_exit code = CLI_OK;
    uint32_t kept = 0;
    if (record == NULL || result->rank_count < 2) {
        return record == NULL ? CLI_OK : keep_file(result->snapshot, record);
    }
    for (uint32_t i = 0; i < result->rank_count && code == CLI_OK; i++) {
        char snapshot[DRYRUN_PATH_MAX + 64];
        char path[DRYRUN_PATH_MAX];
        if (!result->ranks[i].has_snapshot) {
            continue;
        }
        dryrun_rank_snapshot(result, &result->ranks[i], snapshot, sizeof snapshot);
        code = dryrun_rank_path(record, &result->ranks[i], path, sizeof path)
                   ? keep_file(snapshot, path)
                   : cli_usage("%s: too long a path", record);
        kept += code == CLI_OK ? 1 : 0;
    }
    if (code != CLI_OK) {
        return code;
    }
    if (kept == 0) {
        return keep_file("", record);
    }
    fprintf(stderr,
            "allot: snapshots of %" PRIu32 " of %" PRIu32
            " ranks were kept; `allot ranks` compares them\n",
            kept, result->rank_count);
    return CLI_OK;
}

static void print(const dryrun_request *request, const dryrun_answer *answer)
{
    if (wants_json != 0) {
        dryrun_print_json(request, answer);
    } else {
        dryrun_print_answer(request, answer);
    }
}

/** Print the answer, keep the snapshot, write the page. */
static cli_exit conclude(const dryrun_request *request, const dryrun_answer *answer,
                         uint64_t peak_max)
{
    print(request, answer);
    cli_exit code = dryrun_search_exit(answer);
    if (peak_max != 0 && dryrun_search_is_above(answer, peak_max)) {
        code = code == CLI_OK ? CLI_FOUND : code;
    }
    const cli_exit written = cli_close_output(NULL, stdout);
    const cli_exit kept = written == CLI_OK ? keep_snapshots(&answer->run->result) : written;
    const cli_exit paged = kept == CLI_OK ? dryrun_write_html(request, answer) : kept;
    return paged == CLI_OK ? code : paged;
}

static cli_exit run(const char *const *files, size_t count)
{
    dryrun_request request;
    dryrun_answer answer;
    uint64_t peak_max = 0;
    if (count == 0) {
        return cli_usage("a command is needed: allot dryrun --gpu rtx4090 -- python train.py");
    }
    if (!make_request(&request, &peak_max)) {
        return CLI_USAGE;
    }
    request.command = (char *const *)(uintptr_t)files;
    cli_exit code = dryrun_search_read(&request, &answer);
    code = code == CLI_OK ? dryrun_check_output(record) : code;
    code = code == CLI_OK ? dryrun_check_output(cli_report.html) : code;
    if (code != CLI_OK) {
        return code;
    }
    dryrun_signal_init();
    code = dryrun_search_run(&request, &answer);
    if (code == CLI_OK) {
        code = conclude(&request, &answer, peak_max);
    }
    dryrun_search_end(&answer);
    dryrun_signal_raise();
    return code;
}

const cli_verb cli_verb_dryrun = {.name = "dryrun",
                                  .arguments = "-- COMMAND ARGUMENTS...",
                                  .summary = "Run a CUDA program without a GPU and know its memory",
                                  .found = "it does not fit, or that is not known",
                                  .options = OPTIONS,
                                  .run = run};
