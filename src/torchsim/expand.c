/* SPDX-License-Identifier: MIT */
/**
 * Expandable ranges: addresses reserved once, pages mapped where the lowest addresses can grow.
 *
 * Pages are 2 MiB in the small list and large_segment_size (20 MiB) in the large one, counted from
 * the start of the range. A mapped stretch always consists of whole pages.
 */
#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"
#include "torchsim/sim.h"

uint64_t alloti_sim_range_size(const allot_torchsim *sim, uint64_t page)
{
    const uint64_t device = sim->limit == UINT64_MAX ? SIM_DEVICE_UNKNOWN : sim->limit;
    const uint64_t full = device + device / 8;
    uint64_t wanted = full;
    if (sim->conf.expandable_reserve_size != 0) {
        wanted = sim->conf.expandable_reserve_size;
    } else if (sim->conf.expandable_reserve_share > 0) {
        const double share = sim->conf.expandable_reserve_share * (double)device;
        wanted = share < (double)full ? (uint64_t)share : full;
    }
    uint64_t size = 0;
    if (sim->range_bytes != 0 && alloti_round_up(sim->range_bytes, page, &size)) {
        return size;
    }
    return alloti_round_up(wanted < full ? wanted : full, page, &size) ? size : full;
}

allot_status alloti_sim_range_new(allot_torchsim *sim, const sim_range *content, uint32_t *out)
{
    for (uint32_t i = 0; sim->range_spare_count > 0 && i < sim->range_count; i++) {
        if (sim->ranges[i].size == 0) {
            sim->range_spare_count--;
            sim->ranges[i] = *content;
            *out = i;
            return ALLOT_STATUS_OK;
        }
    }
    const allot_status status = alloti_array_reserve(&sim->ranges, &sim->range_capacity,
                                                     sim->range_count + 1, sizeof(*sim->ranges));
    if (status == ALLOT_STATUS_OK) {
        *out = (uint32_t)sim->range_count;
        sim->ranges[sim->range_count++] = *content;
    }
    return status;
}

/** Whether free and unmapped blocks from `block` on give `size` bytes in a row. */
static bool has_room(const allot_torchsim *sim, uint32_t block, uint64_t size)
{
    uint64_t bytes = 0;
    while (bytes < size && block != ALLOT_NONE && sim->blocks[block].state == SIM_FREE) {
        bytes += sim->blocks[block].size;
        block = sim->blocks[block].next;
    }
    return bytes >= size;
}

/** The lowest place that can grow to the request: an unmapped block or the free one before it. */
static uint32_t find_place(const allot_torchsim *sim, const sim_request *request)
{
    for (uint32_t at = alloti_sim_unmapped_from(sim, request->list, request->stream);
         at != ALLOT_NONE && sim->blocks[at].stream == request->stream;
         at = alloti_tree_next(sim->nodes, at)) {
        const uint32_t before = sim->blocks[at].prev;
        const bool joins = before != ALLOT_NONE && sim->blocks[before].state == SIM_FREE;
        const uint32_t place = joins ? before : at;
        if (has_room(sim, place, request->size)) {
            return place;
        }
    }
    return ALLOT_NONE;
}

/** A new range, as one unmapped block. ALLOT_NONE in *out if no request of this size can fit. */
static allot_status reserve_range(allot_torchsim *sim, const sim_request *request, uint32_t *out)
{
    const uint64_t page =
        sim_is_small_list(request->list) ? SIM_SMALL_SEGMENT : sim->conf.large_segment_size;
    sim_range range = {.size = alloti_sim_range_size(sim, page), .page = page};
    *out = ALLOT_NONE;
    allot_status status =
        sim->driver.reserve(sim->driver.context, range.size, request->stream, &range.address);
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        return ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK && range.size < request->size) {
        sim->driver.unreserve(sim->driver.context, range.address, range.size);
        return ALLOT_STATUS_OK;
    }
    uint32_t index = ALLOT_NONE;
    if (status == ALLOT_STATUS_OK) {
        status = alloti_sim_range_new(sim, &range, &index);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    sim_block content = sim_block_alone(request->list, request->stream, index);
    content.address = range.address;
    content.size = range.size;
    content.serial = sim_serial_next(sim);
    content.mapped = false;
    *out = alloti_sim_block_new(sim, &content);
    alloti_sim_block_cache(sim, *out);
    return ALLOT_STATUS_OK;
}

/** Map whole pages from the start of an unmapped block on, at least `size` bytes; what is mapped
 * merges with free neighbours. *done is false after a refusal. */
static allot_status map_block(allot_torchsim *sim, uint32_t block, uint64_t size, bool *done)
{
    const sim_range *range = &sim->ranges[sim->blocks[block].range];
    const uint64_t address = sim->blocks[block].address;
    uint64_t bytes = 0;
    *done = false;
    if (!alloti_round_up(size, range->page, &bytes)) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_sim_reserve_blocks(sim, 1);
    if (status == ALLOT_STATUS_OK) {
        status = sim->driver.map(sim->driver.context, address, bytes);
    }
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        sim->stats.refusal_count++;
        return ALLOT_STATUS_OK;
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_sim_block_take(sim, block);
    if (bytes < sim->blocks[block].size) {
        sim_block rest = sim->blocks[block];
        rest.address += bytes;
        rest.size -= bytes;
        const uint32_t unmapped = alloti_sim_block_new(sim, &rest);
        alloti_sim_block_splice(sim, unmapped, block, rest.next);
        sim->blocks[block].size = bytes;
        alloti_sim_block_cache(sim, unmapped);
    }
    sim->blocks[block].mapped = true;
    alloti_sim_block_merge(sim, block);
    alloti_sim_block_cache(sim, block);
    alloti_sim_gauge_add(&sim->stats.reserved, bytes);
    sim->stats.driver_alloc_count++;
    sim->stats.range_map_count++;
    sim->stats.bytes_taken += bytes;
    sim->stats.page_map_count += bytes / range->page;
    alloti_sim_emit_segment(sim, ALLOT_EVENT_SEGMENT_MAP, &sim->blocks[block], address, bytes);
    *done = true;
    return ALLOT_STATUS_OK;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

allot_status alloti_sim_expand(allot_torchsim *sim, sim_request *request)
{
    allot_status status = alloti_sim_reserve_blocks(sim, 2);
    uint32_t place = find_place(sim, request);
    if (status == ALLOT_STATUS_OK && place == ALLOT_NONE) {
        status = reserve_range(sim, request, &place);
    }
    if (status != ALLOT_STATUS_OK || place == ALLOT_NONE) {
        return status;
    }
    bool done = true;
    if (!sim->blocks[place].mapped) {
        status = map_block(sim, place, smaller(sim->blocks[place].size, request->size), &done);
    }
    while (status == ALLOT_STATUS_OK && done && sim->blocks[place].size < request->size) {
        /* The unmapped block that follows becomes mapped and absorbs `place`. */
        const uint64_t missing = request->size - sim->blocks[place].size;
        place = sim->blocks[place].next;
        status = map_block(sim, place, smaller(sim->blocks[place].size, missing), &done);
    }
    if (status == ALLOT_STATUS_OK && done) {
        alloti_sim_block_take(sim, place);
        request->block = place;
        sim_pool_of(sim, request->list)->segment_count++;
    }
    return status;
}

/** Cut a cached rest off the front or the back of a block that is being unmapped. */
static void cache_rest(allot_torchsim *sim, uint32_t block, uint64_t size, bool front)
{
    if (size == 0) {
        return;
    }
    sim_block rest = sim->blocks[block];
    rest.size = size;
    if (!front) {
        rest.address += sim->blocks[block].size - size;
    }
    const uint32_t piece = alloti_sim_block_new(sim, &rest);
    sim_block *content = &sim->blocks[block];
    if (front) {
        alloti_sim_block_splice(sim, piece, content->prev, block);
        content->address += size;
    } else {
        alloti_sim_block_splice(sim, piece, block, content->next);
    }
    content->size -= size;
    alloti_sim_block_cache(sim, piece);
}

static void release_range(allot_torchsim *sim, uint32_t block)
{
    sim_range *range = &sim->ranges[sim->blocks[block].range];
    alloti_sim_block_take(sim, block);
    sim->driver.unreserve(sim->driver.context, range->address, range->size);
    range->size = 0;
    sim->range_spare_count++;
    alloti_sim_block_drop(sim, block);
}

void alloti_sim_block_unmap(allot_torchsim *sim, uint32_t block)
{
    const sim_range *range = &sim->ranges[sim->blocks[block].range];
    const uint64_t start = sim->blocks[block].address - range->address;
    const uint64_t end = start + sim->blocks[block].size;
    const uint64_t last = end / range->page * range->page;
    uint64_t first = 0;
    if (!alloti_round_up(start, range->page, &first) || first >= last) {
        return;
    }
    alloti_sim_block_take(sim, block);
    cache_rest(sim, block, first - start, true);
    cache_rest(sim, block, end - last, false);
    sim_block *content = &sim->blocks[block];
    const uint64_t address = content->address;
    const uint64_t bytes = content->size;
    content->mapped = false;
    alloti_sim_block_merge(sim, block);
    alloti_sim_block_cache(sim, block);
    sim->driver.unmap(sim->driver.context, address, bytes);
    alloti_sim_gauge_sub(&sim->stats.reserved, bytes);
    sim->stats.driver_free_count++;
    sim->stats.range_unmap_count++;
    sim->stats.page_unmap_count += bytes / range->page;
    sim_pool *pool = sim_pool_of(sim, content->list);
    pool->segment_count -= pool->segment_count > 0;
    alloti_sim_emit_segment(sim, ALLOT_EVENT_SEGMENT_UNMAP, content, address, bytes);
    if (!sim_is_split(content)) {
        release_range(sim, block);
    }
}
