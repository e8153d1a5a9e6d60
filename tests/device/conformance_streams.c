/* SPDX-License-Identifier: MIT */
/* Streams and events. */
#include "device/conformance.h"

#define MIB (UINT64_C(1) << 20)

void streams_and_events_come_and_go(void)
{
    enum { COUNT = 8 };
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    allot_stream streams[COUNT];
    allot_event events[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        streams[i] = must_create_stream(s.device);
        events[i] = must_record(s.device, streams[i]);
        for (size_t j = 0; j < i; j++) {
            CHECK(streams[i].value != streams[j].value);
            CHECK(events[i].value != events[j].value);
        }
    }
    allot_device_counts counts;
    allot_device_get_counts(s.device, &counts);
    CHECK_EQ(counts.live_count, 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_OK(allot_device_event_synchronize(s.device, events[i]));
        must_destroy_event(s.device, events[i]);
        must_destroy_stream(s.device, streams[i]);
    }
    subject_end(&s);
}

void events_are_reached(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_stream stream = must_create_stream(s.device);
    const allot_devptr ptr = must_alloc(s.device, 8 * MIB);
    allot_event event = {0};
    CHECK_OK(allot_device_event_create(s.device, &event));
    CHECK_OK(allot_device_event_query(s.device, event));
    CHECK_OK(allot_device_event_synchronize(s.device, event));
    for (int i = 0; i < 10; i++) {
        /* Enough work that a wait which does not wait is seen. */
        for (int j = 0; j < 5; j++) {
            CHECK_OK(allot_device_fill(s.device, stream, ptr, (uint8_t)j, 8 * MIB));
        }
        CHECK_OK(allot_device_event_record(s.device, event, stream));
        const allot_status status = allot_device_event_query(s.device, event);
        CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BUSY);
        CHECK_OK(allot_device_event_synchronize(s.device, event));
        CHECK_OK(allot_device_event_query(s.device, event));
    }
    allot_device_counts counts;
    allot_device_get_counts(s.device, &counts);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_EVENT_QUERY], 0);
    must_destroy_event(s.device, event);
    must_destroy_stream(s.device, stream);
    must_free(s.device, ptr, 8 * MIB);
    subject_end(&s);
}

void a_stream_waits_for_an_event(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_stream a = must_create_stream(s.device);
    const allot_stream b = must_create_stream(s.device);
    const allot_devptr from = must_alloc(s.device, 4 * MIB);
    const allot_devptr to = must_alloc(s.device, 4 * MIB);
    for (int i = 1; i <= 10; i++) {
        CHECK_OK(allot_device_fill(s.device, a, from, (uint8_t)i, 4 * MIB));
        const allot_event filled = must_record(s.device, a);
        CHECK_OK(allot_device_stream_wait(s.device, b, filled));
        CHECK_OK(allot_device_copy(s.device, b, to, from, 4 * MIB));
        const allot_event copied = must_record(s.device, b);
        CHECK_OK(allot_device_stream_wait(s.device, a, copied));
        CHECK_OK(allot_device_fill(s.device, a, from, 0, 4 * MIB));
        CHECK_OK(allot_device_stream_synchronize(s.device, a));
        CHECK_OK(allot_device_event_query(s.device, filled));
        CHECK(holds_value(&s, b, to, (uint8_t)i, 4 * MIB));
        must_destroy_event(s.device, filled);
        must_destroy_event(s.device, copied);
    }
    must_free(s.device, from, 4 * MIB);
    must_free(s.device, to, 4 * MIB);
    must_destroy_stream(s.device, a);
    must_destroy_stream(s.device, b);
    subject_end(&s);
}

void a_destroyed_stream_ends_its_work(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, 8 * MIB);
    const allot_stream stream = must_create_stream(s.device);
    CHECK_OK(allot_device_fill(s.device, stream, ptr, 7, 8 * MIB));
    const allot_event event = must_record(s.device, stream);
    must_destroy_stream(s.device, stream);
    CHECK_OK(allot_device_event_synchronize(s.device, event));
    CHECK(holds_value(&s, DEFAULT_STREAM, ptr, 7, 8 * MIB));
    must_destroy_event(s.device, event);
    must_free(s.device, ptr, 8 * MIB);
    subject_end(&s);
}

void wrong_streams_and_events_are_refused(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    CHECK_EQ(allot_device_stream_destroy(s.device, DEFAULT_STREAM), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_event_destroy(s.device, (allot_event){0}), ALLOT_STATUS_INVALID);
    CHECK(allot_error_detail()[0] != '\0');
    subject_end(&s);
}
