/* SPDX-License-Identifier: MIT */
/**
 * Builds a trace piece by piece. Every reader ends here, so interning, limits and the order of
 * segments are the same for all formats. On any failure the builder stays destroyable.
 */
#ifndef ALLOTI_TRACE_BUILDER_H
#define ALLOTI_TRACE_BUILDER_H

#include <allot/trace.h>

typedef struct alloti_builder alloti_builder;

/** One event on its way into the columns. Start from ALLOTI_EVENT_INIT. */
typedef struct alloti_event {
    allot_event_kind kind;
    allot_category category;
    uint64_t addr;
    uint64_t size;
    int64_t time_ns;
    uint32_t stream;
    uint32_t pool;
    uint32_t stack;
    uint32_t context;
    uint32_t metadata;
    uint64_t total_allocated; /**< UINT64_MAX: not known. */
    uint64_t total_reserved;  /**< UINT64_MAX: not known. */
} alloti_event;

/** An event that says nothing yet. `stream` must be set by alloti_builder_intern_stream(). */
#define ALLOTI_EVENT_INIT                                                                          \
    ((alloti_event){.time_ns = ALLOT_TIME_NONE,                                                    \
                    .pool = ALLOT_NONE,                                                            \
                    .stack = ALLOT_NONE,                                                           \
                    .context = ALLOT_NONE,                                                         \
                    .metadata = ALLOT_NONE,                                                        \
                    .total_allocated = UINT64_MAX,                                                 \
                    .total_reserved = UINT64_MAX})

ALLOT_NODISCARD allot_status alloti_builder_create(alloti_builder **out);
void alloti_builder_destroy(alloti_builder *builder);

/**
 * Device with this memory kind and number, added if it is new. ALLOT_STATUS_FORMAT above
 * ALLOTI_DEVICES_MAX (trace.h). O(devices).
 */
ALLOT_NODISCARD allot_status alloti_builder_device(alloti_builder *builder,
                                                   allot_memory_kind memory, uint32_t index,
                                                   uint32_t *out);

ALLOT_NODISCARD allot_status alloti_builder_intern_string(alloti_builder *builder, const char *text,
                                                          size_t length, uint32_t *out);
ALLOT_NODISCARD allot_status alloti_builder_intern_frame(alloti_builder *builder,
                                                         const allot_frame *frame, uint32_t *out);
ALLOT_NODISCARD allot_status alloti_builder_intern_fx(alloti_builder *builder,
                                                      const allot_frame_fx *fx, uint32_t *out);
/** `frames` [count], innermost first. */
ALLOT_NODISCARD allot_status alloti_builder_intern_stack(alloti_builder *builder,
                                                         const uint32_t *frames, uint32_t count,
                                                         uint32_t *out);
ALLOT_NODISCARD allot_status alloti_builder_intern_stream(alloti_builder *builder, uint64_t value,
                                                          uint32_t *out);
ALLOT_NODISCARD allot_status alloti_builder_intern_pool(alloti_builder *builder,
                                                        allot_pool_id value, uint32_t *out);

/** String and stack by id, as in the trace. Borrowed until the next one is interned. */
const char *alloti_builder_get_string(const alloti_builder *builder, uint32_t id);
const uint32_t *alloti_builder_get_stack(const alloti_builder *builder, uint32_t id,
                                         uint32_t *count);

/** Event of `device`, after those before it. Sets the traits it shows. */
ALLOT_NODISCARD allot_status alloti_builder_add_event(alloti_builder *builder, uint32_t device,
                                                      const alloti_event *event);

/**
 * Event whose device is not known yet: a row of a table beside the devices. *out is its number,
 * counted from 0.
 */
ALLOT_NODISCARD allot_status alloti_builder_add_loose_event(alloti_builder *builder,
                                                            const alloti_event *event,
                                                            uint32_t *out);

/**
 * Events of `device`, after those before it: the loose rows [first, first + count). Where these are
 * all there are, and the device has none, the columns move in O(1) and the table is empty then;
 * else the rows are copied and stay.
 */
ALLOT_NODISCARD allot_status alloti_builder_take_loose_events(alloti_builder *builder,
                                                              uint32_t device, uint32_t first,
                                                              uint32_t count);

/** Segment; its block range is filled in by the calls of alloti_builder_add_block() after it. */
ALLOT_NODISCARD allot_status alloti_builder_add_segment(alloti_builder *builder,
                                                        const allot_segment *segment);
/** Block of the segment added last. */
ALLOT_NODISCARD allot_status alloti_builder_add_block(alloti_builder *builder,
                                                      const allot_block *block);

ALLOT_NODISCARD allot_status alloti_builder_add_annotation(alloti_builder *builder,
                                                           const allot_annotation *annotation);
ALLOT_NODISCARD allot_status alloti_builder_add_setting(alloti_builder *builder,
                                                        const allot_setting *setting);

/** State a trait that cannot be seen from the events: HAS_REQUESTED, HAS_CATEGORIES, HAS_ADDRESSES.
 */
void alloti_builder_set_trait(alloti_builder *builder, allot_trace_trait trait);

/** Replace the categories of all events and blocks by map[category] ([256]). */
void alloti_builder_map_categories(alloti_builder *builder, const uint8_t *map);

/** Whether there is neither an event nor a segment. */
bool alloti_builder_is_empty(const alloti_builder *builder);

/** Events added to a device so far. */
uint64_t alloti_builder_event_count(const alloti_builder *builder, uint32_t device);

/**
 * Sort segments by device and address (stably, blocks go along) and hand out the trace. The builder
 * is destroyed on success only.
 */
ALLOT_NODISCARD allot_status alloti_builder_finish(alloti_builder *builder,
                                                   allot_trace_format format, allot_trace **out);

#endif /* ALLOTI_TRACE_BUILDER_H */
