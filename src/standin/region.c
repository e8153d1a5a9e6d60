/* SPDX-License-Identifier: MIT */
#include "standin/region.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"

#define REGION_UNIT (UINT64_C(32) << 20)
#define LEAVES_MIN 64

static uint64_t length(address_range range)
{
    return range.end - range.begin;
}

/* ---- the tree of maxima: node i has the children 2i and 2i + 1, leaf of slot s is leaf_count + s
 */

static void tree_set(region_set *set, uint64_t slot, uint64_t value)
{
    uint64_t node = set->leaf_count + slot;
    set->largest[node] = value;
    for (node /= 2; node > 0; node /= 2) {
        const uint64_t left = set->largest[2 * node];
        const uint64_t right = set->largest[2 * node + 1];
        set->largest[node] = left > right ? left : right;
    }
}

/** The newest slot with a free piece of `size` bytes, ALLOT_NONE if there is none. */
static uint32_t tree_newest(const region_set *set, uint64_t size)
{
    if (set->leaf_count == 0 || set->largest[1] < size) {
        return ALLOT_NONE;
    }
    uint64_t node = 1;
    while (node < set->leaf_count) {
        node = 2 * node + (set->largest[2 * node + 1] >= size ? 1 : 0);
    }
    return (uint32_t)(node - set->leaf_count);
}

static uint64_t largest_piece(const region_set *set, const region *at)
{
    uint64_t best = 0;
    for (uint32_t i = at->piece_first; i != ALLOT_NONE; i = set->pieces[i].next) {
        const uint64_t size = length(set->pieces[i].range);
        best = size > best ? size : best;
    }
    return best;
}

/* ---- slots */

/** Close the gaps that regions left behind; the order stays. */
static void slots_pack(region_set *set)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < set->slot_count; i++) {
        if (length(set->slots[i].range) > 0) {
            set->slots[count++] = set->slots[i];
        }
    }
    set->slot_count = count;
}

/** Index in `places` of the first region that begins at or below an address. */
static uint64_t place_of(const region_set *set, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = set->place_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (set->places[middle].begin > address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/** Slots were renumbered, or the tree has a new size: write both anew. */
static void index_anew(region_set *set)
{
    memset(set->largest, 0, (size_t)(2 * set->leaf_count) * sizeof *set->largest);
    for (uint64_t i = 0; i < set->slot_count; i++) {
        set->places[place_of(set, set->slots[i].range.begin)].slot = (uint32_t)i;
        tree_set(set, i, largest_piece(set, &set->slots[i]));
    }
}

/** Room for one more slot: by packing if half of them are unused, else by a larger tree. */
static allot_status slots_make_room(region_set *set)
{
    if (set->slot_count < set->leaf_count) {
        return ALLOT_STATUS_OK;
    }
    uint64_t leaf_count = set->leaf_count == 0 ? LEAVES_MIN : set->leaf_count;
    if (set->place_count > leaf_count / 2 || set->leaf_count == 0) {
        leaf_count *= set->leaf_count == 0 ? 1 : 2;
        uint64_t *const larger = alloti_alloc_array(2 * leaf_count, sizeof *larger);
        if (larger == NULL) {
            return alloti_fail_memory(2 * leaf_count * sizeof *larger);
        }
        free(set->largest);
        set->largest = larger;
        set->leaf_count = leaf_count;
    }
    slots_pack(set);
    index_anew(set);
    return ALLOT_STATUS_OK;
}

/* ---- free pieces */

/** Make sure that one more piece can be had without failing. */
static allot_status pieces_make_room(region_set *set)
{
    return set->piece_unused != 0 ? ALLOT_STATUS_OK
                                  : alloti_array_reserve(&set->pieces, &set->piece_capacity,
                                                         set->piece_count + 1, sizeof *set->pieces);
}

static uint32_t piece_new(region_set *set, address_range range, uint32_t next)
{
    uint32_t at = (uint32_t)set->piece_count;
    if (set->piece_unused != 0) {
        at = set->piece_unused - 1;
        set->piece_unused = set->pieces[at].next;
    } else {
        set->piece_count++;
    }
    set->pieces[at] = (region_piece){range, next};
    return at;
}

static void piece_drop(region_set *set, uint32_t *link)
{
    const uint32_t at = *link;
    *link = set->pieces[at].next;
    set->pieces[at].next = set->piece_unused;
    set->piece_unused = at + 1;
}

/** Take from the lowest piece that is large enough; the caller knows that there is one. */
static uint64_t piece_cut(region_set *set, uint32_t slot, uint64_t size)
{
    uint32_t *link = &set->slots[slot].piece_first;
    while (length(set->pieces[*link].range) < size) {
        link = &set->pieces[*link].next;
    }
    address_range *const range = &set->pieces[*link].range;
    const uint64_t address = range->begin;
    range->begin += size;
    if (length(*range) == 0) {
        piece_drop(set, link);
    }
    return address;
}

/** Put a range among the free pieces of a region; there is room for one more. */
static void piece_join(region_set *set, uint32_t slot, address_range range)
{
    uint32_t *link = &set->slots[slot].piece_first;
    while (*link != ALLOT_NONE && set->pieces[*link].range.end < range.begin) {
        link = &set->pieces[*link].next;
    }
    if (*link != ALLOT_NONE && set->pieces[*link].range.end == range.begin) {
        range.begin = set->pieces[*link].range.begin;
        piece_drop(set, link);
    }
    if (*link != ALLOT_NONE && set->pieces[*link].range.begin == range.end) {
        set->pieces[*link].range.begin = range.begin;
        return;
    }
    *link = piece_new(set, range, *link);
}

/* ---- regions */

static allot_status region_make(region_set *set, address_space *space, uint64_t size, uint32_t *out)
{
    uint64_t extent = 0;
    if (!alloti_align_up(size, REGION_UNIT, &extent)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    allot_status status = slots_make_room(set);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&set->slots, &set->slot_capacity, set->slot_count + 1,
                                      sizeof *set->slots);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&set->places, &set->place_capacity, set->place_count + 1,
                                      sizeof *set->places);
    }
    if (status == ALLOT_STATUS_OK) {
        status = pieces_make_room(set);
    }
    uint64_t begin = 0;
    if (status == ALLOT_STATUS_OK) {
        status = address_take_highest(space, extent, REGION_UNIT, &begin);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const address_range range = {begin, begin + extent};
    const uint32_t slot = (uint32_t)set->slot_count++;
    set->slots[slot] = (region){range, piece_new(set, range, ALLOT_NONE)};
    const uint64_t at = place_of(set, begin);
    memmove(set->places + at + 1, set->places + at,
            (size_t)(set->place_count - at) * sizeof *set->places);
    set->places[at] = (region_place){begin, slot};
    set->place_count++;
    *out = slot;
    return ALLOT_STATUS_OK;
}

allot_status region_take(region_set *set, address_space *space, uint64_t size, uint64_t *out)
{
    uint32_t slot = tree_newest(set, size);
    if (slot == ALLOT_NONE) {
        const allot_status status = region_make(set, space, size, &slot);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = piece_cut(set, slot, size);
    tree_set(set, slot, largest_piece(set, &set->slots[slot]));
    return ALLOT_STATUS_OK;
}

allot_status region_give(region_set *set, address_space *space, uint64_t address, uint64_t size)
{
    allot_status status = pieces_make_room(set);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t at = place_of(set, address);
    const uint32_t slot = set->places[at].slot;
    region *const own = &set->slots[slot];
    piece_join(set, slot, (address_range){address, address + size});
    const address_range first = set->pieces[own->piece_first].range;
    if (length(first) == length(own->range)) {
        status = address_give(space, first.begin, length(first));
        if (status == ALLOT_STATUS_OK) {
            piece_drop(set, &own->piece_first);
            own->range.end = own->range.begin;
            set->place_count--;
            memmove(set->places + at, set->places + at + 1,
                    (size_t)(set->place_count - at) * sizeof *set->places);
        }
    }
    tree_set(set, slot, largest_piece(set, own));
    /* A region that could not be unmapped stays, and serves the next request. */
    return ALLOT_STATUS_OK;
}

bool region_set_check(const region_set *set)
{
    for (uint64_t i = 0; i < set->place_count; i++) {
        const region_place place = set->places[i];
        const region *const own = &set->slots[place.slot];
        if (own->range.begin != place.begin || length(own->range) == 0 ||
            (i > 0 && own->range.end > set->places[i - 1].begin) ||
            set->largest[set->leaf_count + place.slot] != largest_piece(set, own)) {
            return false;
        }
        uint64_t last = 0;
        for (uint32_t k = own->piece_first; k != ALLOT_NONE; k = set->pieces[k].next) {
            const address_range range = set->pieces[k].range;
            if (range.begin >= range.end || range.begin < own->range.begin ||
                range.end > own->range.end || (last != 0 && range.begin <= last)) {
                return false;
            }
            last = range.end;
        }
    }
    return true;
}

void region_set_fini(region_set *set)
{
    free(set->slots);
    free(set->largest);
    free(set->places);
    free(set->pieces);
    *set = (region_set){0};
}
