/* SPDX-License-Identifier: MIT */
/* Buckets and bands by sweeping over the points: ends first, then starts, as a block that is freed
 * at a point no longer counts there. */
#include "report/html_lod.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"

allot_status alloti_lod_sort_ends(alloti_lod_blocks *blocks)
{
    /* Counting sort: the ends lie in [0, point_count]. */
    uint32_t *const next = alloti_calloc_array(blocks->point_count + 2, sizeof *next);
    if (next == NULL) {
        return alloti_fail_memory((blocks->point_count + 2) * sizeof *next);
    }
    for (uint64_t i = 0; i < blocks->count; i++) {
        next[blocks->end[i] + 1]++;
    }
    for (uint64_t p = 1; p < blocks->point_count + 2; p++) {
        next[p] += next[p - 1];
    }
    for (uint64_t i = 0; i < blocks->count; i++) {
        blocks->by_end[next[blocks->end[i]]++] = (uint32_t)i;
    }
    free(next);
    return ALLOT_STATUS_OK;
}

/** Where a sweep over the points is: rows before `started` have started, and so on. */
typedef struct sweep {
    const alloti_lod_blocks *blocks;
    uint64_t started;
    uint64_t ended;
} sweep;

/** Next row that ends at or before `point`; ALLOT_NONE if there is none. */
static uint32_t sweep_next_end(sweep *self, uint64_t point)
{
    if (self->ended == self->blocks->count) {
        return ALLOT_NONE;
    }
    const uint32_t row = self->blocks->by_end[self->ended];
    if (self->blocks->end[row] > point) {
        return ALLOT_NONE;
    }
    self->ended++;
    return row;
}

/** Next row that starts at or before `point`; ALLOT_NONE if there is none. */
static uint32_t sweep_next_start(sweep *self, uint64_t point)
{
    if (self->started == self->blocks->count || self->blocks->start[self->started] > point) {
        return ALLOT_NONE;
    }
    return (uint32_t)self->started++;
}

allot_status alloti_lod_init(const alloti_lod_blocks *blocks, uint32_t bucket_max, alloti_lod *out)
{
    const uint64_t points = blocks->point_count;
    const uint32_t buckets = points < bucket_max ? (uint32_t)points : bucket_max;
    alloti_lod lod = {.bucket_count = buckets};
    lod.at = alloti_calloc_array(buckets, sizeof *lod.at);
    lod.total = alloti_calloc_array(buckets, sizeof *lod.total);
    lod.low = alloti_calloc_array(buckets, sizeof *lod.low);
    if (lod.at == NULL || lod.total == NULL || lod.low == NULL) {
        alloti_lod_fini(&lod);
        return alloti_fail_memory(buckets * sizeof *lod.total);
    }
    sweep state = {.blocks = blocks};
    uint64_t total = 0;
    uint32_t last = ALLOT_NONE;
    for (uint64_t p = 0; p < points; p++) {
        for (uint32_t row = 0; (row = sweep_next_start(&state, p)) != ALLOT_NONE;) {
            total += blocks->size[row];
        }
        for (uint32_t row = 0; (row = sweep_next_end(&state, p)) != ALLOT_NONE;) {
            total -= blocks->size[row];
        }
        const uint32_t b = (uint32_t)(p * buckets / points);
        if (b != last || total > lod.total[b]) {
            lod.at[b] = (uint32_t)p;
            lod.total[b] = total;
        }
        if (b != last || total < lod.low[b]) {
            lod.low[b] = total;
        }
        last = b;
    }
    *out = lod;
    return ALLOT_STATUS_OK;
}

void alloti_lod_fini(alloti_lod *lod)
{
    free(lod->at);
    free(lod->total);
    free(lod->low);
    *lod = (alloti_lod){0};
}

/** The most each group ever held. peak and now [group_count], zeroed. */
static void find_group_peaks(const alloti_lod_blocks *blocks, const uint32_t *group, uint64_t *now,
                             uint64_t *peak)
{
    sweep state = {.blocks = blocks};
    for (uint64_t i = 0; i < blocks->count; i++) {
        for (uint32_t row = 0; (row = sweep_next_end(&state, blocks->start[i])) != ALLOT_NONE;) {
            now[group[row]] -= blocks->size[row];
        }
        uint64_t *const held = &now[group[i]];
        *held += blocks->size[i];
        if (*held > peak[group[i]]) {
            peak[group[i]] = *held;
        }
    }
}

/** The groups with the highest peaks, by insertion into a short sorted list; returns how many. */
static uint32_t choose_groups(const uint64_t *peak, uint32_t group_count, uint32_t band_max,
                              uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < group_count; g++) {
        if (peak[g] == 0 || (count == band_max && peak[g] <= peak[out[count - 1]])) {
            continue;
        }
        uint32_t at = count < band_max ? count++ : count - 1;
        for (; at > 0 && peak[out[at - 1]] < peak[g]; at--) {
            out[at] = out[at - 1];
        }
        out[at] = g;
    }
    return count;
}

/** Sum the bands at each bucket's point. band_of [group_count]: band, or ALLOT_NONE. */
static void sum_bands(const alloti_lod_blocks *blocks, const alloti_lod *lod, const uint32_t *group,
                      const uint32_t *band_of, uint64_t *now, alloti_lod_bands *bands)
{
    sweep state = {.blocks = blocks};
    for (uint32_t b = 0; b < lod->bucket_count; b++) {
        for (uint32_t row = 0; (row = sweep_next_start(&state, lod->at[b])) != ALLOT_NONE;) {
            const uint32_t band = band_of[group[row]];
            if (band != ALLOT_NONE) {
                now[band] += blocks->size[row];
            }
        }
        for (uint32_t row = 0; (row = sweep_next_end(&state, lod->at[b])) != ALLOT_NONE;) {
            const uint32_t band = band_of[group[row]];
            if (band != ALLOT_NONE) {
                now[band] -= blocks->size[row];
            }
        }
        for (uint32_t k = 0; k < bands->count; k++) {
            bands->sizes[(uint64_t)k * lod->bucket_count + b] = now[k];
        }
    }
}

allot_status alloti_lod_bands_init(const alloti_lod_blocks *blocks, const alloti_lod *lod,
                                   const uint32_t *group, uint32_t group_count, uint32_t band_max,
                                   alloti_lod_bands *out)
{
    const uint64_t slots = (uint64_t)group_count + band_max + 1;
    alloti_lod_bands bands = {0};
    uint64_t *const now = alloti_calloc_array(slots, sizeof *now);
    uint64_t *const peak = alloti_calloc_array(slots, sizeof *peak);
    uint32_t *const band_of = alloti_alloc_array(slots, sizeof *band_of);
    bands.groups = alloti_calloc_array((uint64_t)band_max + 1, sizeof *bands.groups);
    bands.sizes =
        alloti_calloc_array((uint64_t)band_max * lod->bucket_count + 1, sizeof *bands.sizes);
    allot_status status = ALLOT_STATUS_OK;
    if (now == NULL || peak == NULL || band_of == NULL || bands.groups == NULL ||
        bands.sizes == NULL) {
        alloti_lod_bands_fini(&bands);
        status = alloti_fail_memory(slots * sizeof *now);
    } else {
        find_group_peaks(blocks, group, now, peak);
        bands.count = choose_groups(peak, group_count, band_max, bands.groups);
        memset(band_of, 0xff, slots * sizeof *band_of);
        memset(now, 0, slots * sizeof *now);
        for (uint32_t k = 0; k < bands.count; k++) {
            band_of[bands.groups[k]] = k;
        }
        sum_bands(blocks, lod, group, band_of, now, &bands);
        *out = bands;
    }
    free(now);
    free(peak);
    free(band_of);
    return status;
}

void alloti_lod_bands_fini(alloti_lod_bands *bands)
{
    free(bands->groups);
    free(bands->sizes);
    *bands = (alloti_lod_bands){0};
}

void alloti_lod_sum_dropped(const alloti_lod_blocks *blocks, const alloti_lod *lod,
                            const uint8_t *keep, uint64_t *out)
{
    sweep state = {.blocks = blocks};
    uint64_t total = 0;
    for (uint32_t b = 0; b < lod->bucket_count; b++) {
        for (uint32_t row = 0; (row = sweep_next_start(&state, lod->at[b])) != ALLOT_NONE;) {
            total += keep[row] != 0 ? 0 : blocks->size[row];
        }
        for (uint32_t row = 0; (row = sweep_next_end(&state, lod->at[b])) != ALLOT_NONE;) {
            total -= keep[row] != 0 ? 0 : blocks->size[row];
        }
        out[b] = total;
    }
}

static int compare_falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

allot_status alloti_lod_choose(const alloti_lod_blocks *blocks, uint64_t keep_max, uint8_t *keep,
                               uint64_t *kept, uint64_t *dropped_largest)
{
    if (blocks->count <= keep_max) {
        memset(keep, 1, blocks->count);
        *kept = blocks->count;
        *dropped_largest = 0;
        return ALLOT_STATUS_OK;
    }
    uint64_t *const sorted = alloti_alloc_array(blocks->count, sizeof *sorted);
    if (sorted == NULL) {
        return alloti_fail_memory(blocks->count * sizeof *sorted);
    }
    memcpy(sorted, blocks->size, blocks->count * sizeof *sorted);
    qsort(sorted, blocks->count, sizeof *sorted, compare_falling);
    const uint64_t limit = sorted[keep_max];
    uint64_t room = keep_max; /* for blocks as large as the limit */
    for (uint64_t n = 0; n < keep_max && sorted[n] > limit; n++) {
        room--;
    }
    for (uint64_t i = 0; i < blocks->count; i++) {
        const bool fits = blocks->size[i] == limit && room > 0;
        keep[i] = blocks->size[i] > limit || fits;
        room -= fits ? 1 : 0;
    }
    *kept = keep_max;
    *dropped_largest = limit;
    free(sorted);
    return ALLOT_STATUS_OK;
}
