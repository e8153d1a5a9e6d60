/* SPDX-License-Identifier: MIT */
/* Moves of a plan on the host, of blocks large enough that bytes count. */
#include <allot/compact.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compact/bench_compact.h"
#include "measure/clock.h"

#define MIB (UINT64_C(1) << 20)

enum { RUNS = 9, SEGMENTS = 16, PER_SEGMENT = 16, KEPT_EVERY = 4 };

/** A heap of segments in which one block of four is left. */
static allot_heap *make_heap(allot_device *device, allot_heap_mode mode, uint64_t size,
                             allot_handle *kept)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = mode,
                                        .granule = 4096,
                                        .segment_size = PER_SEGMENT * size,
                                        .limit = (uint64_t)SEGMENTS * PER_SEGMENT * size};
    const allot_request request = {.struct_size = sizeof request, .size = size};
    allot_handle blocks[SEGMENTS * PER_SEGMENT];
    allot_heap *heap = NULL;
    bench_require(allot_heap_create(device, &options, &heap), "heap");
    for (int i = 0; i < SEGMENTS * PER_SEGMENT; i++) {
        allot_devptr at = {0};
        bench_require(allot_heap_alloc(heap, &request, &blocks[i]), "alloc");
        bench_require(allot_heap_pin(heap, blocks[i], &at), "pin");
        bench_require(allot_device_fill(device, request.stream, at, (uint8_t)(i + 1), size),
                      "fill");
        bench_require(allot_heap_unpin(heap, blocks[i]), "unpin");
    }
    bench_require(allot_device_stream_synchronize(device, request.stream), "wait");
    for (int i = 0; i < SEGMENTS * PER_SEGMENT; i++) {
        if (i % KEPT_EVERY == 0) {
            kept[i / KEPT_EVERY] = blocks[i];
        } else {
            bench_require(allot_heap_free(heap, blocks[i]), "free");
        }
    }
    return heap;
}

/** Every block has its bytes. */
static void check_bytes(allot_device *device, allot_heap *heap, const allot_handle *kept,
                        uint64_t size)
{
    uint8_t *const bytes = malloc(size);
    for (int i = 0; i < SEGMENTS * PER_SEGMENT / KEPT_EVERY && bytes != NULL; i++) {
        allot_devptr at = {0};
        bench_require(allot_heap_pin(heap, kept[i], &at), "pin");
        bench_require(allot_device_read(device, (allot_stream){0}, bytes, at, size), "read");
        for (uint64_t j = 0; j < size; j++) {
            if (bytes[j] != (uint8_t)(i * KEPT_EVERY + 1)) {
                fputs("bench_compact: bytes were lost\n", stderr);
                exit(1);
            }
        }
        bench_require(allot_heap_unpin(heap, kept[i]), "unpin");
    }
    free(bytes);
}

/** Bytes per nanosecond of running a plan, best of several heaps. */
static double measure_plan(const char *name, allot_heap_mode mode, uint64_t size)
{
    allot_device *device = NULL;
    allot_handle kept[SEGMENTS * PER_SEGMENT / KEPT_EVERY];
    double rates[RUNS];
    bench_require(allot_device_open(name, &device), name);
    for (int run = 0; run < RUNS; run++) {
        allot_heap *const heap = make_heap(device, mode, size, kept);
        allot_compact_plan *plan = NULL;
        allot_compact_report report;
        bench_require(allot_compact_plan_create(heap, NULL, &plan), "plan");
        const double began = measure_wall_ns();
        bench_require(allot_compact_plan_run(heap, plan, NULL, &report), "run");
        bench_require(allot_device_stream_synchronize(device, (allot_stream){0}), "wait");
        rates[run] = (double)report.bytes / (measure_wall_ns() - began);
        check_bytes(device, heap, kept, size);
        allot_compact_plan_destroy(plan);
        allot_heap_destroy(heap);
    }
    allot_device_destroy(device);
    return measure_median(rates, RUNS);
}

/** The same of memcpy() between blocks as far apart, all of which was written before. */
static double measure_memcpy(uint64_t size)
{
    const uint64_t whole = (uint64_t)SEGMENTS * PER_SEGMENT * size;
    uint8_t *const bytes = malloc(whole);
    double rates[RUNS];
    if (bytes == NULL) {
        bench_require(ALLOT_STATUS_HOST_MEMORY, "memcpy");
        return 0;
    }
    memset(bytes, 1, whole);
    for (int run = 0; run < RUNS; run++) {
        const double began = measure_wall_ns();
        uint64_t moved = 0;
        for (int i = PER_SEGMENT; i < SEGMENTS * PER_SEGMENT / 2; i += KEPT_EVERY) {
            memcpy(bytes + (uint64_t)(i + 1 + run % 2) * size,
                   bytes + (uint64_t)(SEGMENTS * PER_SEGMENT - i) * size, size);
            moved += size;
        }
        rates[run] = (double)moved / (measure_wall_ns() - began);
    }
    free(bytes);
    return measure_median(rates, RUNS);
}

void bench_moves(void)
{
    const uint64_t size = 4 * MIB;
    const double plain = measure_memcpy(size);
    const double copied =
        measure_plan("host,memory:2GiB,move:copy", ALLOT_HEAP_MODE_SEGMENTS, size);
    bench_goal("moves by copying, 4 MiB blocks: times memcpy()", copied / plain, 0.9, false, "x ");
    const double moved = measure_plan("host,memory:2GiB", ALLOT_HEAP_MODE_SEGMENTS, size);
    bench_goal("moves of pages, 4 MiB blocks: times copying", moved / copied, 20, false, "x ");
}
