/* SPDX-License-Identifier: MIT */
/* allot gpu: the cards that a dry run can stand in for. */
#include <inttypes.h>
#include <string.h>

#include "cli_number.h"
#include "dryrun.h"
#include "verbs.h"

static int wants_json;
static const char *device;
static const char *id;
static const char *output;

static const struct poptOption OPTIONS[] = {
    {"json", '\0', POPT_ARG_NONE, &wants_json, 0, "Print JSON (docs/json.md)", NULL},
    {"device", 'd', POPT_ARG_STRING, &device, 0, "probe: number of the GPU (default: 0)", "N"},
    {"id", '\0', POPT_ARG_STRING, &id, 0, "probe: short name (default: made from the card's name)",
     "NAME"},
    {"output", 'o', POPT_ARG_STRING, &output, 0, "probe: write to a file", "FILE"},
    POPT_TABLEEND};

/** What has been listed so far. */
typedef struct listing {
    size_t count;
    bool is_imported;
} listing;

static void print_line(const allot_gpu *gpu, bool is_imported)
{
    char memory[ALLOT_SIZE_TEXT_MAX];
    printf("%-14s %10s  %2" PRIu64 ".%" PRIu64 "  %4" PRIu64 "  %s%s\n", gpu->id,
           allot_size_format(gpu->memory_total, memory), gpu->compute_major, gpu->compute_minor,
           gpu->sm_count, gpu->name, is_imported ? " (imported)" : "");
}

static cli_exit list_one(void *context, const allot_gpu *gpu)
{
    listing *const so_far = context;
    if (wants_json == 0) {
        print_line(gpu, so_far->is_imported);
        return CLI_OK;
    }
    fputs(so_far->count++ == 0 ? "" : ",\n", stdout);
    const allot_status status = allot_gpu_write(gpu, allot_sink_stdio(stdout));
    return status == ALLOT_STATUS_OK ? CLI_OK : cli_fail(status);
}

static cli_exit list_built_in(listing *so_far)
{
    cli_exit code = CLI_OK;
    for (size_t i = 0; i < allot_gpu_count() && code == CLI_OK; i++) {
        allot_gpu gpu;
        const allot_status status = allot_gpu_at(i, &gpu);
        code = status == ALLOT_STATUS_OK ? list_one(so_far, &gpu) : cli_fail(status);
    }
    return code;
}

static cli_exit list(void)
{
    listing so_far = {0};
    if (wants_json == 0) {
        printf("%-14s %10s  %4s  %4s  %s\n", "id", "memory", "cap.", "SMs", "name");
    } else {
        fputs("{\"schema\": \"allot.gpu/1\", \"gpus\": [\n", stdout);
    }
    cli_exit code = list_built_in(&so_far);
    const size_t built_in = so_far.count;
    so_far.is_imported = true;
    code = code == CLI_OK ? dryrun_each_imported(list_one, &so_far) : code;
    if (code == CLI_OK && wants_json != 0) {
        printf("],\n\"imported\": %zu}\n", so_far.count - built_in);
    }
    return code;
}

static bool has_same_source(const allot_gpu *gpu, unsigned a, unsigned b)
{
    return gpu->source[a] == gpu->source[b] && strcmp(gpu->reference[a], gpu->reference[b]) == 0;
}

/** Number the sources from 1 in the order of the fields; the fields of one source share it. */
static void number_sources(const allot_gpu *gpu, unsigned *numbers)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        unsigned first = 0;
        while (first < i && !has_same_source(gpu, first, i)) {
            first++;
        }
        numbers[i] = first < i ? numbers[first] : ++count;
    }
}

static void print_sources(const allot_gpu *gpu, const unsigned *numbers)
{
    unsigned printed = 0;
    printf("\nSources\n");
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        if (numbers[i] > printed) {
            printed = numbers[i];
            printf("  [%u] %s\n", printed, allot_gpu_source_text((allot_gpu_source)gpu->source[i]));
            if (gpu->reference[i][0] != '\0') {
                printf("      %s\n", gpu->reference[i]);
            }
        }
    }
}

static void print_all(const allot_gpu *gpu)
{
    unsigned numbers[ALLOT_GPU_FIELD_COUNT];
    number_sources(gpu, numbers);
    printf("%s (%s)\n", gpu->name, gpu->id);
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        const allot_gpu_field field = (allot_gpu_field)i;
        printf("  %-27s %15" PRIu64 " %-5s  %-7s [%u]  %s\n", allot_gpu_field_name(field),
               allot_gpu_value(gpu, field), allot_gpu_field_unit(field),
               allot_gpu_source_name((allot_gpu_source)gpu->source[i]), numbers[i],
               allot_gpu_field_text(field));
    }
    print_sources(gpu, numbers);
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

/** Write a profile to a file, or to standard output if `path` is NULL. */
static cli_exit write_profile(const allot_gpu *gpu, const char *path)
{
    FILE *out = NULL;
    const cli_exit code = cli_open_output(path, &out);
    if (code != CLI_OK) {
        return code;
    }
    const allot_status written = allot_gpu_write(gpu, allot_sink_stdio(out));
    return cli_end_output(written, path, out);
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
    const cli_exit code = write_profile(&gpu, target);
    if (code == CLI_OK) {
        printf("%s: use it with allot dryrun --gpu %s\n", target, gpu.id);
    }
    return code;
}

/** The profile of a card that is in this machine. */
static cli_exit probe(void)
{
    allot_gpu gpu;
    uint32_t ordinal = 0;
    cli_exit code = cli_read_count("--device", device, 0, &ordinal);
    if (code != CLI_OK) {
        return code;
    }
    if (id != NULL && (id[0] == '\0' || strlen(id) >= sizeof gpu.id)) {
        return cli_usage("--id takes 1 to %d bytes", ALLOT_GPU_NAME_MAX - 1);
    }
    if (allot_gpu_probe(ordinal, &gpu) != ALLOT_STATUS_OK) {
        (void)cli_fail(ALLOT_STATUS_BACKEND);
        return CLI_FAILED;
    }
    if (id != NULL) {
        snprintf(gpu.id, sizeof gpu.id, "%s", id);
    }
    code = write_profile(&gpu, output);
    if (code == CLI_OK && output != NULL) {
        fprintf(stderr, "%s: %s; use it with allot dryrun --gpu %s%s\n", output, gpu.name,
                strchr(output, '/') == NULL ? "./" : "", output);
    }
    return code;
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
    if (count == 1 && strcmp(files[0], "probe") == 0) {
        return probe();
    }
    return cli_usage("expected list, show NAME, import PATH or probe");
}

const cli_verb cli_verb_gpu = {.name = "gpu",
                               .arguments = "list | show NAME | import PATH | probe",
                               .words = "list|show|import|probe",
                               .summary = "The cards that a dry run can stand in for",
                               .options = OPTIONS,
                               .run = run};
