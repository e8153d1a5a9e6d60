/* SPDX-License-Identifier: MIT */
/** Filling an empty allocator with a recorded state. */
#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"
#include "torchsim/sim.h"

#include <stdlib.h>

static allot_status fail_segment(const alloti_torchsim_segment *segment, const char *what)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "segment at %#llx: %s",
                       (unsigned long long)segment->address, what);
}

static uint32_t list_of(const alloti_torchsim_segment *segment)
{
    const uint32_t pool = segment->pool == ALLOT_NONE ? 0 : segment->pool + 1;
    return 2 * pool + (segment->is_large ? SIM_LARGE : SIM_SMALL);
}

static void count_active(allot_torchsim *sim, const sim_block *block)
{
    if (block->state == SIM_ALLOCATED) {
        alloti_sim_gauge_add(&sim->stats.allocated, block->size);
    }
    alloti_sim_gauge_add(&sim->stats.active, block->size);
    alloti_sim_gauge_add(&sim->stats.requested, block->requested);
}

/** Append one block to the chain that ends in *last. */
static void add_block(allot_torchsim *sim, const alloti_torchsim_segment *segment, uint32_t range,
                      uint32_t index, uint32_t *names, uint32_t *last)
{
    const alloti_torchsim_block *from = &segment->blocks[index];
    sim_block content = sim_block_alone(list_of(segment), segment->stream, range);
    content.address = from->address;
    content.size = from->size;
    content.serial = sim->serial_count;
    const uint32_t block = alloti_sim_block_new(sim, &content);
    alloti_sim_block_splice(sim, block, *last, ALLOT_NONE);
    *last = block;
    names[segment->block_first + index] = ALLOT_NONE;
    if (from->state == ALLOT_BLOCK_INACTIVE) {
        alloti_sim_block_cache(sim, block);
        return;
    }
    sim_block *made = &sim->blocks[block];
    made->requested = from->requested;
    made->state = SIM_ALLOCATED;
    names[segment->block_first + index] = block;
    if (from->state == ALLOT_BLOCK_PENDING_FREE) {
        made->state = SIM_PENDING;
        made->uses = SIM_USED;
        alloti_sim_enqueue(sim, block);
    }
    count_active(sim, made);
}

static allot_status add_blocks(allot_torchsim *sim, const alloti_torchsim_segment *segment,
                               uint32_t range, uint32_t *names, uint32_t *last)
{
    uint64_t address = segment->address;
    allot_status status = alloti_sim_reserve_blocks(sim, segment->block_count);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < segment->block_count; i++) {
        if (segment->blocks[i].address != address || segment->blocks[i].size == 0) {
            return fail_segment(segment, "its blocks leave a gap or overlap");
        }
        address += segment->blocks[i].size;
        add_block(sim, segment, range, i, names, last);
    }
    if (status == ALLOT_STATUS_OK && address != segment->address + segment->size) {
        return fail_segment(segment, "its blocks do not fill it");
    }
    return status;
}

static void count_inactive_split(allot_torchsim *sim, uint32_t last)
{
    for (uint32_t at = last; at != ALLOT_NONE; at = sim->blocks[at].prev) {
        if (sim->blocks[at].state == SIM_FREE && sim_is_split(&sim->blocks[at])) {
            alloti_sim_gauge_add(&sim->stats.inactive_split, sim->blocks[at].size);
        }
    }
}

static allot_status load_classic(allot_torchsim *sim, const alloti_torchsim_segment *segment,
                                 uint32_t *names)
{
    uint32_t last = ALLOT_NONE;
    (void)sim_serial_next(sim); /* No file says in which order segments were taken: by address. */
    const allot_status status = add_blocks(sim, segment, ALLOT_NONE, names, &last);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    count_inactive_split(sim, last);
    alloti_sim_gauge_add(&sim->stats.reserved, segment->size);
    alloti_sim_gauge_add(&sim->stats.segment_count, 1);
    sim_pool_of(sim, list_of(segment))->segment_count++;
    return ALLOT_STATUS_OK;
}

static bool same_range(const alloti_torchsim_segment *a, const alloti_torchsim_segment *b)
{
    return b->is_expandable && a->stream == b->stream && a->pool == b->pool &&
           a->is_large == b->is_large;
}

static uint32_t add_unmapped(allot_torchsim *sim, const alloti_torchsim_segment *segment,
                             uint32_t range, uint32_t last, uint64_t end)
{
    const uint64_t address = last == ALLOT_NONE
                                 ? sim->ranges[range].address
                                 : sim->blocks[last].address + sim->blocks[last].size;
    if (address >= end) {
        return last;
    }
    sim_block content = sim_block_alone(list_of(segment), segment->stream, range);
    content.address = address;
    content.size = end - address;
    content.serial = sim->serial_count;
    content.mapped = false;
    const uint32_t block = alloti_sim_block_new(sim, &content);
    alloti_sim_block_splice(sim, block, last, ALLOT_NONE);
    alloti_sim_block_cache(sim, block);
    return block;
}

/** The range of an expandable stretch and of all later ones that belong to it. */
static allot_status load_range(allot_torchsim *sim, const alloti_torchsim_segment *segments,
                               uint32_t count, uint32_t *names, bool *done)
{
    const alloti_torchsim_segment *first = &segments[0];
    const uint64_t page = first->is_large ? sim->conf.large_segment_size : SIM_SMALL_SEGMENT;
    const uint64_t base = first->range_first < first->address ? first->range_first : first->address;
    sim_range content = {.address = base, .size = alloti_sim_range_size(sim, page), .page = page};
    uint32_t range = ALLOT_NONE;
    uint32_t last = ALLOT_NONE;
    if (content.address > UINT64_MAX - content.size) {
        content.size = (UINT64_MAX - content.address) / page * page;
    }
    allot_status status = alloti_sim_range_new(sim, &content, &range);
    (void)sim_serial_next(sim);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        const alloti_torchsim_segment *segment = &segments[i];
        if (done[i] || !same_range(first, segment)) {
            continue;
        }
        if (segment->address - base >= content.size) {
            continue; /* Of a later range of the same stream. */
        }
        if (segment->size % page != 0 || (segment->address - base) % page != 0 ||
            segment->size > content.size - (segment->address - base)) {
            return fail_segment(segment, "is not made of whole pages of its range");
        }
        done[i] = true;
        status = alloti_sim_reserve_blocks(sim, 2);
        if (status == ALLOT_STATUS_OK) {
            last = add_unmapped(sim, first, range, last, segment->address);
            status = add_blocks(sim, segment, range, names, &last);
            alloti_sim_gauge_add(&sim->stats.reserved, segment->size);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_sim_reserve_blocks(sim, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        add_unmapped(sim, first, range, last, content.address + content.size);
    }
    return status;
}

/** The built-in driver goes on above everything that was loaded. */
static allot_status place_driver(allot_torchsim *sim, uint64_t end)
{
    for (uint64_t i = 0; i < sim->range_count; i++) {
        const uint64_t range_end = sim->ranges[i].address + sim->ranges[i].size;
        end = range_end > end ? range_end : end;
    }
    uint64_t next = 0;
    if (!alloti_align_up(end, SIM_ROUND_LARGE, &next)) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "segments end at %#llx", (unsigned long long)end);
    }
    sim->builtin.next = next > sim->builtin.next ? next : sim->builtin.next;
    sim->builtin.used = sim->stats.reserved.now;
    if (sim->builtin.used > sim->builtin.limit) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY,
                           "the state to begin with holds more than the limit");
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_torchsim_load(allot_torchsim *sim, const alloti_torchsim_segment *segments,
                                  uint32_t count, uint32_t *names)
{
    bool *done = alloti_calloc_array(count, sizeof(*done));
    if (done == NULL && count > 0) {
        return alloti_fail_memory(count);
    }
    allot_status status = ALLOT_STATUS_OK;
    uint64_t end = 0;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        uint64_t segment_end = 0;
        if (!alloti_add(segments[i].address, segments[i].size, &segment_end) ||
            segments[i].address < end) {
            status = fail_segment(&segments[i], "overlaps the one before it");
        } else if (!segments[i].is_expandable) {
            status = load_classic(sim, &segments[i], names);
        } else if (!done[i]) {
            status = load_range(sim, &segments[i], count - i, names, &done[i]);
        }
        end = segment_end;
    }
    free(done);
    return status != ALLOT_STATUS_OK || !sim->is_builtin ? status : place_driver(sim, end);
}
