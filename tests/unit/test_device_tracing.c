/* SPDX-License-Identifier: MIT */
/* The tracing device: what was done is what its trace says, also when that is written and read. */
#include <allot/device.h>
#include <allot/trace.h>
#include <pthread.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/trace_equal.h"

#define MIB (UINT64_C(1) << 20)

static const allot_stream DEFAULT_STREAM = {0};

typedef struct pair {
    allot_device *inner;
    allot_device *device;
} pair;

static pair open_pair(const char *text)
{
    pair p = {NULL, NULL};
    CHECK_OK(allot_device_open(text, &p.inner));
    CHECK_OK(allot_device_open_tracing(p.inner, &p.device));
    return p;
}

static void close_pair(pair *p)
{
    allot_device_destroy(p->device);
    allot_device_destroy(p->inner);
}

static allot_trace *get_trace(const pair *p)
{
    allot_trace *trace = NULL;
    CHECK_OK(allot_tracing_get_trace(p->device, &trace));
    return trace;
}

/** What an event is expected to say. */
typedef struct expected {
    allot_event_kind kind;
    uint64_t addr;
    uint64_t size;
    int64_t time_ns;
} expected;

static void check_events(const allot_trace *trace, const expected *all, size_t count)
{
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, count);
    for (size_t i = 0; i < count && i < events.count; i++) {
        CHECK_EQ(events.kind[i], all[i].kind);
        CHECK_EQ(events.addr[i], all[i].addr);
        CHECK_EQ(events.size[i], all[i].size);
        CHECK_EQ(events.time_ns[i], all[i].time_ns);
        CHECK_EQ(allot_trace_stream(trace, events.stream[i]), 0);
    }
}

/** Written and read, the trace says the same. Release the result. */
static void check_round_trips(const allot_trace *trace)
{
    static const allot_trace_format formats[] = {ALLOT_TRACE_FORMAT_ALLOT,
                                                 ALLOT_TRACE_FORMAT_TORCH_PICKLE};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        allot_trace *const again = trace_round_trip(trace, formats[i]);
        REQUIRE(again != NULL);
        CHECK(trace_events_equal(trace, again, true));
        CHECK(trace_segments_equal(trace, again));
        allot_trace_destroy(again);
    }
}

static void plain_memory_is_segments(void)
{
    pair p = open_pair("null,memory:64MiB");
    REQUIRE(p.device != NULL);
    allot_devptr a = {0};
    allot_devptr b = {0};
    CHECK_OK(allot_simulated_advance(p.inner, 5000));
    CHECK_OK(allot_device_alloc(p.device, 1000, &a));
    CHECK_OK(allot_simulated_advance(p.inner, 2000));
    CHECK_OK(allot_device_alloc(p.device, 5 * MIB, &b));
    CHECK_OK(allot_device_free(p.device, a, 1000));
    CHECK_OK(allot_simulated_advance(p.inner, 1000));
    CHECK_EQ(allot_device_alloc(p.device, 60 * MIB, &a), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), "asked for 60.0 MiB, free 59.0 MiB");
    const expected all[] = {{ALLOT_EVENT_SEGMENT_ALLOC, a.address, 1000, 5000},
                            {ALLOT_EVENT_SEGMENT_ALLOC, b.address, 5 * MIB, 7000},
                            {ALLOT_EVENT_SEGMENT_FREE, a.address, 1000, 7000},
                            {ALLOT_EVENT_OOM, 59 * MIB, 60 * MIB, 8000}};
    allot_trace *const trace = get_trace(&p);
    REQUIRE(trace != NULL);
    check_events(trace, all, sizeof all / sizeof all[0]);
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(segments[0].address, b.address);
    CHECK_EQ(segments[0].total_size, 5 * MIB);
    CHECK_EQ(segments[0].block_count, 1);
    CHECK(!segments[0].is_expandable && segments[0].is_large);
    check_round_trips(trace);
    allot_trace_destroy(trace);
    close_pair(&p);
}

static void mapped_memory_is_expandable_segments(void)
{
    const uint64_t g = 2 * MIB;
    pair p = open_pair("null,memory:64MiB");
    REQUIRE(p.device != NULL);
    allot_devptr first = {0};
    allot_devptr second = {0};
    allot_memory m[4] = {{0}};
    CHECK_OK(allot_device_reserve(p.device, 4 * g, &first));
    CHECK_OK(allot_device_reserve(p.device, 4 * g, &second));
    CHECK_EQ(second.address, first.address + 4 * g);
    const uint64_t at[4] = {first.address, first.address + g, first.address + 3 * g,
                            second.address};
    expected all[6];
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(allot_device_memory_create(p.device, g, &m[i]));
        CHECK_OK(allot_device_map(p.device, (allot_devptr){at[i]}, m[i], g));
        all[i] = (expected){ALLOT_EVENT_SEGMENT_MAP, at[i], g, 0};
    }
    CHECK_EQ(allot_device_map(p.device, first, m[0], g), ALLOT_STATUS_BUSY);
    allot_memory large = {0};
    CHECK_EQ(allot_device_memory_create(p.device, 64 * MIB, &large), ALLOT_STATUS_DEVICE_MEMORY);
    all[4] = (expected){ALLOT_EVENT_OOM, 56 * MIB, 64 * MIB, 0};
    allot_trace *trace = get_trace(&p);
    REQUIRE(trace != NULL);
    uint32_t count = 0;
    const allot_segment *segments = allot_trace_segments(trace, &count);
    CHECK_EQ(count, 3); /* two granules side by side; one; one of another reservation */
    CHECK_EQ(segments[0].address, first.address);
    CHECK_EQ(segments[0].total_size, 2 * g);
    CHECK_EQ(segments[1].address, at[2]);
    CHECK_EQ(segments[1].total_size, g);
    CHECK_EQ(segments[2].address, second.address);
    CHECK(segments[0].is_expandable);
    check_round_trips(trace);
    allot_trace_destroy(trace);
    CHECK_OK(allot_device_unmap(p.device, (allot_devptr){at[1]}, g));
    all[5] = (expected){ALLOT_EVENT_SEGMENT_UNMAP, at[1], g, 0};
    trace = get_trace(&p);
    REQUIRE(trace != NULL);
    check_events(trace, all, 6);
    segments = allot_trace_segments(trace, &count);
    CHECK_EQ(count, 3);
    CHECK_EQ(segments[0].total_size, g);
    check_round_trips(trace);
    allot_trace_destroy(trace);
    close_pair(&p);
}

static void what_failed_is_not_recorded(void)
{
    pair p = open_pair("null");
    REQUIRE(p.device != NULL);
    allot_devptr ptr = {0};
    CHECK_EQ(allot_device_free(p.device, (allot_devptr){512}, 5), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unmap(p.device, (allot_devptr){512}, 2 * MIB), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_alloc(p.device, 0, &ptr), ALLOT_STATUS_INVALID);
    allot_trace *const trace = get_trace(&p);
    REQUIRE(trace != NULL);
    check_events(trace, NULL, 0);
    allot_trace_destroy(trace);
    close_pair(&p);
}

/** Threads that fight for the same addresses. */
static void *alloc_and_free(void *context)
{
    allot_device *const device = context;
    for (int i = 0; i < 200; i++) {
        allot_devptr ptr = {0};
        CHECK_OK(allot_device_alloc(device, 4096, &ptr));
        CHECK_OK(allot_device_fill(device, DEFAULT_STREAM, ptr, 1, 4096));
        CHECK_OK(allot_device_free(device, ptr, 4096));
    }
    return NULL;
}

static void the_record_of_threads_is_in_order(void)
{
    enum { THREADS = 4, ADDRESSES = 2 * THREADS };
    pair p = open_pair("null");
    REQUIRE(p.device != NULL);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, alloc_and_free, p.device), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    allot_trace *const trace = get_trace(&p);
    REQUIRE(trace != NULL);
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, 2 * THREADS * 200);
    uint64_t live[ADDRESSES] = {0};
    for (uint64_t i = 0; i < events.count; i++) {
        const bool is_alloc = events.kind[i] == ALLOT_EVENT_SEGMENT_ALLOC;
        size_t place = ADDRESSES;
        size_t unused = ADDRESSES;
        for (size_t j = 0; j < ADDRESSES; j++) {
            place = live[j] == events.addr[i] ? j : place;
            unused = live[j] == 0 ? j : unused;
        }
        REQUIRE((place == ADDRESSES) == is_alloc);
        REQUIRE(!is_alloc || unused < ADDRESSES);
        live[is_alloc ? unused : place] = is_alloc ? events.addr[i] : 0;
    }
    allot_trace_destroy(trace);
    close_pair(&p);
}

static void other_devices_have_no_trace(void)
{
    pair p = open_pair("null");
    REQUIRE(p.device != NULL);
    allot_trace *trace = NULL;
    allot_device *out = NULL;
    CHECK_EQ(allot_tracing_get_trace(p.inner, &trace), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_open_tracing(NULL, &out), ALLOT_STATUS_INVALID);
    CHECK(trace == NULL && out == NULL);
    close_pair(&p);
}

/** What a run made, whatever was in the way of it. */
typedef struct made {
    allot_devptr ptr;
    allot_devptr range;
    allot_memory memory;
    bool is_mapped;
} made;

static allot_status make_some(allot_device *device, made *out)
{
    allot_status status = allot_device_alloc(device, MIB, &out->ptr);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_reserve(device, 2 * MIB, &out->range);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_memory_create(device, 2 * MIB, &out->memory);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_map(device, out->range, out->memory, 2 * MIB);
        out->is_mapped = status == ALLOT_STATUS_OK;
    }
    return status;
}

/** Give back to the inner device what was made: after a failure that is all there is. */
static void unmake(allot_device *inner, const made *m)
{
    if (m->is_mapped) {
        CHECK_OK(allot_device_unmap(inner, m->range, 2 * MIB));
    }
    if (m->memory.value != 0) {
        CHECK_OK(allot_device_memory_release(inner, m->memory, 2 * MIB));
    }
    if (m->range.address != 0) {
        CHECK_OK(allot_device_unreserve(inner, m->range, 2 * MIB));
    }
    if (m->ptr.address != 0) {
        CHECK_OK(allot_device_free(inner, m->ptr, MIB));
    }
    allot_device_counts counts;
    allot_device_get_counts(inner, &counts);
    CHECK_EQ(counts.live_count, 0);
}

static allot_status record_some(void *context)
{
    allot_device *device = NULL;
    made m = {.ptr = {0}};
    allot_trace *trace = NULL;
    allot_status status = allot_device_open_tracing(context, &device);
    if (status == ALLOT_STATUS_OK) {
        status = make_some(device, &m);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_tracing_get_trace(device, &trace);
    }
    allot_trace_destroy(trace);
    allot_device_destroy(device);
    unmake(context, &m);
    return status;
}

static void every_lack_of_host_memory_is_told(void)
{
    allot_device *inner = NULL;
    REQUIRE_OK(allot_device_open("null", &inner));
    CHECK(alloc_fault_each(record_some, inner) > 10);
    allot_device_destroy(inner);
}

static const check_test TESTS[] = {
    {"plain_memory_is_segments", plain_memory_is_segments},
    {"mapped_memory_is_expandable_segments", mapped_memory_is_expandable_segments},
    {"what_failed_is_not_recorded", what_failed_is_not_recorded},
    {"the_record_of_threads_is_in_order", the_record_of_threads_is_in_order},
    {"other_devices_have_no_trace", other_devices_have_no_trace},
    {"every_lack_of_host_memory_is_told", every_lack_of_host_memory_is_told},
};

CHECK_MAIN(TESTS)
