/* SPDX-License-Identifier: MIT */
/** Blocks, their chains by address and the trees of free ones. */
#include "core/array.h"
#include "core/compare.h"
#include "torchsim/sim.h"

#include <assert.h>

allot_status alloti_sim_reserve_blocks(allot_torchsim *sim, uint64_t count)
{
    if (sim->block_spare_count >= count) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t need = sim->block_count + (count - sim->block_spare_count);
    if (need >= ALLOT_NONE) {
        return alloti_fail_memory(UINT64_MAX);
    }
    allot_status status =
        alloti_array_reserve(&sim->blocks, &sim->block_capacity, need, sizeof(*sim->blocks));
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&sim->nodes, &sim->node_capacity, need, sizeof(*sim->nodes));
    }
    return status;
}

uint32_t alloti_sim_block_new(allot_torchsim *sim, const sim_block *content)
{
    uint32_t block = sim->block_spare;
    if (block != ALLOT_NONE) {
        sim->block_spare = sim->blocks[block].next;
        sim->block_spare_count--;
    } else {
        assert(sim->block_count < sim->block_capacity && sim->block_count < sim->node_capacity);
        block = (uint32_t)sim->block_count++;
    }
    sim->blocks[block] = *content;
    if (sim->version == SIM_BLOCKS_HAVE_AGE) {
        sim->blocks[block].serial = sim_serial_next(sim);
    }
    sim->nodes[block] = (alloti_tree_node){ALLOT_NONE, ALLOT_NONE, ALLOT_NONE, 0};
    return block;
}

void alloti_sim_block_drop(allot_torchsim *sim, uint32_t block)
{
    sim->blocks[block].state = SIM_DEAD;
    sim->blocks[block].next = sim->block_spare;
    sim->block_spare = block;
    sim->block_spare_count++;
}

void alloti_sim_block_splice(allot_torchsim *sim, uint32_t block, uint32_t before, uint32_t after)
{
    sim->blocks[block].prev = before;
    sim->blocks[block].next = after;
    if (before != ALLOT_NONE) {
        sim->blocks[before].next = block;
    }
    if (after != ALLOT_NONE) {
        sim->blocks[after].prev = block;
    }
}

static int compare_cached(const void *owner, uint32_t a, uint32_t b)
{
    const sim_block *blocks = owner;
    int result = alloti_order(blocks[a].stream, blocks[b].stream);
    if (result == 0) {
        result = alloti_order(blocks[a].size, blocks[b].size);
    }
    if (result == 0) {
        result = alloti_order(blocks[a].serial, blocks[b].serial);
    }
    return result != 0 ? result : alloti_order(blocks[a].address, blocks[b].address);
}

static int compare_unmapped(const void *owner, uint32_t a, uint32_t b)
{
    const sim_block *blocks = owner;
    const int result = alloti_order(blocks[a].stream, blocks[b].stream);
    return result != 0 ? result : alloti_order(blocks[a].address, blocks[b].address);
}

alloti_tree_host alloti_sim_cached_host(const allot_torchsim *sim)
{
    return (alloti_tree_host){
        .nodes = sim->nodes, .owner = sim->blocks, .compare = compare_cached, .update = NULL};
}

alloti_tree_host alloti_sim_unmapped_host(const allot_torchsim *sim)
{
    return (alloti_tree_host){
        .nodes = sim->nodes, .owner = sim->blocks, .compare = compare_unmapped, .update = NULL};
}

typedef struct cached_key {
    uint64_t stream;
    uint64_t size;
} cached_key;

static int compare_cached_key(const void *owner, const void *key, uint32_t item)
{
    const sim_block *block = (const sim_block *)owner + item;
    const cached_key *wanted = key;
    const int result = alloti_order(wanted->stream, block->stream);
    return result != 0 ? result : alloti_order(wanted->size, block->size);
}

static int compare_stream_key(const void *owner, const void *key, uint32_t item)
{
    const sim_block *block = (const sim_block *)owner + item;
    return alloti_order(*(const uint64_t *)key, block->stream);
}

uint32_t alloti_sim_cached_from(const allot_torchsim *sim, uint32_t list, uint64_t stream,
                                uint64_t size)
{
    const cached_key key = {.stream = stream, .size = size};
    const alloti_tree_host host = alloti_sim_cached_host(sim);
    return alloti_tree_lower_bound(&sim->lists[list].cached, &host, &key, compare_cached_key);
}

uint32_t alloti_sim_unmapped_from(const allot_torchsim *sim, uint32_t list, uint64_t stream)
{
    const alloti_tree_host host = alloti_sim_unmapped_host(sim);
    return alloti_tree_lower_bound(&sim->lists[list].unmapped, &host, &stream, compare_stream_key);
}

void alloti_sim_block_cache(allot_torchsim *sim, uint32_t block)
{
    sim_block *content = &sim->blocks[block];
    sim_list *list = &sim->lists[content->list];
    content->state = SIM_FREE;
    content->requested = 0;
    if (content->mapped) {
        const alloti_tree_host host = alloti_sim_cached_host(sim);
        content->gc_base = list->search_count;
        alloti_tree_insert(&list->cached, &host, block);
    } else {
        const alloti_tree_host host = alloti_sim_unmapped_host(sim);
        alloti_tree_insert(&list->unmapped, &host, block);
    }
}

void alloti_sim_block_take(allot_torchsim *sim, uint32_t block)
{
    sim_block *content = &sim->blocks[block];
    sim_list *list = &sim->lists[content->list];
    const alloti_tree_host host =
        content->mapped ? alloti_sim_cached_host(sim) : alloti_sim_unmapped_host(sim);
    alloti_tree_remove(content->mapped ? &list->cached : &list->unmapped, &host, block);
    content->state = SIM_TAKEN;
}

/** Absorb one neighbour if it is free and of the same kind; returns its size, 0 if it is not. */
static uint64_t absorb(allot_torchsim *sim, uint32_t block, uint32_t other)
{
    sim_block *into = &sim->blocks[block];
    if (other == ALLOT_NONE || sim->blocks[other].state != SIM_FREE ||
        sim->blocks[other].mapped != into->mapped) {
        return 0;
    }
    alloti_sim_block_take(sim, other);
    const sim_block from = sim->blocks[other];
    if (into->prev == other) {
        into->address = from.address;
        alloti_sim_block_splice(sim, block, from.prev, into->next);
    } else {
        alloti_sim_block_splice(sim, block, into->prev, from.next);
    }
    into->size += from.size;
    alloti_sim_block_drop(sim, other);
    return from.size;
}

uint64_t alloti_sim_block_merge(allot_torchsim *sim, uint32_t block)
{
    const uint64_t before = absorb(sim, block, sim->blocks[block].prev);
    return before + absorb(sim, block, sim->blocks[block].next);
}
