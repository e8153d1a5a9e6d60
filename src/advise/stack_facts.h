/* SPDX-License-Identifier: MIT */
/** What the frames of a stack tell about it, from paths and names of functions. */
#ifndef ALLOTI_ADVISE_STACK_FACTS_H
#define ALLOTI_ADVISE_STACK_FACTS_H

#include <allot/explain.h>

/** Whose code a frame is. */
typedef enum alloti_frame_owner {
    ALLOTI_FRAME_USER,
    ALLOTI_FRAME_LIBRARY,  /**< torch, an installed package, Python itself, generated code. */
    ALLOTI_FRAME_BACKWARD, /**< C++ of a node of the backward pass. */
    ALLOTI_FRAME_NATIVE,   /**< Other C++. */
    ALLOTI_FRAME_UNWINDER, /**< C++ that only records the stack, or hands memory out. */
} alloti_frame_owner;

alloti_frame_owner alloti_frame_owner_of(const allot_trace *trace, uint32_t frame,
                                         const allot_lines_options *options);

/** Facts about a stack, as bits. */
typedef enum alloti_stack_fact {
    ALLOTI_STACK_HAS_PYTHON = 1 << 0,
    ALLOTI_STACK_IN_OPTIMIZER = 1 << 1,
    ALLOTI_STACK_IN_BACKWARD = 1 << 2, /**< Python called backward(), or C++ frames say so. */
    ALLOTI_STACK_IN_FORWARD = 1 << 3,
    ALLOTI_STACK_MOVES_MODULE = 1 << 4, /**< Module.to(), .cuda(), or loading of weights. */
    ALLOTI_STACK_MOVES_DATA = 1 << 5,   /**< A data loader, or a batch on its way to the device. */
    ALLOTI_STACK_IS_PLAIN = 1 << 6,     /**< The innermost Python frame is the user's. */
    ALLOTI_STACK_IS_WORKSPACE = 1 << 7, /**< C++ frames name a workspace of cuBLAS or cuDNN. */
} alloti_stack_fact;

/** Facts that one frame tells; IS_PLAIN if it is a Python frame of the user's. */
uint8_t alloti_frame_facts(const allot_trace *trace, uint32_t frame);

/**
 * Facts about a stack of the trace (not ALLOT_NONE), given those of all frames [frame_count].
 * O(frames of the stack).
 */
uint8_t alloti_stack_facts(const allot_trace *trace, uint32_t stack, const uint8_t *frame_facts);

#endif /* ALLOTI_ADVISE_STACK_FACTS_H */
