/* SPDX-License-Identifier: MIT */
/*
 * Mode "segments": blocks lie in segments taken from the driver, each with a space of its own. A
 * request goes to the first segment, by address, that has room for it. If none has, a segment is
 * added: of the growth size, or of what the request needs in multiples of 2 MiB if that is more or
 * if the driver has no more. When the driver refuses that too, segments that hold nothing are given
 * back, the highest address first and only as many as are in the way.
 */
#include "core/size_math.h"
#include "replay/model_space.h"

/** What a space takes for a request, before it is asked. */
static bool round_request(const alloti_space_model *self, uint64_t size, uint64_t *out)
{
    if (self->strategy != ALLOT_SPACE_STRATEGY_BUDDY) {
        *out = size;
        return true;
    }
    *out = size <= 1 ? 1 : UINT64_C(2) << alloti_log2(size - 1);
    return size <= UINT64_C(1) << 63;
}

static bool is_empty(const alloti_space_area *area)
{
    return area->used == 0;
}

allot_status alloti_space_segments_release(alloti_space_model *self, uint64_t bytes)
{
    for (uint32_t i = self->areas.count; i-- > 0 && !alloti_space_has_room(self, bytes);) {
        if (is_empty(&self->areas.items[i])) {
            alloti_upstream_give(&self->base.upstream, self->areas.items[i].size);
            alloti_space_areas_remove(&self->areas, i);
        }
    }
    return ALLOT_STATUS_OK;
}

/** Take a segment of `most` bytes, else of `least`; 0 if the driver has neither. */
static uint64_t take_either(alloti_space_model *self, uint64_t most, uint64_t least,
                            uint64_t *address)
{
    alloti_upstream *const up = &self->base.upstream;
    if (alloti_upstream_take(up, most, address)) {
        return most;
    }
    return alloti_upstream_take(up, least, address) ? least : 0;
}

static allot_status segment_add(alloti_space_model *self, uint64_t size, uint64_t stream,
                                alloti_space_area **out)
{
    uint64_t rounded = 0;
    uint64_t least = 0;
    if (!round_request(self, size, &rounded) ||
        !alloti_align_up(rounded, ALLOTI_SPACE_GRANULE, &least)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const uint64_t most = least > self->segment ? least : self->segment;
    uint64_t address = 0;
    uint64_t taken = take_either(self, most, least, &address);
    if (taken == 0) {
        self->base.model.stats.retry_count++;
        const allot_status status = alloti_space_segments_release(self, least);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        taken = take_either(self, most, least, &address);
    }
    return taken == 0 ? ALLOT_STATUS_DEVICE_MEMORY
                      : alloti_space_areas_add(&self->areas, self->strategy, address, taken,
                                               alloti_space_stream(self, stream), out);
}

static allot_status area_take(alloti_space_area *area, uint64_t size, uint64_t stream,
                              alloti_span *out)
{
    const allot_status status = alloti_space_area_take(area, size, stream, out);
    if (status == ALLOT_STATUS_OK) {
        area->largest = allot_space_largest_free(area->space);
    }
    return status;
}

static allot_status segments_take(alloti_comparison *base, uint64_t size, uint64_t stream,
                                  alloti_span *out)
{
    alloti_space_model *const self = (alloti_space_model *)base;
    const uint64_t owner = alloti_space_stream(self, stream);
    for (uint32_t i = 0; i < self->areas.count; i++) {
        alloti_space_area *const area = &self->areas.items[i];
        if (area->largest < size || area->stream != owner) {
            continue;
        }
        const allot_status status = area_take(area, size, stream, out);
        if (status != ALLOT_STATUS_DEVICE_MEMORY) {
            return status;
        }
    }
    alloti_space_area *area = NULL;
    const allot_status status = segment_add(self, size, stream, &area);
    return status == ALLOT_STATUS_OK ? area_take(area, size, stream, out) : status;
}

static allot_status segments_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    (void)stream;
    alloti_space_model *const self = (alloti_space_model *)base;
    alloti_space_area *const area = alloti_space_areas_find(&self->areas, piece.address);
    const allot_status status = alloti_space_area_give(area, piece);
    if (status == ALLOT_STATUS_OK) {
        area->largest = allot_space_largest_free(area->space);
    }
    return status;
}

static void segments_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const alloti_space_model *const self = (const alloti_space_model *)base;
    *out = (alloti_model_survey){.free_bytes = 0};
    for (uint32_t i = 0; i < self->areas.count; i++) {
        const alloti_space_area *const area = &self->areas.items[i];
        out->free_bytes += area->size - area->used;
        out->free_largest = area->largest > out->free_largest ? area->largest : out->free_largest;
    }
}

const alloti_placement alloti_space_segments = {
    .take = segments_take, .give = segments_give, .survey = segments_survey};
