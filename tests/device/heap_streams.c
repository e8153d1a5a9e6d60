/* SPDX-License-Identifier: MIT */
/* Blocks that several streams use, streams that end, and a heap that ends before its streams. */
#include "device/heap_suite.h"

enum { CHAIN = 20 };

/** Queue a chain of fills that ends with `value`. */
static void queue_fills(scene *s, allot_stream stream, allot_devptr at, uint8_t value,
                        uint64_t size)
{
    for (uint8_t i = CHAIN; i-- > 0;) {
        CHECK_OK(allot_device_fill(s->device.device, stream, at, (uint8_t)(value + i), size));
    }
}

static uint64_t pending_bytes(scene *s)
{
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(s->heap, &stats));
    return stats.active_bytes.current - stats.allocated_bytes.current;
}

static void wait_for_uses(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_devptr log = must_alloc(s.device.device, MIB);
    const allot_devptr ptr = must_get_pointer(&s, MIB, s.streams[1]);
    CHECK_OK(allot_heap_use_pointer(s.heap, ptr, s.streams[2]));
    queue_fills(&s, s.streams[2], ptr, 7, MIB);
    CHECK_OK(allot_device_copy(s.device.device, s.streams[2], log, ptr, MIB));
    CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    /* On its own stream at once: another place, or the same one after the other stream's work. */
    const allot_devptr next = must_get_pointer(&s, MIB, s.streams[1]);
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], next, 9, MIB));
    CHECK(holds_value(&s.device, s.streams[2], log, 7, MIB));
    CHECK(holds_value(&s.device, s.streams[1], next, 9, MIB));
    /* An event may be held back for a while, but not after its stream was waited for. */
    CHECK_OK(allot_heap_collect(s.heap));
    CHECK_EQ(pending_bytes(&s), 0);
    CHECK_OK(allot_heap_free_pointer(s.heap, next));
    must_free(s.device.device, log, MIB);
    scene_end(&s);
}

void a_freed_block_waits_for_its_streams(void)
{
    each_mode(wait_for_uses);
}

/** All that the heap may hold is one stream's, who frees it with work queued; then the others'. */
static void hand_around(allot_heap_mode mode)
{
    enum { ROUNDS = 12 };
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB, .limit = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_devptr log = must_alloc(s.device.device, ROUNDS * MIB);
    const allot_devptr stays = must_get_pointer(&s, 2 * MIB, s.streams[0]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const allot_stream stream = s.streams[i % SCENE_STREAMS];
        const allot_devptr ptr = must_get_pointer(&s, 2 * MIB, stream);
        queue_fills(&s, stream, ptr, (uint8_t)(i + 1), 2 * MIB);
        CHECK_OK(allot_device_copy(s.device.device, stream, offset_by(log, i * MIB),
                                   offset_by(ptr, MIB / 2), MIB));
        CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(holds_value(&s.device, s.streams[i % SCENE_STREAMS], offset_by(log, i * MIB),
                          (uint8_t)(i + 1), MIB));
    }
    CHECK_OK(allot_heap_free_pointer(s.heap, stays));
    must_free(s.device.device, log, ROUNDS * MIB);
    scene_end(&s);
}

void streams_share_memory_in_order(void)
{
    each_mode(hand_around);
}

/** What is cut off a block may still be in use on another stream. */
static void shrink_in_use(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_devptr log = must_alloc(s.device.device, MIB);
    const allot_handle block = must_get(&s, 2 * MIB, s.streams[1]);
    const allot_devptr at = must_pin(&s, block);
    CHECK_OK(allot_heap_use(s.heap, block, s.streams[2]));
    queue_fills(&s, s.streams[2], at, 7, 2 * MIB);
    CHECK_OK(allot_device_copy(s.device.device, s.streams[2], log, offset_by(at, MIB), MIB));
    CHECK_OK(allot_heap_resize(s.heap, block, MIB));
    const allot_devptr next = must_get_pointer(&s, MIB, s.streams[1]);
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], next, 9, MIB));
    CHECK(holds_value(&s.device, s.streams[2], log, 7, MIB));
    CHECK(holds_value(&s.device, s.streams[1], next, 9, MIB));
    must_unpin(&s, block);
    CHECK_OK(allot_heap_free_pointer(s.heap, next));
    CHECK_OK(allot_heap_free(s.heap, block));
    must_free(s.device.device, log, MIB);
    scene_end(&s);
}

void a_block_may_shrink_while_another_stream_uses_it(void)
{
    each_mode(shrink_in_use);
}

/** Bytes that another stream is still writing are moved, and the stream is waited for at the end.
 */
static void move_in_use(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 16 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_devptr log = must_alloc(s.device.device, MIB);
    const allot_handle block = must_get(&s, MIB, s.streams[1]);
    const allot_devptr wall = must_get_pointer(&s, KIB, s.streams[1]);
    const allot_devptr old = must_pin(&s, block);
    CHECK_OK(allot_heap_use(s.heap, block, s.streams[2]));
    queue_fills(&s, s.streams[2], old, 7, MIB);
    must_unpin(&s, block);
    CHECK_OK(allot_heap_resize(s.heap, block, 2 * MIB));
    const allot_devptr at = must_pin(&s, block);
    CHECK(at.address != old.address);
    CHECK(holds_value(&s.device, s.streams[1], at, 7, MIB));
    queue_fills(&s, s.streams[2], at, 8, 2 * MIB);
    CHECK_OK(allot_device_copy(s.device.device, s.streams[2], log, at, MIB));
    must_unpin(&s, block);
    CHECK_OK(allot_heap_free(s.heap, block));
    const allot_devptr next = must_get_pointer(&s, 2 * MIB, s.streams[1]);
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], next, 9, 2 * MIB));
    CHECK(holds_value(&s.device, s.streams[2], log, 8, MIB));
    CHECK(holds_value(&s.device, s.streams[1], next, 9, 2 * MIB));
    CHECK_OK(allot_heap_free_pointer(s.heap, next));
    CHECK_OK(allot_heap_free_pointer(s.heap, wall));
    must_free(s.device.device, log, MIB);
    scene_end(&s);
}

void a_block_keeps_its_streams_when_it_moves(void)
{
    each_mode(move_in_use);
}

static void end_stream(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = must_create_stream(s.device.device);
    const allot_handle block = must_get(&s, MIB, stream);
    const allot_devptr freed = must_get_pointer(&s, MIB, stream);
    set_block(&s, block, 1, MIB, stream);
    CHECK_OK(allot_heap_use_pointer(s.heap, freed, s.streams[2]));
    queue_fills(&s, s.streams[2], freed, 7, MIB);
    CHECK_OK(allot_heap_free_pointer(s.heap, freed));
    CHECK_OK(allot_heap_end_stream(s.heap, stream));
    must_destroy_stream(s.device.device, stream);
    CHECK(block_holds(&s, block, 1, MIB, DEFAULT_STREAM));
    CHECK_OK(allot_heap_resize(s.heap, block, 3 * MIB));
    CHECK(block_holds(&s, block, 1, MIB, DEFAULT_STREAM));
    CHECK_OK(allot_heap_free(s.heap, block));
    CHECK_OK(allot_heap_check(s.heap));
    scene_end(&s);
}

void an_ended_stream_leaves_its_blocks(void)
{
    each_mode(end_stream);
}

/** Blocks live, freed and waiting; everything still being worked on. */
static void end_heap(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB});
    REQUIRE(s.heap != NULL);
    for (int i = 0; i < SCENE_STREAMS; i++) {
        const allot_devptr live = must_get_pointer(&s, MIB, s.streams[i]);
        const allot_devptr waiting = must_get_pointer(&s, MIB, s.streams[i]);
        const allot_stream other = s.streams[(i + 1) % SCENE_STREAMS];
        CHECK_OK(allot_heap_use_pointer(s.heap, waiting, other));
        queue_fills(&s, s.streams[i], live, 1, MIB);
        queue_fills(&s, other, waiting, 2, MIB);
        CHECK_OK(allot_heap_free_pointer(s.heap, waiting));
    }
    scene_end(&s);
}

void a_heap_ends_with_work_queued(void)
{
    each_mode(end_heap);
}
