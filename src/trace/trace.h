/* SPDX-License-Identifier: MIT */
/**
 * What a trace is made of, for the files of this area. Everything else uses <allot/trace.h>.
 *
 * Columns of events belong to a device and have equal length. Optional columns (category, context,
 * metadata, totals) are NULL until the first event that has such a value.
 */
#ifndef ALLOTI_TRACE_TRACE_H
#define ALLOTI_TRACE_TRACE_H

#include <allot/trace.h>

/**
 * Devices in a trace at most. No machine has so many; each costs memory that a file may not have
 * paid for, and finding one takes time that grows with them.
 */
enum { ALLOTI_DEVICES_MAX = 1024 };

/** The events of one device; the columns of allot_events, owned. */
typedef struct alloti_columns {
    uint64_t count;
    uint64_t capacity;
    uint8_t *kind;
    uint8_t *category;
    uint64_t *addr;
    uint64_t *size;
    int64_t *time_ns;
    uint32_t *stream;
    uint32_t *pool;
    uint32_t *stack;
    uint32_t *context;
    uint32_t *metadata;
    uint64_t *total_allocated;
    uint64_t *total_reserved;
} alloti_columns;

struct allot_trace {
    allot_trace_format format;
    uint32_t traits; /**< Bit (1 << allot_trace_trait). */

    allot_trace_device *devices; /**< [device_count] */
    alloti_columns *columns;     /**< [device_count] */
    uint64_t device_count;
    uint64_t device_capacity;
    uint64_t columns_capacity;

    char *text; /**< All strings, each followed by a NUL. */
    uint64_t text_size;
    uint64_t text_capacity;
    uint64_t *string_start; /**< [string_count + 1]; a string ends where the next one begins. */
    uint64_t string_count;
    uint64_t string_capacity;

    allot_frame *frames;
    uint64_t frame_count;
    uint64_t frame_capacity;
    allot_frame_fx *fx;
    uint64_t fx_count;
    uint64_t fx_capacity;

    uint32_t *stack_frames; /**< All stacks, one after the other. */
    uint64_t stack_frames_size;
    uint64_t stack_frames_capacity;
    uint64_t *stack_start; /**< [stack_count + 1] */
    uint64_t stack_count;
    uint64_t stack_capacity;

    uint64_t *streams;
    uint64_t stream_count;
    uint64_t stream_capacity;
    allot_pool_id *pools;
    uint64_t pool_count;
    uint64_t pool_capacity;

    allot_segment *segments;
    uint64_t segment_count;
    uint64_t segment_capacity;
    allot_block *blocks;
    uint64_t block_count;
    uint64_t block_capacity;

    allot_annotation *annotations;
    uint64_t annotation_count;
    uint64_t annotation_capacity;
    allot_setting *settings;
    uint64_t setting_count;
    uint64_t setting_capacity;
};

/** The entries of every table stay below ALLOT_NONE: FORMAT if a table of `count` is full. */
ALLOT_NODISCARD allot_status alloti_trace_check_room(uint64_t count, const char *what);

#endif /* ALLOTI_TRACE_TRACE_H */
