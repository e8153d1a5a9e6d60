/* SPDX-License-Identifier: MIT */
/** The allocator as an object: making, copying, reading. */
#include "torchsim/sim.h"

#include "core/array.h"
#include "core/options.h"
#include "core/size_math.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

void alloti_sim_gauge_add(allot_torch_gauge *gauge, uint64_t amount)
{
    gauge->now += amount;
    if (gauge->now > gauge->peak) {
        gauge->peak = gauge->now;
    }
}

void alloti_sim_gauge_sub(allot_torch_gauge *gauge, uint64_t amount)
{
    gauge->now -= amount;
}

void alloti_sim_emit(const allot_torchsim *sim, const allot_torch_event *event)
{
    if (sim->on_event != NULL) {
        sim->on_event(sim->on_event_context, event);
    }
}

void alloti_sim_emit_block(const allot_torchsim *sim, allot_event_kind kind, uint32_t block)
{
    if (sim->on_event == NULL) {
        return;
    }
    const sim_block *content = &sim->blocks[block];
    const allot_torch_event event = {.kind = kind,
                                     .pool = sim_public_pool(content->list),
                                     .address = content->address,
                                     .size = content->requested,
                                     .stream = content->stream,
                                     .block = block,
                                     .is_for_large = !sim_is_small_list(content->list)};
    alloti_sim_emit(sim, &event);
}

void alloti_sim_emit_segment(const allot_torchsim *sim, allot_event_kind kind,
                             const sim_block *block, uint64_t address, uint64_t size)
{
    const allot_torch_event event = {.kind = kind,
                                     .pool = sim_public_pool(block->list),
                                     .address = address,
                                     .size = size,
                                     .stream = block->stream,
                                     .block = ALLOT_NONE,
                                     .is_for_large = !sim_is_small_list(block->list)};
    alloti_sim_emit(sim, &event);
}

static allot_status check_options(const allot_torchsim_options *options)
{
    if (!(options->fraction >= 0) || options->fraction > 1) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a memory fraction of %g is not in [0, 1]",
                           options->fraction);
    }
    if (options->version != 0 && (options->version < ALLOT_TORCH_VERSION_OLDEST ||
                                  options->version > ALLOT_TORCH_VERSION_NEWEST)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "PyTorch %u.%u is not known",
                           (unsigned)options->version / 100, (unsigned)options->version % 100);
    }
    return ALLOT_STATUS_OK;
}

static allot_status set_conf(allot_torchsim *sim, const allot_torch_conf *conf)
{
    allot_torch_conf_init(&sim->conf);
    if (conf == NULL) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_options_take(conf, sizeof(sim->conf), &sim->conf);
    if (status == ALLOT_STATUS_OK && sim->conf.backend != ALLOT_TORCH_BACKEND_NATIVE) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "backend:cudaMallocAsync leaves placement to the driver");
    }
    return status;
}

static allot_status set_driver(allot_torchsim *sim, const allot_torch_driver *driver)
{
    if (driver == NULL) {
        alloti_sim_builtin_init(sim);
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_options_take(driver, sizeof(sim->driver), &sim->driver);
    const allot_torch_driver *const own = &sim->driver;
    if (status == ALLOT_STATUS_OK &&
        (own->segment_alloc == NULL || own->segment_free == NULL || own->reserve == NULL ||
         own->unreserve == NULL || own->map == NULL || own->unmap == NULL ||
         own->free_bytes == NULL)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "the driver lacks an operation");
    }
    return status;
}

/** Bytes that a fraction allows: the one given, else the one in the settings. */
static allot_status set_fraction(allot_torchsim *sim, double fraction)
{
    if (fraction == 0 && sim->conf.per_process_memory_fraction < 1) {
        fraction = sim->conf.per_process_memory_fraction;
    }
    sim->allowed = UINT64_MAX;
    if (fraction == 0 || (fraction == 1 && sim->version >= SIM_WHOLE_IS_NO_LIMIT)) {
        return ALLOT_STATUS_OK;
    }
    if (sim->limit == UINT64_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "a memory fraction needs the size of the device (a limit)");
    }
    sim->has_fraction = true;
    sim->allowed = alloti_to_u64(fraction * (double)sim->limit);
    return ALLOT_STATUS_OK;
}

static allot_status init(allot_torchsim *sim, const allot_torchsim_options *options)
{
    sim->limit = options->limit == 0 ? UINT64_MAX : options->limit;
    sim->version = options->version == 0 ? ALLOT_TORCH_VERSION_NEWEST : options->version;
    sim->completion = options->completion;
    sim->on_event = options->on_event;
    sim->on_event_context = options->on_event_context;
    sim->block_spare = sim->queue_first = sim->queue_last = ALLOT_NONE;
    sim->stats.struct_size = sizeof(sim->stats);
    allot_status status = set_conf(sim, options->conf);
    if (status == ALLOT_STATUS_OK) {
        status = set_driver(sim, options->driver);
    }
    if (status == ALLOT_STATUS_OK) {
        status = set_fraction(sim, options->fraction);
    }
    return status != ALLOT_STATUS_OK ? status : allot_torchsim_pool_create(sim, NULL, NULL);
}

allot_status allot_torchsim_create(const allot_torchsim_options *options, allot_torchsim **out)
{
    allot_torchsim_options o;
    allot_status status = alloti_options_take(options, sizeof(o), &o);
    if (status == ALLOT_STATUS_OK) {
        status = check_options(&o);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_torchsim *sim = calloc(1, sizeof(*sim));
    if (sim == NULL) {
        return alloti_fail_memory(sizeof(*sim));
    }
    status = init(sim, &o);
    if (status != ALLOT_STATUS_OK) {
        allot_torchsim_destroy(sim);
        return status;
    }
    *out = sim;
    return ALLOT_STATUS_OK;
}

void allot_torchsim_destroy(allot_torchsim *sim)
{
    if (sim == NULL) {
        return;
    }
    free(sim->blocks);
    free(sim->nodes);
    free(sim->pools);
    free(sim->lists);
    free(sim->freeable.entries);
    free(sim->offered.entries);
    free(sim->ranges);
    free(sim->scratch);
    free(sim);
}

/** Copy of `count` items, with room for no more; false without memory. NULL stands for none. */
static bool copy_array(void *pointer, uint64_t *capacity, uint64_t count, size_t size)
{
    void *copy = NULL;
    if (count > 0) {
        copy = alloti_alloc_array(count, size);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, *(void **)pointer, (size_t)count * size);
    }
    *(void **)pointer = copy;
    *capacity = count;
    return true;
}

allot_status allot_torchsim_clone(const allot_torchsim *sim, allot_torchsim **out)
{
    allot_torchsim *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return alloti_fail_memory(sizeof(*copy));
    }
    *copy = *sim;
    copy->scratch = NULL;
    copy->scratch_capacity = 0;
    void *const arrays[] = {
        &copy->blocks,           &copy->nodes,           &copy->pools, &copy->lists,
        &copy->freeable.entries, &copy->offered.entries, &copy->ranges};
    uint64_t *const capacities[] = {&copy->block_capacity,    &copy->node_capacity,
                                    &copy->pool_capacity,     &copy->list_capacity,
                                    &copy->freeable.capacity, &copy->offered.capacity,
                                    &copy->range_capacity};
    const uint64_t counts[] = {sim->block_count,    sim->block_count, sim->pool_count,
                               2 * sim->pool_count, sim->pool_count,  sim->pool_count,
                               sim->range_count};
    const size_t sizes[] = {sizeof(sim_block), sizeof(alloti_tree_node), sizeof(sim_pool),
                            sizeof(sim_list),  sizeof(sim_pool_entry),   sizeof(sim_pool_entry),
                            sizeof(sim_range)};
    bool ok = true;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (!ok || !copy_array(arrays[i], capacities[i], counts[i], sizes[i])) {
            ok = false;
            *(void **)arrays[i] = NULL;
        }
    }
    if (!ok) {
        allot_torchsim_destroy(copy);
        return alloti_fail_memory(sim->block_count * sizeof(sim_block));
    }
    if (copy->is_builtin) {
        copy->driver.context = &copy->builtin;
    }
    *out = copy;
    return ALLOT_STATUS_OK;
}

const allot_torch_stats *allot_torchsim_get_stats(const allot_torchsim *sim)
{
    return &sim->stats;
}

void allot_torchsim_reset_peaks(allot_torchsim *sim)
{
    allot_torch_gauge *const gauges[] = {&sim->stats.reserved,       &sim->stats.allocated,
                                         &sim->stats.active,         &sim->stats.requested,
                                         &sim->stats.inactive_split, &sim->stats.segment_count};
    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
        gauges[i]->peak = gauges[i]->now;
    }
}

void alloti_torchsim_set_range_bytes(allot_torchsim *sim, uint64_t bytes)
{
    sim->range_bytes = bytes;
}

uint64_t alloti_torchsim_largest_free(const allot_torchsim *sim)
{
    uint64_t largest = 0;
    for (uint64_t at = 0; at < sim->block_count; at++) {
        const sim_block *block = &sim->blocks[at];
        if (block->state == SIM_FREE && block->mapped && block->size > largest) {
            largest = block->size;
        }
    }
    return largest;
}

static allot_block_state public_state(const sim_block *block)
{
    switch ((sim_state)block->state) {
    case SIM_ALLOCATED:
        return ALLOT_BLOCK_ALLOCATED;
    case SIM_PENDING:
    case SIM_DEFERRED:
        return ALLOT_BLOCK_PENDING_FREE;
    case SIM_DEAD:
    case SIM_FREE:
    case SIM_TAKEN:
        break;
    }
    return ALLOT_BLOCK_INACTIVE;
}

static allot_torch_block describe(const allot_torchsim *sim, uint32_t block, uint64_t segment)
{
    const sim_block *content = &sim->blocks[block];
    const allot_block_state state = public_state(content);
    return (allot_torch_block){.address = content->address,
                               .size = content->size,
                               .requested_size = content->requested,
                               .stream = content->stream,
                               .segment = segment,
                               .pool = sim_public_pool(content->list),
                               .block = state == ALLOT_BLOCK_INACTIVE ? ALLOT_NONE : block,
                               .state = state,
                               .is_mapped = content->mapped,
                               .is_large = !sim_is_small_list(content->list),
                               .is_expandable = content->range != ALLOT_NONE};
}

/** First block of the chain, which begins where its segment does. */
static uint64_t segment_of(const allot_torchsim *sim, uint32_t block)
{
    while (sim->blocks[block].prev != ALLOT_NONE) {
        block = sim->blocks[block].prev;
    }
    return sim->blocks[block].address;
}

allot_status allot_torchsim_get_block(const allot_torchsim *sim, uint32_t block,
                                      allot_torch_block *out)
{
    if (block >= sim->block_count || public_state(&sim->blocks[block]) == ALLOT_BLOCK_INACTIVE) {
        return alloti_fail(ALLOT_STATUS_INVALID, "block %u is not in use", (unsigned)block);
    }
    *out = describe(sim, block, segment_of(sim, block));
    return ALLOT_STATUS_OK;
}

void allot_torchsim_walk(const allot_torchsim *sim,
                         bool (*visit)(void *context, const allot_torch_block *block),
                         void *context)
{
    for (uint32_t head = 0; head < sim->block_count; head++) {
        if (sim->blocks[head].state == SIM_DEAD || sim->blocks[head].prev != ALLOT_NONE) {
            continue;
        }
        const uint64_t segment = sim->blocks[head].address;
        for (uint32_t at = head; at != ALLOT_NONE; at = sim->blocks[at].next) {
            const allot_torch_block block = describe(sim, at, segment);
            if (!visit(context, &block)) {
                return;
            }
        }
    }
}
