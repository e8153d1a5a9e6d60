/* SPDX-License-Identifier: MIT */
/* Figures of several ranks side by side, and which of them stand out. */
#include <stdlib.h>

#include <allot/compare.h>

#include "core/array.h"
#include "core/compare.h"

/** A modified z-score beyond this is an outlier (Iglewicz and Hoaglin, 1993), if it also matters.
 */
static const double SCORE_MAX = 3.5;
static const double SCORE_SCALE = 0.6745;
static const double SHARE_MIN = 0.05;

static uint64_t median(uint64_t *values, uint32_t count)
{
    qsort(values, count, sizeof *values, alloti_compare_u64);
    const uint64_t low = values[(count - 1) / 2];
    return low + (values[count / 2] - low) / 2;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static allot_status fill(const allot_history *history, const char *name, allot_rank *out)
{
    *out = (allot_rank){.name = name, .device = allot_history_device(history)};
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        out->peak[m] = allot_history_peak(history, (allot_measure)m);
    }
    allot_moment *moment = NULL;
    allot_status status =
        allot_history_at(history, out->peak[ALLOT_MEASURE_RESERVED].event, &moment);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    allot_moment_destroy(moment);
    out->fragmentation = totals.fragmentation;
    out->free_at_peak = totals.free_size;
    allot_history_counts counts;
    allot_history_get_counts(history, &counts);
    out->oom_count = counts.oom;
    out->segment_count =
        allot_trace_get_device(allot_history_trace(history), out->device)->segment_count;
    uint64_t event_count = 0;
    uint64_t initial = 0;
    const uint64_t *const reserved =
        allot_history_timeline(history, ALLOT_MEASURE_RESERVED, &initial, &event_count);
    out->reserved_end = event_count == 0 ? initial : reserved[event_count - 1];
    return ALLOT_STATUS_OK;
}

/* Median of a measure's peaks and of how far off it they are; `values` is room for [count]. */
static void find_medians(const allot_ranks *ranks, allot_measure measure, uint64_t *values,
                         uint64_t *center, uint64_t *deviation)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        values[i] = ranks->items[i].peak[measure].size;
    }
    *center = median(values, ranks->count);
    for (uint32_t i = 0; i < ranks->count; i++) {
        values[i] = distance(ranks->items[i].peak[measure].size, *center);
    }
    *deviation = median(values, ranks->count);
}

static bool stands_out(uint64_t peak, uint64_t center, uint64_t deviation)
{
    const double off = (double)distance(peak, center);
    return off > SHARE_MIN * (double)center && SCORE_SCALE * off > SCORE_MAX * (double)deviation;
}

static allot_status mark_outliers(allot_ranks *ranks)
{
    uint64_t *const values = alloti_alloc_array(ranks->count, sizeof *values);
    if (values == NULL) {
        return alloti_fail_memory(ranks->count * sizeof *values);
    }
    find_medians(ranks, ALLOT_MEASURE_ALLOCATED, values, &ranks->median_peak, &ranks->deviation);
    find_medians(ranks, ALLOT_MEASURE_RESERVED, values, &ranks->median_reserved,
                 &ranks->deviation_reserved);
    free(values);
    for (uint32_t i = 0; i < ranks->count; i++) {
        allot_rank *const rank = &ranks->items[i];
        rank->is_allocated_outlier = stands_out(rank->peak[ALLOT_MEASURE_ALLOCATED].size,
                                                ranks->median_peak, ranks->deviation);
        rank->is_reserved_outlier = stands_out(rank->peak[ALLOT_MEASURE_RESERVED].size,
                                               ranks->median_reserved, ranks->deviation_reserved);
        rank->is_outlier = rank->is_allocated_outlier || rank->is_reserved_outlier;
        ranks->outlier_count += rank->is_outlier;
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_ranks_init(const allot_history *const *histories, const char *const *names,
                              uint32_t count, allot_ranks *out)
{
    if (count == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no ranks to compare");
    }
    allot_ranks ranks = {.count = count, .items = alloti_calloc_array(count, sizeof *ranks.items)};
    if (ranks.items == NULL) {
        return alloti_fail_memory(count * sizeof *ranks.items);
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        status = fill(histories[i], names[i], &ranks.items[i]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = mark_outliers(&ranks);
    }
    if (status != ALLOT_STATUS_OK) {
        allot_ranks_fini(&ranks);
        return status;
    }
    *out = ranks;
    return ALLOT_STATUS_OK;
}

void allot_ranks_fini(allot_ranks *ranks)
{
    free(ranks->items);
    *ranks = (allot_ranks){0};
}
