/* SPDX-License-Identifier: MIT */
/**
 * Small traces of one device, written event by event. Times rise by 1 ms an event. Every function
 * fails the running test if the builder fails.
 */
#ifndef TRACE_MAKER_H
#define TRACE_MAKER_H

#include <allot/history.h>

#include "trace/builder.h"

enum { MIB = 1 << 20 };
/** Address at which made-up segments begin. */
#define MAKER_BASE UINT64_C(0x7f0000000000)

typedef struct trace_maker {
    alloti_builder *builder;
    uint32_t device;
    uint32_t stream; /**< Of the next events; the default stream at first. */
    uint32_t pool;   /**< Of the next events; ALLOT_NONE at first. */
    uint32_t stack;  /**< Of the next events; ALLOT_NONE at first. */
    int64_t time_ns; /**< Of the last event. */
} trace_maker;

trace_maker maker_begin(void);

/** An event of the present stream, pool and stack. */
void maker_event(trace_maker *m, allot_event_kind kind, uint64_t addr, uint64_t size);
void maker_alloc(trace_maker *m, uint64_t addr, uint64_t size);
/** free_requested and free_completed. */
void maker_free(trace_maker *m, uint64_t addr, uint64_t size);

void maker_segment(trace_maker *m, uint64_t addr, uint64_t size, uint64_t active);
void maker_block(trace_maker *m, uint64_t addr, uint64_t size, uint64_t requested,
                 allot_block_state state);

/** A frame "path:line name" of the stack under construction, innermost first. */
typedef struct maker_frame {
    const char *path;
    const char *name;
    uint32_t line;
} maker_frame;

/** Make a stack of frames [count], innermost first, the present one. */
void maker_stack(trace_maker *m, const maker_frame *frames, uint32_t count);

/** An annotation that begins and ends around the time of the last event. */
void maker_annotation(trace_maker *m, const char *name);

/** The trace, and its history, checked. Released by maker_end(). */
allot_history *maker_finish(trace_maker *m, allot_trace **trace);
void maker_end(allot_history *history, allot_trace *trace);

#endif /* TRACE_MAKER_H */
