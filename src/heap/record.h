/* SPDX-License-Identifier: MIT */
/** The last events of a heap, written down while it records. Under the heap's lock. */
#ifndef ALLOTI_HEAP_RECORD_H
#define ALLOTI_HEAP_RECORD_H

#include <allot/trace.h>

#include "heap/heap.h"

typedef struct heap_event {
    allot_event_kind kind;
    uint32_t pool; /**< Place of the pool. */
    uint32_t tag;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t time_ns;
} heap_event;

/** A ring of events. */
typedef struct heap_recording {
    uint64_t max;
    uint64_t head; /**< The oldest. */
    uint64_t count;
    heap_event events[];
} heap_recording;

/** A segment came, went, was mapped or unmapped. */
void alloti_record_segment(allot_heap *heap, allot_event_kind kind, uint32_t segment,
                           uint64_t address, uint64_t size);

/** A block was handed out, freed, given back. */
void alloti_record_block(allot_heap *heap, allot_event_kind kind, const heap_block *block);

/** A request of a pool was refused while so much was free on the device. */
void alloti_record_refusal(allot_heap *heap, uint32_t pool, const allot_request *request,
                           uint64_t device_free);

void alloti_record_fini(allot_heap *heap);

#endif /* ALLOTI_HEAP_RECORD_H */
