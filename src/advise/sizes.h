/* SPDX-License-Identifier: MIT */
/** The sizes a program asked for, as far as settings can tell them apart. */
#ifndef ALLOTI_ADVISE_SIZES_H
#define ALLOTI_ADVISE_SIZES_H

#include <allot/torchsim.h>

/**
 * max_split_size_mb can only separate requests of different whole MiB, so sizes are kept by MiB.
 * A request that recurs weighs as often as it is made.
 */
typedef struct alloti_size_class {
    uint64_t mib;   /**< Sizes of (mib - 1, mib] MiB. */
    uint64_t bytes; /**< Sum over all requests. */
    uint64_t count;
} alloti_size_class;

typedef struct alloti_sizes {
    alloti_size_class *large; /**< By rising size; only those that max_split_size_mb can name. */
    uint32_t large_count;
    uint64_t interval_bytes[ALLOT_TORCH_INTERVALS]; /**< Asked for, by roundup interval. */
} alloti_sizes;

/** Collect the sizes of a device's requests, failed ones included. */
ALLOT_NODISCARD allot_status alloti_sizes_init(alloti_sizes *sizes, const allot_trace *trace,
                                               uint32_t device);
void alloti_sizes_fini(alloti_sizes *sizes);

/** Smallest max_split_size_mb that PyTorch accepts. */
#define ALLOTI_MAX_SPLIT_MIB_MIN 21

/** max_split_size_mb that lets class `index` and all smaller ones be split, and no larger one. */
uint64_t alloti_sizes_threshold_mib(const alloti_sizes *sizes, uint32_t index);

/**
 * Choose classes spread evenly over the bytes asked for, the first and the last included.
 *
 * @param[out] chosen  [max] rising indices.
 * @return how many, at most `max`.
 */
uint32_t alloti_sizes_spread(const alloti_sizes *sizes, uint32_t max, uint32_t *chosen);

/** Intervals by falling bytes asked for; returns how many have any, at most `max`. */
uint32_t alloti_sizes_intervals(const alloti_sizes *sizes, uint32_t max, uint32_t *intervals);

#endif /* ALLOTI_ADVISE_SIZES_H */
