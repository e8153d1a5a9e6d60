/* SPDX-License-Identifier: MIT */
/*
 * bench_space [RUNS]: every strategy on the four workloads: nanoseconds of CPU time per operation
 * (median of the runs after one to warm up, the cost of the loop itself included and shown), how
 * many requests failed, the smallest region that serves all of them, and how long single requests
 * took on W3. Beside the goals.
 */
#include <allot/space.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"
#include "measure/load.h"

enum { RUNS_DEFAULT = 7, RUNS_MAX = 101, STRATEGIES = 6 };

typedef struct goal {
    double w1_ns, w3_ns; /**< 0: none. */
    double w1_failed;    /**< Negative: none. */
    double least;
} goal;

static const goal GOALS[STRATEGIES] = {
    [ALLOT_SPACE_STRATEGY_FIRST_FIT] = {100, 150, 11, 1.117},
    [ALLOT_SPACE_STRATEGY_BEST_FIT] = {100, 150, 30, 1.142},
    [ALLOT_SPACE_STRATEGY_BUDDY] = {20, 100, -1, 0},
    [ALLOT_SPACE_STRATEGY_TLSF] = {30, 60, 60, 1.150},
    [ALLOT_SPACE_STRATEGY_TIERED] = {0, 0, -1, 0},
    [ALLOT_SPACE_STRATEGY_ADAPTIVE] = {0, 0, -1, 0},
};

static void die(const char *text)
{
    fprintf(stderr, "bench_space: %s: %s\n", text, allot_error_detail());
    exit(1);
}

static allot_space *make(allot_space_strategy strategy, uint64_t capacity)
{
    const allot_space_options options = {.struct_size = sizeof options, .strategy = strategy};
    allot_space *space = NULL;
    if (allot_space_create(capacity, &options, &space) != ALLOT_STATUS_OK) {
        die("create");
    }
    return space;
}

/** Run all operations; returns how many requests failed. */
static uint64_t replay(allot_space *space, const workload *w, uint32_t *ids)
{
    const load_part all = {.w = w, .op_count = w->count};
    const uint64_t failed = load_space(space, &all, ids);
    if (failed == UINT64_MAX) {
        die("free");
    }
    return failed;
}

/** The loop around the calls alone. */
static uint64_t replay_nothing(const workload *w, uint32_t *ids)
{
    uint64_t failed = 0;
    for (uint64_t i = 0; i < w->count; i++) {
        const workload_op op = w->ops[i];
        if (op.units != 0) {
            ids[op.slot] = op.units;
        } else {
            failed += ids[op.slot] == ALLOT_NONE;
        }
    }
    return failed;
}

typedef struct result {
    double ns;
    uint64_t failed;
} result;

static result measure(int strategy, const workload *w, uint32_t *ids, int runs)
{
    double ns[RUNS_MAX] = {0};
    result r = {0};
    for (int i = -1; i < runs; i++) {
        allot_space *const space = strategy < 0
                                       ? NULL
                                       : make((allot_space_strategy)strategy,
                                              w->capacity ? w->capacity : UINT64_C(16) << 30);
        const double begin = measure_cpu_ns();
        r.failed = strategy < 0 ? replay_nothing(w, ids) : replay(space, w, ids);
        if (i >= 0) {
            ns[i] = (measure_cpu_ns() - begin) / (double)w->count;
        }
        allot_space_destroy(space);
    }
    r.ns = measure_median(ns, (size_t)runs);
    return r;
}

/** Smallest region that serves every request, in multiples of the peak, to a quarter per cent. */
static double least_capacity(int strategy, const workload *w, uint32_t *ids)
{
    double low = 1;
    double high = 2;
    while (high - low > 0.0025) {
        const double middle = (low + high) / 2;
        allot_space *const space =
            make((allot_space_strategy)strategy, (uint64_t)(middle * (double)w->peak));
        const bool serves = replay(space, w, ids) == 0;
        *(serves ? &high : &low) = middle;
        allot_space_destroy(space);
    }
    return high;
}

typedef struct latency {
    double p50, p99, p999;
} latency;

/** Single requests of a workload, the cost of reading the clock taken off. */
static latency measure_latency(int strategy, const workload *w, uint32_t *ids, double scale)
{
    uint32_t *const all = malloc(w->alloc_count * sizeof *all);
    uint64_t count = 0;
    uint64_t floor = UINT64_MAX;
    if (all == NULL) {
        die("latency");
    }
    for (int i = 0; i < 1000; i++) {
        const uint64_t begin = measure_ticks();
        const uint64_t took = measure_ticks() - begin;
        floor = took < floor ? took : floor;
    }
    allot_space *const space = make((allot_space_strategy)strategy, w->capacity);
    for (uint64_t i = 0; i < w->count; i++) {
        const workload_op op = w->ops[i];
        if (op.units == 0) {
            if (ids[op.slot] != ALLOT_NONE &&
                allot_space_free(space, ids[op.slot]) != ALLOT_STATUS_OK) {
                die("free");
            }
            continue;
        }
        allot_range range;
        const uint64_t begin = measure_ticks();
        const allot_status status =
            allot_space_alloc(space, (uint64_t)op.units * WORKLOAD_GRANULE, 0, 0, &range);
        const uint64_t took = measure_ticks() - begin;
        ids[op.slot] = status == ALLOT_STATUS_OK ? range.id : ALLOT_NONE;
        all[count++] = (uint32_t)(took > floor ? took - floor : 0);
    }
    allot_space_destroy(space);
    measure_sort(all, count);
    const latency l = {.p50 = scale * (double)measure_rank(all, count, 2),
                       .p99 = scale * (double)measure_rank(all, count, 100),
                       .p999 = scale * (double)measure_rank(all, count, 1000)};
    free(all);
    return l;
}

static const char *mark(double value, double goal_value)
{
    return goal_value <= 0 ? "" : value <= goal_value ? "+" : "-";
}

int main(int argc, char **argv)
{
    const long given = argc > 1 ? strtol(argv[1], NULL, 10) : RUNS_DEFAULT;
    const int runs = given < 1 || given > RUNS_MAX ? RUNS_DEFAULT : (int)given;
    static workload w[WORKLOAD_COUNT];
    uint32_t slots = 0;
    for (unsigned i = 0; i < WORKLOAD_COUNT; i++) {
        workload_init(&w[i], i + 1);
        if (workload_check(&w[i]) != workload_expected(i + 1)) {
            fprintf(stderr, "bench_space: %s is not the workload it should be\n", w[i].name);
            return 1;
        }
        slots = w[i].slot_count > slots ? w[i].slot_count : slots;
    }
    uint32_t *const ids = malloc(slots * sizeof *ids);
    if (ids == NULL) {
        die("ids");
    }
    const double scale = measure_ns_per_tick();
    printf("ns per operation, median of %d runs; + and -: goal met or not\n", runs);
    printf("%-10s %8s %8s %8s %8s   %9s %9s   %s\n", "", "W1", "W2", "W3", "W4", "W1 failed",
           "W1 least", "W3 request p50 p99 p99.9 ns");
    for (int s = -1; s < STRATEGIES; s++) {
        const goal g = s < 0 ? (goal){0, 0, -1, 0} : GOALS[s];
        result r[WORKLOAD_COUNT] = {{0}};
        for (unsigned i = 0; i < WORKLOAD_COUNT; i++) {
            r[i] = measure(s, &w[i], ids, runs);
        }
        printf("%-10s %7.1f%-1s %8.1f %7.1f%-1s %8.1f",
               s < 0 ? "(loop)" : allot_space_strategy_name((allot_space_strategy)s), r[0].ns,
               mark(r[0].ns, g.w1_ns), r[1].ns, r[2].ns, mark(r[2].ns, g.w3_ns), r[3].ns);
        if (s >= 0) {
            const double least =
                s == ALLOT_SPACE_STRATEGY_BUDDY ? 0 : least_capacity(s, &w[0], ids);
            const latency l = measure_latency(s, &w[2], ids, scale);
            /* Goals have three digits, which is finer than the search. */
            printf("   %8" PRIu64 "%-1s %8.3f%-1s   %.0f %.0f %.0f%s", r[0].failed,
                   mark((double)r[0].failed, g.w1_failed), least, mark(least - 0.0005, g.least),
                   l.p50, l.p99, l.p999, s == ALLOT_SPACE_STRATEGY_TLSF ? mark(l.p999, 250) : "");
        }
        putchar('\n');
        fflush(stdout);
    }
    for (unsigned i = 0; i < WORKLOAD_COUNT; i++) {
        workload_fini(&w[i]);
    }
    free(ids);
    return 0;
}
