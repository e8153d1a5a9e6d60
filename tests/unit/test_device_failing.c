/* SPDX-License-Identifier: MIT */
/* The failing device: what fails, when, as what, and in which order events come. */
#include <allot/device.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)
#define BIT(call) (UINT64_C(1) << ALLOT_DEVICE_CALL_##call)

static const allot_stream DEFAULT_STREAM = {0};

typedef struct pair {
    allot_device *inner;
    allot_device *device;
} pair;

static pair open_pair(const allot_failing_options *options)
{
    pair p = {NULL, NULL};
    CHECK_OK(allot_device_open("null,memory:64MiB", &p.inner));
    CHECK_OK(allot_device_open_failing(p.inner, options, &p.device));
    return p;
}

static void close_pair(pair *p)
{
    allot_device_destroy(p->device);
    allot_device_destroy(p->inner);
}

static void with_nothing_armed_nothing_fails(void)
{
    pair p = open_pair(NULL);
    REQUIRE(p.device != NULL);
    allot_device_info info;
    allot_device_get_info(p.device, &info);
    CHECK_STR(info.backend, "failing(null)");
    CHECK_EQ(info.granule, 2 * MIB);
    for (int i = 0; i < 100; i++) {
        allot_devptr ptr = {0};
        CHECK_OK(allot_device_alloc(p.device, MIB, &ptr));
        CHECK_OK(allot_device_free(p.device, ptr, MIB));
    }
    CHECK_EQ(allot_failing_call_count(p.device), 100);
    CHECK_EQ(allot_failing_failed_count(p.device), 0);
    close_pair(&p);
}

static void the_nth_call_fails_and_reaches_nothing(void)
{
    pair p =
        open_pair(&(allot_failing_options){.struct_size = sizeof(allot_failing_options), .nth = 2});
    REQUIRE(p.device != NULL);
    allot_devptr first = {0};
    allot_devptr ptr = {5};
    CHECK_OK(allot_device_alloc(p.device, MIB, &first));
    CHECK_EQ(allot_device_alloc(p.device, MIB, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), "alloc failed on request: call 2");
    CHECK_EQ(ptr.address, 5);
    CHECK_OK(allot_device_alloc(p.device, MIB, &ptr));
    CHECK_EQ(allot_failing_call_count(p.device), 3);
    CHECK_EQ(allot_failing_failed_count(p.device), 1);
    allot_device_counts counts;
    allot_device_get_counts(p.inner, &counts);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_ALLOC], 2);
    allot_device_get_counts(p.device, &counts);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_ALLOC], 3);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_ALLOC], 1);
    CHECK_EQ(counts.live_count, 2);
    close_pair(&p);
}

static void every_kth_call_fails(void)
{
    pair p = open_pair(
        &(allot_failing_options){.struct_size = sizeof(allot_failing_options), .every = 3});
    REQUIRE(p.device != NULL);
    for (int i = 1; i <= 12; i++) {
        allot_stream stream = {0};
        CHECK_EQ(allot_device_stream_create(p.device, &stream),
                 i % 3 == 0 ? ALLOT_STATUS_BACKEND : ALLOT_STATUS_OK);
    }
    CHECK_EQ(allot_failing_failed_count(p.device), 4);
    close_pair(&p);
}

static void calls_that_release_fail_only_when_asked_for(void)
{
    pair p = open_pair(
        &(allot_failing_options){.struct_size = sizeof(allot_failing_options), .every = 1});
    REQUIRE(p.device != NULL);
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(p.device, &size_free, &size_total));
    CHECK_OK(allot_failing_arm(p.device, NULL));
    allot_devptr ptr = {0};
    allot_devptr range = {0};
    allot_memory memory = {0};
    allot_stream stream = {0};
    allot_event event = {0};
    CHECK_OK(allot_device_alloc(p.device, MIB, &ptr));
    CHECK_OK(allot_device_reserve(p.device, 2 * MIB, &range));
    CHECK_OK(allot_device_memory_create(p.device, 2 * MIB, &memory));
    CHECK_OK(allot_device_map(p.device, range, memory, 2 * MIB));
    CHECK_OK(allot_device_stream_create(p.device, &stream));
    CHECK_OK(allot_device_event_create(p.device, &event));
    allot_failing_options options = {.struct_size = sizeof options, .every = 1};
    options.call_mask = BIT(FREE);
    options.status = ALLOT_STATUS_BUSY;
    CHECK_OK(allot_failing_arm(p.device, &options));
    CHECK_EQ(allot_device_free(p.device, ptr, MIB), ALLOT_STATUS_BUSY);
    options.call_mask = 0;
    CHECK_OK(allot_failing_arm(p.device, &options));
    CHECK_OK(allot_device_free(p.device, ptr, MIB));
    CHECK_OK(allot_device_unmap(p.device, range, 2 * MIB));
    CHECK_OK(allot_device_memory_release(p.device, memory, 2 * MIB));
    CHECK_OK(allot_device_unreserve(p.device, range, 2 * MIB));
    CHECK_OK(allot_device_event_destroy(p.device, event));
    CHECK_OK(allot_device_stream_destroy(p.device, stream));
    CHECK_EQ(allot_failing_call_count(p.device), 0);
    close_pair(&p);
}

/** One of everything that a device hands out. */
typedef struct made {
    allot_devptr ptr;
    allot_devptr other;
    allot_devptr range;
    allot_memory memory;
    allot_stream stream;
    allot_event event;
} made;

static allot_status make_all(allot_device *device, made *out)
{
    allot_status status = allot_device_alloc(device, MIB, &out->ptr);
    status = status != ALLOT_STATUS_OK ? status : allot_device_alloc(device, MIB, &out->other);
    status =
        status != ALLOT_STATUS_OK ? status : allot_device_reserve(device, 2 * MIB, &out->range);
    status = status != ALLOT_STATUS_OK ? status
                                       : allot_device_memory_create(device, 2 * MIB, &out->memory);
    status = status != ALLOT_STATUS_OK ? status
                                       : allot_device_map(device, out->range, out->memory, 2 * MIB);
    status = status != ALLOT_STATUS_OK ? status : allot_device_stream_create(device, &out->stream);
    return status != ALLOT_STATUS_OK ? status : allot_device_event_create(device, &out->event);
}

static allot_status call_one(allot_device *device, allot_device_call call, made *m)
{
    uint8_t byte = 0;
    uint64_t a = 0;
    uint64_t b = 0;
    const allot_copy batch = {.dst = m->ptr, .src = m->other, .size = 1};
    switch (call) {
    case ALLOT_DEVICE_CALL_MEMORY_INFO:
        return allot_device_memory_info(device, &a, &b);
    case ALLOT_DEVICE_CALL_ALLOC:
        return allot_device_alloc(device, 1, &m->ptr);
    case ALLOT_DEVICE_CALL_FREE:
        return allot_device_free(device, m->ptr, MIB);
    case ALLOT_DEVICE_CALL_RESERVE:
        return allot_device_reserve(device, 2 * MIB, &m->range);
    case ALLOT_DEVICE_CALL_UNRESERVE:
        return allot_device_unreserve(device, m->range, 2 * MIB);
    case ALLOT_DEVICE_CALL_MEMORY_CREATE:
        return allot_device_memory_create(device, 2 * MIB, &m->memory);
    case ALLOT_DEVICE_CALL_MEMORY_RELEASE:
        return allot_device_memory_release(device, m->memory, 2 * MIB);
    case ALLOT_DEVICE_CALL_MAP:
        return allot_device_map(device, m->range, m->memory, 2 * MIB);
    case ALLOT_DEVICE_CALL_UNMAP:
        return allot_device_unmap(device, m->range, 2 * MIB);
    case ALLOT_DEVICE_CALL_STREAM_CREATE:
        return allot_device_stream_create(device, &m->stream);
    case ALLOT_DEVICE_CALL_STREAM_DESTROY:
        return allot_device_stream_destroy(device, m->stream);
    case ALLOT_DEVICE_CALL_STREAM_WAIT:
        return allot_device_stream_wait(device, m->stream, m->event);
    case ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE:
        return allot_device_stream_synchronize(device, m->stream);
    case ALLOT_DEVICE_CALL_EVENT_CREATE:
        return allot_device_event_create(device, &m->event);
    case ALLOT_DEVICE_CALL_EVENT_DESTROY:
        return allot_device_event_destroy(device, m->event);
    case ALLOT_DEVICE_CALL_EVENT_RECORD:
        return allot_device_event_record(device, m->event, m->stream);
    case ALLOT_DEVICE_CALL_EVENT_QUERY:
        return allot_device_event_query(device, m->event);
    case ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE:
        return allot_device_event_synchronize(device, m->event);
    case ALLOT_DEVICE_CALL_COPY:
        return allot_device_copy(device, m->stream, m->ptr, m->other, 1);
    case ALLOT_DEVICE_CALL_COPY_BATCH:
        return allot_device_copy_batch(device, m->stream, &batch, 1);
    case ALLOT_DEVICE_CALL_FILL:
        return allot_device_fill(device, m->stream, m->ptr, 1, 1);
    case ALLOT_DEVICE_CALL_WRITE:
        return allot_device_write(device, m->stream, m->ptr, &byte, 1);
    case ALLOT_DEVICE_CALL_READ:
        return allot_device_read(device, m->stream, &byte, m->ptr, 1);
    default:
        return ALLOT_STATUS_CANCELLED; /* not one that the null device has */
    }
}

static void each_call_can_fail_alone(void)
{
    for (unsigned i = 0; i < ALLOT_DEVICE_CALL_COUNT; i++) {
        pair p = open_pair(NULL);
        REQUIRE(p.device != NULL);
        made m = {.ptr = {0}};
        REQUIRE_OK(make_all(p.device, &m));
        const made before = m;
        const allot_failing_options options = {.struct_size = sizeof options,
                                               .nth = 1,
                                               .call_mask = UINT64_C(1) << i,
                                               .status = ALLOT_STATUS_BUDGET};
        CHECK_OK(allot_failing_arm(p.device, &options));
        const allot_status status = call_one(p.device, (allot_device_call)i, &m);
        if (status != ALLOT_STATUS_CANCELLED) {
            CHECK_EQ(status, ALLOT_STATUS_BUDGET);
            CHECK_CONTAINS(allot_error_detail(), allot_device_call_name((allot_device_call)i));
            CHECK_EQ(allot_failing_failed_count(p.device), 1);
        }
        CHECK_EQ(memcmp(&m, &before, sizeof m), 0);
        close_pair(&p);
    }
}

static unsigned queries_until_reached(allot_device *device, allot_event event)
{
    unsigned n = 0;
    while (allot_device_event_query(device, event) == ALLOT_STATUS_BUSY) {
        n++;
    }
    return n;
}

static void events_are_held_back_by_seed(void)
{
    bool has_waited = false;
    bool has_overtaken = false;
    for (uint64_t seed = 1; seed < 20; seed++) {
        unsigned waited[2][2];
        for (int run = 0; run < 2; run++) {
            pair p = open_pair(&(allot_failing_options){
                .struct_size = sizeof(allot_failing_options), .event_delay = 8, .seed = seed});
            REQUIRE(p.device != NULL);
            made m = {.ptr = {0}};
            REQUIRE_OK(make_all(p.device, &m));
            allot_event other = {0};
            CHECK_OK(allot_device_event_create(p.device, &other));
            CHECK_OK(allot_device_event_query(p.device, other));
            CHECK_OK(allot_device_event_record(p.device, m.event, m.stream));
            CHECK_OK(allot_device_event_record(p.device, other, DEFAULT_STREAM));
            waited[run][0] = queries_until_reached(p.device, m.event);
            waited[run][1] = queries_until_reached(p.device, other);
            CHECK_OK(allot_device_event_query(p.device, other));
            close_pair(&p);
        }
        CHECK_EQ(memcmp(waited[0], waited[1], sizeof waited[0]), 0);
        CHECK(waited[0][0] <= 8 && waited[0][1] <= 8);
        has_waited = has_waited || waited[0][0] > 0;
        has_overtaken = has_overtaken || waited[0][1] < waited[0][0];
    }
    CHECK(has_waited);
    CHECK(has_overtaken);
}

static void waiting_brings_earlier_events_along(void)
{
    for (int how = 0; how < 3; how++) {
        pair p = open_pair(&(allot_failing_options){
            .struct_size = sizeof(allot_failing_options), .event_delay = 1000000, .seed = 3});
        REQUIRE(p.device != NULL);
        made m = {.ptr = {0}};
        REQUIRE_OK(make_all(p.device, &m));
        allot_event later = {0};
        allot_event elsewhere = {0};
        CHECK_OK(allot_device_event_create(p.device, &later));
        CHECK_OK(allot_device_event_create(p.device, &elsewhere));
        CHECK_OK(allot_device_event_record(p.device, m.event, m.stream));
        CHECK_OK(allot_device_event_record(p.device, later, m.stream));
        CHECK_OK(allot_device_event_record(p.device, elsewhere, DEFAULT_STREAM));
        CHECK_EQ(allot_device_event_query(p.device, m.event), ALLOT_STATUS_BUSY);
        if (how == 0) {
            CHECK_OK(allot_device_event_synchronize(p.device, later));
        } else if (how == 1) {
            CHECK_OK(allot_device_stream_synchronize(p.device, m.stream));
        } else {
            (void)queries_until_reached(p.device, later);
        }
        CHECK_OK(allot_device_event_query(p.device, m.event));
        CHECK_OK(allot_device_event_query(p.device, later));
        CHECK_EQ(allot_device_event_query(p.device, elsewhere), ALLOT_STATUS_BUSY);
        close_pair(&p);
    }
}

static void other_devices_cannot_be_armed(void)
{
    pair p = open_pair(NULL);
    REQUIRE(p.device != NULL);
    CHECK_EQ(allot_failing_arm(p.inner, NULL), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_failing_call_count(p.inner), 0);
    CHECK_EQ(allot_failing_failed_count(p.inner), 0);
    CHECK_EQ(allot_simulated_advance(p.device, 1), ALLOT_STATUS_UNSUPPORTED);
    allot_device *out = NULL;
    CHECK_EQ(allot_device_open_failing(NULL, NULL, &out), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_open_failing(p.inner, &(allot_failing_options){0}, &out),
             ALLOT_STATUS_INVALID);
    CHECK(out == NULL);
    close_pair(&p);
}

static allot_status wrap(void *context)
{
    allot_device *device = NULL;
    allot_event event = {0};
    allot_status status = allot_device_open_failing(context, NULL, &device);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(device, &event);
    }
    if (status == ALLOT_STATUS_OK) {
        CHECK_OK(allot_device_event_destroy(device, event));
    }
    allot_device_destroy(device);
    return status;
}

static void every_lack_of_host_memory_is_told(void)
{
    allot_device *inner = NULL;
    REQUIRE_OK(allot_device_open("null", &inner));
    CHECK(alloc_fault_each(wrap, inner) >= 4);
    allot_device_counts counts;
    allot_device_get_counts(inner, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(inner);
}

static const check_test TESTS[] = {
    {"with_nothing_armed_nothing_fails", with_nothing_armed_nothing_fails},
    {"the_nth_call_fails_and_reaches_nothing", the_nth_call_fails_and_reaches_nothing},
    {"every_kth_call_fails", every_kth_call_fails},
    {"calls_that_release_fail_only_when_asked_for", calls_that_release_fail_only_when_asked_for},
    {"each_call_can_fail_alone", each_call_can_fail_alone},
    {"events_are_held_back_by_seed", events_are_held_back_by_seed},
    {"waiting_brings_earlier_events_along", waiting_brings_earlier_events_along},
    {"other_devices_cannot_be_armed", other_devices_cannot_be_armed},
    {"every_lack_of_host_memory_is_told", every_lack_of_host_memory_is_told},
};

CHECK_MAIN(TESTS)
