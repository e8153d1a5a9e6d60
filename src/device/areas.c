/* SPDX-License-Identifier: MIT */
#include "device/areas.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/compare.h"

static int compare(const void *owner, uint32_t a, uint32_t b)
{
    const device_areas *const areas = owner;
    return alloti_order(areas->items[a].address, areas->items[b].address);
}

/** An address comes first where an area ends at or below it: those sort before the address. */
static int compare_key(const void *owner, const void *key, uint32_t item)
{
    const device_area *const area = &((const device_areas *)owner)->items[item];
    const uint64_t address = *(const uint64_t *)key;
    return address - area->address >= area->size && address > area->address ? 1 : -1;
}

static alloti_tree_host host_of(const device_areas *areas)
{
    return (alloti_tree_host){
        .nodes = areas->nodes, .owner = (void *)(uintptr_t)areas, .compare = compare};
}

void alloti_areas_init(device_areas *areas)
{
    *areas = (device_areas){.first_free = ALLOT_NONE, .tree = ALLOTI_TREE_INIT};
}

void alloti_areas_fini(device_areas *areas)
{
    free(areas->items);
    free(areas->nodes);
    alloti_areas_init(areas);
}

allot_status alloti_areas_reserve(device_areas *areas)
{
    if (areas->first_free != ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t need = (uint64_t)areas->count + 1;
    if (need >= ALLOT_NONE) {
        return alloti_fail_memory(need);
    }
    const allot_status status =
        alloti_array_reserve(&areas->items, &areas->items_capacity, need, sizeof *areas->items);
    return status != ALLOT_STATUS_OK ? status
                                     : alloti_array_reserve(&areas->nodes, &areas->nodes_capacity,
                                                            need, sizeof *areas->nodes);
}

static uint32_t take_place(device_areas *areas)
{
    const uint32_t place = areas->first_free != ALLOT_NONE ? areas->first_free : areas->count++;
    if (place == areas->first_free) {
        areas->first_free = areas->items[place].next_free;
    } else {
        areas->nodes[place] = (alloti_tree_node){0};
    }
    return place;
}

allot_status alloti_areas_add(device_areas *areas, const device_area *area)
{
    const allot_status status = alloti_areas_reserve(areas);
    if (status == ALLOT_STATUS_OK) {
        const uint32_t place = take_place(areas);
        areas->items[place] = *area;
        const alloti_tree_host host = host_of(areas);
        alloti_tree_insert(&areas->tree, &host, place);
    }
    return status;
}

static const device_area *area_at(const device_areas *areas, uint32_t place)
{
    return place == ALLOT_NONE ? NULL : &areas->items[place];
}

const device_area *alloti_areas_first(const device_areas *areas)
{
    return area_at(areas, alloti_tree_first(&areas->tree, areas->nodes));
}

const device_area *alloti_areas_next(const device_areas *areas, const device_area *area)
{
    return area_at(areas, alloti_tree_next(areas->nodes, (uint32_t)(area - areas->items)));
}

/** First area that ends above an address; ALLOT_NONE if none does. */
static uint32_t first_above(const device_areas *areas, uint64_t address)
{
    const alloti_tree_host host = host_of(areas);
    return alloti_tree_lower_bound(&areas->tree, &host, &address, compare_key);
}

const device_area *alloti_areas_find(const device_areas *areas, uint64_t address)
{
    const uint32_t i = first_above(areas, address);
    return i != ALLOT_NONE && areas->items[i].address <= address ? &areas->items[i] : NULL;
}

const device_area *alloti_areas_at(const device_areas *areas, uint64_t address)
{
    const device_area *const found = alloti_areas_find(areas, address);
    return found != NULL && found->address == address ? found : NULL;
}

uint32_t alloti_areas_lift(device_areas *areas, const device_area *area)
{
    const uint32_t place = (uint32_t)(area - areas->items);
    const alloti_tree_host host = host_of(areas);
    alloti_tree_remove(&areas->tree, &host, place);
    return place;
}

void alloti_areas_put_back(device_areas *areas, uint32_t place)
{
    const alloti_tree_host host = host_of(areas);
    alloti_tree_insert(&areas->tree, &host, place);
}

void alloti_areas_give_up(device_areas *areas, uint32_t place)
{
    areas->items[place].next_free = areas->first_free;
    areas->first_free = place;
}

void alloti_areas_remove(device_areas *areas, const device_area *area)
{
    alloti_areas_give_up(areas, alloti_areas_lift(areas, area));
}

bool alloti_areas_pop(device_areas *areas, device_area *out)
{
    const uint32_t first = alloti_tree_first(&areas->tree, areas->nodes);
    if (first == ALLOT_NONE) {
        return false;
    }
    *out = areas->items[first];
    alloti_areas_remove(areas, &areas->items[first]);
    return true;
}

bool alloti_areas_overlap(const device_areas *areas, uint64_t address, uint64_t size)
{
    const uint32_t i = first_above(areas, address);
    return i != ALLOT_NONE && areas->items[i].address < address + size;
}

bool alloti_areas_cover(const device_areas *areas, uint64_t address, uint64_t size)
{
    const uint64_t end = address + size;
    uint32_t i = first_above(areas, address);
    for (uint64_t at = address; at < end; i = alloti_tree_next(areas->nodes, i)) {
        if (i == ALLOT_NONE || areas->items[i].address > at) {
            return false;
        }
        at = areas->items[i].address + areas->items[i].size;
    }
    return true;
}
