/* SPDX-License-Identifier: MIT */
/* Steps of a compactor on a heap with bytes, while threads allocate and free. */
#include <allot/compactor.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "compact/bench_compact.h"
#include "measure/clock.h"
#include "measure/workloads.h"

#define MIB (UINT64_C(1) << 20)
#define STEP_NS UINT64_C(1000000)

enum { STEPS = 4000, SLOTS = 1000, THREADS = 1, SIZE_LOG2_LOW = 14, SIZE_LOG2_HIGH = 20 };

typedef struct load {
    allot_heap *heap;
    uint64_t random;
    _Atomic bool *is_over;
    uint64_t operations;
} load;

static void *churn(void *context)
{
    load *const l = context;
    allot_handle slots[SLOTS] = {0};
    while (!atomic_load(l->is_over)) {
        allot_handle *const slot = &slots[workload_below(&l->random, SLOTS)];
        if (slot->value != 0) {
            bench_require(allot_heap_free(l->heap, *slot), "free");
            slot->value = 0;
        } else {
            const unsigned octave = SIZE_LOG2_LOW + (unsigned)workload_below(
                                                        &l->random, SIZE_LOG2_HIGH - SIZE_LOG2_LOW);
            const allot_request request = {.struct_size = sizeof request,
                                           .size = UINT64_C(1) << octave};
            if (allot_heap_alloc(l->heap, &request, slot) != ALLOT_STATUS_OK) {
                slot->value = 0;
            }
        }
        l->operations++;
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].value != 0) {
            bench_require(allot_heap_free(l->heap, slots[i]), "free");
        }
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Steps with always a task to do: how late each was, and the longest piece of all. */
static void make_steps(allot_heap *heap, double *late_ns, double *longest_ns, double *moved)
{
    const allot_compactor_budget budget = {.struct_size = sizeof budget, .time_ns = STEP_NS};
    const allot_compactor_task_options full = {.struct_size = sizeof full};
    allot_compactor *compactor = NULL;
    bench_require(allot_compactor_create(heap, NULL, &compactor), "compactor");
    allot_compactor_step_report report = {0};
    for (int i = 0; i < STEPS; i++) {
        uint64_t id = 0;
        if (report.tasks_left == 0) {
            bench_require(allot_compactor_add(compactor, &full, &id), "task");
        }
        bench_require(allot_compactor_step(compactor, &budget, &report), "step");
        const double piece_ns = (double)report.piece_ns;
        late_ns[i] = report.time_ns > STEP_NS ? (double)(report.time_ns - STEP_NS) : 0;
        *longest_ns = piece_ns > *longest_ns ? piece_ns : *longest_ns;
        *moved += (double)report.bytes;
    }
    allot_compactor_destroy(compactor);
}

void bench_steps(void)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = 8 * MIB,
                                        .limit = 256 * MIB};
    static double late_ns[STEPS];
    double longest_ns = 0;
    _Atomic bool is_over = false;
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    pthread_t threads[THREADS];
    load loads[THREADS];
    double moved = 0;
    bench_require(allot_device_open("host,memory:512MiB", &device), "open");
    bench_require(allot_heap_create(device, &options, &heap), "heap");
    for (int i = 0; i < THREADS; i++) {
        loads[i] = (load){.heap = heap, .random = 100 + (uint64_t)i, .is_over = &is_over};
        if (pthread_create(&threads[i], NULL, churn, &loads[i]) != 0) {
            bench_require(ALLOT_STATUS_HOST_MEMORY, "thread");
        }
    }
    const double began = measure_wall_ns();
    make_steps(heap, late_ns, &longest_ns, &moved);
    const double seconds = (measure_wall_ns() - began) / 1e9;
    atomic_store(&is_over, true);
    uint64_t operations = 0;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        operations += loads[i].operations;
    }
    bench_require(allot_heap_check(heap), "check");
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    qsort(late_ns, STEPS, sizeof *late_ns, by_value);
    const double late = late_ns[STEPS - 1 - STEPS / 1000];
    printf(
        "steps of 1 ms beside a thread: %.1f GiB moved, %.1f M calls, %.1f s; late by %.0f us at "
        "p99, %.0f us at p99.9; longest piece %.0f us\n",
        moved / (1024.0 * (double)MIB), (double)operations / 1e6, seconds,
        late_ns[STEPS - 1 - STEPS / 100] / 1000, late / 1000, longest_ns / 1000);
    bench_goal("late at p99.9, in longest pieces", late / longest_ns, 1, true, "  ");
}
