/* SPDX-License-Identifier: MIT */
/* Red zones and scrubbing, over devices whose memory cannot be looked at. */
#include "device/heap_suite.h"

enum { SIZE = 5000 };

static void overrun(allot_heap_mode mode)
{
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB, .is_debug = true});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    const allot_devptr good = must_get_pointer(&s, SIZE, stream);
    const allot_devptr bad = must_get_pointer(&s, SIZE, stream);
    CHECK(holds_value(&s.device, stream, good, 0xCD, SIZE));
    CHECK_OK(allot_device_fill(s.device.device, stream, good, 1, SIZE));
    CHECK_OK(allot_heap_free_pointer(s.heap, good));
    CHECK_OK(allot_device_fill(s.device.device, stream, offset_by(bad, SIZE), 1, 1));
    const allot_status status = allot_heap_free_pointer(s.heap, bad);
    if (s.device.info.has_bytes) {
        CHECK_EQ(status, ALLOT_STATUS_MISMATCH);
        CHECK_CONTAINS(allot_error_detail(), "byte 5000 was written to");
    } else {
        CHECK_OK(status);
    }
    scene_end(&s);
}

void writing_behind_a_block_is_seen(void)
{
    each_mode(overrun);
}

static allot_devptr get_for(scene *s, uint32_t owner, uint64_t size, allot_stream stream)
{
    allot_request request = request_of(size, stream);
    request.owner = owner;
    allot_devptr ptr = {0};
    CHECK_OK(allot_heap_alloc_pointer(s->heap, &request, &ptr));
    return ptr;
}

static void reuse(allot_heap_mode mode, allot_heap_scrub scrub)
{
    scene s =
        scene_begin((allot_heap_options){.mode = mode, .segment_size = 4 * MIB, .scrub = scrub});
    REQUIRE(s.heap != NULL);
    const allot_devptr secret = get_for(&s, 1, MIB, s.streams[1]);
    CHECK_OK(allot_device_fill(s.device.device, s.streams[1], secret, 0x5A, MIB));
    CHECK_OK(allot_heap_free_pointer(s.heap, secret));
    const allot_devptr next = get_for(&s, 2, MIB, s.streams[1]);
    CHECK_EQ(next.address, secret.address);
    CHECK(holds_value(&s.device, s.streams[1], next, 0, MIB));
    CHECK_OK(allot_heap_free_pointer(s.heap, next));
    scene_end(&s);
}

static void reuse_both_ways(allot_heap_mode mode)
{
    reuse(mode, ALLOT_HEAP_SCRUB_REUSE);
    reuse(mode, ALLOT_HEAP_SCRUB_FREE);
}

void another_owner_reads_zeros(void)
{
    each_mode(reuse_both_ways);
}

static void shrink(allot_heap_mode mode)
{
    scene s = scene_begin((allot_heap_options){
        .mode = mode, .segment_size = 4 * MIB, .scrub = ALLOT_HEAP_SCRUB_FREE});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    const allot_handle block = must_get(&s, 2 * MIB, stream);
    set_block(&s, block, 0x5A, 2 * MIB, stream);
    CHECK_OK(allot_heap_resize(s.heap, block, MIB));
    const allot_devptr next = must_get_pointer(&s, MIB, stream);
    CHECK(holds_value(&s.device, stream, next, 0, MIB));
    CHECK(block_holds(&s, block, 0x5A, MIB, stream));
    CHECK_OK(allot_heap_free(s.heap, block));
    CHECK_OK(allot_heap_free_pointer(s.heap, next));
    scene_end(&s);
}

void a_block_that_shrinks_leaves_zeros(void)
{
    each_mode(shrink);
}
