/* SPDX-License-Identifier: MIT */
/** Private pools: those of CUDA graphs and torch.cuda.MemPool. */
#include "core/array.h"
#include "core/options.h"
#include "core/status.h"
#include "torchsim/sim.h"

/** Up to this release every private pool counts as a capture while it is begun. */
static const uint32_t LAST_SHARED_CAPTURE = 212;

bool alloti_sim_makes_capture(const allot_torchsim *sim, const sim_pool *pool)
{
    return pool->is_graph || sim->version <= LAST_SHARED_CAPTURE;
}

bool alloti_sim_is_in_capture(const allot_torchsim *sim, uint32_t pool)
{
    return sim->version <= LAST_SHARED_CAPTURE ? sim->capture_count > 0 : sim->pools[pool].is_graph;
}

allot_status allot_torchsim_pool_create(allot_torchsim *sim,
                                        const allot_torch_pool_options *options, uint32_t *pool)
{
    const uint64_t index = sim->pool_count;
    allot_torch_pool_options o;
    allot_status status = alloti_options_take(options, sizeof(o), &o);
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_array_reserve(&sim->pools, &sim->pool_capacity, index + 1, sizeof(*sim->pools));
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&sim->lists, &sim->list_capacity, 2 * (index + 1),
                                      sizeof(*sim->lists));
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pool_set_reserve(&sim->freeable, index + 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pool_set_reserve(&sim->offered, index + 1);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    sim->pools[index] = (sim_pool){
        .number = o.number,
        .use_count = 1,
        .use_on_oom = o.use_on_oom,
        .no_split = o.no_split,
        .has_allocator = o.has_allocator,
        .is_graph = o.is_graph,
    };
    const sim_list empty = {.cached = ALLOTI_TREE_INIT, .unmapped = ALLOTI_TREE_INIT};
    sim->lists[2 * index + SIM_LARGE] = empty;
    sim->lists[2 * index + SIM_SMALL] = empty;
    if (o.use_on_oom) {
        alloti_pool_set_add(&sim->offered, (uint32_t)index, o.number);
    }
    sim->pool_count++;
    if (pool != NULL) {
        *pool = (uint32_t)(index - 1);
    }
    return ALLOT_STATUS_OK;
}

static sim_pool *private_pool(const allot_torchsim *sim, uint32_t pool)
{
    if (pool == ALLOT_NONE || pool + 1 >= sim->pool_count || sim->pools[pool + 1].is_gone) {
        return NULL;
    }
    return &sim->pools[pool + 1];
}

allot_status allot_torchsim_pool_begin(allot_torchsim *sim, uint32_t pool)
{
    sim_pool *content = private_pool(sim, pool);
    if (content == NULL || content->is_begun || content->use_count == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "cannot direct allocations to private pool %u",
                           (unsigned)pool);
    }
    content->is_begun = true;
    content->use_count++;
    sim->capture_count += alloti_sim_makes_capture(sim, content);
    return ALLOT_STATUS_OK;
}

allot_status allot_torchsim_pool_end(allot_torchsim *sim, uint32_t pool)
{
    sim_pool *content = private_pool(sim, pool);
    if (content == NULL || !content->is_begun) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no allocations are directed to private pool %u",
                           (unsigned)pool);
    }
    content->is_begun = false;
    sim->capture_count -= alloti_sim_makes_capture(sim, content);
    if (sim->version >= SIM_ENDS_FREE && sim->conf.graph_capture_record_stream_reuse) {
        alloti_sim_free_deferred(sim, pool + 1);
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_torchsim_pool_release(allot_torchsim *sim, uint32_t pool)
{
    sim_pool *content = private_pool(sim, pool);
    if (content == NULL || content->use_count == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "private pool %u has no use to give up",
                           (unsigned)pool);
    }
    if (--content->use_count == 0) {
        alloti_pool_set_remove(&sim->offered, pool + 1);
        alloti_pool_set_add(&sim->freeable, pool + 1, content->number);
    }
    return ALLOT_STATUS_OK;
}
