/* SPDX-License-Identifier: MIT */
/** Giving memory back: garbage collection by age, oversize blocks, everything cached. */
#include "core/array.h"
#include "core/status.h"
#include "torchsim/sim.h"

static const uint32_t DEFAULT_LARGE = SIM_LARGE;
static const uint32_t DEFAULT_SMALL = SIM_SMALL;

/** Ages of blocks that garbage collection may free. */
typedef struct ages {
    uint64_t total; /**< Searches since each was cached, summed. */
    uint64_t count;
} ages;

static uint64_t age_of(const allot_torchsim *sim, uint32_t block)
{
    const sim_block *content = &sim->blocks[block];
    return sim->lists[content->list].search_count - content->gc_base;
}

/** Whether PyTorch counts the block; blocks in expandable ranges count but are never freed. */
static bool is_counted(const allot_torchsim *sim, uint32_t block)
{
    return !sim_is_split(&sim->blocks[block]);
}

/** Free every unsplit block at least as old as the average; returns the bytes. */
static uint64_t collect_once(allot_torchsim *sim, ages *left)
{
    const double threshold = (double)left->total / (double)left->count;
    uint64_t bytes = 0;
    uint32_t block = alloti_tree_first(&sim->lists[DEFAULT_LARGE].cached, sim->nodes);
    while (block != ALLOT_NONE) {
        const uint32_t next = alloti_tree_next(sim->nodes, block);
        const uint64_t age = age_of(sim, block);
        if (is_counted(sim, block) && sim->blocks[block].range == ALLOT_NONE &&
            (double)age >= threshold) {
            bytes += sim->blocks[block].size;
            left->total -= age;
            left->count--;
            alloti_sim_segment_release(sim, block);
        }
        block = next;
    }
    return bytes;
}

void alloti_sim_collect_garbage(allot_torchsim *sim)
{
    const double share = sim->conf.garbage_collection_threshold * (double)sim->allowed;
    const uint64_t threshold = (uint64_t)share;
    if (sim->stats.reserved.now <= threshold) {
        return;
    }
    const uint64_t target = sim->stats.reserved.now - threshold;
    ages left = {0, 0};
    for (uint32_t block = alloti_tree_first(&sim->lists[DEFAULT_LARGE].cached, sim->nodes);
         block != ALLOT_NONE; block = alloti_tree_next(sim->nodes, block)) {
        if (is_counted(sim, block)) {
            left.total += age_of(sim, block);
            left.count++;
        }
    }
    uint64_t collected = 0;
    uint64_t bytes = 1;
    while (collected < target && bytes > 0 && left.count > 0) {
        bytes = collect_once(sim, &left);
        collected += bytes;
    }
}

/**
 * Whether a block is a whole segment of its own. Oversize blocks are, except where segments are
 * larger than max_split_size (large_segment_size_mb): the rest of one may be oversize too, and the
 * driver takes no part of a segment back.
 */
static bool is_segment(const sim_block *block)
{
    return block->range == ALLOT_NONE && !sim_is_split(block);
}

/** Free oversize blocks from the largest down until `target` bytes are free. */
static bool release_from(allot_torchsim *sim, uint32_t block, uint64_t target, uint64_t stream)
{
    uint64_t bytes = 0;
    while (block != ALLOT_NONE && bytes < target &&
           sim->blocks[block].size >= sim->conf.max_split_size &&
           sim->blocks[block].stream == stream) {
        const uint32_t before = alloti_tree_prev(sim->nodes, block);
        if (is_segment(&sim->blocks[block])) {
            bytes += sim->blocks[block].size;
            alloti_sim_segment_release(sim, block);
        }
        block = before;
    }
    return bytes >= target;
}

bool alloti_sim_release_available(allot_torchsim *sim, const sim_request *request)
{
    const uint64_t max_split = sim->conf.max_split_size;
    if (max_split == ALLOT_TORCH_UNLIMITED) {
        return false;
    }
    const uint64_t size = request->size < max_split ? max_split : request->size;
    const uint32_t block = alloti_sim_cached_from(sim, request->list, request->stream, size);
    if (block != ALLOT_NONE && sim->blocks[block].stream == request->stream &&
        is_segment(&sim->blocks[block])) {
        alloti_sim_segment_release(sim, block);
        return true;
    }
    const uint32_t last = block == ALLOT_NONE
                              ? alloti_tree_last(&sim->lists[request->list].cached, sim->nodes)
                              : alloti_tree_prev(sim->nodes, block);
    return last != ALLOT_NONE && release_from(sim, last, size, request->stream);
}

/** Free the unsplit segments of a list, then unmap what is free in its expandable ranges. */
static allot_status release_list(allot_torchsim *sim, uint32_t list)
{
    const uint64_t count = sim->lists[list].cached.count;
    allot_status status =
        alloti_array_reserve(&sim->scratch, &sim->scratch_capacity, count, sizeof(*sim->scratch));
    if (status == ALLOT_STATUS_OK) {
        status = alloti_sim_reserve_blocks(sim, 2 * count);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t unmap_count = 0;
    uint32_t block = alloti_tree_first(&sim->lists[list].cached, sim->nodes);
    while (block != ALLOT_NONE) {
        const uint32_t next = alloti_tree_next(sim->nodes, block);
        if (sim->blocks[block].range != ALLOT_NONE) {
            sim->scratch[unmap_count++] = block;
        } else if (!sim_is_split(&sim->blocks[block])) {
            alloti_sim_segment_release(sim, block);
        }
        block = next;
    }
    for (uint64_t i = 0; i < unmap_count; i++) {
        alloti_sim_block_unmap(sim, sim->scratch[i]);
    }
    return ALLOT_STATUS_OK;
}

static allot_status release_pool(allot_torchsim *sim, uint32_t pool)
{
    const allot_status status = release_list(sim, 2 * pool + SIM_SMALL);
    return status == ALLOT_STATUS_OK ? release_list(sim, 2 * pool + SIM_LARGE) : status;
}

/**
 * The same for the pools that nobody uses any more, or for one of them (`only`; 0 for all); those
 * without segments disappear.
 */
static allot_status release_freeable(allot_torchsim *sim, uint32_t only)
{
    sim_pool_set *const set = &sim->freeable;
    uint64_t at = 0;
    while (at < set->count) {
        const uint32_t pool = set->entries[at].pool;
        if (only != 0 && pool != only) {
            at++;
            continue;
        }
        if (only != 0) {
            alloti_sim_synchronize_pool(sim, pool);
        }
        const allot_status status = release_pool(sim, pool);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        if (sim->pools[pool].segment_count == 0) {
            sim->pools[pool].is_gone = true;
            alloti_pool_set_remove(set, pool);
        } else {
            at++;
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_sim_release_cached(allot_torchsim *sim, bool in_capture)
{
    if (!in_capture) {
        alloti_sim_synchronize(sim);
        allot_status status = release_list(sim, DEFAULT_LARGE);
        if (status == ALLOT_STATUS_OK) {
            status = release_list(sim, DEFAULT_SMALL);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return release_freeable(sim, 0);
}

/** Up to here a release inside use_mem_pool() is one of that pool, which is in use. */
static const uint32_t LAST_POOL_CONTEXT = 207;

static bool is_in_mempool(const allot_torchsim *sim)
{
    for (uint64_t pool = 1; pool < sim->pool_count; pool++) {
        if (sim->pools[pool].is_begun && !sim->pools[pool].is_graph) {
            return true;
        }
    }
    return false;
}

allot_status allot_torchsim_empty_cache(allot_torchsim *sim)
{
    if (sim->version <= LAST_POOL_CONTEXT && is_in_mempool(sim)) {
        return ALLOT_STATUS_OK;
    }
    return alloti_sim_release_cached(sim, sim->capture_count > 0);
}

allot_status allot_torchsim_pool_empty_cache(allot_torchsim *sim, uint32_t pool)
{
    if (pool == ALLOT_NONE || pool + 1 >= sim->pool_count) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no private pool %u", (unsigned)pool);
    }
    return release_freeable(sim, pool + 1);
}
