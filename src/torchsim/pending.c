/* SPDX-License-Identifier: MIT */
/** Freeing: at once, or later when other streams still use the block. */
#include "core/status.h"
#include "torchsim/sim.h"

void alloti_sim_enqueue(allot_torchsim *sim, uint32_t block)
{
    sim->blocks[block].queue_prev = sim->queue_last;
    sim->blocks[block].queue_next = ALLOT_NONE;
    if (sim->queue_last == ALLOT_NONE) {
        sim->queue_first = block;
    } else {
        sim->blocks[sim->queue_last].queue_next = block;
    }
    sim->queue_last = block;
}

static void dequeue(allot_torchsim *sim, uint32_t block)
{
    const uint32_t before = sim->blocks[block].queue_prev;
    const uint32_t after = sim->blocks[block].queue_next;
    if (before == ALLOT_NONE) {
        sim->queue_first = after;
    } else {
        sim->blocks[before].queue_next = after;
    }
    if (after == ALLOT_NONE) {
        sim->queue_last = before;
    } else {
        sim->blocks[after].queue_prev = before;
    }
}

/** Back into the cache, merged with free neighbours. */
static void finish_free(allot_torchsim *sim, uint32_t block)
{
    alloti_sim_emit_block(sim, ALLOT_EVENT_FREE_COMPLETED, block);
    sim_block *content = &sim->blocks[block];
    alloti_sim_gauge_sub(&sim->stats.active, content->size);
    alloti_sim_gauge_sub(&sim->stats.requested, content->requested);
    const bool is_classic = content->range == ALLOT_NONE;
    content->state = SIM_TAKEN;
    const uint64_t absorbed = alloti_sim_block_merge(sim, block);
    alloti_sim_block_cache(sim, block);
    if (!is_classic) {
        return;
    }
    alloti_sim_gauge_sub(&sim->stats.inactive_split, absorbed);
    if (sim_is_split(content)) {
        alloti_sim_gauge_add(&sim->stats.inactive_split, content->size);
    }
}

static void finish_pending(allot_torchsim *sim, uint32_t block)
{
    dequeue(sim, block);
    finish_free(sim, block);
}

/** After a capture: uses recorded inside it need no event, uses from before it do. */
static void insert_deferred_events(allot_torchsim *sim)
{
    uint32_t block = sim->queue_first;
    while (block != ALLOT_NONE) {
        const uint32_t next = sim->blocks[block].queue_next;
        if (sim->blocks[block].state == SIM_DEFERRED) {
            if ((sim->blocks[block].uses & SIM_USED) == 0) {
                finish_pending(sim, block);
            } else {
                sim->blocks[block].state = SIM_PENDING;
            }
        }
        block = next;
    }
}

static void finish_all(allot_torchsim *sim)
{
    while (sim->queue_first != ALLOT_NONE) {
        finish_pending(sim, sim->queue_first);
    }
}

void alloti_sim_process_events(allot_torchsim *sim)
{
    if (sim->queue_first == ALLOT_NONE) {
        return;
    }
    insert_deferred_events(sim);
    if (sim->completion == ALLOT_TORCH_COMPLETE_AT_ONCE) {
        finish_all(sim);
    }
}

void alloti_sim_synchronize(allot_torchsim *sim)
{
    sim->stats.sync_count++;
    finish_all(sim);
}

void alloti_sim_free_deferred(allot_torchsim *sim, uint32_t pool)
{
    uint32_t block = sim->queue_first;
    while (block != ALLOT_NONE) {
        const uint32_t next = sim->blocks[block].queue_next;
        if (sim->blocks[block].state == SIM_DEFERRED && sim->blocks[block].list / 2 == pool) {
            finish_pending(sim, block);
        }
        block = next;
    }
}

void alloti_sim_synchronize_pool(allot_torchsim *sim, uint32_t pool)
{
    sim->stats.sync_count++;
    insert_deferred_events(sim);
    uint32_t block = sim->queue_first;
    while (block != ALLOT_NONE) {
        const uint32_t next = sim->blocks[block].queue_next;
        if (sim->blocks[block].list / 2 == pool) {
            finish_pending(sim, block);
        }
        block = next;
    }
}

/** The block if its state is `state`. */
static sim_block *block_in_state(const allot_torchsim *sim, uint32_t block, sim_state state)
{
    if (block >= sim->block_count || sim->blocks[block].state != state) {
        return NULL;
    }
    return &sim->blocks[block];
}

allot_status allot_torchsim_free(allot_torchsim *sim, uint32_t block)
{
    sim_block *content = block_in_state(sim, block, SIM_ALLOCATED);
    if (content == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "block %u is not allocated", (unsigned)block);
    }
    alloti_sim_gauge_sub(&sim->stats.allocated, content->size);
    alloti_sim_emit_block(sim, ALLOT_EVENT_FREE_REQUESTED, block);
    if (content->uses == 0) {
        finish_free(sim, block);
    } else {
        content->state = sim->capture_count > 0 ? SIM_DEFERRED : SIM_PENDING;
        alloti_sim_enqueue(sim, block);
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_torchsim_record_stream(allot_torchsim *sim, uint32_t block, uint64_t stream)
{
    sim_block *content = block_in_state(sim, block, SIM_ALLOCATED);
    if (content == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "block %u is not allocated", (unsigned)block);
    }
    if (stream != content->stream) {
        content->uses |= sim->capture_count > 0 ? SIM_USED_IN_CAPTURE : SIM_USED;
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_torchsim_complete(allot_torchsim *sim, uint32_t block)
{
    if (block_in_state(sim, block, SIM_PENDING) == NULL &&
        block_in_state(sim, block, SIM_DEFERRED) == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "block %u waits for no stream", (unsigned)block);
    }
    finish_pending(sim, block);
    return ALLOT_STATUS_OK;
}
