/* SPDX-License-Identifier: MIT */
/* allot gpu: the cards that a dry run can stand in for. */
#include <inttypes.h>
#include <string.h>

#include "dryrun.h"
#include "verbs.h"

static int wants_json;

static const struct poptOption OPTIONS[] = {
    {"json", '\0', POPT_ARG_NONE, &wants_json, 0, "Print JSON", NULL}, POPT_TABLEEND};

static void print_line(const allot_gpu *gpu)
{
    char memory[ALLOT_SIZE_TEXT_MAX];
    printf("%-14s %10s  %2" PRIu64 ".%" PRIu64 "  %4" PRIu64 "  %s\n", gpu->id,
           allot_size_format(gpu->memory_total, memory), gpu->compute_major, gpu->compute_minor,
           gpu->sm_count, gpu->name);
}

static cli_exit list(void)
{
    if (wants_json == 0) {
        printf("%-14s %10s  %4s  %4s  %s\n", "id", "memory", "cap.", "SMs", "name");
    } else {
        fputs("[", stdout);
    }
    for (size_t i = 0; i < allot_gpu_count(); i++) {
        allot_gpu gpu;
        allot_status status = allot_gpu_at(i, &gpu);
        if (status == ALLOT_STATUS_OK && wants_json != 0) {
            fputs(i == 0 ? "" : ",\n", stdout);
            status = allot_gpu_write(&gpu, allot_sink_stdio(stdout));
        } else if (status == ALLOT_STATUS_OK) {
            print_line(&gpu);
        }
        if (status != ALLOT_STATUS_OK) {
            return cli_fail(status);
        }
    }
    fputs(wants_json == 0 ? "" : "]\n", stdout);
    return CLI_OK;
}

static void print_all(const allot_gpu *gpu)
{
    printf("%s (%s)\n", gpu->name, gpu->id);
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        const allot_gpu_field field = (allot_gpu_field)i;
        printf("  %-27s %15" PRIu64 " %-5s  %s [%s]\n", allot_gpu_field_name(field),
               allot_gpu_value(gpu, field), allot_gpu_field_unit(field),
               allot_gpu_field_text(field),
               allot_gpu_source_text((allot_gpu_source)gpu->source[i]));
    }
}

static cli_exit show(const char *name)
{
    allot_gpu gpu;
    allot_status status = dryrun_find_gpu(name, &gpu);
    if (status == ALLOT_STATUS_OK && wants_json != 0) {
        status = allot_gpu_write(&gpu, allot_sink_stdio(stdout));
    } else if (status == ALLOT_STATUS_OK) {
        print_all(&gpu);
    }
    return status == ALLOT_STATUS_OK ? CLI_OK : cli_fail(status);
}

static cli_exit import(const char *path)
{
    allot_gpu gpu;
    char target[DRYRUN_PATH_MAX];
    const allot_status status = allot_gpu_read(path, &gpu);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    if (!dryrun_make_profile_path(gpu.id, target, sizeof target)) {
        return cli_usage("\"%s\" cannot be the name of a file", gpu.id);
    }
    FILE *out = NULL;
    const cli_exit code = cli_open_output(target, &out);
    if (code != CLI_OK) {
        return code;
    }
    const allot_status written = allot_gpu_write(&gpu, allot_sink_stdio(out));
    const cli_exit closed = cli_close_output(target, out);
    if (written != ALLOT_STATUS_OK) {
        return cli_fail(written);
    }
    if (closed == CLI_OK) {
        printf("%s: use it with allot dryrun --gpu %s\n", target, gpu.id);
    }
    return closed;
}

/** What was printed must have reached its place. */
static cli_exit finish(cli_exit code)
{
    const cli_exit written = cli_close_output(NULL, stdout);
    return code == CLI_OK ? written : code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count == 1 && strcmp(files[0], "list") == 0) {
        return finish(list());
    }
    if (count == 2 && strcmp(files[0], "show") == 0) {
        return finish(show(files[1]));
    }
    if (count == 2 && strcmp(files[0], "import") == 0) {
        return import(files[1]);
    }
    return cli_usage("expected list, show NAME or import PATH");
}

const cli_verb cli_verb_gpu = {.name = "gpu",
                               .arguments = "list | show NAME | import PATH",
                               .summary = "The cards that a dry run can stand in for",
                               .options = OPTIONS,
                               .run = run};
