/* SPDX-License-Identifier: MIT */
/* What programs do with blocks, pools and limits. */
#include <allot/compact.h>
#include <allot/trace.h>
#include <string.h>

#include "device/heap_suite.h"

static void keep_handles(allot_heap_mode mode)
{
    enum { COUNT = 12 };
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    allot_handle handles[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        const allot_stream stream = s.streams[i % SCENE_STREAMS];
        handles[i] = must_get(&s, (i + 1) * 100 * KIB, stream);
        set_block(&s, handles[i], (uint8_t)(i + 1), (i + 1) * 100 * KIB, stream);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        const allot_stream stream = s.streams[i % SCENE_STREAMS];
        CHECK(block_holds(&s, handles[i], (uint8_t)(i + 1), (i + 1) * 100 * KIB, stream));
        CHECK_OK(allot_heap_free(s.heap, handles[i]));
    }
    scene_end(&s);
}

void handles_keep_their_bytes(void)
{
    each_mode(keep_handles);
}

static void keep_pointers(allot_heap_mode mode)
{
    enum { COUNT = 12, SIZE = 70000 };
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    allot_devptr pointers[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        pointers[i] = must_get_pointer(&s, SIZE, s.streams[i % SCENE_STREAMS]);
        CHECK_OK(allot_device_fill(s.device.device, s.streams[i % SCENE_STREAMS], pointers[i],
                                   (uint8_t)(i + 1), SIZE));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        allot_handle handle = {0};
        CHECK(holds_value(&s.device, s.streams[i % SCENE_STREAMS], pointers[i], (uint8_t)(i + 1),
                          SIZE));
        CHECK_OK(allot_heap_find(s.heap, pointers[i], &handle));
        CHECK_EQ(allot_heap_find(s.heap, offset_by(pointers[i], 1), &handle), ALLOT_STATUS_INVALID);
        CHECK_OK(allot_heap_free_pointer(s.heap, pointers[i]));
        CHECK_EQ(allot_heap_free_pointer(s.heap, pointers[i]), ALLOT_STATUS_INVALID);
    }
    scene_end(&s);
}

void pointers_keep_their_bytes(void)
{
    each_mode(keep_pointers);
}

void wrong_handles_are_refused(void)
{
    scene s = scene_begin((allot_heap_options){.segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_handle old = must_get(&s, KIB, DEFAULT_STREAM);
    allot_devptr at = must_pin(&s, old);
    CHECK_EQ(allot_heap_free(s.heap, old), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_heap_resize(s.heap, old, 64 * MIB), ALLOT_STATUS_BUSY);
    must_unpin(&s, old);
    CHECK_OK(allot_heap_free(s.heap, old));
    const allot_handle fresh = must_get(&s, KIB, DEFAULT_STREAM);
    CHECK(fresh.value != old.value);
    CHECK_EQ(allot_heap_pin(s.heap, old, &at), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_free(s.heap, old), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_use(s.heap, old, s.streams[1]), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_unpin(s.heap, fresh), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_free(s.heap, fresh));
    scene_end(&s);
}

static uint64_t address_of(scene *s, allot_handle handle)
{
    const allot_devptr at = must_pin(s, handle);
    must_unpin(s, handle);
    return at.address;
}

static void resize_in_place(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 8 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    const allot_handle room = must_get(&s, 4 * MIB, stream);
    CHECK_OK(allot_heap_free(s.heap, room));
    const allot_handle block = must_get(&s, MIB, stream);
    const uint64_t begin = address_of(&s, block);
    set_block(&s, block, 1, MIB, stream);
    CHECK_OK(allot_heap_resize(s.heap, block, 3 * MIB));
    CHECK(block_holds(&s, block, 1, MIB, stream));
    set_block(&s, block, 2, 3 * MIB, stream);
    CHECK_OK(allot_heap_resize(s.heap, block, 200 * KIB));
    CHECK(block_holds(&s, block, 2, 200 * KIB, stream));
    CHECK_EQ(address_of(&s, block), begin);
    CHECK_OK(allot_heap_free(s.heap, block));
    scene_end(&s);
}

void blocks_grow_and_shrink_where_they_are(void)
{
    each_mode(resize_in_place);
}

static void resize_by_moving(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 8 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    const allot_handle block = must_get(&s, MIB, stream);
    const allot_handle wall = must_get(&s, KIB, stream);
    const uint64_t begin = address_of(&s, block);
    set_block(&s, block, 1, MIB, stream);
    CHECK_OK(allot_heap_resize(s.heap, block, 3 * MIB));
    CHECK(address_of(&s, block) != begin);
    const allot_handle next = must_get(&s, MIB, stream); /* where it was, of the same stream */
    CHECK_EQ(address_of(&s, next), begin);
    set_block(&s, next, 9, MIB, stream);
    CHECK(block_holds(&s, block, 1, MIB, stream));
    CHECK_OK(allot_heap_free(s.heap, next));
    CHECK_OK(allot_heap_free(s.heap, wall));
    CHECK_OK(allot_heap_free(s.heap, block));
    scene_end(&s);
}

void blocks_grow_by_moving(void)
{
    each_mode(resize_by_moving);
}

static void use_pools(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_heap_pool_options options = {.struct_size = sizeof options, .limit = 8 * MIB};
    allot_heap_pool pool = {0};
    REQUIRE_OK(allot_heap_pool_create(s.heap, &options, &pool));
    allot_request request = request_of(3 * MIB, s.streams[1]);
    request.pool = pool;
    allot_devptr a = {0};
    allot_devptr b = {0};
    CHECK_OK(allot_heap_alloc_pointer(s.heap, &request, &a));
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], a, 1, 3 * MIB));
    request.size = 6 * MIB;
    CHECK_EQ(allot_heap_alloc_pointer(s.heap, &request, &b), ALLOT_STATUS_BUDGET);
    CHECK_EQ(allot_heap_pool_destroy(s.heap, pool), ALLOT_STATUS_BUSY);
    CHECK(holds_value(&s.device, s.streams[1], a, 1, 3 * MIB));
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], a, 2, 3 * MIB));
    CHECK_OK(allot_heap_free_pointer(s.heap, a));
    CHECK_OK(allot_heap_pool_destroy(s.heap, pool)); /* with work queued on its memory */
    CHECK_EQ(allot_heap_alloc_pointer(s.heap, &request, &b), ALLOT_STATUS_INVALID);
    scene_end(&s);
}

void pools_are_apart(void)
{
    each_mode(use_pools);
}

static void use_limits(allot_heap_mode mode)
{
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB, .limit = 16 * MIB});
    REQUIRE(s.heap != NULL);
    allot_devptr ptr[5];
    allot_devptr none = {0};
    allot_heap_stats stats;
    for (int i = 0; i < 4; i++) {
        ptr[i] = must_get_pointer(&s, 4 * MIB, s.streams[1]);
        CHECK_OK(allot_device_fill(s.device.device, s.streams[1], ptr[i], 1, 4 * MIB));
    }
    const allot_request request = request_of(4 * MIB, s.streams[1]);
    CHECK_EQ(allot_heap_alloc_pointer(s.heap, &request, &none), ALLOT_STATUS_BUDGET);
    CHECK_EQ(allot_heap_set_limit(s.heap, 8 * MIB), ALLOT_STATUS_BUDGET);
    CHECK_OK(allot_heap_set_limit(s.heap, 0));
    ptr[4] = must_get_pointer(&s, 4 * MIB, s.streams[2]);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(allot_heap_free_pointer(s.heap, ptr[i]));
    }
    CHECK_OK(allot_heap_set_limit(s.heap, 8 * MIB));
    CHECK_OK(allot_heap_get_stats(s.heap, &stats));
    CHECK(stats.reserved_bytes.current <= 8 * MIB);
    scene_end(&s);
}

void limits_hold(void)
{
    each_mode(use_limits);
}

static void drop_temporaries(allot_heap_mode mode)
{
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 8 * MIB, .limit = 8 * MIB});
    REQUIRE(s.heap != NULL);
    allot_request request = request_of(4 * MIB, s.streams[1]);
    request.flags = ALLOT_BLOCK_TEMPORARY;
    allot_handle scratch[2];
    allot_devptr at = {0};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(allot_heap_alloc(s.heap, &request, &scratch[i]));
        set_block(&s, scratch[i], 1, 4 * MIB, s.streams[1]);
    }
    (void)must_pin(&s, scratch[0]);
    const allot_handle kept = must_get(&s, 4 * MIB, s.streams[1]);
    set_block(&s, kept, 2, 4 * MIB, s.streams[1]);
    CHECK_EQ(allot_heap_pin(s.heap, scratch[1], &at), ALLOT_STATUS_NOT_FOUND);
    CHECK(block_holds(&s, scratch[0], 1, 4 * MIB, s.streams[1]));
    CHECK(block_holds(&s, kept, 2, 4 * MIB, s.streams[1]));
    must_unpin(&s, scratch[0]);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(allot_heap_free(s.heap, scratch[i]));
    }
    CHECK_OK(allot_heap_free(s.heap, kept));
    scene_end(&s);
}

void temporary_blocks_make_room(void)
{
    each_mode(drop_temporaries);
}

static void trim_all(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    allot_device_counts counts;
    for (int i = 0; i < SCENE_STREAMS; i++) {
        const allot_devptr ptr = must_get_pointer(&s, 6 * MIB, s.streams[i]);
        for (int j = 0; j < 5; j++) {
            CHECK_OK(allot_device_fill(s.device.device, s.streams[i], ptr, 1, 6 * MIB));
        }
        CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    }
    uint64_t released = 0;
    CHECK_OK(allot_heap_trim(s.heap, 0, &released));
    CHECK(released >= 6 * MIB);
    allot_device_get_counts(s.device.device, &counts);
    CHECK_EQ(counts.size_allocated + counts.size_created, 0);
    scene_end(&s);
}

void what_is_free_goes_back_to_the_device(void)
{
    each_mode(trim_all);
}

/** More than the device has. */
static void fill_up(allot_heap_mode mode)
{
    enum { GRANULES_MAX = 4096 };
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    if (mode == ALLOT_HEAP_MODE_VIRTUAL &&
        s.device.info.memory_total / s.device.info.granule > GRANULES_MAX) {
        scene_end(&s); /* a GPU's memory, granule by granule, takes too long */
        return;
    }
    const allot_request request = request_of(s.device.info.memory_total + MIB, s.streams[1]);
    allot_handle none = {0};
    allot_heap_failure failure;
    const allot_handle block = must_get(&s, MIB, s.streams[1]);
    set_block(&s, block, 1, MIB, s.streams[1]);
    CHECK_EQ(allot_heap_alloc(s.heap, &request, &none), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(none.value, 0);
    if (strcmp(s.device.info.backend, "cuda") == 0) {
        CHECK_CONTAINS(allot_error_detail(), mode == ALLOT_HEAP_MODE_VIRTUAL
                                                 ? "cuMemCreate: 2 (CUDA_ERROR_OUT_OF_MEMORY)"
                                                 : "cuMemAlloc: 2 (CUDA_ERROR_OUT_OF_MEMORY)");
    }
    CHECK_OK(allot_heap_get_failure(s.heap, &failure));
    CHECK_EQ(failure.request.size, request.size);
    CHECK(block_holds(&s, block, 1, MIB, s.streams[1]));
    CHECK_OK(allot_heap_check(s.heap));
    CHECK_OK(allot_heap_free(s.heap, block));
    scene_end(&s);
}

void a_full_device_is_told_and_recovers(void)
{
    each_mode(fill_up);
}

/** Every second of the pieces that fill 8 MiB is freed; half of that is then asked for at once. */
static void compact(allot_heap_mode mode)
{
    enum { PIECES = 32, SIZE = 256 << 10 };
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 8 * MIB, .limit = 8 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    allot_handle pieces[PIECES];
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = must_get(&s, SIZE, stream);
        set_block(&s, pieces[i], 0xEE, SIZE, stream);
        set_block(&s, pieces[i], (uint8_t)(i + 1), SIZE, stream);
    }
    for (unsigned i = 1; i < PIECES; i += 2) {
        CHECK_OK(allot_heap_free(s.heap, pieces[i]));
    }
    CHECK_OK(allot_compact_attach(s.heap, NULL));
    const allot_handle large = must_get(&s, 2 * MIB, stream);
    set_block(&s, large, 0xFF, 2 * MIB, stream);
    allot_request request = request_of(MIB, stream);
    uint64_t moved = 0;
    CHECK_OK(allot_compact_make_room(s.heap, &request, &moved));
    for (unsigned i = 0; i < PIECES; i += 2) {
        CHECK(block_holds(&s, pieces[i], (uint8_t)(i + 1), SIZE, stream));
        CHECK_OK(allot_heap_free(s.heap, pieces[i]));
    }
    CHECK(block_holds(&s, large, 0xFF, 2 * MIB, stream));
    CHECK_OK(allot_heap_free(s.heap, large));
    scene_end(&s);
}

void compaction_keeps_bytes_of_queued_work(void)
{
    each_mode(compact);
}

static void take_snapshot(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_devptr a = must_get_pointer(&s, 100 * KIB, s.streams[1]);
    const allot_devptr b = must_get_pointer(&s, 3 * MIB, s.streams[2]);
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_heap_get_trace(s.heap, &trace));
    uint32_t count = 0;
    const allot_block *const blocks = allot_trace_blocks(trace, &count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += blocks[i].address == a.address || blocks[i].address == b.address;
    }
    CHECK_EQ(found, 2);
    allot_trace_destroy(trace);
    CHECK_OK(allot_heap_free_pointer(s.heap, a));
    CHECK_OK(allot_heap_free_pointer(s.heap, b));
    scene_end(&s);
}

void a_heap_is_a_snapshot(void)
{
    each_mode(take_snapshot);
}
