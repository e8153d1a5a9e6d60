/* SPDX-License-Identifier: MIT */
/**
 * Mode VIRTUAL: the granules of a segment. A space is as long as the last granule that is mapped;
 * below that granules may be missing where memory was given back from the middle. A range that
 * lies on such a place is mapped when it is used.
 */
#ifndef ALLOTI_HEAP_GRANULES_H
#define ALLOTI_HEAP_GRANULES_H

#include "heap/segment.h"

/** As alloti_segment_grow(): a longer space, or further addresses. */
ALLOT_NODISCARD allot_status alloti_granules_grow(allot_heap *heap, uint32_t arena, uint64_t size,
                                                  uint64_t align, uint32_t *fresh);

/** Map what is not mapped of [offset, offset + size): all of it, or nothing has changed. To be
 * followed by alloti_granules_end(). */
ALLOT_NODISCARD allot_status alloti_granules_commit(allot_heap *heap, uint32_t index,
                                                    uint64_t offset, uint64_t size,
                                                    heap_bound bound);

/** End of what a commit of this range began: what it mapped stays, or goes. What cannot go is free
 * memory of the heap. */
void alloti_granules_end(allot_heap *heap, uint32_t index, uint64_t offset, uint64_t size,
                         bool stays);

/** Work of the stream may use [offset, offset + size) until it reaches its next checkpoint. */
void alloti_granules_note_free(allot_heap *heap, uint32_t index, uint64_t offset, uint64_t size);

/** Let the space end at the last granule that is mapped. */
void alloti_granules_settle(allot_heap *heap, uint32_t index);

/** Mapped granules in which no block lies, in bytes. */
uint64_t alloti_granules_trimmable(const allot_heap *heap, uint32_t index);

/** Give such granules back, from the end, until `size` bytes are. */
ALLOT_NODISCARD allot_status alloti_granules_trim(allot_heap *heap, uint32_t segment, uint64_t size,
                                                  uint64_t *released);

/** Unmap and give back all granules, blocks or not: at the end of a heap. */
ALLOT_NODISCARD allot_status alloti_granules_abandon(allot_heap *heap, uint32_t segment);

/** Give back memory that could not be given back when it should have been. */
ALLOT_NODISCARD allot_status alloti_granules_release_spares(allot_heap *heap);

#endif /* ALLOTI_HEAP_GRANULES_H */
