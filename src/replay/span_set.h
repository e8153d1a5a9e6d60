/* SPDX-License-Identifier: MIT */
/**
 * Free ranges of the comparison models, found by address and by size.
 *
 * Every span is in two search trees at once: one ordered by address, which also knows the largest
 * span below each item (so that the lowest address that fits is found without a scan), one ordered
 * by size and then address (best fit). Each call is O(log n). Not thread-safe.
 */
#ifndef ALLOTI_REPLAY_SPAN_SET_H
#define ALLOTI_REPLAY_SPAN_SET_H

#include "core/status.h"
#include "core/tree.h"

/** A free range. Spans of one set never overlap. */
typedef struct alloti_span {
    uint64_t address;
    uint64_t size;    /**< Bytes, above 0. */
    uint32_t segment; /**< Piece of driver memory it lies in: only equals are merged. */
} alloti_span;

typedef struct alloti_span_item alloti_span_item;

typedef struct alloti_span_set {
    alloti_span_item *items;
    alloti_tree_node *nodes[2]; /**< Links of the items, by address and by size. */
    alloti_tree trees[2];
    uint64_t item_capacity;
    uint64_t node_capacity[2];
    uint32_t used;  /**< Items ever taken: the rest of the arrays is untouched. */
    uint32_t spare; /**< First of the returned items, linked; ALLOT_NONE if none. */
    uint64_t count;
    uint64_t bytes; /**< Sum of all sizes. */
} alloti_span_set;

/** An empty set, for initialisation. */
#define ALLOTI_SPAN_SET_EMPTY                                                                      \
    ((alloti_span_set){.spare = ALLOT_NONE, .trees = {ALLOTI_TREE_INIT, ALLOTI_TREE_INIT}})

void alloti_span_set_fini(alloti_span_set *set);

/** Add a span that overlaps none in the set. ALLOT_STATUS_HOST_MEMORY leaves the set as it was. */
ALLOT_NODISCARD allot_status alloti_span_set_add(alloti_span_set *set, alloti_span span);

/** Add a span and merge it with the spans of the same segment that touch it. */
ALLOT_NODISCARD allot_status alloti_span_set_merge(alloti_span_set *set, alloti_span span);

/** Take out the span that begins at `address`; it must be there. */
void alloti_span_set_remove(alloti_span_set *set, uint64_t address);

/** Move every span of `from` into `to`, merging what touches. */
ALLOT_NODISCARD allot_status alloti_span_set_drain(alloti_span_set *from, alloti_span_set *to);

/**
 * Cut `size` bytes from the front of a span of `set`, the rest stays in the set.
 *
 * @param[in]  fit  A span of the set, as alloti_span_set_best_fit() gives it, of at least `size`.
 * @param[out] out  The piece: address, `size`, segment.
 */
ALLOT_NODISCARD allot_status alloti_span_set_carve(alloti_span_set *set, const alloti_span *fit,
                                                   uint64_t size, alloti_span *out);

/** Smallest span of at least `size` bytes, the lowest address among equals; NULL if none. */
const alloti_span *alloti_span_set_best_fit(const alloti_span_set *set, uint64_t size);

/** Span at the lowest address of at least `size` bytes; NULL if none. */
const alloti_span *alloti_span_set_first_fit(const alloti_span_set *set, uint64_t size);

/** Last span that begins at or below `address`; NULL if none. */
const alloti_span *alloti_span_set_floor(const alloti_span_set *set, uint64_t address);

/** First span that begins at or above `address`; NULL if none. */
const alloti_span *alloti_span_set_ceiling(const alloti_span_set *set, uint64_t address);

/** Size of the largest span; 0 for an empty set. */
uint64_t alloti_span_set_largest(const alloti_span_set *set);

/** Whether order, sums and counts are right; for tests. O(n). */
bool alloti_span_set_check(const alloti_span_set *set);

#endif /* ALLOTI_REPLAY_SPAN_SET_H */
