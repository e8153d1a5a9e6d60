/* SPDX-License-Identifier: MIT */
#include "heap/record.h"

void alloti_record_segment(allot_heap *heap, allot_event_kind kind, uint32_t segment,
                           uint64_t address, uint64_t size)
{
    (void)heap, (void)kind, (void)segment, (void)address, (void)size;
}

void alloti_record_block(allot_heap *heap, allot_event_kind kind, const heap_block *block)
{
    (void)heap, (void)kind, (void)block;
}

void alloti_record_refusal(allot_heap *heap, const allot_request *request, uint64_t device_free)
{
    (void)heap, (void)request, (void)device_free;
}

void alloti_record_fini(allot_heap *heap)
{
    (void)heap;
}
