/* SPDX-License-Identifier: MIT */
/** Every invariant of the model, for tests and fuzzers. */
#include "core/status.h"
#include "torchsim/sim.h"

/** Sums that the statistics must agree with. */
typedef struct sums {
    uint64_t mapped;
    uint64_t allocated;
    uint64_t active;
    uint64_t requested;
    uint64_t inactive_split;
    uint64_t segments;
    uint64_t queued;
    uint64_t cached;
    uint64_t unmapped;
} sums;

static bool complain(uint32_t block, const char *what)
{
    (void)alloti_fail(ALLOT_STATUS_INVALID, "allocator state: block %u: %s", (unsigned)block, what);
    return false;
}

static bool is_free(const allot_torchsim *sim, uint32_t block)
{
    return sim->blocks[block].state == SIM_FREE;
}

static bool neighbours_check(const allot_torchsim *sim, uint32_t at)
{
    const sim_block *block = &sim->blocks[at];
    if (block->next == ALLOT_NONE) {
        return true;
    }
    const sim_block *next = &sim->blocks[block->next];
    if (next->prev != at || next->address != block->address + block->size ||
        next->range != block->range || next->list != block->list || next->stream != block->stream) {
        return complain(at, "does not fit to the next block");
    }
    if (is_free(sim, at) && is_free(sim, block->next) && next->mapped == block->mapped) {
        return complain(at, "is free beside a free block");
    }
    return true;
}

static bool range_check(const allot_torchsim *sim, uint32_t at)
{
    const sim_block *block = &sim->blocks[at];
    if (block->range == ALLOT_NONE) {
        return block->mapped || complain(at, "is unmapped in a classic segment");
    }
    const sim_range *range = &sim->ranges[block->range];
    if (block->address < range->address ||
        block->address + block->size > range->address + range->size ||
        (block->prev == ALLOT_NONE) != (block->address == range->address) ||
        (block->next == ALLOT_NONE) !=
            (block->address + block->size == range->address + range->size)) {
        return complain(at, "does not lie in its range");
    }
    if (!block->mapped &&
        ((block->address - range->address) % range->page != 0 || block->size % range->page != 0)) {
        return complain(at, "is unmapped in part of a page");
    }
    return true;
}

static bool block_check(const allot_torchsim *sim, uint32_t at, sums *sum)
{
    const sim_block *block = &sim->blocks[at];
    if (block->state == SIM_TAKEN || block->size == 0) {
        return complain(at, "is left over from a call");
    }
    if (alloti_tree_has(sim->nodes, at) != is_free(sim, at)) {
        return complain(at, "is in a tree and not free, or free and in none");
    }
    if (!block->mapped && !is_free(sim, at)) {
        return complain(at, "is in use without memory");
    }
    const bool is_active = block->state != SIM_FREE;
    sum->mapped += block->mapped ? block->size : 0;
    sum->allocated += block->state == SIM_ALLOCATED ? block->size : 0;
    sum->active += is_active ? block->size : 0;
    sum->requested += is_active ? block->requested : 0;
    sum->queued += block->state == SIM_PENDING || block->state == SIM_DEFERRED;
    sum->cached += is_free(sim, at) && block->mapped;
    sum->unmapped += is_free(sim, at) && !block->mapped;
    if (block->range == ALLOT_NONE) {
        sum->segments += block->prev == ALLOT_NONE;
        sum->inactive_split += is_free(sim, at) && sim_is_split(block) ? block->size : 0;
    }
    return neighbours_check(sim, at) && range_check(sim, at);
}

static bool trees_check(const allot_torchsim *sim, const sums *sum)
{
    const alloti_tree_host cached = alloti_sim_cached_host(sim);
    const alloti_tree_host unmapped = alloti_sim_unmapped_host(sim);
    uint64_t cached_count = 0;
    uint64_t unmapped_count = 0;
    for (uint64_t i = 0; i < 2 * sim->pool_count; i++) {
        if (!alloti_tree_check(&sim->lists[i].cached, &cached) ||
            !alloti_tree_check(&sim->lists[i].unmapped, &unmapped)) {
            return complain(ALLOT_NONE, "a tree of free blocks is out of order");
        }
        cached_count += sim->lists[i].cached.count;
        unmapped_count += sim->lists[i].unmapped.count;
    }
    return (cached_count == sum->cached && unmapped_count == sum->unmapped) ||
           complain(ALLOT_NONE, "free blocks and trees differ in number");
}

static bool queue_check(const allot_torchsim *sim, const sums *sum)
{
    uint64_t count = 0;
    uint32_t before = ALLOT_NONE;
    for (uint32_t at = sim->queue_first; at != ALLOT_NONE; at = sim->blocks[at].queue_next) {
        if (sim->blocks[at].queue_prev != before || ++count > sum->queued) {
            return complain(at, "the queue of pending blocks is broken");
        }
        before = at;
    }
    return (before == sim->queue_last && count == sum->queued) ||
           complain(ALLOT_NONE, "pending blocks and their queue differ");
}

static bool sums_check(const allot_torchsim *sim, const sums *sum)
{
    const allot_torch_stats *stats = &sim->stats;
    if (stats->reserved.now != sum->mapped || stats->allocated.now != sum->allocated ||
        stats->active.now != sum->active || stats->requested.now != sum->requested ||
        stats->inactive_split.now != sum->inactive_split ||
        stats->segment_count.now != sum->segments) {
        return complain(ALLOT_NONE, "the statistics are not the sums over the blocks");
    }
    if (sim->is_builtin && sim->builtin.used != sum->mapped) {
        return complain(ALLOT_NONE, "the driver holds another number of bytes");
    }
    return true;
}

bool alloti_torchsim_check(const allot_torchsim *sim)
{
    sums sum = {0};
    uint64_t dead = 0;
    for (uint32_t at = 0; at < sim->block_count; at++) {
        if (sim->blocks[at].state == SIM_DEAD) {
            dead++;
        } else if (!block_check(sim, at, &sum)) {
            return false;
        }
    }
    if (dead != sim->block_spare_count) {
        return complain(ALLOT_NONE, "dead blocks and their list differ in number");
    }
    return trees_check(sim, &sum) && queue_check(sim, &sum) && sums_check(sim, &sum);
}
