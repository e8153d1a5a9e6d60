/* SPDX-License-Identifier: MIT */
#include "replay/undo_blocks.h"

#include "core/array.h"
#include "core/status.h"

#include <assert.h>
#include <stdlib.h>

void alloti_undo_fini(undoing *undo)
{
    free(undo->blocks);
    free(undo->nodes);
    free(undo->homes);
}

static int compare_blocks(const void *owner, uint32_t a, uint32_t b)
{
    const undo_block *blocks = owner;
    return (blocks[a].address > blocks[b].address) - (blocks[a].address < blocks[b].address);
}

static int compare_address(const void *owner, const void *key, uint32_t item)
{
    const uint64_t address = ((const undo_block *)owner)[item].address;
    const uint64_t wanted = *(const uint64_t *)key;
    return (wanted > address) - (wanted < address);
}

static alloti_tree_host host_of(const undoing *undo)
{
    return (alloti_tree_host){
        .nodes = undo->nodes, .owner = undo->blocks, .compare = compare_blocks};
}

allot_status alloti_undo_add(undoing *undo, const undo_block *content, uint32_t *out)
{
    const uint64_t need = undo->block_count + 1;
    allot_status status =
        alloti_array_reserve(&undo->blocks, &undo->block_capacity, need, sizeof(*undo->blocks));
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_array_reserve(&undo->nodes, &undo->node_capacity, need, sizeof(*undo->nodes));
    }
    if (status == ALLOT_STATUS_OK && need >= ALLOT_NONE) {
        status = alloti_fail_memory(UINT64_MAX);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint32_t block = (uint32_t)undo->block_count++;
    undo->blocks[block] = *content;
    const alloti_tree_host host = host_of(undo);
    alloti_tree_insert(&undo->tree, &host, block);
    if (out != NULL) {
        *out = block;
    }
    return ALLOT_STATUS_OK;
}

void alloti_undo_drop(undoing *undo, uint32_t block)
{
    const alloti_tree_host host = host_of(undo);
    alloti_tree_remove(&undo->tree, &host, block);
    undo->blocks[block].is_dead = true;
}

uint32_t alloti_undo_from(const undoing *undo, uint64_t address)
{
    const alloti_tree_host host = host_of(undo);
    return alloti_tree_lower_bound(&undo->tree, &host, &address, compare_address);
}

uint32_t alloti_undo_find(const undoing *undo, uint64_t address)
{
    uint32_t block = alloti_undo_from(undo, address);
    if (block == ALLOT_NONE || undo->blocks[block].address != address) {
        block = block == ALLOT_NONE ? alloti_tree_last(&undo->tree, undo->nodes)
                                    : alloti_tree_prev(undo->nodes, block);
    }
    if (block == ALLOT_NONE || address - undo->blocks[block].address >= undo->blocks[block].size) {
        return ALLOT_NONE;
    }
    return block;
}

uint32_t alloti_undo_neighbour(const undoing *undo, uint32_t block, bool after)
{
    assert(undo->blocks != NULL);
    const uint32_t other =
        after ? alloti_tree_next(undo->nodes, block) : alloti_tree_prev(undo->nodes, block);
    if (other == ALLOT_NONE || undo->blocks[other].home != undo->blocks[block].home) {
        return ALLOT_NONE;
    }
    const undo_block *low = &undo->blocks[after ? block : other];
    const undo_block *high = &undo->blocks[after ? other : block];
    return low->address + low->size == high->address ? other : ALLOT_NONE;
}

void alloti_undo_merge(undoing *undo, uint32_t block)
{
    const uint32_t after = alloti_undo_neighbour(undo, block, true);
    if (after != ALLOT_NONE && undo->blocks[after].state == ALLOT_BLOCK_INACTIVE) {
        undo->blocks[block].size += undo->blocks[after].size;
        alloti_undo_drop(undo, after);
    }
    const uint32_t before = alloti_undo_neighbour(undo, block, false);
    if (before != ALLOT_NONE && undo->blocks[before].state == ALLOT_BLOCK_INACTIVE) {
        undo->blocks[before].size += undo->blocks[block].size;
        alloti_undo_drop(undo, block);
    }
}

allot_status alloti_undo_add_home(undoing *undo, const undo_home *home, uint32_t *out)
{
    const allot_status status = alloti_array_reserve(&undo->homes, &undo->home_capacity,
                                                     undo->home_count + 1, sizeof(*undo->homes));
    if (status == ALLOT_STATUS_OK) {
        *out = (uint32_t)undo->home_count;
        undo->homes[undo->home_count++] = *home;
    }
    return status;
}

allot_status alloti_undo_range_home(undoing *undo, const undo_home *home, uint32_t *out)
{
    for (uint32_t i = 0; i < undo->range_count; i++) {
        const undo_home *other = &undo->homes[undo->ranges[i]];
        if (other->stream == home->stream && other->pool == home->pool &&
            other->is_large == home->is_large) {
            *out = undo->ranges[i];
            return ALLOT_STATUS_OK;
        }
    }
    if (undo->range_count == RANGES_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "more than %u expandable ranges",
                           (unsigned)RANGES_MAX);
    }
    const allot_status status = alloti_undo_add_home(undo, home, out);
    if (status == ALLOT_STATUS_OK) {
        undo->ranges[undo->range_count++] = *out;
    }
    return status;
}
