/* SPDX-License-Identifier: MIT */
/**
 * An allocation from request to block: round, search the cache, and on a miss the ladder that
 * PyTorch climbs: collect garbage, take a segment, (use a pool that offers itself,) release
 * oversize blocks, release everything, give up.
 */
#include "core/size_math.h"
#include "core/status.h"
#include "torchsim/rounding.h"
#include "torchsim/sim.h"

uint64_t alloti_sim_round_size(const allot_torchsim *sim, uint64_t size)
{
    return alloti_torch_round(&sim->conf, size);
}

uint64_t alloti_sim_segment_size(const allot_torchsim *sim, uint64_t rounded)
{
    if (rounded <= SIM_SMALL_MAX) {
        return SIM_SMALL_SEGMENT;
    }
    if (rounded < SIM_MIN_LARGE) {
        return sim->conf.large_segment_size;
    }
    uint64_t size = rounded;
    const bool fits = alloti_align_up(rounded, SIM_ROUND_LARGE, &size);
    return fits ? size : rounded;
}

/** Size up to which a block in an expandable range could grow where it lies. */
static uint64_t expandable_size(const allot_torchsim *sim, uint32_t block)
{
    const sim_block *content = &sim->blocks[block];
    const uint32_t next = content->next;
    const bool grows = next != ALLOT_NONE && !sim->blocks[next].mapped;
    return content->size + (grows ? sim->blocks[next].size : 0);
}

static bool is_candidate(const allot_torchsim *sim, uint32_t block, uint64_t stream)
{
    return block != ALLOT_NONE && sim->blocks[block].stream == stream;
}

/** The block at the end of a range can grow, so it counts as large: prefer ones that cannot. */
static uint32_t skip_growing(const allot_torchsim *sim, uint32_t block, uint64_t stream)
{
    uint32_t next = alloti_tree_next(sim->nodes, block);
    while (sim->blocks[block].range != ALLOT_NONE && is_candidate(sim, next, stream) &&
           expandable_size(sim, next) < expandable_size(sim, block)) {
        block = next;
        next = alloti_tree_next(sim->nodes, next);
    }
    return block;
}

/** Expandable mode is off for this request: pass over blocks in expandable ranges. */
static uint32_t skip_expandable(const allot_torchsim *sim, uint32_t block, uint64_t stream)
{
    do {
        block = alloti_tree_next(sim->nodes, block);
    } while (is_candidate(sim, block, stream) && sim->blocks[block].range != ALLOT_NONE);
    return is_candidate(sim, block, stream) ? block : ALLOT_NONE;
}

/** The block that best fit takes, ALLOT_NONE if none is allowed. */
static uint32_t best_fit(const allot_torchsim *sim, const sim_request *request)
{
    uint32_t block = alloti_sim_cached_from(sim, request->list, request->stream, request->size);
    if (!is_candidate(sim, block, request->stream)) {
        return ALLOT_NONE;
    }
    if (sim->blocks[block].range != ALLOT_NONE) {
        block = request->is_expandable ? skip_growing(sim, block, request->stream)
                                       : skip_expandable(sim, block, request->stream);
        if (block == ALLOT_NONE) {
            return ALLOT_NONE;
        }
    }
    const uint64_t max_split = sim->conf.max_split_size;
    const uint64_t size = sim->blocks[block].size;
    if (request->size < max_split) {
        return size >= max_split ? ALLOT_NONE : block;
    }
    return size - request->size >= sim->conf.max_non_split_rounding ? ALLOT_NONE : block;
}

/** Best fit; true if found. Counts for garbage collection. */
static bool search(allot_torchsim *sim, sim_request *request)
{
    if (sim->has_fraction && sim->conf.garbage_collection_threshold > 0) {
        sim->lists[request->list].search_count++;
    }
    request->block = best_fit(sim, request);
    if (request->block == ALLOT_NONE) {
        return false;
    }
    alloti_sim_block_take(sim, request->block);
    return true;
}

static sim_request make_request(const allot_torchsim *sim, uint64_t size, uint64_t stream,
                                uint32_t pool)
{
    const uint64_t rounded = alloti_sim_round_size(sim, size);
    const uint32_t owner = pool == ALLOT_NONE ? 0 : pool + 1;
    return (sim_request){
        .size = rounded,
        .requested = size,
        .segment_size = alloti_sim_segment_size(sim, rounded),
        .stream = stream,
        .list = 2 * owner + (rounded <= SIM_SMALL_MAX ? SIM_SMALL : SIM_LARGE),
        .is_expandable = sim->conf.expandable_segments && !sim->pools[owner].has_allocator,
        .block = ALLOT_NONE,
    };
}

bool alloti_torchsim_would_hit(const allot_torchsim *sim, uint64_t size, uint64_t stream,
                               uint32_t pool)
{
    const sim_request request = make_request(sim, size, stream, pool);
    return best_fit(sim, &request) != ALLOT_NONE;
}

/** Search the pools that offer themselves when the driver refuses; only for the default pool. */
static bool use_offered_pool(allot_torchsim *sim, sim_request *request)
{
    if (request->list / 2 != 0) {
        return false;
    }
    for (uint64_t i = 0; i < sim->offered.count; i++) {
        sim_request other = *request;
        other.list = 2 * sim->offered.entries[i].pool + (request->list & 1);
        other.is_expandable = false;
        if (search(sim, &other)) {
            *request = other;
            return true;
        }
    }
    return false;
}

static allot_status serve_miss(allot_torchsim *sim, sim_request *request)
{
    if (sim->has_fraction && sim->conf.garbage_collection_threshold > 0) {
        alloti_sim_collect_garbage(sim);
    }
    const bool pools_first = sim->version >= SIM_POOLS_OFFER_FIRST;
    allot_status status = alloti_sim_grow(sim, request);
    if (status != ALLOT_STATUS_OK || request->block != ALLOT_NONE || request->is_rejected) {
        return status;
    }
    if (pools_first && use_offered_pool(sim, request)) {
        return ALLOT_STATUS_OK;
    }
    if (alloti_sim_release_available(sim, request)) {
        status = alloti_sim_grow(sim, request);
    }
    if (status == ALLOT_STATUS_OK && request->block == ALLOT_NONE &&
        !alloti_sim_is_in_capture(sim, request->list / 2)) {
        status = alloti_sim_release_cached(sim, false);
        if (status == ALLOT_STATUS_OK) {
            sim->stats.retry_count++;
            status = alloti_sim_grow(sim, request);
        }
    }
    if (status == ALLOT_STATUS_OK && request->block == ALLOT_NONE && !pools_first) {
        use_offered_pool(sim, request);
    }
    return status;
}

static bool should_split(const allot_torchsim *sim, const sim_request *request)
{
    const sim_pool *pool = sim_pool_of(sim, request->list);
    const uint64_t rest = sim->blocks[request->block].size - request->size;
    if (pool->no_split) {
        return false;
    }
    if (sim_is_small_list(request->list) || request->is_expandable) {
        return rest >= SIM_MIN_BLOCK;
    }
    return request->size < sim->conf.max_split_size && rest > SIM_SMALL_MAX;
}

/** Cut the request off the front of the block found; returns the block for it. */
static uint32_t split(allot_torchsim *sim, const sim_request *request, bool was_split)
{
    sim_block front = sim->blocks[request->block];
    front.size = request->size;
    const uint32_t block = alloti_sim_block_new(sim, &front);
    sim_block *rest = &sim->blocks[request->block];
    alloti_sim_block_splice(sim, block, rest->prev, request->block);
    rest->address += request->size;
    rest->size -= request->size;
    alloti_sim_block_cache(sim, request->block);
    if (rest->range == ALLOT_NONE) {
        if (was_split) {
            alloti_sim_gauge_sub(&sim->stats.inactive_split, request->size);
        } else {
            alloti_sim_gauge_add(&sim->stats.inactive_split, rest->size);
        }
    }
    return block;
}

/** Turn the block found into an allocated one of the right size. */
static uint32_t hand_out(allot_torchsim *sim, const sim_request *request)
{
    uint32_t block = request->block;
    const bool was_split = sim_is_split(&sim->blocks[block]);
    if (should_split(sim, request)) {
        block = split(sim, request, was_split);
    } else if (was_split && sim->blocks[block].range == ALLOT_NONE) {
        alloti_sim_gauge_sub(&sim->stats.inactive_split, sim->blocks[block].size);
    }
    sim_block *content = &sim->blocks[block];
    content->state = SIM_ALLOCATED;
    content->requested = request->requested;
    content->uses = 0;
    alloti_sim_emit_block(sim, ALLOT_EVENT_ALLOC, block);
    sim->stats.alloc_count++;
    alloti_sim_gauge_add(&sim->stats.allocated, content->size);
    alloti_sim_gauge_add(&sim->stats.active, content->size);
    alloti_sim_gauge_add(&sim->stats.requested, content->requested);
    return block;
}

static uint64_t free_bytes_of_device(const allot_torchsim *sim)
{
    return sim->driver.free_bytes(sim->driver.context);
}

static allot_status fail_out_of_memory(allot_torchsim *sim, const sim_request *request)
{
    const uint64_t device_free = free_bytes_of_device(sim);
    const uint64_t cached = sim->stats.reserved.now - sim->stats.active.now;
    const uint64_t allowed =
        sim->allowed > sim->stats.reserved.now ? sim->allowed - sim->stats.reserved.now : 0;
    const uint64_t left = device_free < allowed ? device_free : allowed;
    sim->stats.oom_count++;
    const allot_torch_event event = {.kind = ALLOT_EVENT_OOM,
                                     .pool = sim_public_pool(request->list),
                                     .address = device_free,
                                     .size = request->size,
                                     .stream = request->stream,
                                     .block = ALLOT_NONE};
    alloti_sim_emit(sim, &event);
    const bool fragmented = cached >= request->size || left >= request->size - cached;
    char texts[4][ALLOT_SIZE_TEXT_MAX];
    return alloti_fail(fragmented ? ALLOT_STATUS_FRAGMENTED : ALLOT_STATUS_DEVICE_MEMORY,
                       "asked %s; %s reserved, %s of it free but in no usable range; %s left on "
                       "the device",
                       allot_size_format(request->size, texts[0]),
                       allot_size_format(sim->stats.reserved.now, texts[1]),
                       allot_size_format(cached, texts[2]), allot_size_format(left, texts[3]));
}

/** throw_on_cudamalloc_oom: neither an event nor counted as an out-of-memory. */
static allot_status fail_rejected(const sim_request *request)
{
    char text[ALLOT_SIZE_TEXT_MAX];
    return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY,
                       "asked %s; refused at once (throw_on_cudamalloc_oom)",
                       allot_size_format(request->size, text));
}

static allot_status serve(allot_torchsim *sim, sim_request *request, uint32_t *block)
{
    /* A split and the rest of a mapped range need one block each, a new segment one. */
    allot_status status = alloti_sim_reserve_blocks(sim, 4);
    if (status == ALLOT_STATUS_OK && !search(sim, request)) {
        status = serve_miss(sim, request);
        if (status == ALLOT_STATUS_OK && request->block == ALLOT_NONE) {
            status =
                request->is_rejected ? fail_rejected(request) : fail_out_of_memory(sim, request);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_sim_reserve_blocks(sim, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        *block = hand_out(sim, request);
    }
    return status;
}

allot_status allot_torchsim_alloc(allot_torchsim *sim, uint64_t size, uint64_t stream,
                                  uint32_t pool, uint32_t *block)
{
    if (size == 0 || size > SIM_REQUEST_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a request of %llu bytes",
                           (unsigned long long)size);
    }
    if (pool != ALLOT_NONE && (pool + 1 >= sim->pool_count || sim->pools[pool + 1].is_gone)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no private pool %u", (unsigned)pool);
    }
    const uint32_t owner = pool == ALLOT_NONE ? 0 : pool + 1;
    const bool around = owner != 0 && !sim->pools[owner].is_begun &&
                        alloti_sim_makes_capture(sim, &sim->pools[owner]);
    sim->capture_count += around;
    if (!alloti_sim_is_in_capture(sim, owner)) {
        alloti_sim_process_events(sim);
    }
    sim_request request = make_request(sim, size, stream, pool);
    const allot_status status = serve(sim, &request, block);
    sim->capture_count -= around;
    return status;
}
