/* SPDX-License-Identifier: MIT */
/** What happens in a heap, written down while it records, and the heap as a trace. */
#ifndef ALLOTI_HEAP_RECORD_H
#define ALLOTI_HEAP_RECORD_H

#include <allot/trace.h>

#include "heap/heap.h"

/** A segment came, went, was mapped or unmapped. */
void alloti_record_segment(allot_heap *heap, allot_event_kind kind, uint32_t segment,
                           uint64_t address, uint64_t size);

/** A block was handed out, freed, given back. */
void alloti_record_block(allot_heap *heap, allot_event_kind kind, const heap_block *block);

/** A request was refused. */
void alloti_record_refusal(allot_heap *heap, const allot_request *request, uint64_t device_free);

void alloti_record_fini(allot_heap *heap);

#endif /* ALLOTI_HEAP_RECORD_H */
