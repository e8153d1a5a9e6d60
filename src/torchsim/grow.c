/* SPDX-License-Identifier: MIT */
/** Memory from the driver and back, one classic segment at a time. */
#include "core/size_math.h"
#include "core/status.h"
#include "torchsim/sim.h"

/** What throw_on_cudamalloc_oom compares with is the setting, not a fraction set by a call. */
static bool is_rejected(const allot_torchsim *sim, const sim_request *request)
{
    if (!sim->conf.throw_on_cudamalloc_oom || sim->limit == UINT64_MAX) {
        return false;
    }
    const double share = sim->conf.per_process_memory_fraction * (double)sim->limit;
    const uint64_t allowed = (uint64_t)share;
    return sim->stats.reserved.now > allowed ||
           request->segment_size > allowed - sim->stats.reserved.now;
}

allot_status alloti_sim_grow(allot_torchsim *sim, sim_request *request)
{
    /* The maximum that a fraction allows is compared with the size of a classic segment in both
     * modes. */
    if (sim->has_fraction && (sim->stats.reserved.now > sim->allowed ||
                              request->segment_size > sim->allowed - sim->stats.reserved.now)) {
        sim->stats.refusal_count++;
        return ALLOT_STATUS_OK;
    }
    if (is_rejected(sim, request)) {
        request->is_rejected = true;
        sim->stats.rejection_count++;
        return ALLOT_STATUS_OK;
    }
    if (request->is_expandable) {
        return alloti_sim_expand(sim, request);
    }
    allot_status status = alloti_sim_reserve_blocks(sim, 1);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t address = 0;
    status = sim->driver.segment_alloc(sim->driver.context, request->segment_size, request->stream,
                                       &address);
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        sim->stats.refusal_count++;
        return ALLOT_STATUS_OK;
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    sim_block content = sim_block_alone(request->list, request->stream, ALLOT_NONE);
    content.address = address;
    content.size = request->segment_size;
    content.serial = sim_serial_next(sim);
    request->block = alloti_sim_block_new(sim, &content);
    sim_pool_of(sim, request->list)->segment_count++;
    alloti_sim_gauge_add(&sim->stats.reserved, content.size);
    alloti_sim_gauge_add(&sim->stats.segment_count, 1);
    sim->stats.driver_alloc_count++;
    sim->stats.bytes_taken += content.size;
    alloti_sim_emit_segment(sim, ALLOT_EVENT_SEGMENT_ALLOC, &content, content.address,
                            content.size);
    return ALLOT_STATUS_OK;
}

void alloti_sim_segment_release(allot_torchsim *sim, uint32_t block)
{
    alloti_sim_block_take(sim, block);
    const sim_block content = sim->blocks[block];
    sim->stats.driver_free_count++;
    alloti_sim_emit_segment(sim, ALLOT_EVENT_SEGMENT_FREE, &content, content.address, content.size);
    sim->driver.segment_free(sim->driver.context, content.address, content.size);
    sim_pool *pool = sim_pool_of(sim, content.list);
    pool->segment_count -= pool->segment_count > 0;
    alloti_sim_gauge_sub(&sim->stats.reserved, content.size);
    alloti_sim_gauge_sub(&sim->stats.segment_count, 1);
    alloti_sim_block_drop(sim, block);
}
