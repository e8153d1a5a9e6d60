/* SPDX-License-Identifier: MIT */
/*
 * Mode "vm": blocks lie in one range of addresses, far larger than any device, and memory is mapped
 * under it in granules of 2 MiB as blocks come to lie there.
 *
 *     addresses:  |live|free|live|       free        |live|                  never used
 *     granules:   [ mapped ][ mapped ][ mapped ][    ][ mapped ]
 *
 * A granule stays mapped when nothing lies in it any more. When memory is short those that are free
 * as a whole are unmapped, the highest address first and only as many as the request is short of.
 * If that is not enough for the place that the strategy chose, the next ones it would choose are
 * tried: a higher one may lie on memory.
 *
 * Invariant: every granule that a block touches is in the area's set `mapped`, whose spans are
 * whole granules and do not touch each other; their sum over all areas is what is reserved.
 */
#include "core/size_math.h"
#include "replay/model_space.h"

/** Addresses of one range. */
#define RANGE_SIZE (UINT64_C(1) << 45)

enum { PLACES_TRIED = 16 };

/** The first part of [from, end) that is mapped; of size 0, at `end`, if nothing is. */
static alloti_span mapped_from(const alloti_space_area *area, uint64_t from, uint64_t end)
{
    const alloti_span *span = alloti_span_set_floor(&area->mapped, from);
    if (span == NULL || span->address + span->size <= from) {
        span = alloti_span_set_ceiling(&area->mapped, from);
    }
    if (span == NULL || span->address >= end) {
        return (alloti_span){.address = end};
    }
    const uint64_t first = span->address > from ? span->address : from;
    const uint64_t last = span->address + span->size < end ? span->address + span->size : end;
    return (alloti_span){.address = first, .size = last - first};
}

/** The first part of [from, end) that is not mapped; of size 0 if all is. */
static alloti_span hole_from(const alloti_space_area *area, uint64_t from, uint64_t end)
{
    alloti_span next = mapped_from(area, from, end);
    if (next.address == from) {
        from += next.size;
        next = mapped_from(area, from, end);
    }
    return (alloti_span){.address = from, .size = next.address - from};
}

static uint64_t bytes_missing(const alloti_space_area *area, uint64_t from, uint64_t end)
{
    uint64_t bytes = 0;
    for (alloti_span hole = hole_from(area, from, end); hole.size > 0;
         hole = hole_from(area, hole.address + hole.size, end)) {
        bytes += hole.size;
    }
    return bytes;
}

static allot_status map(alloti_space_model *self, alloti_space_area *area, uint64_t from,
                        uint64_t end)
{
    for (alloti_span hole = hole_from(area, from, end); hole.size > 0;
         hole = hole_from(area, hole.address + hole.size, end)) {
        uint64_t unused = 0; /* where the memory itself lies does not matter */
        if (!alloti_upstream_take(&self->base.upstream, hole.size, &unused)) {
            return ALLOT_STATUS_DEVICE_MEMORY;
        }
        const allot_status status = alloti_span_set_merge(&area->mapped, hole);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** Unmap a part of what is mapped. */
static allot_status unmap(alloti_space_model *self, alloti_space_area *area, alloti_span part)
{
    const alloti_span whole = *alloti_span_set_floor(&area->mapped, part.address);
    const uint64_t part_end = part.address + part.size;
    const alloti_span rests[] = {
        {.address = whole.address, .size = part.address - whole.address},
        {.address = part_end, .size = whole.address + whole.size - part_end},
    };
    alloti_span_set_remove(&area->mapped, whole.address);
    alloti_upstream_give(&self->base.upstream, part.size);
    for (int i = 0; i < 2; i++) {
        if (rests[i].size == 0) {
            continue;
        }
        const allot_status status = alloti_span_set_add(&area->mapped, rests[i]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** Add the mapped granules that nothing lies in to a set. */
static allot_status find_idle(const alloti_space_area *area, alloti_span_set *idle)
{
    allot_range range;
    for (uint32_t at = ALLOT_NONE; allot_space_next(area->space, &at, &range);) {
        uint64_t first = 0;
        const uint64_t end =
            alloti_align_down(area->address + range.offset + range.size, ALLOTI_SPACE_GRANULE);
        if (!range.is_free ||
            !alloti_align_up(area->address + range.offset, ALLOTI_SPACE_GRANULE, &first)) {
            continue;
        }
        while (first < end) {
            const alloti_span part = mapped_from(area, first, end);
            first = part.address + part.size;
            if (part.size > 0) {
                const allot_status status = alloti_span_set_add(idle, part);
                if (status != ALLOT_STATUS_OK) {
                    return status;
                }
            }
        }
    }
    return ALLOT_STATUS_OK;
}

/** Unmap the end of the highest idle span, as much of it as `bytes` are short of. */
static allot_status unmap_highest(alloti_space_model *self, alloti_space_area *area,
                                  alloti_span_set *idle, uint64_t bytes)
{
    alloti_span part = *alloti_span_set_floor(idle, UINT64_MAX);
    alloti_span_set_remove(idle, part.address);
    const alloti_upstream *const up = &self->base.upstream;
    const uint64_t room = up->limit - up->reserved;
    uint64_t lacking = 0;
    if (alloti_align_up(bytes - room, ALLOTI_SPACE_GRANULE, &lacking) && lacking < part.size) {
        part.address += part.size - lacking;
        part.size = lacking;
    }
    return unmap(self, area, part);
}

static allot_status area_release(alloti_space_model *self, alloti_space_area *area, uint64_t bytes)
{
    alloti_span_set idle = ALLOTI_SPAN_SET_EMPTY;
    allot_status status = find_idle(area, &idle);
    while (status == ALLOT_STATUS_OK && idle.count > 0 && !alloti_space_has_room(self, bytes)) {
        status = unmap_highest(self, area, &idle, bytes);
    }
    alloti_span_set_fini(&idle);
    return status;
}

allot_status alloti_space_vm_release(alloti_space_model *self, uint64_t bytes)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = self->areas.count; status == ALLOT_STATUS_OK && i-- > 0;) {
        status = area_release(self, &self->areas.items[i], bytes);
    }
    return status;
}

/**
 * See to it that memory lies under a piece; `may_release`: by unmapping what is free elsewhere.
 * ALLOT_STATUS_DEVICE_MEMORY if there is too little.
 */
static allot_status back(alloti_space_model *self, alloti_space_area *area,
                         const alloti_span *piece, bool may_release)
{
    uint64_t end = 0;
    const uint64_t first = alloti_align_down(piece->address, ALLOTI_SPACE_GRANULE);
    if (!alloti_align_up(piece->address + piece->size, ALLOTI_SPACE_GRANULE, &end)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const uint64_t missing = bytes_missing(area, first, end);
    if (may_release && !alloti_space_has_room(self, missing)) {
        self->base.model.stats.retry_count++;
        const allot_status status = alloti_space_vm_release(self, missing);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return alloti_space_has_room(self, missing) ? map(self, area, first, end)
                                                : ALLOT_STATUS_DEVICE_MEMORY;
}

/** The range of a stream, made on first use. */
static allot_status range_of(alloti_space_model *self, uint64_t stream, alloti_space_area **out)
{
    const uint64_t owner = alloti_space_stream(self, stream);
    uint64_t address = ALLOTI_UPSTREAM_START;
    for (uint32_t i = 0; i < self->areas.count; i++) {
        if (self->areas.items[i].stream == owner) {
            *out = &self->areas.items[i];
            return ALLOT_STATUS_OK;
        }
        address += RANGE_SIZE;
    }
    if (address > UINT64_MAX - 2 * RANGE_SIZE) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "streams=apart: too many streams");
    }
    return alloti_space_areas_add(&self->areas, self->strategy, address, RANGE_SIZE, owner, out);
}

/** Place a request where memory lies, or can be brought to lie. */
static allot_status place(alloti_space_model *self, alloti_space_area *area, uint64_t size,
                          uint64_t stream, alloti_span *out)
{
    /* Places without memory are held meanwhile, so that the strategy goes on to others. */
    alloti_span held[PLACES_TRIED];
    uint32_t count = 0;
    allot_status status = ALLOT_STATUS_DEVICE_MEMORY;
    while (status == ALLOT_STATUS_DEVICE_MEMORY && count < PLACES_TRIED) {
        status = alloti_space_area_take(area, size, stream, &held[count]);
        if (status != ALLOT_STATUS_OK) {
            break;
        }
        *out = held[count];
        status = back(self, area, out, count == 0);
        count += status == ALLOT_STATUS_OK ? 0 : 1;
    }
    while (count > 0) {
        const allot_status given = alloti_space_area_give(area, held[--count]);
        status = given == ALLOT_STATUS_OK ? status : given;
    }
    return status;
}

static allot_status vm_take(alloti_comparison *base, uint64_t size, uint64_t stream,
                            alloti_span *out)
{
    alloti_space_model *const self = (alloti_space_model *)base;
    alloti_space_area *area = NULL;
    const allot_status status = range_of(self, stream, &area);
    return status == ALLOT_STATUS_OK ? place(self, area, size, stream, out) : status;
}

static allot_status vm_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    (void)stream;
    alloti_space_model *const self = (alloti_space_model *)base;
    return alloti_space_area_give(alloti_space_areas_find(&self->areas, piece.address), piece);
}

/** The largest stretch of an area that is mapped and free. */
static uint64_t largest_mapped(const alloti_space_area *area)
{
    uint64_t largest = 0;
    allot_range range;
    for (uint32_t at = ALLOT_NONE; allot_space_next(area->space, &at, &range);) {
        uint64_t from = area->address + range.offset;
        const uint64_t end = from + range.size;
        while (range.is_free && from < end) {
            const alloti_span part = mapped_from(area, from, end);
            largest = part.size > largest ? part.size : largest;
            from = part.address + part.size;
        }
    }
    return largest;
}

static void vm_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const alloti_space_model *const self = (const alloti_space_model *)base;
    *out = (alloti_model_survey){.free_bytes = base->upstream.reserved};
    for (uint32_t i = 0; i < self->areas.count; i++) {
        const alloti_space_area *const area = &self->areas.items[i];
        const uint64_t largest = largest_mapped(area);
        out->free_bytes -= area->used;
        out->free_largest = largest > out->free_largest ? largest : out->free_largest;
    }
}

const alloti_placement alloti_space_vm = {.take = vm_take, .give = vm_give, .survey = vm_survey};
