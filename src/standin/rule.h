/* SPDX-License-Identifier: MIT */
/**
 * Broken rules. With real bytes behind device memory the stand-in keeps a program to what CUDA
 * documents, also where real hardware would let it pass or answer by chance: the program is told on
 * standard error what it did and where, the call fails with the code that CUDA has for it, and with
 * "strict:1" the process is aborted, so that a debugger or a core file shows the place.
 *
 * Without real bytes nothing is said: the code alone is the answer.
 */
#ifndef ALLOTI_STANDIN_RULE_H
#define ALLOTI_STANDIN_RULE_H

#include <allot/base.h>

#include "standin/abi.h"

struct standin;

enum { RULE_FRAMES = 16 };

/** Where work was put on a stream: what runs later can still be blamed on its place. */
typedef struct rule_place {
    void *frames[RULE_FRAMES];
    int count;
} rule_place;

/** The calls that led here. Takes a microsecond or two. */
void rule_here(rule_place *place);

/**
 * A rule is broken. Counts it, says it; returns `status`, or does not return in strict mode.
 *
 * @param[in] place  Where, or NULL for here.
 */
cuda_status rule_broken(struct standin *state, const rule_place *place, cuda_status status,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif /* ALLOTI_STANDIN_RULE_H */
