/* SPDX-License-Identifier: MIT */
/**
 * The state before the first event, by undoing the events from the final state.
 *
 * A trace that begins in the middle (a ring that kept the last events) still ends with a complete
 * list of segments and blocks. Undone from the last event to the first, an alloc frees its block, a
 * free makes one, a segment_alloc removes a segment, and so on.
 *
 * One thing the events do not say: how large a block was that was freed, beyond its rounded
 * request. A large classic block may hold an unsplit rest of up to 1 MiB. No free block there is
 * that small, so when undoing leaves such a gap behind a block, the gap belongs to the block.
 */
#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"
#include "replay/undo_blocks.h"

static allot_status fail_undo(const undoing *undo, uint64_t event, const char *what)
{
    return alloti_requests_fail(undo->requests, event, what);
}

static allot_status add_final_segment(undoing *undo, const allot_segment *segment)
{
    const undo_home home = {.stream = allot_trace_stream(undo->requests->trace, segment->stream),
                            .pool = alloti_requests_pool(undo->requests, segment->pool),
                            .is_large = segment->is_large,
                            .is_expandable = segment->is_expandable};
    uint32_t index = 0;
    allot_status status = segment->is_expandable ? alloti_undo_range_home(undo, &home, &index)
                                                 : alloti_undo_add_home(undo, &home, &index);
    uint32_t count = 0;
    const allot_block *blocks = allot_trace_blocks(undo->requests->trace, &count);
    uint64_t address = segment->address;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < segment->block_count; i++) {
        const allot_block *block = &blocks[segment->block_first + i];
        const undo_block content = {.address = block->address,
                                    .size = block->size,
                                    .requested = block->requested_size,
                                    .home = index,
                                    .slot = ALLOT_NONE,
                                    .state = block->state};
        if (block->address != address || block->size == 0 ||
            !alloti_add(address, block->size, &address)) {
            return alloti_fail(ALLOT_STATUS_FORMAT, "segment at %#llx: its blocks leave a gap",
                               (unsigned long long)segment->address);
        }
        status = alloti_undo_add(undo, &content, NULL);
    }
    return status;
}

static allot_status load_final_state(undoing *undo)
{
    uint32_t count = 0;
    const allot_segment *segments = allot_trace_segments(undo->requests->trace, &count);
    allot_status status = ALLOT_STATUS_OK;
    uint64_t end = 0;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        if (segments[i].device != undo->requests->info.device) {
            continue;
        }
        if (segments[i].address < end) {
            return alloti_fail(ALLOT_STATUS_FORMAT, "segment at %#llx overlaps the one before it",
                               (unsigned long long)segments[i].address);
        }
        if (!alloti_add(segments[i].address, segments[i].total_size, &end)) {
            return alloti_fail(ALLOT_STATUS_FORMAT, "segment at %#llx ends beyond 2^64",
                               (unsigned long long)segments[i].address);
        }
        status = add_final_segment(undo, &segments[i]);
    }
    return status;
}

/** A file that does not name pools per event: the pool of the segment that the event is in. */
static void note_pool(undoing *undo, uint64_t event, uint32_t home)
{
    if (undo->requests->events.pool[event] == ALLOT_NONE) {
        undo->requests->event_pools[event] = undo->homes[home].pool;
    }
}

static allot_status undo_alloc(undoing *undo, uint64_t event)
{
    const uint64_t address = undo->requests->events.addr[event];
    const uint32_t block = alloti_undo_find(undo, address);
    if (block == ALLOT_NONE || alloti_undo_at(undo, block)->address != address ||
        alloti_undo_at(undo, block)->state != ALLOT_BLOCK_ALLOCATED) {
        return fail_undo(undo, event, "no block is allocated there afterwards");
    }
    note_pool(undo, event, alloti_undo_at(undo, block)->home);
    alloti_undo_at(undo, block)->state = ALLOT_BLOCK_INACTIVE;
    alloti_undo_at(undo, block)->slot = ALLOT_NONE;
    alloti_undo_at(undo, block)->may_grow = false;
    alloti_undo_merge(undo, block);
    return ALLOT_STATUS_OK;
}

/** Bytes that the block had before it was freed, `room` bytes being free from its start on. */
static uint64_t size_before(const undoing *undo, const undo_home *home, uint64_t requested,
                            uint64_t room, bool *may_grow)
{
    const uint64_t rounded =
        alloti_sim_round_size(undo->requests->rules, requested > 0 ? requested : 1);
    *may_grow = false;
    if (rounded >= room) {
        return rounded;
    }
    if (!home->is_large || home->is_expandable) {
        return rounded;
    }
    const allot_torch_conf *conf = &undo->requests->info.conf;
    if (room - rounded <= SIM_SMALL_MAX) {
        return room;
    }
    *may_grow = true;
    return rounded >= conf->max_split_size ? room : rounded;
}

/** A gap that no free block can be belongs to the block before it. */
static void close_gap(undoing *undo, uint32_t gap)
{
    const undo_block *content = alloti_undo_at(undo, gap);
    const undo_home *home = &undo->homes[content->home];
    if (home->is_expandable || !home->is_large || content->size > SIM_SMALL_MAX) {
        return;
    }
    const uint32_t before = alloti_undo_neighbour(undo, gap, false);
    if (before != ALLOT_NONE && alloti_undo_at(undo, before)->may_grow) {
        alloti_undo_at(undo, before)->size += content->size;
        alloti_undo_at(undo, before)->may_grow = false;
        alloti_undo_drop(undo, gap);
    }
}

static allot_status undo_free_completed(undoing *undo, uint64_t event)
{
    allot_requests *requests = undo->requests;
    const uint64_t address = requests->events.addr[event];
    const uint32_t outer = alloti_undo_find(undo, address);
    if (outer == ALLOT_NONE || alloti_undo_at(undo, outer)->state != ALLOT_BLOCK_INACTIVE) {
        return fail_undo(undo, event, "the memory is not free afterwards");
    }
    const undo_block whole = *alloti_undo_at(undo, outer);
    const uint64_t room = whole.address + whole.size - address;
    const bool has_requests = alloti_requests_has(requests, ALLOT_EVENT_FREE_REQUESTED);
    undo_block content = {.address = address,
                          .requested = requests->events.size[event],
                          .home = whole.home,
                          .slot = requests->slots[event],
                          .state = has_requests ? ALLOT_BLOCK_PENDING_FREE : ALLOT_BLOCK_ALLOCATED};
    content.size =
        size_before(undo, &undo->homes[whole.home], content.requested, room, &content.may_grow);
    if (content.size > room) {
        return fail_undo(undo, event, "the block is larger than the free memory there");
    }
    note_pool(undo, event, whole.home);
    alloti_undo_drop(undo, outer);
    undo_block rest = whole;
    rest.address = address + content.size;
    rest.size = room - content.size;
    allot_status status = alloti_undo_add(undo, &content, NULL);
    if (status == ALLOT_STATUS_OK && rest.size > 0) {
        status = alloti_undo_add(undo, &rest, NULL);
    }
    if (status == ALLOT_STATUS_OK && address > whole.address) {
        undo_block gap = whole;
        uint32_t index = 0;
        gap.size = address - whole.address;
        status = alloti_undo_add(undo, &gap, &index);
        if (status == ALLOT_STATUS_OK) {
            close_gap(undo, index);
        }
    }
    return status;
}

static allot_status undo_free_requested(undoing *undo, uint64_t event)
{
    if (!alloti_requests_has(undo->requests, ALLOT_EVENT_FREE_COMPLETED)) {
        const allot_status status = undo_free_completed(undo, event);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    const uint64_t address = undo->requests->events.addr[event];
    const uint32_t block = alloti_undo_find(undo, address);
    if (block == ALLOT_NONE || alloti_undo_at(undo, block)->address != address ||
        alloti_undo_at(undo, block)->state != ALLOT_BLOCK_PENDING_FREE) {
        return fail_undo(undo, event, "the block is not waiting for a stream afterwards");
    }
    note_pool(undo, event, alloti_undo_at(undo, block)->home);
    alloti_undo_at(undo, block)->state = ALLOT_BLOCK_ALLOCATED;
    alloti_undo_at(undo, block)->slot = undo->requests->slots[event];
    return ALLOT_STATUS_OK;
}

/** segment_alloc and segment_map: take a free range away, leaving what is free around it. */
static allot_status undo_taking(undoing *undo, uint64_t event, bool whole_segment)
{
    const uint64_t address = undo->requests->events.addr[event];
    const uint64_t size = undo->requests->events.size[event];
    const uint32_t outer = alloti_undo_find(undo, address);
    if (outer == ALLOT_NONE || alloti_undo_at(undo, outer)->state != ALLOT_BLOCK_INACTIVE) {
        return fail_undo(undo, event, "the memory is not free afterwards");
    }
    const undo_block whole = *alloti_undo_at(undo, outer);
    const uint64_t before = address - whole.address;
    if (size > whole.size - before || (whole_segment && (before != 0 || size != whole.size))) {
        return fail_undo(undo, event, "the segment is not free as a whole afterwards");
    }
    note_pool(undo, event, whole.home);
    alloti_undo_drop(undo, outer);
    undo_block rest = whole;
    rest.address = address + size;
    rest.size = whole.size - before - size;
    allot_status status = rest.size > 0 ? alloti_undo_add(undo, &rest, NULL) : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK && before > 0) {
        rest.address = whole.address;
        rest.size = before;
        status = alloti_undo_add(undo, &rest, NULL);
    }
    return status;
}

/** segment_free and segment_unmap: the range was there and free. */
static allot_status undo_giving(undoing *undo, uint64_t event, bool is_expandable)
{
    allot_requests *requests = undo->requests;
    const uint64_t address = requests->events.addr[event];
    const uint64_t size = requests->events.size[event];
    uint64_t end = 0;
    if (size == 0 || !alloti_add(address, size, &end)) {
        return fail_undo(undo, event, "the segment has no sensible size");
    }
    const uint32_t next = alloti_undo_from(undo, address);
    if (alloti_undo_find(undo, address) != ALLOT_NONE ||
        (next != ALLOT_NONE && alloti_undo_at(undo, next)->address < end)) {
        return fail_undo(undo, event, "the memory is still held afterwards");
    }
    undo_home home = {.stream = allot_trace_stream(requests->trace, requests->events.stream[event]),
                      .pool = requests->event_pools[event],
                      .is_large = size > SIM_SMALL_SEGMENT,
                      .is_expandable = is_expandable};
    if (is_expandable) {
        const alloti_pages pages = {.stream = home.stream,
                                    .pool = home.pool,
                                    .address = address,
                                    .size = size,
                                    .large_page = requests->info.conf.large_segment_size,
                                    .event = event};
        home.is_large = alloti_places_is_large(undo->places, &pages);
    }
    uint32_t index = 0;
    allot_status status = is_expandable ? alloti_undo_range_home(undo, &home, &index)
                                        : alloti_undo_add_home(undo, &home, &index);
    if (status == ALLOT_STATUS_OK) {
        const undo_block content = {.address = address,
                                    .size = size,
                                    .home = index,
                                    .slot = ALLOT_NONE,
                                    .state = ALLOT_BLOCK_INACTIVE};
        uint32_t block = 0;
        status = alloti_undo_add(undo, &content, &block);
        if (status == ALLOT_STATUS_OK && is_expandable) {
            alloti_undo_merge(undo, block);
        }
    }
    return status;
}

static allot_status undo_event(undoing *undo, uint64_t event)
{
    switch ((allot_event_kind)undo->requests->events.kind[event]) {
    case ALLOT_EVENT_ALLOC:
        return undo_alloc(undo, event);
    case ALLOT_EVENT_FREE_REQUESTED:
        return undo_free_requested(undo, event);
    case ALLOT_EVENT_FREE_COMPLETED:
        return undo_free_completed(undo, event);
    case ALLOT_EVENT_SEGMENT_ALLOC:
        return undo_taking(undo, event, true);
    case ALLOT_EVENT_SEGMENT_MAP:
        return undo_taking(undo, event, false);
    case ALLOT_EVENT_SEGMENT_FREE:
        return undo_giving(undo, event, false);
    case ALLOT_EVENT_SEGMENT_UNMAP:
        return undo_giving(undo, event, true);
    case ALLOT_EVENT_OOM:
    case ALLOT_EVENT_SNAPSHOT:
    case ALLOT_EVENT_USER_DEFINED:
    case ALLOT_EVENT_WORKSPACE_SNAPSHOT:
        break;
    }
    return ALLOT_STATUS_OK;
}

/** Whether a block begins a segment, or a mapped stretch, of the state to write down. */
static bool begins_segment(const undoing *undo, uint32_t block)
{
    return alloti_undo_neighbour(undo, block, false) == ALLOT_NONE;
}

static allot_status reserve_result(undoing *undo)
{
    allot_requests *requests = undo->requests;
    uint32_t segments = 0;
    for (uint32_t at = alloti_tree_first(&undo->tree, undo->nodes); at != ALLOT_NONE;
         at = alloti_tree_next(undo->nodes, at)) {
        segments += begins_segment(undo, at);
    }
    const uint64_t blocks = undo->tree.count;
    requests->initial = alloti_calloc_array((uint64_t)segments + 1, sizeof(*requests->initial));
    requests->initial_blocks = alloti_alloc_array(blocks + 1, sizeof(*requests->initial_blocks));
    requests->initial_slots = alloti_alloc_array(blocks + 1, sizeof(*requests->initial_slots));
    if (requests->initial == NULL || requests->initial_blocks == NULL ||
        requests->initial_slots == NULL) {
        return alloti_fail_memory(blocks * sizeof(*requests->initial_blocks));
    }
    return ALLOT_STATUS_OK;
}

/** Write the blocks that are left down as the state before the first event. */
static allot_status write_result(undoing *undo)
{
    allot_requests *requests = undo->requests;
    allot_status status = reserve_result(undo);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint32_t at = alloti_tree_first(&undo->tree, undo->nodes); at != ALLOT_NONE;
         at = alloti_tree_next(undo->nodes, at)) {
        undo_block *block = alloti_undo_at(undo, at);
        const undo_home *home = &undo->homes[block->home];
        const uint32_t index = requests->initial_block_count++;
        if (begins_segment(undo, at)) {
            requests->initial[requests->initial_segment_count++] =
                (alloti_torchsim_segment){.address = block->address,
                                          .stream = home->stream,
                                          .pool = home->pool,
                                          .is_large = home->is_large,
                                          .is_expandable = home->is_expandable,
                                          .blocks = &requests->initial_blocks[index],
                                          .block_first = index,
                                          .range_first = block->address};
        }
        alloti_torchsim_segment *segment = &requests->initial[requests->initial_segment_count - 1];
        segment->size += block->size;
        segment->block_count++;
        requests->info.initial_reserved += block->size;
        const bool is_active = block->state != ALLOT_BLOCK_INACTIVE;
        if (is_active && block->slot == ALLOT_NONE) {
            block->slot = requests->slot_count++;
        }
        requests->info.initial_count += is_active;
        requests->info.unsure_count += is_active && block->may_grow;
        requests->initial_slots[index] = is_active ? block->slot : ALLOT_NONE;
        requests->initial_blocks[index] =
            (alloti_torchsim_block){.address = block->address,
                                    .size = block->size,
                                    .requested = block->requested,
                                    .state = (allot_block_state)block->state};
    }
    requests->info.is_complete = requests->initial_block_count == 0;
    return ALLOT_STATUS_OK;
}

allot_status alloti_requests_undo(allot_requests *requests, const alloti_places *places)
{
    undoing undo = {.requests = requests, .places = places, .tree = ALLOTI_TREE_INIT};
    allot_status status = load_final_state(&undo);
    for (uint64_t i = requests->events.count; status == ALLOT_STATUS_OK && i > 0; i--) {
        status = undo_event(&undo, i - 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = write_result(&undo);
    }
    alloti_undo_fini(&undo);
    return status;
}
