/* SPDX-License-Identifier: MIT */
/* What a heap holds for training (workload W4), and what it costs that blocks may move. */
#include <allot/heap.h>
#include <stdlib.h>

#include "compact/bench_compact.h"
#include "measure/clock.h"
#include "measure/load.h"

enum { RUNS = 9, PINS = 2000000 };

static double held_for_training(void)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_VIRTUAL};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_heap_stats stats;
    workload w;
    uint64_t refused = 0;
    workload_init(&w, 4);
    allot_handle *const handles = calloc(w.slot_count, sizeof *handles);
    const load_part part = {.w = &w, .op_count = w.count};
    if (handles == NULL) {
        bench_require(ALLOT_STATUS_HOST_MEMORY, "handles");
    }
    bench_require(allot_device_open("simulated,memory:64GiB", &device), "open");
    bench_require(allot_heap_create(device, &options, &heap), "heap");
    bench_require(load_heap(heap, (allot_stream){0}, &part, handles, &refused), "W4");
    bench_require(allot_heap_get_stats(heap, &stats), "stats");
    bench_require(load_heap_end(heap, &part, handles), "end");
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    free(handles);
    workload_fini(&w);
    return (double)stats.reserved_bytes.peak / (double)stats.allocated_bytes.peak;
}

static double pin_ns(void)
{
    const allot_heap_options options = {.struct_size = sizeof options};
    const allot_request request = {.struct_size = sizeof request, .size = 4096};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_handle handle;
    allot_devptr at;
    double times[RUNS];
    bench_require(allot_device_open("null,memory:1GiB", &device), "open");
    bench_require(allot_heap_create(device, &options, &heap), "heap");
    bench_require(allot_heap_alloc(heap, &request, &handle), "alloc");
    for (int run = 0; run < RUNS; run++) {
        const double began = measure_cpu_ns();
        for (int i = 0; i < PINS; i++) {
            bench_require(allot_heap_pin(heap, handle, &at), "pin");
            bench_require(allot_heap_unpin(heap, handle), "unpin");
        }
        times[run] = (measure_cpu_ns() - began) / PINS;
    }
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    return measure_median(times, RUNS);
}

void bench_heap(void)
{
    bench_goal("W4 through a heap: most reserved / most allocated", held_for_training(), 1.01, true,
               "  ");
    bench_goal("pin and unpin", pin_ns(), 10, true, "ns");
}
