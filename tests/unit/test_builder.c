/* SPDX-License-Identifier: MIT */
#include "trace/builder.h"

#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

static uint32_t string_of(alloti_builder *builder, const char *text)
{
    uint32_t id = ALLOT_NONE;
    CHECK_OK(alloti_builder_intern_string(builder, text, strlen(text), &id));
    return id;
}

static void content_is_stored_once(void)
{
    alloti_builder *builder = NULL;
    REQUIRE_OK(alloti_builder_create(&builder));
    const uint32_t a = string_of(builder, "a");
    const uint32_t empty = string_of(builder, "");
    CHECK(a != empty);
    CHECK_EQ(string_of(builder, "a"), a);
    CHECK_EQ(string_of(builder, ""), empty);
    uint32_t with_nul = 0;
    REQUIRE_OK(alloti_builder_intern_string(builder, "a\0b", 3, &with_nul));
    CHECK(with_nul != a);

    const allot_frame frame = {.name = a, .filename = empty, .line = 3, .fx = ALLOT_NONE};
    const allot_frame other = {.name = a, .filename = empty, .line = 4, .fx = ALLOT_NONE};
    uint32_t frames[2] = {0};
    uint32_t again = 0;
    REQUIRE_OK(alloti_builder_intern_frame(builder, &frame, &frames[0]));
    REQUIRE_OK(alloti_builder_intern_frame(builder, &other, &frames[1]));
    REQUIRE_OK(alloti_builder_intern_frame(builder, &frame, &again));
    CHECK(frames[0] != frames[1]);
    CHECK_EQ(again, frames[0]);

    uint32_t full = 0;
    uint32_t part = 0;
    uint32_t none = 0;
    REQUIRE_OK(alloti_builder_intern_stack(builder, frames, 2, &full));
    REQUIRE_OK(alloti_builder_intern_stack(builder, frames, 1, &part));
    REQUIRE_OK(alloti_builder_intern_stack(builder, frames, 0, &none));
    CHECK(full != part && part != none && none != full);
    REQUIRE_OK(alloti_builder_intern_stack(builder, frames, 2, &again));
    CHECK_EQ(again, full);

    uint32_t stream = 0;
    uint32_t pool = 0;
    REQUIRE_OK(alloti_builder_intern_stream(builder, 7, &stream));
    REQUIRE_OK(alloti_builder_intern_stream(builder, 7, &again));
    CHECK_EQ(again, stream);
    REQUIRE_OK(alloti_builder_intern_pool(builder, (allot_pool_id){0, 1}, &pool));
    REQUIRE_OK(alloti_builder_intern_pool(builder, (allot_pool_id){1, 0}, &again));
    CHECK(again != pool);

    allot_trace *trace = NULL;
    REQUIRE_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CSV, &trace));
    size_t length = 0;
    CHECK_STR(allot_trace_string(trace, a, &length), "a");
    CHECK_EQ(length, 1);
    CHECK(memcmp(allot_trace_string(trace, with_nul, &length), "a\0b", 4) == 0);
    CHECK_EQ(length, 3);
    CHECK_STR(allot_trace_string(trace, ALLOT_NONE, NULL), "");
    uint32_t count = 9;
    CHECK_EQ(allot_trace_stack(trace, full, &count)[1], frames[1]);
    CHECK_EQ(count, 2);
    allot_trace_stack(trace, none, &count);
    CHECK_EQ(count, 0);
    CHECK_EQ(allot_trace_frame(trace, frames[1])->line, 4);
    CHECK_EQ(allot_trace_stream(trace, stream), 7);
    CHECK_EQ(allot_trace_pool(trace, pool).second, 1);
    CHECK_EQ(allot_trace_string_count(trace), 3);
    CHECK_EQ(allot_trace_frame_count(trace), 2);
    CHECK_EQ(allot_trace_stack_count(trace), 3);
    allot_trace_destroy(trace);
}

static void a_trace_may_hold_nothing_but_an_empty_stack(void)
{
    alloti_builder *builder = NULL;
    uint32_t stack = 9;
    REQUIRE_OK(alloti_builder_create(&builder));
    REQUIRE_OK(alloti_builder_intern_stack(builder, NULL, 0, &stack));
    allot_trace *trace = NULL;
    REQUIRE_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CSV, &trace));
    uint32_t count = 9;
    CHECK(allot_trace_stack(trace, stack, &count) == NULL);
    CHECK_EQ(count, 0);
    count = 9;
    CHECK(allot_trace_stack(trace, ALLOT_NONE, &count) == NULL);
    CHECK_EQ(count, 0);
    allot_trace_destroy(trace);
}

static void the_number_of_devices_is_limited(void)
{
    alloti_builder *builder = NULL;
    uint32_t device = 0;
    uint32_t count = 0;
    REQUIRE_OK(alloti_builder_create(&builder));
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && count < 100000) {
        status = alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, count, &device);
        count += status == ALLOT_STATUS_OK;
    }
    CHECK_EQ(status, ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "devices");
    CHECK(count >= 1000);
    CHECK_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, count - 1, &device));
    CHECK_EQ(device, count - 1);
    alloti_builder_destroy(builder);
}

static allot_status add_event(alloti_builder *builder, uint32_t device, uint64_t number)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = ALLOT_EVENT_ALLOC;
    event.addr = number;
    event.size = 2 * number;
    return alloti_builder_add_event(builder, device, &event);
}

static void optional_columns_begin_with_the_first_value(void)
{
    enum { BEFORE = 700, ALL = 2000 };
    alloti_builder *builder = NULL;
    uint32_t device = 0;
    REQUIRE_OK(alloti_builder_create(&builder));
    REQUIRE_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 3, &device));
    const uint32_t text = string_of(builder, "note");
    for (uint64_t i = 0; i < BEFORE; i++) {
        REQUIRE_OK(add_event(builder, device, i));
    }
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = ALLOT_EVENT_OOM;
    event.context = text;
    event.metadata = text;
    event.category = ALLOT_CATEGORY_GRADIENT;
    event.total_allocated = 5;
    event.total_reserved = 6;
    event.time_ns = 1;
    REQUIRE_OK(alloti_builder_add_event(builder, device, &event));
    for (uint64_t i = BEFORE + 1; i < ALL; i++) {
        REQUIRE_OK(add_event(builder, device, i));
    }
    CHECK_EQ(alloti_builder_event_count(builder, device), ALL);

    allot_trace *trace = NULL;
    REQUIRE_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CSV, &trace));
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    REQUIRE(events.count == ALL && events.context != NULL && events.metadata != NULL &&
            events.category != NULL && events.total_allocated != NULL);
    for (uint64_t i = 0; i < ALL; i++) {
        const bool is_full = i == BEFORE;
        CHECK_EQ(events.kind[i], is_full ? ALLOT_EVENT_OOM : ALLOT_EVENT_ALLOC);
        CHECK_EQ(events.addr[i], is_full ? 0 : i);
        CHECK_EQ(events.size[i], is_full ? 0 : 2 * i);
        CHECK_EQ(events.context[i], is_full ? text : ALLOT_NONE);
        CHECK_EQ(events.metadata[i], is_full ? text : ALLOT_NONE);
        CHECK_EQ(events.category[i], is_full ? ALLOT_CATEGORY_GRADIENT : ALLOT_CATEGORY_UNKNOWN);
        CHECK(!is_full || events.total_reserved[i] == 6);
    }
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_TIMES));
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_TOTALS));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_STACKS));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENTS));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENT_EVENTS));
    allot_trace_destroy(trace);
}

static void add_segment(alloti_builder *builder, uint32_t device, uint64_t address,
                        uint32_t block_count)
{
    const allot_segment segment = {.address = address,
                                   .total_size = block_count,
                                   .device = device,
                                   .pool = ALLOT_NONE,
                                   .stack = ALLOT_NONE};
    CHECK_OK(alloti_builder_add_segment(builder, &segment));
    for (uint32_t i = 0; i < block_count; i++) {
        const allot_block block = {.address = address + i,
                                   .size = 1,
                                   .stack = ALLOT_NONE,
                                   .context = ALLOT_NONE,
                                   .metadata = ALLOT_NONE};
        CHECK_OK(alloti_builder_add_block(builder, &block));
    }
}

static void segments_are_sorted_and_take_their_blocks_along(void)
{
    alloti_builder *builder = NULL;
    uint32_t first = 0;
    uint32_t second = 0;
    uint32_t again = 0;
    REQUIRE_OK(alloti_builder_create(&builder));
    REQUIRE_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &first));
    REQUIRE_OK(alloti_builder_device(builder, ALLOT_MEMORY_PINNED, 0, &second));
    REQUIRE_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &again));
    CHECK(first != second);
    CHECK_EQ(again, first);
    uint64_t state = check_seed();
    for (uint32_t i = 0; i < 500; i++) {
        add_segment(builder, i % 2 == 0 ? second : first, check_random(&state) >> 8,
                    (uint32_t)check_random_range(&state, 0, 5));
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CSV, &trace));
    uint32_t count = 0;
    uint32_t block_count = 0;
    uint32_t next = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    const allot_block *const blocks = allot_trace_blocks(trace, &block_count);
    CHECK_EQ(count, 500);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(segments[i].device, i < 250 ? first : second);
        CHECK(i % 250 == 0 || segments[i - 1].address < segments[i].address);
        CHECK_EQ(segments[i].block_first, next);
        CHECK_EQ(segments[i].block_count, segments[i].total_size);
        for (uint32_t j = 0; j < segments[i].block_count; j++) {
            CHECK_EQ(blocks[next + j].address, segments[i].address + j);
        }
        next += segments[i].block_count;
    }
    CHECK_EQ(next, block_count);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENTS));
    allot_trace_destroy(trace);
}

static allot_status fill_strings(alloti_builder *builder, uint32_t *stack)
{
    allot_frame frame = {.line = 1, .fx = ALLOT_NONE};
    uint32_t frames[3] = {0};
    const allot_frame_fx fx = {ALLOT_NONE, ALLOT_NONE, ALLOT_NONE, ALLOT_NONE};
    uint32_t id = 0;
    allot_status status = alloti_builder_intern_string(builder, "name", 4, &frame.name);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_fx(builder, &fx, &frame.fx);
    }
    for (uint32_t i = 0; i < 3 && status == ALLOT_STATUS_OK; i++) {
        frame.line = i;
        status = alloti_builder_intern_frame(builder, &frame, &frames[i]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_stack(builder, frames, 3, stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_stream(builder, 1, &id);
    }
    return status == ALLOT_STATUS_OK
               ? alloti_builder_intern_pool(builder, (allot_pool_id){0, 0}, &id)
               : status;
}

static allot_status fill_events(alloti_builder *builder, uint32_t stack)
{
    uint32_t device = 0;
    allot_status status = alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device);
    for (uint64_t i = 0; i < 600 && status == ALLOT_STATUS_OK; i++) {
        alloti_event event = ALLOTI_EVENT_INIT;
        event.stack = stack;
        event.context = i > 100 ? 0 : ALLOT_NONE;
        event.metadata = i > 200 ? 0 : ALLOT_NONE;
        event.category = i > 300 ? ALLOT_CATEGORY_INPUT : ALLOT_CATEGORY_UNKNOWN;
        event.total_allocated = i > 400 ? i : UINT64_MAX;
        status = alloti_builder_add_event(builder, device, &event);
    }
    return status;
}

static allot_status fill_segments(alloti_builder *builder)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < 40 && status == ALLOT_STATUS_OK; i++) {
        /* Downwards, so that finishing has to sort. */
        const allot_segment segment = {.address = 100 - i, .stack = ALLOT_NONE};
        const allot_block block = {.address = 100 - i, .stack = ALLOT_NONE};
        status = alloti_builder_add_segment(builder, &segment);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_builder_add_block(builder, &block);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_annotation(builder, &(allot_annotation){.is_start = true});
    }
    return status == ALLOT_STATUS_OK
               ? alloti_builder_add_setting(builder, &(allot_setting){.type = ALLOT_SETTING_NONE})
               : status;
}

static allot_status build_everything(void *context)
{
    (void)context;
    alloti_builder *builder = NULL;
    allot_trace *trace = NULL;
    uint32_t stack = ALLOT_NONE;
    allot_status status = alloti_builder_create(&builder);
    if (status == ALLOT_STATUS_OK) {
        status = fill_strings(builder, &stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = fill_events(builder, stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = fill_segments(builder);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CSV, &trace);
    }
    if (status != ALLOT_STATUS_OK) {
        CHECK(trace == NULL);
        alloti_builder_destroy(builder);
    }
    allot_trace_destroy(trace);
    return status;
}

static void every_allocation_may_fail(void)
{
    CHECK(alloc_fault_each(build_everything, NULL) > 40);
}

static void nothing_can_be_destroyed(void)
{
    alloti_builder_destroy(NULL);
    allot_trace_destroy(NULL);
}

static const check_test TESTS[] = {
    {"content_is_stored_once", content_is_stored_once},
    {"the_number_of_devices_is_limited", the_number_of_devices_is_limited},
    {"a_trace_may_hold_nothing_but_an_empty_stack", a_trace_may_hold_nothing_but_an_empty_stack},
    {"optional_columns_begin_with_the_first_value", optional_columns_begin_with_the_first_value},
    {"segments_are_sorted_and_take_their_blocks_along",
     segments_are_sorted_and_take_their_blocks_along},
    {"every_allocation_may_fail", every_allocation_may_fail},
    {"nothing_can_be_destroyed", nothing_can_be_destroyed},
};
CHECK_MAIN(TESTS)
