/* SPDX-License-Identifier: MIT */
/** Parts of bench_compact; each prints its figures beside the goals. */
#ifndef BENCH_COMPACT_H
#define BENCH_COMPACT_H

#include <allot/base.h>
#include <stdbool.h>

/** Ends the program if a call failed. */
void bench_require(allot_status status, const char *what);

/** Print a figure beside its goal, which is the most or the least it may be. */
bool bench_goal(const char *what, double value, double goal, bool is_most, const char *unit);

/** Moves on the host: copies beside memcpy(), moves of pages beside copies. */
void bench_moves(void);

/** Steps of a millisecond while threads allocate and free. */
void bench_steps(void);

/** What a heap holds for training, and what handles cost. */
void bench_heap(void);

#endif /* BENCH_COMPACT_H */
