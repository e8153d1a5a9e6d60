/* SPDX-License-Identifier: MIT */
/* Making room for a request by moving blocks. */
#include <allot/compact.h>
#include <string.h>

#include "support/check.h"

#define PIECE (UINT64_C(512) << 10)

enum { PIECES = 16 };

typedef struct scene {
    allot_device *device;
    allot_device *failing; /**< Over `device`; the heap's. */
    allot_heap *heap;
    allot_handle pieces[PIECES];
} scene;

static allot_handle get(scene *s, uint64_t size)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    allot_handle handle = {0};
    CHECK_OK(allot_heap_alloc(s->heap, &request, &handle));
    return handle;
}

static void fill(scene *s, int piece)
{
    allot_devptr at = {0};
    CHECK_OK(allot_heap_pin(s->heap, s->pieces[piece], &at));
    CHECK_OK(allot_device_fill(s->device, (allot_stream){0}, at, (uint8_t)(piece + 1), PIECE));
    CHECK_OK(allot_heap_unpin(s->heap, s->pieces[piece]));
}

static void check_bytes(scene *s, int piece)
{
    static uint8_t bytes[512 << 10];
    allot_devptr at = {0};
    CHECK_OK(allot_heap_pin(s->heap, s->pieces[piece], &at));
    CHECK_OK(allot_device_read(s->device, (allot_stream){0}, bytes, at, PIECE));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < PIECE; i++) {
        wrong += bytes[i] != piece + 1;
    }
    CHECK_EQ(wrong, 0);
    CHECK_OK(allot_heap_unpin(s->heap, s->pieces[piece]));
}

/** 8 MiB full of pieces, of which every second one is freed. */
static bool open_scene(scene *s, allot_heap_mode mode)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = mode,
                                        .segment_size = PIECES * PIECE,
                                        .limit = PIECES * PIECE};
    const allot_failing_options none = {.struct_size = sizeof none};
    *s = (scene){0};
    if (!CHECK_OK(allot_device_open("host,memory:64MiB", &s->device)) ||
        !CHECK_OK(allot_device_open_failing(s->device, &none, &s->failing)) ||
        !CHECK_OK(allot_heap_create(s->failing, &options, &s->heap))) {
        return false;
    }
    for (int i = 0; i < PIECES; i++) {
        s->pieces[i] = get(s, PIECE);
        fill(s, i);
    }
    for (int i = 1; i < PIECES; i += 2) {
        CHECK_OK(allot_heap_free(s->heap, s->pieces[i]));
    }
    return true;
}

static void close_scene(scene *s)
{
    for (int i = 0; i < PIECES; i += 2) {
        check_bytes(s, i);
    }
    CHECK_OK(allot_heap_check(s->heap));
    allot_heap_destroy(s->heap);
    allot_device_counts counts;
    allot_device_get_counts(s->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(s->failing);
    allot_device_destroy(s->device);
}

static const allot_request three_mib = {.struct_size = sizeof(allot_request), .size = 6 * PIECE};

static void without_it_a_request_is_refused_as_fragmented(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    allot_handle handle;
    CHECK_EQ(allot_heap_alloc(s.heap, &three_mib, &handle), ALLOT_STATUS_FRAGMENTED);
    close_scene(&s);
}

static void the_ladder_compacts(allot_heap_mode mode)
{
    scene s;
    REQUIRE(open_scene(&s, mode));
    CHECK_OK(allot_compact_attach(s.heap, NULL));
    allot_handle handle;
    CHECK_OK(allot_heap_alloc(s.heap, &three_mib, &handle));
    CHECK_OK(allot_heap_check(s.heap));
    close_scene(&s);
}

static void the_ladder_compacts_in_both_modes(void)
{
    the_ladder_compacts(ALLOT_HEAP_MODE_SEGMENTS);
    the_ladder_compacts(ALLOT_HEAP_MODE_VIRTUAL);
}

static void the_fewest_bytes_are_moved(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    /* Two more free pieces side by side: of six pieces there only one is used. */
    CHECK_OK(allot_heap_free(s.heap, s.pieces[8]));
    CHECK_OK(allot_heap_free(s.heap, s.pieces[10]));
    uint64_t moved = 0;
    CHECK_OK(allot_compact_make_room(s.heap, &three_mib, &moved));
    CHECK_EQ(moved, PIECE);
    CHECK_OK(allot_compact_make_room(s.heap, &three_mib, &moved));
    CHECK_EQ(moved, 0);
    s.pieces[8] = get(&s, PIECE);
    fill(&s, 8);
    s.pieces[10] = get(&s, PIECE);
    fill(&s, 10);
    close_scene(&s);
}

static void pinned_blocks_stay(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    allot_devptr before[2];
    allot_devptr after = {0};
    CHECK_OK(allot_heap_pin(s.heap, s.pieces[4], &before[0]));
    CHECK_OK(allot_heap_pin(s.heap, s.pieces[10], &before[1]));
    CHECK_EQ(allot_compact_make_room(s.heap, &three_mib, NULL), ALLOT_STATUS_FRAGMENTED);
    CHECK_OK(allot_heap_unpin(s.heap, s.pieces[4]));
    CHECK_OK(allot_compact_make_room(s.heap, &three_mib, NULL));
    CHECK_OK(allot_heap_pin(s.heap, s.pieces[10], &after));
    CHECK_EQ(after.address, before[1].address);
    CHECK_OK(allot_heap_unpin(s.heap, s.pieces[10]));
    CHECK_OK(allot_heap_unpin(s.heap, s.pieces[10]));
    close_scene(&s);
}

static void blocks_that_another_stream_uses_stay(void)
{
    scene s;
    allot_stream side;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    CHECK_OK(allot_device_stream_create(s.failing, &side));
    for (int i = 0; i < PIECES; i += 2) {
        CHECK_OK(allot_heap_use(s.heap, s.pieces[i], side));
    }
    CHECK_EQ(allot_compact_make_room(s.heap, &three_mib, NULL), ALLOT_STATUS_FRAGMENTED);
    CHECK_OK(allot_heap_end_stream(s.heap, side));
    CHECK_OK(allot_device_stream_destroy(s.failing, side));
    close_scene(&s);
}

static void a_bound_on_the_cost_holds(void)
{
    const allot_compact_options cheap = {.struct_size = sizeof cheap, .cost_max = 0.25};
    const allot_compact_options wrong = {.struct_size = sizeof wrong, .cost_max = -1};
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    CHECK_EQ(allot_compact_attach(s.heap, &wrong), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_compact_attach(s.heap, &cheap));
    allot_handle handle;
    CHECK_EQ(allot_heap_alloc(s.heap, &three_mib, &handle), ALLOT_STATUS_FRAGMENTED);
    close_scene(&s);
}

static void resizing_compacts(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    CHECK_OK(allot_compact_attach(s.heap, NULL));
    CHECK_OK(allot_heap_resize(s.heap, s.pieces[14], 5 * PIECE));
    close_scene(&s);
}

static void a_failed_copy_loses_nothing(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    for (uint64_t n = 1; n <= 3; n++) {
        const allot_failing_options options = {.struct_size = sizeof options,
                                               .nth = n,
                                               .call_mask = UINT64_C(1) << ALLOT_DEVICE_CALL_COPY |
                                                            UINT64_C(1) << ALLOT_DEVICE_CALL_MOVE};
        CHECK_OK(allot_failing_arm(s.failing, &options));
        const allot_status status = allot_compact_make_room(s.heap, &three_mib, NULL);
        CHECK(status == ALLOT_STATUS_BACKEND || status == ALLOT_STATUS_OK);
        CHECK_OK(allot_heap_check(s.heap));
        for (int i = 0; i < PIECES; i += 2) {
            check_bytes(&s, i);
        }
    }
    const allot_failing_options none = {.struct_size = sizeof none};
    CHECK_OK(allot_failing_arm(s.failing, &none));
    CHECK_OK(allot_compact_make_room(s.heap, &three_mib, NULL));
    close_scene(&s);
}

static void red_zones_move_along(void)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = UINT64_C(1) << 20,
                                        .limit = UINT64_C(1) << 20,
                                        .is_debug = true};
    const allot_request quarter = {.struct_size = sizeof quarter, .size = 200 << 10};
    const allot_request half = {.struct_size = sizeof half, .size = 400 << 10};
    scene s = {0};
    REQUIRE_OK(allot_device_open("host,memory:64MiB", &s.device));
    REQUIRE_OK(allot_heap_create(s.device, &options, &s.heap));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(allot_heap_alloc(s.heap, &quarter, &s.pieces[i]));
    }
    CHECK_OK(allot_heap_free(s.heap, s.pieces[1]));
    CHECK_OK(allot_heap_free(s.heap, s.pieces[3]));
    CHECK_OK(allot_compact_make_room(s.heap, &half, NULL));
    for (int i = 0; i < 5; i += 2) {
        CHECK_OK(allot_heap_free(s.heap, s.pieces[i]));
    }
    allot_heap_destroy(s.heap);
    allot_device_destroy(s.device);
}

static const check_test tests[] = {
    {"without_it_a_request_is_refused_as_fragmented",
     without_it_a_request_is_refused_as_fragmented},
    {"the_ladder_compacts_in_both_modes", the_ladder_compacts_in_both_modes},
    {"the_fewest_bytes_are_moved", the_fewest_bytes_are_moved},
    {"pinned_blocks_stay", pinned_blocks_stay},
    {"blocks_that_another_stream_uses_stay", blocks_that_another_stream_uses_stay},
    {"a_bound_on_the_cost_holds", a_bound_on_the_cost_holds},
    {"resizing_compacts", resizing_compacts},
    {"red_zones_move_along", red_zones_move_along},
    {"a_failed_copy_loses_nothing", a_failed_copy_loses_nothing},
};

CHECK_MAIN(tests)
