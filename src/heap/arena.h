/* SPDX-License-Identifier: MIT */
/** Arenas: what a pool holds for one stream. And the streams that the heap knows. */
#ifndef ALLOTI_HEAP_ARENA_H
#define ALLOTI_HEAP_ARENA_H

#include "heap/heap.h"

/** Place of a stream that is known and has not ended; false if there is none. Under the lock. */
bool alloti_stream_find(const allot_heap *heap, allot_stream stream, uint32_t *out);

/** The same, added if it is new. Under the lock. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_stream_get(allot_heap *heap, allot_stream stream,
                                               uint32_t *out);
void alloti_streams_fini(allot_heap *heap);

/** Wait for a stream, and count that. */
ALLOT_NODISCARD allot_status alloti_stream_synchronize(allot_heap *heap, uint32_t stream);

/** The arena of a pool and a stream; ALLOT_NONE if there is none yet. Needs no lock. */
uint32_t alloti_arena_find(const allot_heap *heap, uint64_t pool, uint64_t stream);

/** The same, added if it is new. Under the lock. */
ALLOT_NODISCARD allot_status alloti_arena_get(allot_heap *heap, uint32_t pool, allot_stream stream,
                                              uint32_t *out);
void alloti_arenas_fini(allot_heap *heap);

/** A segment comes to an arena, or leaves it. Room for it was reserved by alloti_arena_reserve().
 */
ALLOT_NODISCARD allot_status alloti_arena_reserve(heap_arena *arena, uint64_t count);
void alloti_arena_add(allot_heap *heap, uint32_t index, uint32_t segment);
void alloti_arena_remove(allot_heap *heap, uint32_t segment);

/** What is free in a segment has changed. */
void alloti_arena_update(allot_heap *heap, uint32_t segment);

/** All segments of an arena without blocks go back to the device, after its stream's work. */
ALLOT_NODISCARD allot_status alloti_arena_release(allot_heap *heap, uint32_t arena);

/** Let an arena's front hand nothing out, and undo that. */
void alloti_arena_hide(allot_heap *heap, uint32_t index);
void alloti_arena_show(allot_heap *heap, uint32_t index);

/** An arena without segments is found no more; its place is used anew. */
void alloti_arena_bury(allot_heap *heap, uint32_t index);

#endif /* ALLOTI_HEAP_ARENA_H */
