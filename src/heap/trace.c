/* SPDX-License-Identifier: MIT */
/*
 * A heap as a trace: what is mapped side by side is a segment, used ranges are blocks that are
 * allocated or wait for a stream, the rest of a segment is inactive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heap/block.h"
#include "heap/front.h"
#include "heap/record.h"
#include "space/space.h"
#include "trace/builder.h"

typedef struct making {
    allot_heap *heap;
    alloti_builder *builder;
    uint32_t device;
} making;

/* ---- names ---- */

/** A tag as metadata: "tag 7"; ALLOT_NONE for none. */
static allot_status intern_tag(const making *m, uint32_t tag, uint32_t *out)
{
    char text[32];
    *out = ALLOT_NONE;
    if (tag == 0) {
        return ALLOT_STATUS_OK;
    }
    snprintf(text, sizeof text, "tag %" PRIu32, tag);
    return alloti_builder_intern_string(m->builder, text, strlen(text), out);
}

static allot_status intern_pool(const making *m, uint32_t pool, uint32_t *out)
{
    return alloti_builder_intern_pool(m->builder, (allot_pool_id){0, pool}, out);
}

/* ---- events ---- */

static allot_status build_event(const making *m, const heap_event *e)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = e->kind;
    event.addr = e->address;
    event.size = e->size;
    event.time_ns = e->time_ns > INT64_MAX ? INT64_MAX : (int64_t)e->time_ns;
    allot_status status = alloti_builder_intern_stream(m->builder, e->stream, &event.stream);
    if (status == ALLOT_STATUS_OK) {
        status = intern_pool(m, e->pool, &event.pool);
    }
    if (status == ALLOT_STATUS_OK) {
        status = intern_tag(m, e->tag, &event.metadata);
    }
    return status == ALLOT_STATUS_OK ? alloti_builder_add_event(m->builder, m->device, &event)
                                     : status;
}

static allot_status build_events(const making *m)
{
    const heap_recording *const r = m->heap->recording;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; r != NULL && i < r->count && status == ALLOT_STATUS_OK; i++) {
        status = build_event(m, &r->events[(r->head + i) % r->max]);
    }
    return status;
}

/* ---- segments ---- */

/** The block that a range is of; NULL for a free one, and for blocks in a front: nobody has them.
 */
static const heap_block *owner_of(const allot_heap *heap, const heap_segment *segment, uint32_t id)
{
    if (space_is_free(segment->space, id)) {
        return NULL;
    }
    const heap_block *const block = heap_block_at(heap, segment->owners[id]);
    const uint64_t word = atomic_load_explicit(&block->word, memory_order_acquire);
    return (word & BLOCK_LIVE) != 0 || block->is_pending ? block : NULL;
}

/** The part of a segment that is described: addresses [begin, end) of its space. */
typedef struct run {
    uint32_t segment;
    uint64_t begin;
    uint64_t end;
} run;

/** A range of a space as a block, cut to the run. */
static allot_block describe(const making *m, const run *part, uint32_t id)
{
    const heap_segment *const segment = &m->heap->segments[part->segment];
    const uint64_t offset = range_offset(segment->space, id);
    const uint64_t end = range_end(segment->space, id);
    const uint64_t first = offset > part->begin ? offset : part->begin;
    const heap_block *const owner = owner_of(m->heap, segment, id);
    allot_block block = {.address = segment->address + first,
                         .size = (end < part->end ? end : part->end) - first,
                         .stack = ALLOT_NONE,
                         .context = ALLOT_NONE,
                         .metadata = ALLOT_NONE,
                         .state = ALLOT_BLOCK_INACTIVE};
    if (owner != NULL) {
        block.state = owner->is_pending ? ALLOT_BLOCK_PENDING_FREE : ALLOT_BLOCK_ALLOCATED;
        block.requested_size = owner->requested;
        block.metadata = owner->tag; /* interned by build_block() */
    }
    return block;
}

/** Sums of a run. */
static allot_status measure(const making *m, const run *part, allot_segment *out)
{
    const heap_segment *const segment = &m->heap->segments[part->segment];
    const heap_arena *const arena = m->heap->arenas[segment->arena];
    *out = (allot_segment){.address = segment->address + part->begin,
                           .total_size = part->end - part->begin,
                           .device = m->device,
                           .stack = ALLOT_NONE,
                           .is_large = true,
                           .is_expandable = m->heap->is_virtual};
    for (uint32_t id = segment->space->first; id != ALLOT_NONE;
         id = segment->space->ranges[id].next) {
        if (range_end(segment->space, id) > part->begin &&
            range_offset(segment->space, id) < part->end) {
            const allot_block block = describe(m, part, id);
            out->allocated_size += block.state == ALLOT_BLOCK_ALLOCATED ? block.size : 0;
            out->active_size += block.state == ALLOT_BLOCK_INACTIVE ? 0 : block.size;
            out->requested_size += block.requested_size;
        }
    }
    const allot_status status = alloti_builder_intern_stream(
        m->builder, m->heap->streams[arena->stream]->stream.value, &out->stream);
    return status == ALLOT_STATUS_OK ? intern_pool(m, arena->pool, &out->pool) : status;
}

static allot_status build_block(const making *m, const run *part, uint32_t id)
{
    allot_block block = describe(m, part, id);
    const uint32_t tag = block.state == ALLOT_BLOCK_INACTIVE ? 0 : block.metadata;
    const allot_status status = intern_tag(m, tag, &block.metadata);
    return status == ALLOT_STATUS_OK ? alloti_builder_add_block(m->builder, &block) : status;
}

static allot_status build_run(const making *m, const run *part)
{
    const allot_space *const space = m->heap->segments[part->segment].space;
    allot_segment segment;
    allot_status status = measure(m, part, &segment);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_segment(m->builder, &segment);
    }
    for (uint32_t id = space->first; id != ALLOT_NONE && status == ALLOT_STATUS_OK;
         id = space->ranges[id].next) {
        if (range_end(space, id) > part->begin && range_offset(space, id) < part->end) {
            status = build_block(m, part, id);
        }
    }
    return status;
}

/** Runs of granules that are mapped side by side. */
static allot_status build_mapped(const making *m, uint32_t index)
{
    const heap_segment *const segment = &m->heap->segments[index];
    const uint64_t granule = m->heap->info.granule;
    const uint64_t count = segment->space->capacity / granule;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t at = 0; at < count && status == ALLOT_STATUS_OK; at++) {
        const uint64_t begin = at;
        while (at < count && segment->granules[at].memory.value != 0) {
            at++;
        }
        if (at > begin) {
            status = build_run(
                m, &(run){.segment = index, .begin = begin * granule, .end = at * granule});
        }
    }
    return status;
}

static allot_status build_segments(const making *m)
{
    const allot_heap *const heap = m->heap;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < heap->segment_count && status == ALLOT_STATUS_OK; i++) {
        const heap_segment *const segment = &heap->segments[i];
        if (segment->address == 0) {
            continue;
        }
        status = heap->is_virtual ? build_mapped(m, i)
                                  : build_run(m, &(run){.segment = i, .end = segment->size});
    }
    return status;
}

static allot_status build(making *m, allot_trace **out)
{
    allot_status status = alloti_builder_device(m->builder, ALLOT_MEMORY_DEVICE, 0, &m->device);
    if (status == ALLOT_STATUS_OK) {
        status = build_events(m);
    }
    if (status == ALLOT_STATUS_OK) {
        status = build_segments(m);
    }
    alloti_builder_set_trait(m->builder, ALLOT_TRACE_HAS_ADDRESSES);
    return status == ALLOT_STATUS_OK
               ? alloti_builder_finish(m->builder, ALLOT_TRACE_FORMAT_AUTO, out)
               : status;
}

allot_status allot_heap_get_trace(allot_heap *heap, allot_trace **out)
{
    making m = {.heap = heap};
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_builder_create(&m.builder);
    if (status != ALLOT_STATUS_OK) {
        return heap_leave(heap, status);
    }
    alloti_front_lock_all(heap);
    status = build(&m, out);
    alloti_front_unlock_all(heap);
    if (status != ALLOT_STATUS_OK) {
        alloti_builder_destroy(m.builder);
    }
    return heap_leave(heap, status);
}
