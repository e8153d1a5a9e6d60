/* SPDX-License-Identifier: MIT */
/** Where the steps of a training loop end. */
#ifndef ALLOTI_ADVISE_STEPS_H
#define ALLOTI_ADVISE_STEPS_H

#include <allot/compare.h>

typedef struct alloti_steps {
    uint32_t *events; /**< [count] Event at which each step ends, ascending. */
    uint32_t count;
    allot_steps_source source;
} alloti_steps;

/**
 * Find the steps: ends of the optimizer's step or of the profiler's, by annotation; else the rhythm
 * of the stack that allocates most evenly. No steps is not a failure. The caller releases the
 * result with alloti_steps_fini(). O(annotations log events + events + stacks).
 */
ALLOT_NODISCARD allot_status alloti_steps_init(const allot_history *history, alloti_steps *out);

/** Cut the history into `count` equal parts instead. */
ALLOT_NODISCARD allot_status alloti_steps_init_equal(const allot_history *history, uint32_t count,
                                                     alloti_steps *out);

void alloti_steps_fini(alloti_steps *steps);

/** Number of steps that end before an event: the index of the step the event belongs to. */
uint32_t alloti_steps_index(const alloti_steps *steps, uint32_t event);

#endif /* ALLOTI_ADVISE_STEPS_H */
