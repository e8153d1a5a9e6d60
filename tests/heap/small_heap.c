/* SPDX-License-Identifier: MIT */
#include "small_heap.h"

#include "support/check.h"

small_heap small_open(allot_heap_options options)
{
    small_heap h = {0};
    options.struct_size = sizeof options;
    if (options.mode == ALLOT_HEAP_MODE_AUTO) {
        options.mode = ALLOT_HEAP_MODE_SEGMENTS;
    }
    if (options.segment_size == 0) {
        options.segment_size = 1 * MIB;
    }
    CHECK_OK(allot_device_open("simulated,memory:64MiB,granule:256KiB", &h.device));
    for (int i = 1; i < SMALL_STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(h.device, &h.streams[i]));
    }
    CHECK_OK(allot_heap_create(h.device, &options, &h.heap));
    return h;
}

void small_close(small_heap *h)
{
    CHECK_OK(allot_heap_check(h->heap));
    allot_heap_destroy(h->heap);
    for (int i = 1; i < SMALL_STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(h->device, h->streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(h->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(h->device);
}

allot_status small_try(small_heap *h, allot_request request, allot_handle *out)
{
    request.struct_size = sizeof request;
    const allot_status status = allot_heap_alloc(h->heap, &request, out);
    CHECK_OK(allot_heap_check(h->heap));
    return status;
}

allot_handle small_alloc(small_heap *h, uint64_t size, int stream)
{
    allot_handle handle = {0};
    CHECK_OK(small_try(h, (allot_request){.size = size, .stream = h->streams[stream]}, &handle));
    return handle;
}

void small_free(small_heap *h, allot_handle handle)
{
    CHECK_OK(allot_heap_free(h->heap, handle));
    CHECK_OK(allot_heap_check(h->heap));
}

void small_busy(small_heap *h, int stream)
{
    CHECK_OK(allot_simulated_run(h->device, h->streams[stream], UINT64_C(1000000000)));
}

void small_finish(small_heap *h, int stream)
{
    CHECK_OK(allot_device_stream_synchronize(h->device, h->streams[stream]));
}

void small_close_limit(small_heap *h)
{
    CHECK_OK(allot_heap_set_limit(h->heap, small_held(h)));
}

allot_heap_stats small_stats(small_heap *h)
{
    allot_heap_stats stats = {0};
    CHECK_OK(allot_heap_get_stats(h->heap, &stats));
    return stats;
}

uint64_t small_held(small_heap *h)
{
    return small_stats(h).reserved_bytes.current;
}

uint64_t small_calls(small_heap *h, allot_device_call call)
{
    allot_device_counts counts;
    allot_device_get_counts(h->device, &counts);
    return counts.calls[call];
}

uint64_t small_address(small_heap *h, allot_handle handle)
{
    allot_block_info info = {0};
    CHECK_OK(allot_heap_get_block(h->heap, handle, &info));
    return info.ptr.address;
}

bool small_is_dropped(small_heap *h, allot_handle handle)
{
    allot_devptr ptr = {0};
    const allot_status status = allot_heap_pin(h->heap, handle, &ptr);
    if (status == ALLOT_STATUS_NOT_FOUND) {
        return true;
    }
    CHECK_OK(status);
    CHECK_OK(allot_heap_unpin(h->heap, handle));
    return false;
}
