/* SPDX-License-Identifier: MIT */
#include "compact/state.h"

#include <stdlib.h>

#include "compact/window.h"
#include "core/array.h"
#include "core/size_math.h"
#include "heap/block.h"
#include "heap/move.h"
#include "space/space.h"

#define PHASE_MIN (UINT64_C(2) << 20)

static allot_status add_block(compact_state *state, const compact_block *block)
{
    const allot_status status =
        alloti_array_reserve(&state->blocks, &state->blocks_capacity,
                             (uint64_t)state->block_count + 1, sizeof *state->blocks);
    if (status == ALLOT_STATUS_OK) {
        state->blocks[state->block_count++] = *block;
    }
    return status;
}

static allot_status read_used(compact_state *state, allot_heap *heap, compact_area *area,
                              uint32_t range)
{
    const heap_segment *const segment = &heap->segments[area->segment];
    const uint32_t owner = segment->owners[range];
    compact_block block = {.area = state->area_count,
                           .offset = range_offset(segment->space, range),
                           .size = range_size(segment->space, range)};
    heap_sight seen;
    if (owner != ALLOT_NONE && space_can_take(segment->space) &&
        alloti_block_look(heap, owner, state->waits, &seen) &&
        seen.like.align <= COMPACT_ALIGN_MAX &&
        seen.address == area->address + block.offset + seen.like.lead) {
        block.is_movable = true;
        block.align = seen.like.align;
        block.requested = seen.like.request.size;
        block.handle = seen.handle;
        state->phase = block.align > state->phase ? block.align : state->phase;
    }
    *(block.is_movable ? &area->size_movable : &area->size_fixed) += block.size;
    return add_block(state, &block);
}

/** In a virtual segment, parts of a free range to which no memory is mapped. */
static allot_status read_free(compact_state *state, const allot_heap *heap, compact_area *area,
                              uint32_t range)
{
    const heap_segment *const segment = &heap->segments[area->segment];
    const uint64_t granule = heap->info.granule;
    const uint64_t end = range_end(segment->space, range);
    uint64_t at = range_offset(segment->space, range);
    allot_status status = ALLOT_STATUS_OK;
    while (at < end && status == ALLOT_STATUS_OK) {
        uint64_t stop = alloti_align_down(at, granule) + granule;
        stop = stop < end ? stop : end;
        if (segment->granules[at / granule].memory.value == 0) {
            const compact_block wall = {
                .area = state->area_count, .offset = at, .size = stop - at, .is_wall = true};
            area->size_wall += wall.size;
            status = add_block(state, &wall);
        }
        at = stop;
    }
    return status;
}

static allot_status read_segment(compact_state *state, allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_space *const space = segment->space;
    compact_area area = {.segment = index,
                         .arena = segment->arena,
                         .address = segment->address,
                         .capacity = space->capacity,
                         .held = segment->held,
                         .first = state->block_count};
    allot_status status =
        alloti_array_reserve(&state->areas, &state->areas_capacity, (uint64_t)state->area_count + 1,
                             sizeof *state->areas);
    for (uint32_t id = space->first; id != ALLOT_NONE && status == ALLOT_STATUS_OK;
         id = space->ranges[id].next) {
        if (!space_is_free(space, id)) {
            status = read_used(state, heap, &area, id);
        } else if (heap->is_virtual) {
            status = read_free(state, heap, &area, id);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        area.count = state->block_count - area.first;
        state->areas[state->area_count++] = area;
    }
    return status;
}

allot_status alloti_compact_state_read(allot_heap *heap, bool waits, compact_state *out)
{
    compact_state state = {.info = heap->info,
                           .phase = PHASE_MIN,
                           .waits = waits,
                           .is_virtual = heap->is_virtual,
                           .granule = heap->options.granule};
    allot_status status = ALLOT_STATUS_OK;
    const uint32_t arena_count = atomic_load_explicit(&heap->arena_count, memory_order_acquire);
    for (uint32_t i = 0; i < arena_count && status == ALLOT_STATUS_OK; i++) {
        const heap_arena *const arena = heap->arenas[i];
        for (uint32_t k = 0; k < arena->count && status == ALLOT_STATUS_OK; k++) {
            status = read_segment(&state, heap, arena->segments[k]);
        }
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_compact_state_fini(&state);
        return status;
    }
    *out = state;
    return ALLOT_STATUS_OK;
}

void alloti_compact_state_fini(compact_state *state)
{
    free(state->areas);
    free(state->blocks);
}
