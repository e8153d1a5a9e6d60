/* SPDX-License-Identifier: MIT */
/**
 * A value of a PyTorch snapshot while it is read, in 64 bits: a type, a payload, and whether a
 * container has been put into another one (it is complete then and never changes again).
 *
 *     63                               6   5   4       0
 *     | payload: number, id, or index   | used | type   |
 *
 * Dicts and lists that the reader knows the meaning of (a frame, a stack of frames, an event, a
 * block, a segment) are replaced by an index into a table as soon as they are complete, so that the
 * millions of them need no object each.
 */
#ifndef ALLOTI_TRACE_TORCH_VALUE_H
#define ALLOTI_TRACE_TORCH_VALUE_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t alloti_value;

/** X(name, what it is called in messages); the containers follow each other. */
#define ALLOTI_VALUE_LIST(X)                                                                       \
    X(EMPTY, "nothing")                                                                            \
    X(NONE, "None")                                                                                \
    X(BOOL, "a bool")                                                                              \
    X(INT, "an integer")                                                                           \
    X(WIDE, "an integer")                                                                          \
    X(FLOAT, "a float")                                                                            \
    X(STRING, "a string")                                                                          \
    X(OTHER, "bytes or a huge integer")                                                            \
    X(POOL, "a tuple")                                                                             \
    X(NEW_LIST, "an empty list")                                                                   \
    X(LIST, "a list")                                                                              \
    X(STACK, "a list of frames")                                                                   \
    X(NEW_DICT, "an empty dict")                                                                   \
    X(DICT, "a dict")                                                                              \
    X(FRAME, "a frame")                                                                            \
    X(EVENT, "a trace entry")                                                                      \
    X(BLOCK, "a block")                                                                            \
    X(SEGMENT, "a segment")                                                                        \
    X(REF, "a container")

/**
 * Payloads: INT the number itself, if it fits; WIDE index of a 64-bit number * 2 + 1 if negative;
 * FLOAT index; STRING, POOL, STACK, FRAME id in the builder; EVENT loose row of the builder; LIST,
 * DICT, BLOCK, SEGMENT index in the store; REF slot of the pickle's memo that holds the container.
 */
typedef enum alloti_value_type {
#define ALLOTI_VALUE_ENUM(name, text) ALLOTI_VALUE_##name,
    ALLOTI_VALUE_LIST(ALLOTI_VALUE_ENUM)
#undef ALLOTI_VALUE_ENUM
} alloti_value_type;

enum {
    ALLOTI_VALUE_TYPE_MASK = 31,
    ALLOTI_VALUE_USED = 32,
    ALLOTI_VALUE_SHIFT = 6,
};

static inline alloti_value alloti_value_make(alloti_value_type type, uint64_t payload)
{
    return payload << ALLOTI_VALUE_SHIFT | (uint64_t)type;
}

static inline alloti_value_type alloti_value_get_type(alloti_value value)
{
    return (alloti_value_type)(value & ALLOTI_VALUE_TYPE_MASK);
}

static inline uint64_t alloti_value_payload(alloti_value value)
{
    return value >> ALLOTI_VALUE_SHIFT;
}

/** Payload of INT. */
static inline int64_t alloti_value_integer(alloti_value value)
{
    return (int64_t)value >> ALLOTI_VALUE_SHIFT;
}

/** Whether it is a list or dict without a shorter form, or the stack that a list became. */
static inline bool alloti_value_is_container(alloti_value value)
{
    const alloti_value_type type = alloti_value_get_type(value);
    return type >= ALLOTI_VALUE_NEW_LIST && type <= ALLOTI_VALUE_DICT;
}

#endif /* ALLOTI_TRACE_TORCH_VALUE_H */
