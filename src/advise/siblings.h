/* SPDX-License-Identifier: MIT */
/**
 * What became of other memory of the same stack, for lives whose end nobody saw.
 *
 * The frames of a training pass and of an evaluation under no_grad() can be the same but for the
 * caller, and a pass that an out-of-memory cuts off shows no end. Two things tell: what memory of
 * the very same stack was for when its life could be followed; and, in a pass that is the first of
 * its kind, whether the stacks that allocate once per layer keep all of it or let each layer's go.
 */
#ifndef ALLOTI_ADVISE_SIBLINGS_H
#define ALLOTI_ADVISE_SIBLINGS_H

#include <allot/trace.h>

typedef struct alloti_stack_fate alloti_stack_fate;

typedef struct alloti_siblings {
    alloti_stack_fate *fates; /**< [stack_count] */
    uint32_t stack_count;
} alloti_siblings;

/** The caller releases the result with alloti_siblings_fini(). */
ALLOT_NODISCARD allot_status alloti_siblings_init(uint32_t stack_count, alloti_siblings *out);
void alloti_siblings_fini(alloti_siblings *siblings);

/** An allocation of `size` bytes whose end was seen, and what it was for. */
void alloti_siblings_add(alloti_siblings *siblings, uint32_t stack, allot_category category,
                         uint64_t size);

/** An allocation of forward code after the last backward pass, and whether it is never freed. */
void alloti_siblings_add_unfinished(alloti_siblings *siblings, uint32_t stack, bool is_live);

/** What most bytes of a stack whose end was seen were for; `otherwise` if there are none. */
allot_category alloti_siblings_category(const alloti_siblings *siblings, uint32_t stack,
                                        allot_category otherwise);

/**
 * Whether forward code after the last backward pass keeps what it makes, as for a backward pass to
 * come. True where nothing tells. O(stacks).
 */
bool alloti_siblings_are_kept(const alloti_siblings *siblings);

#endif /* ALLOTI_ADVISE_SIBLINGS_H */
