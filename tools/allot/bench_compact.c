/* SPDX-License-Identifier: MIT */
/* What compaction takes: planning for a fragmented heap without memory, and the moves of a plan on
 * the device. */
#include "bench.h"
#include "measure/workloads.h"

#define MIB (UINT64_C(1) << 20)
#define LARGE (4 * MIB)

enum { PLAN_BLOCKS = 16384, MOVE_SEGMENTS = 4, MOVE_PER_SEGMENT = 8, MOVE_KEPT_EVERY = 4 };

/** Write to a block, so that its memory is there. */
static allot_status touch(allot_device *device, allot_heap *heap, allot_handle handle,
                          uint64_t size)
{
    allot_devptr at = {0};
    allot_status status = allot_heap_pin(heap, handle, &at);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_fill(device, (allot_stream){0}, at, 1, size);
    }
    return status == ALLOT_STATUS_OK ? allot_heap_unpin(heap, handle) : status;
}

/** Get blocks by a rule, then free all but one of `kept_every`. */
static allot_status fragment(allot_device *device, allot_heap *heap,
                             uint64_t (*size_of)(uint64_t *random), uint32_t count,
                             uint32_t kept_every)
{
    static allot_handle handles[PLAN_BLOCKS];
    uint64_t random = 1;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        const allot_request request = {.struct_size = sizeof request, .size = size_of(&random)};
        status = allot_heap_alloc(heap, &request, &handles[i]);
        if (status == ALLOT_STATUS_OK) {
            status = touch(device, heap, handles[i], request.size);
        }
    }
    for (uint32_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = i % kept_every == 0 ? status : allot_heap_free(heap, handles[i]);
    }
    return status;
}

static uint64_t any_size(uint64_t *random)
{
    return (uint64_t)workload_units(random, 9, 20) * WORKLOAD_GRANULE;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as any_size() */
static uint64_t large_size(uint64_t *random)
{
    (void)random;
    return LARGE;
}

static allot_status run_planning(bench_compaction *out)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 64 * MIB};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_compact_forecast forecast;
    allot_status status = allot_device_open("null,memory:64GiB", &device);
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_create(device, &options, &heap);
    }
    if (status == ALLOT_STATUS_OK) {
        status = fragment(device, heap, any_size, PLAN_BLOCKS, 2);
    }
    out->plan_ns = UINT64_MAX;
    for (int i = 0; i < 3 && status == ALLOT_STATUS_OK; i++) {
        status = allot_compact_estimate(heap, NULL, &forecast);
        if (status == ALLOT_STATUS_OK && forecast.planning_ns < out->plan_ns) {
            out->plan_ns = forecast.planning_ns;
        }
    }
    out->plan_blocks = PLAN_BLOCKS / 2;
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    return status;
}

/** Bytes in a second by the device's clock. */
static allot_status run_moves(allot_device *device, bench_compaction *out)
{
    const uint64_t segment = MOVE_PER_SEGMENT * LARGE;
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = segment,
                                        .limit = MOVE_SEGMENTS * segment};
    allot_heap *heap = NULL;
    allot_compact_plan *plan = NULL;
    allot_compact_report report = {0};
    allot_status status = allot_heap_create(device, &options, &heap);
    if (status == ALLOT_STATUS_OK) {
        status =
            fragment(device, heap, large_size, MOVE_SEGMENTS * MOVE_PER_SEGMENT, MOVE_KEPT_EVERY);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_create(heap, NULL, &plan);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_stream_synchronize(device, (allot_stream){0});
    }
    const uint64_t began = allot_device_clock_ns(device);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_run(heap, plan, NULL, &report);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_stream_synchronize(device, (allot_stream){0});
    }
    const uint64_t ns = allot_device_clock_ns(device) - began;
    out->move = ns == 0 ? 0 : (double)report.bytes * 1e9 / (double)ns;
    allot_compact_plan_destroy(plan);
    allot_heap_destroy(heap);
    return status;
}

allot_status bench_run_compaction(allot_device *device, bench_compaction *out)
{
    const allot_status status = run_planning(out);
    return status == ALLOT_STATUS_OK ? run_moves(device, out) : status;
}
