/* SPDX-License-Identifier: MIT */
/**
 * Which work uses which allocation, with real bytes: for every block the last work of each stream
 * that touches it, and the place of a stream where a pool made it. "May this be freed here?" and
 * "does this stream know that memory yet?" are then answered by the order that the program
 * established (waits of streams and of the host), never by what happens to be finished.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_USE_H
#define ALLOTI_STANDIN_USE_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/stream.h"

struct standin;

typedef struct use_record {
    stream_clock used; /**< Last work of each stream that touches the block. */
    stream_point born; /**< Pools: what comes before its allocation, itself included. */
    bool has_birth;
} use_record;

typedef struct use_state {
    use_record *records; /**< By index of the block. */
    uint64_t count;
    uint64_t capacity;
} use_state;

/** A block was entered at this index: nobody uses it yet. CUDA_OUT_OF_MEMORY without room. */
cuda_status use_begin(struct standin *state, uint32_t index);

/** The block exists from the stream's last work on. */
cuda_status use_set_birth(struct standin *state, uint32_t index, const standin_stream *stream);

/** Whether a stream comes after the block's birth. */
bool use_is_born(const struct standin *state, uint32_t index, const standin_stream *stream);

/** The stream's last work uses the block. */
void use_mark(struct standin *state, uint32_t index, const standin_stream *stream);

/**
 * Whether all uses come before the next work of a stream, or, with NULL, before what the host does
 * next; else one stream that may still use it.
 */
bool use_is_over(const struct standin *state, uint32_t index, const standin_stream *stream,
                 uint32_t *slot);

#endif /* ALLOTI_STANDIN_USE_H */
