/* SPDX-License-Identifier: MIT */
#include "device/heap_suite.h"

scene scene_begin(allot_heap_options options)
{
    scene s = {.device = subject_begin()};
    options.struct_size = sizeof options;
    if (s.device.device == NULL) {
        return s;
    }
    for (int i = 1; i < SCENE_STREAMS; i++) {
        s.streams[i] = must_create_stream(s.device.device);
    }
    CHECK_OK(allot_heap_create(s.device.device, &options, &s.heap));
    return s;
}

void scene_end(scene *s)
{
    CHECK_OK(allot_heap_check(s->heap));
    allot_heap_destroy(s->heap);
    for (int i = 1; i < SCENE_STREAMS; i++) {
        must_destroy_stream(s->device.device, s->streams[i]);
    }
    subject_end(&s->device);
}

void each_mode(void (*run)(allot_heap_mode mode))
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    subject_end(&s);
    run(ALLOT_HEAP_MODE_SEGMENTS);
    if (s.info.granule != 0) {
        run(ALLOT_HEAP_MODE_VIRTUAL);
    }
}

allot_request request_of(uint64_t size, allot_stream stream)
{
    return (allot_request){.struct_size = sizeof(allot_request), .size = size, .stream = stream};
}

allot_handle must_get(scene *s, uint64_t size, allot_stream stream)
{
    const allot_request request = request_of(size, stream);
    allot_handle handle = {0};
    CHECK_OK(allot_heap_alloc(s->heap, &request, &handle));
    return handle;
}

allot_devptr must_get_pointer(scene *s, uint64_t size, allot_stream stream)
{
    const allot_request request = request_of(size, stream);
    allot_devptr ptr = {0};
    CHECK_OK(allot_heap_alloc_pointer(s->heap, &request, &ptr));
    return ptr;
}

allot_devptr must_pin(scene *s, allot_handle handle)
{
    allot_devptr at = {0};
    CHECK_OK(allot_heap_pin(s->heap, handle, &at));
    return at;
}

void must_unpin(scene *s, allot_handle handle)
{
    CHECK_OK(allot_heap_unpin(s->heap, handle));
}

void set_block(scene *s, allot_handle handle, uint8_t value, uint64_t size, allot_stream stream)
{
    const allot_devptr at = must_pin(s, handle);
    CHECK_OK(allot_device_fill(s->device.device, stream, at, value, size));
    must_unpin(s, handle);
}

bool block_holds(scene *s, allot_handle handle, uint8_t value, uint64_t size, allot_stream stream)
{
    const allot_devptr at = must_pin(s, handle);
    const bool is_equal = holds_value(&s->device, stream, at, value, size);
    must_unpin(s, handle);
    return is_equal;
}

void order_streams(allot_device *device, allot_stream first, allot_stream second)
{
    const allot_event event = must_record(device, first);
    CHECK_OK(allot_device_stream_wait(device, second, event));
    must_destroy_event(device, event);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
#define HEAP_ENTRY(name) {#name, name},
        HEAP_TESTS(HEAP_ENTRY)
#undef HEAP_ENTRY
    };
    return subject_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
