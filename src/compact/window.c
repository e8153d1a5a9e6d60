/* SPDX-License-Identifier: MIT */
#include "compact/window.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"
#include "heap/block.h"
#include "space/space.h"

bool alloti_compact_can_move(const heap_block *block)
{
    const uint64_t word = atomic_load_explicit(&block->word, memory_order_acquire);
    const uint64_t bits = word & (BLOCK_LIVE | BLOCK_FIXED | BLOCK_MOVING | BLOCK_DROPPED);
    return bits == BLOCK_LIVE && ((word >> BLOCK_PIN_SHIFT) & BLOCK_PINS_MAX) == 0 &&
           block->is_home && block->uses == ALLOT_NONE;
}

bool alloti_compact_is_changed(allot_status status)
{
    return status == ALLOT_STATUS_BUSY || status == ALLOT_STATUS_INVALID ||
           status == ALLOT_STATUS_NOT_FOUND;
}

static void add_item(compact_map *map, compact_item item)
{
    map->items[map->count++] = item;
}

/** A free range of a virtual segment: its parts with memory, and those without, which stay so. */
static void add_parts(compact_map *map, const heap_segment *segment, uint64_t granule,
                      uint64_t begin, uint64_t end)
{
    while (begin < end) {
        const bool has_memory = segment->granules[begin / granule].memory.value != 0;
        uint64_t stop = begin;
        do {
            stop = alloti_align_down(stop, granule) + granule;
        } while (stop < end && (segment->granules[stop / granule].memory.value != 0) == has_memory);
        stop = stop < end ? stop : end;
        add_item(map, (compact_item){.offset = begin,
                                     .size = stop - begin,
                                     .block = ALLOT_NONE,
                                     .is_fixed = !has_memory});
        begin = stop;
    }
}

static uint64_t most_items(const allot_heap *heap, const allot_space *space)
{
    const uint64_t ranges = space->used_count + space->free_count;
    return heap->is_virtual ? ranges + space->capacity / heap->info.granule + 1 : ranges;
}

allot_status alloti_compact_read(const allot_heap *heap, uint32_t index, compact_map *out)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_space *const space = segment->space;
    const allot_status status = alloti_array_reserve(&out->items, &out->capacity,
                                                     most_items(heap, space), sizeof *out->items);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    out->count = 0;
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        if (space_is_free(space, id) && heap->is_virtual) {
            add_parts(out, segment, heap->info.granule, range_offset(space, id),
                      range_end(space, id));
            continue;
        }
        const uint32_t owner = space_is_free(space, id) ? ALLOT_NONE : segment->owners[id];
        add_item(out,
                 (compact_item){.offset = range_offset(space, id),
                                .size = range_size(space, id),
                                .block = owner,
                                .is_fixed = owner != ALLOT_NONE &&
                                            !alloti_compact_can_move(heap_block_at(heap, owner))});
    }
    return ALLOT_STATUS_OK;
}

void alloti_compact_map_fini(compact_map *map)
{
    free(map->items);
}

static uint64_t cost_of(const compact_item *item)
{
    return item->block == ALLOT_NONE ? 0 : item->size;
}

/*
 * Two ends run over the ranges: a window begins where an item does, and takes in items until it is
 * long enough. Blocks that lie in part in the window are moved as a whole. The window starts anew
 * behind a block that cannot be moved.
 */
void alloti_compact_find(const compact_map *map, uint32_t segment, uint64_t size, uint64_t align,
                         uint64_t floor, compact_window *best)
{
    uint64_t end = 0;
    uint64_t cost = 0;
    for (uint64_t first = 0; first < map->count; first++) {
        const compact_item *const item = &map->items[first];
        const uint64_t begin = (item->offset + align - 1) & ~(align - 1);
        if (end < first) {
            end = first;
            cost = 0;
        }
        while (end < map->count && !map->items[end].is_fixed &&
               map->items[end].offset < begin + size) {
            cost += cost_of(&map->items[end]);
            end++;
        }
        const bool is_long_enough =
            end > first && map->items[end - 1].offset + map->items[end - 1].size >= begin + size;
        if (is_long_enough && begin < item->offset + item->size && cost < best->cost &&
            (cost == 0 || cost > floor)) {
            *best = (compact_window){
                .segment = segment, .begin = begin, .end = begin + size, .cost = cost};
        }
        if (end > first) {
            cost -= cost_of(item);
        }
    }
}
