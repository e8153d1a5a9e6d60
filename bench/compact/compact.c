/* SPDX-License-Identifier: MIT */
/*
 * bench_compact: what plans of compaction move and what planning takes, on heaps of a
 * device without bytes; what moving takes on the host; steps beside threads that allocate. Scenes:
 * requests of 512 B to 64 MiB come and go between 70 and 85 % of a region for 200,000 steps, then
 * each block is freed by the throw of a coin. Of several segments the goal is one more than their
 * bytes fill.
 */
#include <allot/compact.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "compact/bench_compact.h"
#include "measure/workloads.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { STEPS = 200000, COIN_SEED = 777, RUNS = 5 };

typedef struct scene {
    const char *name;
    uint64_t capacity;
    uint64_t segment;
    unsigned low; /**< Octaves of sizes. */
    unsigned high;
    double goal_ms; /**< Of planning; 0: none. */
} scene;

static const scene SCENES[] = {
    {"64 x 256 MiB", 16 * GIB, 256 * MIB, 9, 26, 0},
    {"one range of 4 GiB", 4 * GIB, 4 * GIB, 9, 26, 0},
    {"one range of 16 GiB", 16 * GIB, 16 * GIB, 9, 26, 2},
    {"one range of 64 GiB", 64 * GIB, 64 * GIB, 9, 26, 10},
    {"one of 64 GiB, to 8 MiB", 64 * GIB, 64 * GIB, 9, 23, 0},
    {"one of 64 GiB, to 4 MiB", 64 * GIB, 64 * GIB, 9, 22, 0},
    {"one of 64 GiB, to 2 MiB", 64 * GIB, 64 * GIB, 9, 21, 0},
};

enum { SCENE_COUNT = sizeof SCENES / sizeof SCENES[0], SCENE_FIRST_OF_64 = 3 };

void bench_require(allot_status status, const char *what)
{
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "bench_compact: %s: %s\n", what, allot_error_detail());
        exit(1);
    }
}

bool bench_goal(const char *what, double value, double goal, bool is_most, const char *unit)
{
    const bool is_met = is_most ? value <= goal : value >= goal;
    printf("%-58s %9.3f %s  goal %s %g: %s\n", what, value, unit, is_most ? "<=" : ">=", goal,
           is_met ? "met" : "missed");
    fflush(stdout);
    return is_met;
}

/** Blocks that are live. */
typedef struct live_set {
    allot_handle *handles; /**< [slot], 0: empty. */
    uint64_t count;
    uint64_t bytes;
} live_set;

static void release(allot_heap *heap, live_set *live, uint32_t slot, uint32_t units)
{
    bench_require(allot_heap_free(heap, live->handles[slot]), "free");
    live->handles[slot] = (allot_handle){0};
    live->bytes -= (uint64_t)units * WORKLOAD_GRANULE;
    live->count--;
}

static void request(allot_heap *heap, live_set *live, const workload_op *op)
{
    const allot_request wanted = {.struct_size = sizeof wanted,
                                  .size = (uint64_t)op->units * WORKLOAD_GRANULE};
    if (allot_heap_alloc(heap, &wanted, &live->handles[op->slot]) == ALLOT_STATUS_OK) {
        live->bytes += wanted.size;
        live->count++;
    }
}

/** Churn, then a coin for each live block in the order of slots. */
static void make_scene(const scene *s, allot_heap *heap, live_set *live)
{
    const workload_churn rule = {.seed = 12345,
                                 .capacity = s->capacity,
                                 .octave_low = s->low,
                                 .octave_high = s->high,
                                 .low_percent = 70,
                                 .high_percent = 85,
                                 .steps = STEPS};
    workload w;
    workload_init_churn(&w, s->name, &rule);
    live->handles = calloc(w.slot_count, sizeof *live->handles);
    uint32_t *const units = calloc(w.slot_count, sizeof *units);
    if (live->handles == NULL || units == NULL) {
        fputs("bench_compact: out of memory\n", stderr);
        exit(1);
    }
    for (uint64_t i = 0; i < w.count; i++) {
        const workload_op *const op = &w.ops[i];
        if (op->units != 0) {
            request(heap, live, op);
            units[op->slot] = op->units;
        } else if (live->handles[op->slot].value != 0) {
            release(heap, live, op->slot, units[op->slot]);
        }
    }
    uint64_t random = COIN_SEED;
    for (uint32_t slot = 0; slot < w.slot_count; slot++) {
        if (live->handles[slot].value != 0 && workload_random(&random) >> 63 == 1) {
            release(heap, live, slot, units[slot]);
        }
    }
    free(units);
    workload_fini(&w);
}

/** Live blocks and the best time of planning. */
typedef struct cost {
    double live;
    double ns;
} cost;

static cost bench(const scene *s)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .granule = WORKLOAD_GRANULE,
                                        .segment_size = s->segment,
                                        .limit = s->capacity};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    live_set live = {0};
    allot_compact_forecast f = {0};
    uint64_t best_ns = UINT64_MAX;
    uint64_t worst_ns = 0;
    bench_require(allot_device_open("null,memory:256GiB", &device), "open");
    bench_require(allot_heap_create(device, &options, &heap), "create");
    make_scene(s, heap, &live);
    for (int run = 0; run < RUNS; run++) {
        bench_require(allot_compact_estimate(heap, NULL, &f), "estimate");
        best_ns = f.planning_ns < best_ns ? f.planning_ns : best_ns;
        worst_ns = f.planning_ns > worst_ns ? f.planning_ns : worst_ns;
    }
    allot_compact_plan *plan = NULL;
    allot_compact_report report;
    bench_require(allot_compact_plan_create(heap, NULL, &plan), "plan");
    bench_require(allot_compact_plan_check(plan), "check");
    bench_require(allot_compact_plan_run(heap, plan, NULL, &report), "run");
    bench_require(allot_heap_check(heap), "heap check");
    allot_compact_plan_destroy(plan);
    printf("%-24s %7" PRIu64 " %6.2f %4" PRIu64 " %4" PRIu64 " %6.3f %6.2f %7.2f %8.2f %8.2f",
           s->name, live.count, (double)live.bytes / (double)GIB, f.segments_before,
           f.segments_after, (double)report.bytes / (double)live.bytes,
           (double)f.largest_after / (double)GIB,
           100 * (double)f.largest_after / (double)f.size_free, (double)best_ns / 1e6,
           (double)worst_ns / 1e6);
    if (s->goal_ms > 0) {
        printf("  <= %.0f ms", s->goal_ms);
    } else if (s->segment < s->capacity) {
        printf("  <= %" PRIu64 " segments, 0.50 moved",
               (live.bytes + s->segment - 1) / s->segment + 1);
    }
    printf("\n");
    free(live.handles);
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    return (cost){(double)live.count, (double)best_ns};
}

int main(void)
{
    cost costs[sizeof SCENES / sizeof SCENES[0]];
    printf("%-24s %7s %6s %9s %6s %6s %7s %17s\n", "", "live", "GiB", "segments", "moved", "large",
           "of free", "planning ms");
    printf("%-24s %7s %6s %4s %4s %6s %6s %7s %8s %8s  goal\n", "scene", "", "", "from", "to",
           "/ live", "GiB", "%", "best", "worst");
    for (size_t i = 0; i < SCENE_COUNT; i++) {
        costs[i] = bench(&SCENES[i]);
    }
    const cost *const few = &costs[SCENE_FIRST_OF_64];
    const cost *const many = &costs[SCENE_COUNT - 1];
    printf("\n");
    bench_goal("growth of planning: exponent, to the last scene",
               log(many->ns / few->ns) / log(many->live / few->live), 1.2, true, "  ");
    bench_moves();
    bench_steps();
    bench_heap();
    return 0;
}
