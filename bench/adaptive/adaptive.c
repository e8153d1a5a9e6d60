/* SPDX-License-Identifier: MIT */
/*
 * bench_adaptive [--quick] [--json FILE] [TRACE...]: what a heap of the adaptive strategy holds at
 * most, beside heaps of each fixed strategy and PyTorch's allocator in both its modes, for the same
 * requests: workloads W1 to W4, and recorded histories (the arguments; without any, those in
 * ../shared/data). Blocks are pointers, which nothing moves. All figures are those of a simulated
 * device, the same in every run.
 */
#include <allot/replay.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/workloads.h"

#define MIB (double)(UINT64_C(1) << 20)

enum { QUICK_OPS = 60000, PATHS_MAX = 64, FIXED = 5, MODEL_MAX = 64 };

static const char *const STRATEGIES[FIXED] = {"first-fit", "best-fit", "buddy", "tlsf", "tiered"};
static const char *const MODES[] = {"virtual", "segments"};

static FILE *json;
static bool is_quick;
static uint32_t row_count;
static uint32_t missed_count;

static void require(allot_status status, const char *what)
{
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "bench_adaptive: %s: %s\n", what, allot_error_detail());
        exit(1);
    }
}

/* ---- workloads as traces ---- */

/** Slots lie so far apart in the trace, which only tells blocks apart. */
#define SLOT_SIZE (UINT64_C(1) << 27)

static void put_event(FILE *out, const char *action, uint32_t slot, uint64_t size)
{
    fprintf(out, ",\n{\"action\":\"%s\",\"addr\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":0}",
            action, (slot + 1) * SLOT_SIZE, size);
}

/** A workload as a PyTorch snapshot in JSON: one segment, requests, and at the end no block. */
static char *write_snapshot(const workload *w, uint64_t op_count, size_t *size)
{
    char *text = NULL;
    FILE *const out = open_memstream(&text, size);
    uint64_t *const sizes = calloc(w->slot_count, sizeof *sizes);
    const uint64_t whole = w->slot_count * SLOT_SIZE;
    if (out == NULL || sizes == NULL) {
        fputs("bench_adaptive: out of memory\n", stderr);
        exit(1);
    }
    fprintf(out,
            "{\"segments\":[{\"device\":0,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
            ",\"stream\":0,\"segment_type\":\"large\",\"blocks\":[{\"size\":%" PRIu64
            ",\"state\":\"inactive\"}]}],\n\"device_traces\":[[\n"
            "{\"action\":\"segment_alloc\",\"addr\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":0}",
            SLOT_SIZE, whole, whole, SLOT_SIZE, whole);
    for (uint64_t i = 0; i < op_count; i++) {
        const workload_op op = w->ops[i];
        if (op.units != 0) {
            sizes[op.slot] = (uint64_t)op.units * WORKLOAD_GRANULE;
            put_event(out, "alloc", op.slot, sizes[op.slot]);
        } else {
            put_event(out, "free_requested", op.slot, sizes[op.slot]);
            put_event(out, "free_completed", op.slot, sizes[op.slot]);
            sizes[op.slot] = 0;
        }
    }
    for (uint32_t slot = 0; slot < w->slot_count; slot++) {
        if (sizes[slot] != 0) {
            put_event(out, "free_requested", slot, sizes[slot]);
            put_event(out, "free_completed", slot, sizes[slot]);
        }
    }
    fputs("]]}\n", out);
    free(sizes);
    (void)fclose(out);
    return text;
}

/* ---- replays ---- */

typedef struct outcome {
    char model[MODEL_MAX];
    uint64_t reserved;
    uint64_t live;
    double ms;
} outcome;

static outcome replay(const allot_requests *requests, const char *model)
{
    const allot_replay_options options = {.struct_size = sizeof options, .model = model};
    allot_replay_result *result = NULL;
    outcome out = {.reserved = 0};
    require(allot_replay_run(requests, &options, &result), model);
    (void)snprintf(out.model, sizeof out.model, "%s", model);
    out.reserved = result->reserved_peak;
    out.live = result->active_peak;
    out.ms = (double)result->cost_ns / 1e6;
    allot_replay_result_destroy(result);
    return out;
}

static outcome replay_heap(const allot_requests *requests, const char *strategy, const char *more)
{
    char model[MODEL_MAX];
    (void)snprintf(model, sizeof model, "heap:%s:%s", strategy, more);
    return replay(requests, model);
}

/** The fixed strategy that holds least, in one mode. */
static outcome best_fixed(const allot_requests *requests, const char *mode)
{
    outcome best = {.reserved = UINT64_MAX};
    for (int s = 0; s < FIXED; s++) {
        const outcome one = replay_heap(requests, STRATEGIES[s], mode);
        best = one.reserved < best.reserved ? one : best;
    }
    return best;
}

/* ---- rows ---- */

static void put_json(const char *name, const outcome *o, const char *key)
{
    if (json != NULL) {
        fprintf(json,
                "%s\n{\"trace\": \"%s\", \"role\": \"%s\", \"model\": \"%s\", "
                "\"reserved_peak\": %" PRIu64 ", \"active_peak\": %" PRIu64
                ", \"driver_ms\": %.3f}",
                row_count++ == 0 ? "" : ",", name, key, o->model, o->reserved, o->live, o->ms);
    }
}

static void compare(const char *name, const allot_requests *requests)
{
    const outcome classic = replay(requests, "torch");
    const outcome expandable = replay(requests, "torch:expandable_segments:True");
    const outcome fixed[] = {best_fixed(requests, "mode=virtual"),
                             best_fixed(requests, "mode=segments")};
    const outcome adaptive[] = {replay_heap(requests, "adaptive", "mode=virtual"),
                                replay_heap(requests, "adaptive", "mode=segments")};
    const outcome moving =
        replay_heap(requests, "adaptive", "mode=segments,blocks=handles,compact=auto");
    const outcome *const best = fixed[0].reserved <= fixed[1].reserved ? &fixed[0] : &fixed[1];
    const double ratio = (double)adaptive[0].reserved / (double)best->reserved;
    const bool is_met = ratio <= 1.01 && adaptive[0].reserved < classic.reserved &&
                        adaptive[0].reserved < expandable.reserved;
    missed_count += !is_met;
    printf("%-28.28s %9.1f %9.1f %9.1f %9.1f %-9.9s %9.1f %6.3f %c %8.0f %8.0f | %9.1f %9.1f %6.3f "
           "%8.0f %8.0f | %9.1f\n",
           name, (double)adaptive[0].live / MIB, (double)classic.reserved / MIB,
           (double)expandable.reserved / MIB, (double)best->reserved / MIB, best->model + 5,
           (double)adaptive[0].reserved / MIB, ratio, is_met ? '+' : '-', best->ms, adaptive[0].ms,
           (double)fixed[1].reserved / MIB, (double)adaptive[1].reserved / MIB,
           (double)adaptive[1].reserved / (double)fixed[1].reserved, fixed[1].ms, adaptive[1].ms,
           (double)moving.reserved / MIB);
    fflush(stdout);
    put_json(name, &classic, "classic");
    put_json(name, &expandable, "expandable");
    for (int mode = 0; mode < 2; mode++) {
        put_json(name, &fixed[mode], MODES[mode]);
        put_json(name, &adaptive[mode], "adaptive");
    }
    put_json(name, &moving, "moving");
}

static void compare_trace(const char *name, allot_trace *trace)
{
    allot_requests *requests = NULL;
    allot_replay_unusable why = ALLOT_REPLAY_UNUSABLE_NONE;
    if (allot_requests_create(trace, ALLOT_NONE, &requests, &why) == ALLOT_STATUS_OK) {
        compare(name, requests);
        allot_requests_destroy(requests);
    } else if (why != ALLOT_REPLAY_UNUSABLE_NO_EVENTS) {
        printf("%-28.28s cannot be replayed: %s\n", name, allot_replay_unusable_text(why));
    }
    allot_trace_destroy(trace);
}

static void compare_workload(unsigned number)
{
    workload w;
    workload_init(&w, number);
    size_t size = 0;
    char *const text =
        write_snapshot(&w, is_quick && w.count > QUICK_OPS ? QUICK_OPS : w.count, &size);
    allot_trace *trace = NULL;
    require(allot_trace_read_memory(text, size, w.name, NULL, &trace), w.name);
    free(text);
    compare_trace(w.name, trace);
    workload_fini(&w);
}

static void compare_file(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    allot_trace *trace = NULL;
    if (allot_trace_read(path, NULL, &trace) == ALLOT_STATUS_OK) {
        compare_trace(name, trace);
    } else {
        printf("%-28.28s cannot be read\n", name);
    }
}

/* ---- files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** All snapshots of a folder whose names begin so. */
static void compare_folder(const char *folder, const char *prefix)
{
    char *paths[PATHS_MAX];
    size_t count = 0;
    DIR *const dir = opendir(folder);
    if (dir == NULL) {
        printf("%s is not there\n", folder);
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL && count < PATHS_MAX;
         entry = readdir(dir)) {
        const size_t size = strlen(folder) + strlen(entry->d_name) + 2;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            strstr(entry->d_name, ".pickle") == NULL) {
            continue;
        }
        paths[count] = malloc(size);
        if (paths[count] == NULL) {
            require(ALLOT_STATUS_HOST_MEMORY, folder);
        }
        (void)snprintf(paths[count++], size, "%s/%s", folder, entry->d_name);
    }
    (void)closedir(dir);
    qsort(paths, count, sizeof *paths, by_name);
    for (size_t i = 0; i < count; i++) {
        compare_file(paths[i]);
        free(paths[i]);
    }
}

int main(int argc, char **argv)
{
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--quick") == 0) {
            is_quick = true;
        } else if (strcmp(argv[first], "--json") == 0 && first + 1 < argc) {
            json = fopen(argv[++first], "w");
        } else {
            fputs("usage: bench_adaptive [--quick] [--json FILE] [TRACE...]\n", stderr);
            return 2;
        }
    }
    if (json != NULL) {
        fputs("[", json);
    }
    printf(
        "Most bytes held, MiB; + and -: at most 1 %% above the best fixed strategy and below both "
        "modes of PyTorch, or not\n");
    printf("%-28s %9s %9s %9s %9s %-9s %9s %6s   %8s %8s | %9s %9s %6s %8s %8s | %9s\n", "", "live",
           "torch", "expand.", "best", "fixed", "adaptive", "ratio", "best ms", "ad. ms",
           "segments", "adaptive", "ratio", "best ms", "ad. ms", "moving");
    for (unsigned i = 1; i <= WORKLOAD_COUNT; i++) {
        compare_workload(i);
    }
    for (int i = first; i < argc; i++) {
        compare_file(argv[i]);
    }
    if (first == argc) {
        compare_folder(ALLOT_BENCH_DATA "/snapshots", "");
        compare_folder(ALLOT_BENCH_DATA "/oracle", "finetune");
    }
    printf("missed: %" PRIu32 "\n", missed_count);
    if (json != NULL) {
        fputs("\n]\n", json);
        (void)fclose(json);
    }
    return 0;
}
