/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Placement: which range of [0, capacity) a request gets. Arithmetic only: a space never touches
 * what it manages, so the same code serves device memory, files, blocks of a cache and simulations.
 *
 * A space is cut into ranges without gaps, each used or free; no two free ranges that could be one
 * lie side by side. Ranges have ids: small numbers that stay valid while the range is used, and are
 * given again afterwards. All sizes and offsets are multiples of the granule.
 *
 * Not thread-safe: one thread at a time per space; different spaces may be used at once.
 */
#ifndef ALLOT_SPACE_H
#define ALLOT_SPACE_H

#include <allot/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_space allot_space;

/** Strategies. X(name, value, spelling) */
#define ALLOT_SPACE_STRATEGY_LIST(X)                                                               \
    /** The lowest address that fits. Packs best when sizes mix. O(log n), in a tree of free       \
     * ranges by address that knows the largest below each node. */                                \
    X(FIRST_FIT, 0, "first-fit")                                                                   \
    /** The smallest range that fits, of these the lowest. O(log n). */                            \
    X(BEST_FIT, 1, "best-fit")                                                                     \
    /** Powers of two; a range and its buddy merge (Knowlton, 1965). O(log capacity), rounds       \
     * sizes up. */                                                                                \
    X(BUDDY, 2, "buddy")                                                                           \
    /** Two-level segregated fit (Masmano, Ripoll, Crespo, Real, 2004). O(1): one range of the     \
     * request's own class, else the first of a class above; only when there is none are the       \
     * ranges of its own class looked through. */                                                  \
    X(TLSF, 3, "tlsf")                                                                             \
    /** Small requests share chunks, each tier of sizes its own, so that they do not lie           \
     * scattered among large ones; the tiers and the chunks themselves are placed by first fit. */ \
    X(TIERED, 4, "tiered")                                                                         \
    /** Learns how long ranges of each size and tag live; what lives long goes to the high end,    \
     * what goes soon to the low end, each by first fit. */                                        \
    X(ADAPTIVE, 5, "adaptive")

typedef enum allot_space_strategy {
#define ALLOT_SPACE_STRATEGY_ENUM(name, value, spelling) ALLOT_SPACE_STRATEGY_##name = (value),
    ALLOT_SPACE_STRATEGY_LIST(ALLOT_SPACE_STRATEGY_ENUM)
#undef ALLOT_SPACE_STRATEGY_ENUM
} allot_space_strategy;

/** Spelling of a strategy, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_space_strategy_name(allot_space_strategy strategy);

/** Strategy of a spelling; ALLOT_STATUS_NOT_FOUND with all spellings. Thread-safe. */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_strategy_parse(const char *text,
                                                                  allot_space_strategy *out);

/** The most tiers that ALLOT_SPACE_STRATEGY_TIERED takes, the one for everything else included. */
#define ALLOT_SPACE_TIERS_MAX 8

/** Options of allot_space_create(). Zero-initialise, then set struct_size. */
typedef struct allot_space_options {
    size_t struct_size;
    allot_space_strategy strategy;
    uint64_t granule; /**< Bytes, a power of two; 0: 256. */
    /** Upper sizes of the tiers but the last, rising, zeros at the end; all zero: 64 KiB, 1 MiB,
     * 16 MiB. */
    uint64_t tier_sizes[ALLOT_SPACE_TIERS_MAX - 1];
    uint64_t chunk_factor; /**< A tier's chunk is its upper size times this; 0: 16. */
} allot_space_options;

/** A part of a space. */
typedef struct allot_range {
    uint64_t offset;
    uint64_t size;
    uint32_t id;
    bool is_free;
} allot_range;

/** What is in a space. Filled in by allot_space_get_stats(). */
typedef struct allot_space_stats {
    size_t struct_size;
    uint64_t capacity;
    uint64_t size_used; /**< Rounding included. */
    uint64_t size_used_peak;
    uint64_t size_free;
    uint64_t size_free_largest; /**< Largest single range. */
    uint64_t offset_high;       /**< End of the highest used range. */
    uint64_t offset_high_peak;
    uint64_t used_count; /**< Ranges. */
    uint64_t free_count;
    uint64_t alloc_count;  /**< Requests granted since the space was made. */
    uint64_t failed_count; /**< Requests refused. */
    double fragmentation;  /**< External: 1 - largest free / free; 0 where nothing is free. */
    /** Ranges of 2^i to 2^(i+1) - 1 bytes. [64] each */
    uint64_t used_histogram[64];
    uint64_t free_histogram[64];
} allot_space_stats;

/**
 * Make a space that is free from end to end.
 *
 * @param[in]  capacity  Bytes, 0 to 2^63; rounded down to the granule. Buddy: to granules.
 * @param[in]  options   NULL for the defaults.
 * @param[out] out       Untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a wrong option; ALLOT_STATUS_HOST_MEMORY.
 * The caller owns the result and releases it with allot_space_destroy().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_create(uint64_t capacity,
                                                          const allot_space_options *options,
                                                          allot_space **out);

/** Release a space; NULL is allowed. */
ALLOT_API void allot_space_destroy(allot_space *space);

/**
 * Place a request.
 *
 * @param[in]  size   Bytes, at least 1; rounded up to the granule (buddy: to a power of two).
 * @param[in]  align  Of the offset, a power of two; 0 or below the granule: the granule.
 * @param[in]  tag    Where the request comes from, a call site or a stream: what adaptive learns by
 *                    beside the size. Others take no notice. 0 for none.
 * @param[out] out    Untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for no size or a wrong alignment;
 *         ALLOT_STATUS_FRAGMENTED if enough bytes are free but no range fits;
 *         ALLOT_STATUS_DEVICE_MEMORY if they are not; ALLOT_STATUS_HOST_MEMORY. Nothing has changed
 *         after a failure.
 * The caller owns the range and releases it with allot_space_free(). Cost as the strategy says;
 * first fit and best fit go on, range by range, where an alignment above the granule does not fit.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_alloc(allot_space *space, uint64_t size,
                                                         uint64_t align, uint32_t tag,
                                                         allot_range *out);

/**
 * Give a used range back; its id is no longer valid.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID if no used range has this id.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_free(allot_space *space, uint32_t id);

/**
 * Change the size of a used range where it is.
 *
 * @param[in] size  Bytes, at least 1; rounded as by allot_space_alloc().
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID; ALLOT_STATUS_FRAGMENTED if what follows the range
 *         is not free or too small, and nothing has changed; ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_resize(allot_space *space, uint32_t id,
                                                          uint64_t size);

/**
 * Change the capacity. Growing adds to the free range at the end.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY if a used range ends above the new capacity;
 *         ALLOT_STATUS_INVALID above 2^63; ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_set_capacity(allot_space *space,
                                                                uint64_t capacity);

/** Look up a used range; ALLOT_STATUS_INVALID if none has this id. O(1). */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_get(const allot_space *space, uint32_t id,
                                                       allot_range *out);

/**
 * Walk all ranges by offset: `*at` is ALLOT_NONE to begin with; false after the last. The space
 * must not change meanwhile. O(1) per step.
 */
ALLOT_API bool allot_space_next(const allot_space *space, uint32_t *at, allot_range *out);

/** Size of the largest free range. O(log n) for trees; TLSF looks through its highest class. */
ALLOT_API uint64_t allot_space_largest_free(const allot_space *space);

/** What is in the space. O(n), for the histograms. */
ALLOT_API void allot_space_get_stats(const allot_space *space, allot_space_stats *out);

/**
 * Whether all invariants hold: ranges without gaps, neighbours merged, indexes complete, sums
 * right.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_MISMATCH with what is wrong. O(n).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_space_check(const allot_space *space);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_SPACE_H */
