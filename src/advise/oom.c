/* SPDX-License-Identifier: MIT */
/*
 * Why a request failed.
 *
 * A request may use free ranges of segments of its own stream, pool and size class only. When none
 * is large enough, and the driver has too little left, it fails. Memory can then be made to fit in
 * two ways: by clearing a range inside one segment, or by emptying whole segments so that they go
 * back to the driver. Either way it is a matter of the live blocks in between: the pins.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <allot/explain.h>

#include "core/array.h"
#include "core/map64.h"
#include "core/size_math.h"

enum { LARGE_MIN = 1 << 20, PAGE_SMALL = 2 << 20, PAGE_LARGE = 20 << 20, PINS_SHOWN = 8 };

/** A part of the device that others must hold before it is called the reason. */
enum { OUTSIDE_SHARE = 10 };

const char *allot_oom_verdict_name(allot_oom_verdict verdict)
{
    switch (verdict) {
#define OOM_NAME(name, value, spelling)                                                            \
    case ALLOT_OOM_##name:                                                                         \
        return spelling;
        ALLOT_OOM_LIST(OOM_NAME)
#undef OOM_NAME
    }
    return "unknown";
}

typedef struct view {
    const allot_trace *trace;
    const allot_moment_segment *segments;
    uint32_t segment_count;
    const allot_moment_block *blocks;
    allot_oom *oom;
    uint64_t pin_capacity;
} view;

static bool is_same_pool(const allot_trace *trace, uint32_t a, uint32_t b)
{
    const allot_pool_id none = {0, 0};
    const allot_pool_id left = a == ALLOT_NONE ? none : allot_trace_pool(trace, a);
    const allot_pool_id right = b == ALLOT_NONE ? none : allot_trace_pool(trace, b);
    return left.first == right.first && left.second == right.second;
}

static bool is_usable(const view *v, const allot_moment_segment *segment)
{
    return segment->stream == v->oom->stream &&
           segment->is_large == (v->oom->requested > LARGE_MIN) &&
           is_same_pool(v->trace, segment->pool, v->oom->pool);
}

/* Bytes of a segment's free ranges that are whole pages. */
static uint64_t whole_pages(const view *v, const allot_moment_segment *segment)
{
    const uint64_t page = segment->is_large ? PAGE_LARGE : PAGE_SMALL;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const allot_moment_block *const block = &v->blocks[segment->block_first + i];
        if (block->allocation == ALLOT_NONE) {
            sum += block->size / page * page;
        }
    }
    return sum;
}

static void raise(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

static void sum_free(view *v)
{
    allot_oom *const oom = v->oom;
    uint64_t pages = 0;
    for (uint32_t s = 0; s < v->segment_count; s++) {
        const allot_moment_segment *const segment = &v->segments[s];
        pages += whole_pages(v, segment);
        if (is_usable(v, segment)) {
            oom->usable_free += segment->free_size;
            raise(&oom->usable_largest, segment->free_largest);
            continue;
        }
        raise(&oom->other_largest, segment->free_largest);
        if (!is_same_pool(v->trace, segment->pool, oom->pool)) {
            oom->other_pool_free += segment->free_size;
        } else if (segment->stream != oom->stream) {
            oom->other_stream_free += segment->free_size;
        } else {
            oom->other_class_free += segment->free_size;
        }
    }
    const uint64_t driver = oom->is_capped ? 0 : oom->device_free;
    uint64_t packed = 0;
    if (!alloti_align_up(oom->totals.active, PAGE_SMALL, &packed) ||
        packed > oom->totals.reserved) {
        packed = oom->totals.reserved;
    }
    oom->compacted_largest = driver + (oom->totals.reserved - packed);
    oom->expandable_largest = driver + pages;
    raise(&oom->expandable_largest, oom->usable_largest);
}

static allot_status add_pin(view *v, const allot_pin *pin)
{
    const allot_status status =
        alloti_array_reserve(&v->oom->pins, &v->pin_capacity, v->oom->pin_count + 1, sizeof *pin);
    if (status == ALLOT_STATUS_OK) {
        v->oom->pins[v->oom->pin_count++] = *pin;
    }
    return status;
}

/*
 * The run of blocks in a segment that makes a range of the requested size with the fewest live
 * bytes in it; false if the segment is too small.
 */
static bool cheapest_range(const view *v, uint32_t index, allot_pin *out)
{
    const allot_moment_segment *const segment = &v->segments[index];
    allot_pin now = {.segment = index, .block_first = segment->block_first};
    bool has_found = false;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const allot_moment_block *const block = &v->blocks[segment->block_first + i];
        now.block_count++;
        now.size += block->size;
        if (block->allocation != ALLOT_NONE) {
            now.live_count++;
            now.live_size += block->size;
        }
        for (const allot_moment_block *first = &v->blocks[now.block_first];
             now.size - first->size >= v->oom->requested && now.block_count > 1;
             first = &v->blocks[now.block_first]) {
            now.size -= first->size;
            if (first->allocation != ALLOT_NONE) {
                now.live_count--;
                now.live_size -= first->size;
            }
            now.block_first++;
            now.block_count--;
        }
        if (now.size >= v->oom->requested && (!has_found || now.live_size < out->live_size)) {
            *out = now;
            has_found = true;
        }
    }
    out->free_size = out->size - out->live_size;
    return has_found;
}

static int compare_pin(const void *a, const void *b)
{
    const allot_pin *const left = a;
    const allot_pin *const right = b;
    /* By free bytes for each live byte; live_size is never 0 in a pin. */
    const double gain_left = (double)left->free_size / (double)left->live_size;
    const double gain_right = (double)right->free_size / (double)right->live_size;
    if (gain_left > gain_right || gain_left < gain_right) {
        return gain_left < gain_right ? 1 : -1;
    }
    return (left->segment > right->segment) - (left->segment < right->segment);
}

/* Move pins that are cheap but small behind the others: `spare` bytes are more than is needed. */
static void drop_needless(allot_oom *oom, uint64_t spare)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < oom->pin_needed; i++) {
        const allot_pin pin = oom->pins[i];
        if (pin.size <= spare) {
            spare -= pin.size;
            continue;
        }
        oom->pins[i] = oom->pins[kept];
        oom->pins[kept++] = pin;
    }
    oom->pin_needed = kept;
}

/* Whole segments, as they would go back to the driver, and how many of them make room. */
static allot_status pin_segments(view *v)
{
    allot_oom *const oom = v->oom;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; status == ALLOT_STATUS_OK && s < v->segment_count; s++) {
        const allot_moment_segment *const segment = &v->segments[s];
        if (segment->free_size != 0 && segment->live_count != 0) {
            status = add_pin(v, &(allot_pin){.segment = s,
                                             .block_first = segment->block_first,
                                             .block_count = segment->block_count,
                                             .live_count = segment->live_count,
                                             .live_size = segment->active,
                                             .free_size = segment->free_size,
                                             .size = segment->size});
        }
    }
    if (status != ALLOT_STATUS_OK || oom->pin_count == 0) {
        return status;
    }
    qsort(oom->pins, oom->pin_count, sizeof *oom->pins, compare_pin);
    uint64_t room = oom->is_capped ? 0 : oom->device_free;
    for (uint32_t i = 0; i < oom->pin_count; i++) {
        room += oom->pins[i].size;
        if (room >= oom->requested) {
            oom->pin_needed = i + 1;
            drop_needless(oom, room - oom->requested);
            break;
        }
    }
    return ALLOT_STATUS_OK;
}

static uint64_t live_of_needed(const allot_oom *oom)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < oom->pin_needed; i++) {
        sum += oom->pins[i].live_size;
    }
    return sum;
}

/* One range inside a segment, if clearing it is cheaper than emptying segments. */
static allot_status pin_range(view *v)
{
    allot_oom *const oom = v->oom;
    allot_pin best = {0};
    bool has_best = false;
    for (uint32_t s = 0; s < v->segment_count; s++) {
        allot_pin pin = {0};
        if (is_usable(v, &v->segments[s]) && cheapest_range(v, s, &pin) &&
            (!has_best || pin.live_size < best.live_size)) {
            best = pin;
            has_best = true;
        }
    }
    if (!has_best || best.live_size == 0 ||
        (oom->pin_needed != 0 && best.live_size >= live_of_needed(oom))) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = add_pin(v, &best);
    if (status == ALLOT_STATUS_OK) {
        for (uint64_t i = oom->pin_count - 1; i > 0; i--) {
            oom->pins[i] = oom->pins[i - 1];
        }
        oom->pins[0] = best;
        oom->pin_needed = 1;
        oom->pin_is_range = true;
    }
    return status;
}

static int compare_pin_line(const void *a, const void *b)
{
    const allot_pin_line *const left = a;
    const allot_pin_line *const right = b;
    if (left->kept_size != right->kept_size) {
        return left->kept_size < right->kept_size ? 1 : -1;
    }
    return (left->line > right->line) - (left->line < right->line);
}

typedef struct liner {
    const allot_lines *lines;
    allot_allocations table;
    alloti_map64 index;
    uint32_t *last_pin; /**< [pin_lines] Pin whose free bytes were counted last. */
    uint64_t capacity;
    uint64_t last_capacity;
} liner;

static allot_status add_to_line(liner *l, allot_oom *oom, uint32_t pin, uint32_t row)
{
    const uint32_t line = allot_lines_of(l->lines, l->table.stack[row]);
    uint32_t at = alloti_map64_get(&l->index, line);
    if (at == ALLOT_NONE) {
        allot_status status = alloti_array_reserve(&oom->pin_lines, &l->capacity,
                                                   oom->pin_line_count + 1, sizeof *oom->pin_lines);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_array_reserve(&l->last_pin, &l->last_capacity, oom->pin_line_count + 1,
                                          sizeof *l->last_pin);
        }
        if (status == ALLOT_STATUS_OK) {
            at = (uint32_t)oom->pin_line_count++;
            oom->pin_lines[at] = (allot_pin_line){.line = line};
            l->last_pin[at] = ALLOT_NONE;
            status = alloti_map64_set(&l->index, line, at);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    oom->pin_lines[at].block_count++;
    oom->pin_lines[at].size += l->table.size[row];
    if (l->last_pin[at] != pin) {
        l->last_pin[at] = pin;
        oom->pin_lines[at].kept_size += oom->pins[pin].free_size;
    }
    return ALLOT_STATUS_OK;
}

/* Sum the pins that matter by line of code. */
static allot_status sum_lines(const view *v, const allot_moment *moment, const allot_lines *lines)
{
    allot_oom *const oom = v->oom;
    uint64_t count = oom->pin_needed != 0 ? oom->pin_needed : PINS_SHOWN;
    count = count > oom->pin_count ? oom->pin_count : count;
    liner l = {.lines = lines};
    allot_history_get_allocations(allot_moment_history(moment), &l.table);
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t p = 0; status == ALLOT_STATUS_OK && p < count; p++) {
        const allot_pin *const pin = &oom->pins[p];
        for (uint32_t b = 0; status == ALLOT_STATUS_OK && b < pin->block_count; b++) {
            const uint32_t row = v->blocks[pin->block_first + b].allocation;
            if (row != ALLOT_NONE) {
                status = add_to_line(&l, oom, p, row);
            }
        }
    }
    if (oom->pin_line_count != 0) {
        qsort(oom->pin_lines, oom->pin_line_count, sizeof *oom->pin_lines, compare_pin_line);
    }
    alloti_map64_fini(&l.index);
    free(l.last_pin);
    return status;
}

static allot_oom_verdict judge(const allot_oom *oom)
{
    const uint64_t driver = oom->is_capped ? 0 : oom->device_free;
    if (oom->other_largest >= oom->requested) {
        return ALLOT_OOM_SEPARATED;
    }
    if (oom->totals.free_size + driver >= oom->requested) {
        return ALLOT_OOM_FRAGMENTED;
    }
    if (oom->device_total != 0 && oom->outside >= oom->device_total / OUTSIDE_SHARE &&
        oom->outside + driver + oom->totals.free_size >= oom->requested) {
        return ALLOT_OOM_OUTSIDE;
    }
    return ALLOT_OOM_EXHAUSTED;
}

allot_status allot_oom_init(const allot_moment *moment, const allot_lines *lines, allot_oom *out)
{
    const allot_history *const history = allot_moment_history(moment);
    const allot_trace *const trace = allot_history_trace(history);
    allot_events events;
    allot_trace_get_events(trace, allot_history_device(history), &events);
    allot_oom oom = {0};
    allot_moment_get_totals(moment, &oom.totals);
    oom.event = oom.totals.event;
    if (oom.event >= events.count || events.kind[oom.event] != ALLOT_EVENT_OOM) {
        return alloti_fail(ALLOT_STATUS_INVALID, "event %" PRIu32 " is no oom", oom.event);
    }
    oom.requested = events.size[oom.event];
    oom.device_free = events.addr[oom.event];
    oom.stream = events.stream[oom.event];
    oom.pool = events.pool[oom.event];
    oom.is_capped = oom.device_free >= oom.requested;
    view v = {.trace = trace, .oom = &oom};
    v.segments = allot_moment_segments(moment, &v.segment_count);
    uint32_t block_count = 0;
    v.blocks = allot_moment_blocks(moment, &block_count);
    sum_free(&v);
    oom.verdict = judge(&oom);
    allot_status status = pin_segments(&v);
    if (status == ALLOT_STATUS_OK) {
        status = pin_range(&v);
    }
    if (status == ALLOT_STATUS_OK) {
        status = sum_lines(&v, moment, lines);
    }
    if (status != ALLOT_STATUS_OK) {
        allot_oom_fini(&oom);
        return status;
    }
    *out = oom;
    return ALLOT_STATUS_OK;
}

void allot_oom_fini(allot_oom *oom)
{
    free(oom->pins);
    free(oom->pin_lines);
    *oom = (allot_oom){0};
}

void allot_oom_set_device_total(allot_oom *oom, uint64_t device_total)
{
    const uint64_t known = oom->totals.reserved + oom->device_free;
    oom->device_total = device_total;
    oom->outside = device_total > known ? device_total - known : 0;
    oom->verdict = judge(oom);
}
