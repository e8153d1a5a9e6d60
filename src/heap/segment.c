/* SPDX-License-Identifier: MIT */
#include "heap/segment.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"
#include "heap/arena.h"
#include "heap/granules.h"
#include "heap/habits.h"
#include "heap/record.h"
#include "space/space.h"

/* ---- limits ---- */

static allot_status refuse(const char *what, uint64_t limit, uint64_t held, uint64_t size)
{
    return alloti_fail(ALLOT_STATUS_BUDGET,
                       "%" PRIu64 " bytes are held, %" PRIu64 " more would pass %s of %" PRIu64,
                       held, size, what, limit);
}

/** Whether `size` more than `held` passes a limit; 0 is none. */
static bool is_above(uint64_t limit, uint64_t held, uint64_t size)
{
    return limit != 0 && (held > limit || size > limit - held);
}

allot_status alloti_segment_may_hold(const allot_heap *heap, uint32_t pool, uint64_t size,
                                     heap_bound bound)
{
    const heap_pool *const p = heap->pools[pool];
    const uint64_t soft = heap->options.limit_soft;
    if (size == 0) {
        return ALLOT_STATUS_OK;
    }
    if (bound == HEAP_BOUND_NONE) {
        return refuse("what is held, the bound", heap->held, heap->held, size);
    }
    if (is_above(heap->options.limit, heap->held, size)) {
        return refuse("the limit", heap->options.limit, heap->held, size);
    }
    if (is_above(p->limit, p->held, size)) {
        return refuse("the pool's limit", p->limit, p->held, size);
    }
    if (bound == HEAP_BOUND_SOFT && is_above(soft, heap->held, size)) {
        return refuse("the soft limit", soft, heap->held, size);
    }
    return ALLOT_STATUS_OK;
}

bool alloti_segment_is_too_large(const allot_heap *heap, uint32_t pool, uint64_t size)
{
    return is_above(heap->options.limit, 0, size) || is_above(heap->pools[pool]->limit, 0, size);
}

/* ---- the table ---- */

/** A place for a segment, zeroed but for its address. */
static allot_status take_place(allot_heap *heap, uint32_t *out)
{
    if (heap->segment_unused != ALLOT_NONE) {
        *out = heap->segment_unused;
        heap->segment_unused = heap->segments[*out].next;
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&heap->segments, &heap->segments_capacity,
                             (uint64_t)heap->segment_count + 1, sizeof *heap->segments);
    if (status == ALLOT_STATUS_OK) {
        *out = heap->segment_count++;
    }
    return status;
}

static void put_place(allot_heap *heap, uint32_t index)
{
    heap_segment *const segment = &heap->segments[index];
    allot_space_destroy(segment->space);
    free(segment->owners);
    free(segment->granules);
    *segment = (heap_segment){.next = heap->segment_unused};
    heap->segment_unused = index;
}

void alloti_segments_fini(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        allot_space_destroy(heap->segments[i].space);
        free(heap->segments[i].owners);
        free(heap->segments[i].granules);
    }
    free(heap->segments);
}

/* ---- sums ---- */

/** Bytes and ranges of a segment that are free though it has blocks. */
typedef struct split {
    uint64_t bytes;
    uint64_t count;
} split;

static split split_of(const heap_segment *segment)
{
    if (segment->active_count == 0) {
        return (split){0};
    }
    /* In mode VIRTUAL the space may be longer than what is mapped of it. */
    return (split){.bytes = segment->held - segment->active, .count = segment->space->free_count};
}

static void move_meter(heap_meter *meter, uint64_t before, uint64_t after)
{
    if (after > before) {
        heap_meter_add(meter, after - before);
    } else {
        heap_meter_sub(meter, before - after);
    }
}

static void count_split(heap_meters *meters, split before, split after)
{
    move_meter(&meters->inactive_split, before.count, after.count);
    move_meter(&meters->inactive_split_bytes, before.bytes, after.bytes);
}

/** What follows from a change of a segment, whose splits were `before`. */
static void note_change(allot_heap *heap, uint32_t index, split before)
{
    const heap_segment *const segment = &heap->segments[index];
    const heap_arena *const arena = heap->arenas[segment->arena];
    const split after = split_of(segment);
    count_split(&heap->meters, before, after);
    count_split(&heap->pools[arena->pool]->meters, before, after);
    count_split(&heap->streams[arena->meters_stream]->meters, before, after);
    alloti_arena_update(heap, index);
}

static void count_held(heap_meters *meters, uint64_t size, uint64_t pieces, bool is_more)
{
    if (is_more) {
        heap_meter_add(&meters->reserved_bytes, size);
        heap_meter_add(&meters->segment, pieces);
    } else {
        heap_meter_sub(&meters->reserved_bytes, size);
        heap_meter_sub(&meters->segment, pieces);
    }
}

static void count_all_held(allot_heap *heap, uint32_t index, uint64_t size, uint64_t pieces,
                           bool is_more)
{
    const heap_arena *const arena = heap->arenas[heap->segments[index].arena];
    count_held(&heap->meters, size, pieces, is_more);
    count_held(&heap->pools[arena->pool]->meters, size, pieces, is_more);
    count_held(&heap->streams[arena->meters_stream]->meters, size, pieces, is_more);
}

void alloti_segment_hold(allot_heap *heap, uint32_t index, uint64_t size, uint64_t pieces)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    if (heap->is_recycled) {
        segment->has_owner = segment->has_owners = true; /* it may be what others had */
    }
    segment->held += size;
    heap->held += size;
    heap->pools[heap->arenas[segment->arena]->pool]->held += size;
    heap->device_allocs += pieces;
    count_all_held(heap, index, size, pieces, true);
    note_change(heap, index, before);
}

void alloti_segment_let_go(allot_heap *heap, uint32_t index, uint64_t size, uint64_t pieces)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    heap->is_recycled = true;
    segment->held -= size;
    heap->held -= size;
    heap->pools[heap->arenas[segment->arena]->pool]->held -= size;
    heap->device_frees += pieces;
    count_all_held(heap, index, size, pieces, false);
    note_change(heap, index, before);
}

void alloti_segment_move(allot_heap *heap, uint32_t index, uint32_t arena)
{
    const heap_segment *const segment = &heap->segments[index];
    heap_meters *const from = &heap->streams[heap->arenas[segment->arena]->meters_stream]->meters;
    heap_meters *const to = &heap->streams[heap->arenas[arena]->meters_stream]->meters;
    const uint64_t pieces = heap->is_virtual ? segment->held / heap->info.granule : 1;
    count_held(from, segment->held, pieces, false);
    count_split(from, split_of(segment), (split){0});
    alloti_arena_remove(heap, index);
    alloti_arena_add(heap, arena, index);
    if (heap->is_virtual) {
        alloti_granules_note_free(heap, index, 0, segment->space->capacity);
    }
    /* For the new stream's checkpoints; the old one's work was waited for. */
    heap->segments[index].emptied_at = heap->streams[heap->arenas[arena]->stream]->epoch;
    count_held(to, segment->held, pieces, true);
    count_split(to, (split){0}, split_of(segment));
}

static allot_status reserve_owners(heap_segment *segment)
{
    return alloti_array_reserve(&segment->owners, &segment->owners_capacity,
                                (uint64_t)segment->space->count + segment->space->ops->places,
                                sizeof *segment->owners);
}

/** Bytes of blocks changed, in a segment and its pool. */
static void count_active(allot_heap *heap, uint32_t index, uint64_t less, uint64_t more)
{
    heap_segment *const segment = &heap->segments[index];
    heap_pool *const pool = heap->pools[heap->arenas[segment->arena]->pool];
    segment->active += more - less;
    pool->active += more - less;
}

/** A range became used; `before` are the segment's splits before that. */
static void begin_range(allot_heap *heap, uint32_t index, const allot_range *range, split before)
{
    heap_segment *const segment = &heap->segments[index];
    segment->owners[range->id] = ALLOT_NONE;
    count_active(heap, index, 0, range->size);
    segment->active_count++;
    note_change(heap, index, before);
}

allot_status alloti_segment_place(allot_heap *heap, uint32_t index, uint64_t size, uint64_t align,
                                  uint32_t tag, allot_range *out)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    allot_status status = reserve_owners(segment);
    if (status == ALLOT_STATUS_OK) {
        status = allot_space_alloc(segment->space, size, align, tag, out);
    }
    if (status == ALLOT_STATUS_OK) {
        begin_range(heap, index, out, before);
    }
    return status;
}

allot_status alloti_segment_take(allot_heap *heap, uint32_t index, uint32_t near, uint64_t offset,
                                 uint64_t size, uint32_t tag, allot_range *out)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    const uint32_t id = alloti_space_find_free(segment->space, near, offset);
    allot_status status = reserve_owners(segment);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_space_take(segment->space, id, offset, size, tag, out);
    }
    if (status == ALLOT_STATUS_OK) {
        begin_range(heap, index, out, before);
    }
    return status;
}

void alloti_segment_slide(allot_heap *heap, uint32_t index, uint32_t range, uint64_t offset)
{
    const split before = split_of(&heap->segments[index]);
    alloti_space_slide(heap->segments[index].space, range, offset);
    note_change(heap, index, before);
}

static void note_empty(allot_heap *heap, uint32_t index)
{
    heap_segment *const segment = &heap->segments[index];
    segment->emptied_at = heap->streams[heap->arenas[segment->arena]->stream]->epoch;
    alloti_habits_note_empty(heap, index);
}

allot_status alloti_segment_give_back(allot_heap *heap, uint32_t index, uint32_t range,
                                      uint64_t size)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    const allot_status status = allot_space_free(segment->space, range);
    if (status == ALLOT_STATUS_OK) {
        count_active(heap, index, size, 0);
        segment->active_count--;
        if (segment->active_count == 0) {
            note_empty(heap, index);
        }
        note_change(heap, index, before);
    }
    return status;
}

allot_status alloti_segment_resize(allot_heap *heap, uint32_t index, uint32_t range, uint64_t size,
                                   allot_range *out)
{
    heap_segment *const segment = &heap->segments[index];
    const split before = split_of(segment);
    allot_range old;
    allot_status status = allot_space_get(segment->space, range, &old);
    if (status == ALLOT_STATUS_OK) {
        status = allot_space_resize(segment->space, range, size);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_space_get(segment->space, range, out);
        count_active(heap, index, old.size, out->size);
        note_change(heap, index, before);
        if (heap->is_virtual) {
            alloti_granules_note_free(heap, index, old.offset, old.size);
        }
    }
    return status;
}

/* ---- making and releasing ---- */

uint64_t alloti_segment_slack(const allot_heap *heap, uint64_t align)
{
    /* What the device aligns to: addresses of segments are multiples of it. */
    const uint64_t base = heap->is_virtual ? heap->info.granule : heap->info.align;
    return align > base ? align : 0;
}

allot_status alloti_segment_create(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align,
                                   uint32_t *out)
{
    const uint64_t slack = alloti_segment_slack(heap, align);
    const heap_pool *const pool = heap->pools[heap->arenas[arena]->pool];
    const allot_space_options options = {.struct_size = sizeof options,
                                         .strategy = pool->strategy,
                                         .granule = heap->options.granule};
    heap_segment fresh = {.arena = arena};
    uint32_t index = 0;
    if (!alloti_add(size, slack, &fresh.device_size)) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%" PRIu64 " bytes are too many", size);
    }
    allot_status status = alloti_arena_reserve(heap->arenas[arena], 1);
    if (status == ALLOT_STATUS_OK) {
        status = allot_space_create(0, &options, &fresh.space);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (pool->habits != NULL) {
        alloti_adaptive_follow(fresh.space, &pool->habits->lifetimes);
    }
    if (!heap->is_virtual) {
        status = allot_space_set_capacity(fresh.space, size);
    } else {
        fresh.granules = alloti_calloc_array(size / heap->info.granule, sizeof *fresh.granules);
        status = fresh.granules == NULL ? alloti_fail_memory(size / heap->info.granule)
                                        : ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK) {
        status = take_place(heap, &index);
    }
    if (status != ALLOT_STATUS_OK) {
        allot_space_destroy(fresh.space);
        free(fresh.granules);
        return status;
    }
    allot_devptr ptr = {0};
    status = heap->is_virtual ? allot_device_reserve(heap->device, fresh.device_size, &ptr)
                              : allot_device_alloc(heap->device, fresh.device_size, &ptr);
    heap->segments[index] = fresh;
    if (status != ALLOT_STATUS_OK) {
        put_place(heap, index);
        return status;
    }
    heap_segment *const segment = &heap->segments[index];
    segment->size = size;
    segment->device_address = ptr.address;
    /* With slack there is room for this; without, the address is aligned already. */
    segment->address = slack == 0 ? ptr.address : (ptr.address + align - 1) & ~(align - 1);
    alloti_arena_add(heap, arena, index);
    if (!heap->is_virtual) {
        alloti_segment_hold(heap, index, fresh.device_size, 1);
    }
    alloti_record_segment(heap, ALLOT_EVENT_SEGMENT_ALLOC, index, segment->device_address,
                          heap->is_virtual ? 0 : fresh.device_size);
    *out = index;
    return ALLOT_STATUS_OK;
}

allot_status alloti_segment_abandon(allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_devptr ptr = {segment->device_address};
    if (!heap->is_virtual) {
        return allot_device_free(heap->device, ptr, segment->device_size);
    }
    const allot_status status = alloti_granules_abandon(heap, index);
    return status == ALLOT_STATUS_OK
               ? allot_device_unreserve(heap->device, ptr, segment->device_size)
               : status;
}

allot_status alloti_segment_release(allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_devptr ptr = {segment->device_address};
    const uint64_t size = segment->device_size;
    const allot_status status = alloti_segment_abandon(heap, index);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_record_segment(heap, ALLOT_EVENT_SEGMENT_FREE, index, ptr.address,
                          heap->is_virtual ? 0 : size);
    if (!heap->is_virtual) {
        alloti_segment_let_go(heap, index, size, 1);
    }
    alloti_arena_remove(heap, index);
    put_place(heap, index);
    return ALLOT_STATUS_OK;
}

/* ---- growing ---- */

allot_status alloti_segment_round(const allot_heap *heap, uint32_t pool, uint64_t *size,
                                  uint64_t *align)
{
    uint64_t rounded = 0;
    *align = *align < heap->options.granule ? heap->options.granule : *align;
    if (!alloti_align_up(*size, heap->options.granule, &rounded) || rounded > (UINT64_C(1) << 62) ||
        *align > (UINT64_C(1) << 62)) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%" PRIu64 " bytes are too many", *size);
    }
    if (heap->pools[pool]->strategy == ALLOT_SPACE_STRATEGY_BUDDY && !alloti_is_pow2(rounded)) {
        rounded = UINT64_C(2) << alloti_log2(rounded);
    }
    *size = rounded;
    return ALLOT_STATUS_OK;
}

/** A new plain segment: of its pool's size if that can be had, else as large as is needed. */
static allot_status grow_plain(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align,
                               heap_bound bound, uint32_t *fresh)
{
    const uint32_t pool = heap->arenas[arena]->pool;
    const uint64_t usual = alloti_habits_segment_size(heap, arena, size);
    const uint64_t slack = alloti_segment_slack(heap, align);
    if (size < usual &&
        alloti_segment_may_hold(heap, pool, usual + slack, bound) == ALLOT_STATUS_OK) {
        const allot_status status = alloti_segment_create(heap, arena, usual, align, fresh);
        if (status != ALLOT_STATUS_DEVICE_MEMORY) {
            return status;
        }
    }
    const allot_status status = alloti_segment_may_hold(heap, pool, size + slack, bound);
    return status == ALLOT_STATUS_OK ? alloti_segment_create(heap, arena, size, align, fresh)
                                     : status;
}

allot_status alloti_segment_grow(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align,
                                 heap_bound bound, uint32_t *fresh)
{
    const allot_status status = heap->is_virtual
                                    ? alloti_granules_grow(heap, arena, size, align, fresh)
                                    : grow_plain(heap, arena, size, align, bound, fresh);
    if (status == ALLOT_STATUS_OK) {
        alloti_habits_note_growth(heap, arena, size);
    }
    return status;
}

void alloti_segment_undo_growth(allot_heap *heap, uint32_t arena, uint32_t fresh)
{
    /* What the device does not take back stays as free memory. */
    if (fresh != ALLOT_NONE && heap->segments[fresh].active_count == 0 &&
        alloti_segment_release(heap, fresh) == ALLOT_STATUS_OK) {
        return;
    }
    for (uint32_t i = 0; heap->is_virtual && i < heap->arenas[arena]->count; i++) {
        alloti_granules_settle(heap, heap->arenas[arena]->segments[i]);
    }
}

/* ---- trimming ---- */

allot_status alloti_segment_trim(allot_heap *heap, uint32_t index, uint64_t size,
                                 uint64_t *released)
{
    const heap_segment *const segment = &heap->segments[index];
    if (heap->is_virtual) {
        return alloti_granules_trim(heap, index, size, released);
    }
    if (segment->active_count != 0) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t held = segment->held;
    const allot_status status = alloti_segment_release(heap, index);
    if (status == ALLOT_STATUS_OK) {
        *released += held;
    }
    return status;
}

uint64_t alloti_segment_trimmable(const allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    if (heap->is_virtual) {
        return alloti_granules_trimmable(heap, index);
    }
    return segment->active_count == 0 ? segment->held : 0;
}
