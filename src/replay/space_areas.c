/* SPDX-License-Identifier: MIT */
#include "replay/space_areas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"

enum { ROUND = 512 /* as the device heap, and PyTorch */ };

static void area_fini(alloti_space_area *area)
{
    allot_space_destroy(area->space);
    alloti_span_set_fini(&area->mapped);
}

void alloti_space_areas_fini(alloti_space_areas *areas)
{
    for (uint32_t i = 0; i < areas->count; i++) {
        area_fini(&areas->items[i]);
    }
    free(areas->items);
    *areas = (alloti_space_areas){.items = NULL};
}

allot_status alloti_space_areas_add(alloti_space_areas *areas, allot_space_strategy strategy,
                                    uint64_t address, uint64_t size, uint64_t stream,
                                    alloti_space_area **out)
{
    allot_status status = alloti_array_reserve(&areas->items, &areas->capacity,
                                               (uint64_t)areas->count + 1, sizeof *areas->items);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_space_options options = {
        .struct_size = sizeof options, .strategy = strategy, .granule = ROUND};
    alloti_space_area *const area = &areas->items[areas->count];
    *area = (alloti_space_area){
        .address = address, .size = size, .stream = stream, .mapped = ALLOTI_SPAN_SET_EMPTY};
    status = allot_space_create(size, &options, &area->space);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    area->largest = size;
    areas->count++;
    *out = area;
    return ALLOT_STATUS_OK;
}

void alloti_space_areas_remove(alloti_space_areas *areas, uint32_t index)
{
    assert(index < areas->count);
    area_fini(&areas->items[index]);
    areas->count--;
    memmove(&areas->items[index], &areas->items[index + 1],
            (areas->count - index) * sizeof *areas->items);
}

alloti_space_area *alloti_space_areas_find(const alloti_space_areas *areas, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = areas->count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (areas->items[middle].address <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    assert(low < areas->count && areas->items[low].address <= address);
    return &areas->items[low];
}

allot_status alloti_space_area_take(alloti_space_area *area, uint64_t size, uint64_t stream,
                                    alloti_span *out)
{
    allot_range range;
    const uint32_t tag = (uint32_t)(stream ^ stream >> 32);
    const allot_status status = allot_space_alloc(area->space, size, 0, tag, &range);
    if (status == ALLOT_STATUS_FRAGMENTED) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    area->used += range.size;
    *out = (alloti_span){
        .address = area->address + range.offset, .size = range.size, .segment = range.id};
    return ALLOT_STATUS_OK;
}

allot_status alloti_space_area_give(alloti_space_area *area, alloti_span piece)
{
    const allot_status status = allot_space_free(area->space, piece.segment);
    if (status == ALLOT_STATUS_OK) {
        area->used -= piece.size;
    }
    return status;
}
