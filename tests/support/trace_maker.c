/* SPDX-License-Identifier: MIT */
#include "support/trace_maker.h"

#include <string.h>

#include "replay/history.h"
#include "support/check.h"

enum { EVENT_NS = 1000000, FRAMES_MAX = 16 };

trace_maker maker_begin(void)
{
    trace_maker m = {.pool = ALLOT_NONE, .stack = ALLOT_NONE, .time_ns = EVENT_NS};
    CHECK_OK(alloti_builder_create(&m.builder));
    CHECK_OK(alloti_builder_device(m.builder, ALLOT_MEMORY_DEVICE, 0, &m.device));
    CHECK_OK(alloti_builder_intern_stream(m.builder, 0, &m.stream));
    alloti_builder_set_trait(m.builder, ALLOT_TRACE_HAS_REQUESTED);
    alloti_builder_set_trait(m.builder, ALLOT_TRACE_HAS_ADDRESSES);
    return m;
}

void maker_event(trace_maker *m, allot_event_kind kind, uint64_t addr, uint64_t size)
{
    alloti_event e = ALLOTI_EVENT_INIT;
    e.kind = kind;
    e.addr = addr;
    e.size = size;
    e.stream = m->stream;
    e.pool = m->pool;
    e.stack = m->stack;
    e.time_ns = m->time_ns += EVENT_NS;
    CHECK_OK(alloti_builder_add_event(m->builder, m->device, &e));
}

void maker_alloc(trace_maker *m, uint64_t addr, uint64_t size)
{
    maker_event(m, ALLOT_EVENT_ALLOC, addr, size);
}

void maker_free(trace_maker *m, uint64_t addr, uint64_t size)
{
    maker_event(m, ALLOT_EVENT_FREE_REQUESTED, addr, size);
    maker_event(m, ALLOT_EVENT_FREE_COMPLETED, addr, size);
}

void maker_segment(trace_maker *m, uint64_t addr, uint64_t size, uint64_t active)
{
    const allot_segment s = {.address = addr,
                             .total_size = size,
                             .allocated_size = active,
                             .active_size = active,
                             .device = m->device,
                             .stream = m->stream,
                             .pool = m->pool,
                             .stack = m->stack,
                             .is_large = size > 2 * MIB};
    CHECK_OK(alloti_builder_add_segment(m->builder, &s));
}

void maker_block(trace_maker *m, uint64_t addr, uint64_t size, uint64_t requested,
                 allot_block_state state)
{
    const allot_block b = {.address = addr,
                           .size = size,
                           .requested_size = requested,
                           .stack = m->stack,
                           .context = ALLOT_NONE,
                           .metadata = ALLOT_NONE,
                           .state = (uint8_t)state};
    CHECK_OK(alloti_builder_add_block(m->builder, &b));
}

void maker_stack(trace_maker *m, const maker_frame *frames, uint32_t count)
{
    uint32_t ids[FRAMES_MAX] = {0};
    CHECK(count <= FRAMES_MAX);
    for (uint32_t i = 0; i < count && i < FRAMES_MAX; i++) {
        allot_frame frame = {.line = frames[i].line, .fx = ALLOT_NONE};
        CHECK_OK(alloti_builder_intern_string(m->builder, frames[i].path, strlen(frames[i].path),
                                              &frame.filename));
        CHECK_OK(alloti_builder_intern_string(m->builder, frames[i].name, strlen(frames[i].name),
                                              &frame.name));
        CHECK_OK(alloti_builder_intern_frame(m->builder, &frame, &ids[i]));
    }
    CHECK_OK(alloti_builder_intern_stack(m->builder, ids, count, &m->stack));
}

void maker_annotation(trace_maker *m, const char *name)
{
    allot_annotation annotation = {
        .device = 0, .time_ns = m->time_ns - EVENT_NS / 2, .is_start = true};
    CHECK_OK(alloti_builder_intern_string(m->builder, name, strlen(name), &annotation.name));
    CHECK_OK(alloti_builder_add_annotation(m->builder, &annotation));
    annotation.time_ns = m->time_ns + EVENT_NS / 2;
    annotation.is_start = false;
    CHECK_OK(alloti_builder_add_annotation(m->builder, &annotation));
}

allot_history *maker_finish(trace_maker *m, allot_trace **trace)
{
    allot_history *history = NULL;
    CHECK_OK(alloti_builder_finish(m->builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, trace));
    CHECK_OK(allot_history_create(*trace, 0, NULL, &history));
    CHECK_OK(alloti_history_check(history));
    return history;
}

void maker_end(allot_history *history, allot_trace *trace)
{
    allot_history_destroy(history);
    allot_trace_destroy(trace);
}
