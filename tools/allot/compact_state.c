/* SPDX-License-Identifier: MIT */
/*
 * A recorded state in a heap. Each segment is asked for as one block of its size, so that the heap
 * takes one of just that size; then one after the other is freed and filled from its begin, gaps
 * included, which is where first fit puts things while nothing else is free. At the end the gaps
 * go.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <allot/trace.h>

#include "compaction.h"

enum { GRANULE = 512 };

/** More than any device has. */
static const uint64_t MEMORY_MAX = UINT64_C(1) << 45;

/** A heap being filled. */
typedef struct filling {
    allot_device *device;
    allot_heap *heap;
    const allot_moment_segment *segments;
    uint32_t segment_count;
    const allot_moment_block *blocks;
    uint32_t block_count;
    allot_handle *wholes; /**< Of segments. [segment_count] */
    allot_handle *gaps;   /**< [gap_count] */
    uint64_t gap_count;
    allot_stream *streams; /**< For those of the trace; 0: not made yet. [stream_count] */
    uint32_t stream_count;
    allot_heap_pool *pools; /**< The same. [pool_count] */
    uint32_t pool_count;
} filling;

/** Bytes that a block takes here: files of other allocators have sizes of any kind. */
static uint64_t size_of(const allot_moment_block *block)
{
    const uint64_t down = block->size / GRANULE * GRANULE;
    if (block->allocation == ALLOT_NONE) {
        return down;
    }
    return block->size > down || down == 0 ? down + GRANULE : down;
}

static uint64_t size_of_segment(const filling *f, const allot_moment_segment *segment)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        size += size_of(&f->blocks[segment->block_first + i]);
    }
    return size;
}

/* ---- making ---- */

/** Bytes of all segments; false if no device has so many. */
static bool add_up(const filling *f, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const bool is_sane = f->segments[i].size < MEMORY_MAX;
        const uint64_t size = is_sane ? size_of_segment(f, &f->segments[i]) : MEMORY_MAX;
        if (size >= MEMORY_MAX - *out) {
            return false;
        }
        *out += size;
    }
    return true;
}

static allot_status open_heap(filling *f, const compact_request *request, uint64_t memory)
{
    char text[ALLOT_GPU_NAME_MAX + 64];
    snprintf(text, sizeof text, "simulated,gpu:%s,memory:%" PRIu64, request->gpu, memory + GRANULE);
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .strategy = ALLOT_SPACE_STRATEGY_FIRST_FIT,
                                        .granule = GRANULE,
                                        .segment_size = GRANULE};
    const allot_status status = allot_device_open(text, &f->device);
    return status == ALLOT_STATUS_OK ? allot_heap_create(f->device, &options, &f->heap) : status;
}

/** Where a segment's blocks belong: the heap's stream and pool for those of the trace. */
static allot_status find_place(filling *f, const allot_moment_segment *segment,
                               allot_request *request)
{
    allot_status status = ALLOT_STATUS_OK;
    if (segment->stream < f->stream_count) {
        if (f->streams[segment->stream].value == 0) {
            status = allot_device_stream_create(f->device, &f->streams[segment->stream]);
        }
        request->stream = f->streams[segment->stream];
    }
    if (status == ALLOT_STATUS_OK && segment->pool < f->pool_count) {
        if (f->pools[segment->pool].value == 0) {
            const allot_heap_pool_options options = {.struct_size = sizeof options,
                                                     .strategy = ALLOT_SPACE_STRATEGY_FIRST_FIT};
            status = allot_heap_pool_create(f->heap, &options, &f->pools[segment->pool]);
        }
        request->pool = f->pools[segment->pool];
    }
    return status;
}

static allot_status take_wholes(filling *f)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < f->segment_count && status == ALLOT_STATUS_OK; i++) {
        allot_request request = {.struct_size = sizeof request,
                                 .size = size_of_segment(f, &f->segments[i])};
        if (request.size != 0) {
            status = find_place(f, &f->segments[i], &request);
        }
        if (request.size != 0 && status == ALLOT_STATUS_OK) {
            status = allot_heap_alloc(f->heap, &request, &f->wholes[i]);
        }
    }
    return status;
}

/** A block that waits for a stream does not move: it is pinned. */
static allot_status put_block(filling *f, const allot_moment_block *block,
                              const allot_request *request)
{
    allot_handle handle = {0};
    allot_devptr ptr;
    const allot_status status = allot_heap_alloc(f->heap, request, &handle);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (block->allocation == ALLOT_NONE) {
        f->gaps[f->gap_count++] = handle;
    }
    return block->is_pending ? allot_heap_pin(f->heap, handle, &ptr) : ALLOT_STATUS_OK;
}

static allot_status fill_segment(filling *f, uint32_t index)
{
    const allot_moment_segment *const segment = &f->segments[index];
    allot_request request = {.struct_size = sizeof request};
    if (f->wholes[index].value == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = find_place(f, segment, &request);
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_free(f->heap, f->wholes[index]);
    }
    for (uint32_t i = 0; i < segment->block_count && status == ALLOT_STATUS_OK; i++) {
        const allot_moment_block *const block = &f->blocks[segment->block_first + i];
        request.size = size_of(block);
        if (request.size != 0) {
            status = put_block(f, block, &request);
        }
    }
    return status;
}

static allot_status fill(filling *f)
{
    allot_status status = take_wholes(f);
    for (uint32_t i = 0; i < f->segment_count && status == ALLOT_STATUS_OK; i++) {
        status = fill_segment(f, i);
    }
    for (uint64_t i = 0; i < f->gap_count && status == ALLOT_STATUS_OK; i++) {
        status = allot_heap_free(f->heap, f->gaps[i]);
    }
    return status;
}

static allot_status make_room(filling *f, const allot_trace *trace)
{
    f->stream_count = allot_trace_stream_count(trace);
    f->pool_count = allot_trace_pool_count(trace);
    f->wholes = calloc((size_t)f->segment_count + 1, sizeof *f->wholes);
    f->gaps = calloc((size_t)f->block_count + 1, sizeof *f->gaps);
    f->streams = calloc((size_t)f->stream_count + 1, sizeof *f->streams);
    f->pools = calloc((size_t)f->pool_count + 1, sizeof *f->pools);
    return f->wholes != NULL && f->gaps != NULL && f->streams != NULL && f->pools != NULL
               ? ALLOT_STATUS_OK
               : ALLOT_STATUS_HOST_MEMORY;
}

static void end_filling(filling *f)
{
    allot_heap_destroy(f->heap);
    allot_device_destroy(f->device);
    free(f->wholes);
    free(f->gaps);
    free(f->streams);
    free(f->pools);
}

/* ---- compacting ---- */

static allot_status compact(compact_state *state, const filling *f, const compact_request *request)
{
    allot_compact_plan *plan = NULL;
    allot_device_info info;
    allot_device_get_info(f->device, &info);
    allot_status status = compact_map_init(&state->before, f->heap);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_create(f->heap, NULL, &plan);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_compact_plan_get_forecast(plan, &state->forecast);
    state->copy_bytes_per_s = info.copy_bytes_per_s;
    if (request->copy_rate != 0) {
        state->copy_bytes_per_s = request->copy_rate;
        state->forecast.time_ns =
            (uint64_t)((double)state->forecast.bytes / (double)request->copy_rate * 1e9) +
            state->forecast.moves * info.copy_latency_ns;
    }
    status = allot_compact_plan_run(f->heap, plan, NULL, NULL);
    allot_compact_plan_destroy(plan);
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_trim(f->heap, 0, NULL);
    }
    return status == ALLOT_STATUS_OK ? compact_map_init(&state->after, f->heap) : status;
}

/** The request at an out-of-memory, if the event is one. */
static void take_request(compact_state *state, const allot_history *history)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    state->is_only = events.count == 0;
    if (state->event < events.count && events.kind[state->event] == ALLOT_EVENT_OOM) {
        state->asked = events.size[state->event];
        state->device_free = events.addr[state->event];
    }
}

static void take_totals(compact_state *state, const allot_moment *moment)
{
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    state->reserved = totals.reserved;
    state->active = totals.active;
    state->segment_count = totals.segment_count;
    state->outside_count = totals.outside_count;
}

static allot_status rebuild(compact_state *state, filling *f, const compact_request *request,
                            const allot_trace *trace, uint64_t memory)
{
    allot_status status = make_room(f, trace);
    if (status == ALLOT_STATUS_OK) {
        status = open_heap(f, request, memory);
    }
    if (status == ALLOT_STATUS_OK) {
        status = fill(f);
    }
    return status == ALLOT_STATUS_OK ? compact(state, f, request) : status;
}

/** Whether there is memory that can be looked at, and how much. */
static cli_exit check_memory(const filling *f, const compact_request *request,
                             const compact_state *state, uint64_t *memory)
{
    if (f->segment_count == 0 && state->outside_count != 0) {
        fprintf(stderr,
                "allot: %s: no segments are known, so that nothing can be said of where memory "
                "lies\n",
                request->path);
        return CLI_UNSUITED;
    }
    if (!add_up(f, memory)) {
        fprintf(stderr, "allot: %s: segments of more memory than any device has\n", request->path);
        return CLI_REFUSED;
    }
    return CLI_OK;
}

cli_exit compact_state_init(compact_state *state, const compact_request *request,
                            const allot_history *history, uint32_t event)
{
    allot_moment *moment = NULL;
    filling f = {0};
    *state = (compact_state){.event = event};
    take_request(state, history);
    allot_status status = allot_history_at(history, event, &moment);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    take_totals(state, moment);
    f.segments = allot_moment_segments(moment, &f.segment_count);
    f.blocks = allot_moment_blocks(moment, &f.block_count);
    uint64_t memory = 0;
    const cli_exit code = check_memory(&f, request, state, &memory);
    if (code != CLI_OK) {
        allot_moment_destroy(moment);
        return code;
    }
    status = rebuild(state, &f, request, allot_history_trace(history), memory);
    end_filling(&f);
    allot_moment_destroy(moment);
    return status == ALLOT_STATUS_OK ? CLI_OK : cli_fail(status);
}

void compact_state_fini(compact_state *state)
{
    compact_map_fini(&state->before);
    compact_map_fini(&state->after);
}
