/* SPDX-License-Identifier: MIT */
/**
 * Random programs on the model of PyTorch's allocator, for property and differential tests, and
 * traces of what it did.
 */
#ifndef TORCH_PROGRAM_H
#define TORCH_PROGRAM_H

#include <allot/torchsim.h>
#include <allot/trace.h>

/** What a random program is like. */
typedef struct torch_program {
    uint64_t seed;
    uint32_t operation_count;
    uint32_t stream_count; /**< 1 or more. */
    uint32_t pool_count;   /**< Private pools. */
    bool shares;           /**< Some blocks are used on other streams. */
    bool empties;          /**< The cache is emptied now and then. */
    uint64_t size_max;     /**< Largest request. */
    allot_torch_conf conf;
    uint64_t limit; /**< 0: none. */
    double fraction;
    uint32_t version;
} torch_program;

/** A program with random settings, a limit that it may reach, streams and pools. */
torch_program torch_program_random(uint64_t *state);

/** Random settings; `expandable` as given. */
allot_torch_conf torch_program_conf(uint64_t *state, bool expandable);

/** A request's size as programs make them: many small ones, some large, some equal. */
uint64_t torch_program_size(uint64_t *state, uint64_t largest);

/** One thing a program does. */
typedef enum torch_action {
    TORCH_ALLOC,
    TORCH_FREE,
    TORCH_SHARE,
    TORCH_EMPTY,
} torch_action;

/** What comes next, with `live_count` blocks allocated. */
torch_action torch_program_next(const torch_program *program, uint64_t *state, uint64_t live_count);

/**
 * Run the program and write down what the allocator did, as PyTorch would.
 *
 * @param[in] dropped  Events left out at the beginning, as a ring buffer does; ALLOT_NONE for half.
 * @return The trace, NULL (test failed) if something went wrong.
 */
allot_trace *torch_program_record(const torch_program *program, uint32_t dropped);

#endif /* TORCH_PROGRAM_H */
