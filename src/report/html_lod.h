/* SPDX-License-Identifier: MIT */
/**
 * Level of detail: memory over time, cut into buckets of which each keeps one state that existed,
 * the one with most memory in use. So no peak is lost, and the bands of a bucket add up to its
 * total exactly.
 *
 * A *point* is a state: 0 is before the first event, p is after event p - 1. A block lives from its
 * start to just before its end.
 */
#ifndef ALLOTI_REPORT_HTML_LOD_H
#define ALLOTI_REPORT_HTML_LOD_H

#include <allot/base.h>

/** Blocks over time. All arrays [count], by ascending start. */
typedef struct alloti_lod_blocks {
    uint64_t count;
    uint64_t point_count; /**< Events + 1; ends may equal it: never freed. */
    const uint32_t *start;
    const uint32_t *end; /**< Above the start. */
    const uint64_t *size;
    uint32_t *by_end; /**< Rows by ascending end. */
} alloti_lod_blocks;

/** One state for each bucket. All arrays [bucket_count]. */
typedef struct alloti_lod {
    uint32_t bucket_count; /**< At most as many as points. */
    uint32_t *at;          /**< First point of the bucket where most is in use. */
    uint64_t *total;       /**< In use there. */
    uint64_t *low;         /**< Least in use in the bucket. */
} alloti_lod;

/** Bytes of the largest groups at each bucket's point. */
typedef struct alloti_lod_bands {
    uint32_t count;
    uint32_t *groups; /**< [count], by falling peak of the group itself. */
    uint64_t *sizes;  /**< [count * bucket_count], one group after the other. */
} alloti_lod_bands;

/** Fill in blocks->by_end, [count], provided by the caller. ALLOT_STATUS_HOST_MEMORY. O(count +
 * points). */
ALLOT_NODISCARD allot_status alloti_lod_sort_ends(alloti_lod_blocks *blocks);

/** Bucket b of the result covers the points p with floor(p * buckets / points) = b. O(count +
 * points). Released with alloti_lod_fini(). */
ALLOT_NODISCARD allot_status alloti_lod_init(const alloti_lod_blocks *blocks, uint32_t bucket_max,
                                             alloti_lod *out);
void alloti_lod_fini(alloti_lod *lod);

/**
 * Divide the buckets' totals by group; what the largest `band_max` groups leave is the rest.
 *
 * @param[in] group  Group of each block, below `group_count`. [count]
 * Released with alloti_lod_bands_fini(). O(count + points + buckets * bands).
 */
ALLOT_NODISCARD allot_status alloti_lod_bands_init(const alloti_lod_blocks *blocks,
                                                   const alloti_lod *lod, const uint32_t *group,
                                                   uint32_t group_count, uint32_t band_max,
                                                   alloti_lod_bands *out);
void alloti_lod_bands_fini(alloti_lod_bands *bands);

/** Bytes at each bucket's point of the blocks with keep[row] == 0. out [bucket_count]. O(count +
 * buckets). */
void alloti_lod_sum_dropped(const alloti_lod_blocks *blocks, const alloti_lod *lod,
                            const uint8_t *keep, uint64_t *out);

/**
 * Keep the largest blocks: keep[row] = 1 for at most `keep_max` of them, ties by lower row.
 *
 * @param[out] dropped_largest  Size of the largest that is dropped; 0 if none is.
 * @param[out] kept             How many are kept.
 */
ALLOT_NODISCARD allot_status alloti_lod_choose(const alloti_lod_blocks *blocks, uint64_t keep_max,
                                               uint8_t *keep, uint64_t *kept,
                                               uint64_t *dropped_largest);

#endif /* ALLOTI_REPORT_HTML_LOD_H */
