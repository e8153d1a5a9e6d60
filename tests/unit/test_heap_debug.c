/* SPDX-License-Identifier: MIT */
/* Debug heaps, scrubbing and the report of leaks. */
#include <allot/heap.h>
#include <string.h>

#include "support/check.h"

enum { SIZE = 1000, GRANULE = 512 };

typedef struct scene {
    allot_device *device;
    allot_heap *heap;
} scene;

static bool open_scene(scene *s, allot_heap_options options)
{
    options.struct_size = sizeof options;
    options.segment_size = 1 << 20;
    *s = (scene){0};
    return CHECK_OK(allot_device_open("host,memory:64MiB", &s->device)) &&
           CHECK_OK(allot_heap_create(s->device, &options, &s->heap));
}

static void close_scene(scene *s)
{
    allot_heap_destroy(s->heap);
    allot_device_destroy(s->device);
}

/** The host's memory can be looked at where it lies. */
static uint8_t *bytes_at(allot_devptr ptr)
{
    uint8_t *bytes = NULL;
    const uintptr_t address = (uintptr_t)ptr.address;
    memcpy(&bytes, &address, sizeof bytes);
    return bytes;
}

static allot_devptr get(scene *s, uint64_t size, uint32_t owner)
{
    const allot_request request = {.struct_size = sizeof request, .size = size, .owner = owner};
    allot_devptr ptr = {0};
    CHECK_OK(allot_heap_alloc_pointer(s->heap, &request, &ptr));
    return ptr;
}

static uint64_t count_others(const uint8_t *bytes, uint64_t size, uint8_t value)
{
    uint64_t others = 0;
    for (uint64_t i = 0; i < size; i++) {
        others += bytes[i] != value;
    }
    return others;
}

static void blocks_are_poisoned(void)
{
    scene s;
    REQUIRE(open_scene(&s, (allot_heap_options){.is_debug = true}));
    const allot_devptr ptr = get(&s, SIZE, 0);
    CHECK_EQ(count_others(bytes_at(ptr), SIZE, 0xCD), 0);
    CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    CHECK_EQ(count_others(bytes_at(ptr), SIZE, 0xDD), 0);
    close_scene(&s);
}

/** Write one byte at `at` from the begin of a block, and free it. */
static void overrun(int64_t at, bool is_seen)
{
    scene s;
    REQUIRE(open_scene(&s, (allot_heap_options){.is_debug = true}));
    const allot_devptr ptr = get(&s, SIZE, 0);
    bytes_at(ptr)[at] = 0;
    const allot_status status = allot_heap_free_pointer(s.heap, ptr);
    CHECK_EQ(status, is_seen ? ALLOT_STATUS_MISMATCH : ALLOT_STATUS_OK);
    CHECK_EQ(allot_heap_free_pointer(s.heap, ptr), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_check(s.heap));
    close_scene(&s);
}

static void writing_beside_a_block_is_seen_when_it_is_freed(void)
{
    overrun(0, false);
    overrun(SIZE - 1, false);
    overrun(SIZE, true);
    CHECK_CONTAINS(allot_error_detail(), "no pointer");
    overrun(SIZE + GRANULE - 1, true);
    overrun(-1, true);
    overrun(-GRANULE, true);
}

static void the_detail_says_which_byte(void)
{
    scene s;
    REQUIRE(open_scene(&s, (allot_heap_options){.is_debug = true}));
    const allot_devptr ptr = get(&s, SIZE, 0);
    bytes_at(ptr)[-3] = 0;
    CHECK_EQ(allot_heap_free_pointer(s.heap, ptr), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "byte -3 was written to");
    close_scene(&s);
}

/** Fill a block of one owner, free it, and see what another one gets at the same place. */
static uint64_t left_over(allot_heap_scrub scrub, uint32_t first, uint32_t second)
{
    scene s;
    if (!open_scene(&s, (allot_heap_options){.scrub = scrub})) {
        return 0;
    }
    const allot_devptr ptr = get(&s, SIZE, first);
    memset(bytes_at(ptr), 0x5A, SIZE);
    CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    const allot_devptr again = get(&s, SIZE, second);
    CHECK_EQ(again.address, ptr.address);
    const uint64_t left = count_others(bytes_at(again), SIZE, 0);
    close_scene(&s);
    return left;
}

static void another_owner_gets_zeros(void)
{
    CHECK_EQ(left_over(ALLOT_HEAP_SCRUB_NEVER, 1, 2), SIZE);
    CHECK_EQ(left_over(ALLOT_HEAP_SCRUB_REUSE, 1, 1), SIZE);
    CHECK_EQ(left_over(ALLOT_HEAP_SCRUB_REUSE, 1, 2), 0);
    CHECK_EQ(left_over(ALLOT_HEAP_SCRUB_FREE, 1, 1), 0);
}

/** Pages of one stream's segment are mapped in that of another stream, with what is in them. */
static void another_owner_gets_zeros_in_lent_memory(void)
{
    enum { LENT = 8 << 20, WHOLE = 12 << 20 };
    scene s;
    allot_request request = {.struct_size = sizeof request, .size = LENT, .owner = 1};
    allot_devptr ptr = {0};
    allot_heap_stats stats = {0};
    REQUIRE(open_scene(&s, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL,
                                                .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE,
                                                .scrub = ALLOT_HEAP_SCRUB_REUSE}));
    REQUIRE_OK(allot_device_stream_create(s.device, &request.stream));
    CHECK_OK(allot_heap_alloc_pointer(s.heap, &request, &ptr));
    memset(bytes_at(ptr), 0x5A, LENT);
    CHECK_OK(allot_heap_free_pointer(s.heap, ptr));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(allot_device_stream_synchronize(s.device, request.stream));
        CHECK_OK(allot_heap_collect(s.heap));
    }
    ptr = get(&s, WHOLE, 2);
    CHECK_OK(allot_heap_get_stats(s.heap, &stats));
    CHECK_EQ(stats.remapped_bytes, LENT);
    CHECK_EQ(count_others(bytes_at(ptr), WHOLE, 0), 0);
    CHECK_OK(allot_device_stream_destroy(s.device, request.stream));
    close_scene(&s);
}

static void a_block_that_grows_gets_zeros(void)
{
    scene s;
    REQUIRE(open_scene(&s, (allot_heap_options){.scrub = ALLOT_HEAP_SCRUB_REUSE}));
    const allot_devptr old = get(&s, 4 * GRANULE, 1);
    memset(bytes_at(old), 0x5A, 4 * GRANULE);
    CHECK_OK(allot_heap_free_pointer(s.heap, old));
    const allot_request request = {.struct_size = sizeof request, .size = GRANULE, .owner = 2};
    allot_handle handle;
    allot_devptr ptr;
    REQUIRE_OK(allot_heap_alloc(s.heap, &request, &handle));
    REQUIRE_OK(allot_heap_resize(s.heap, handle, 4 * GRANULE));
    REQUIRE_OK(allot_heap_pin(s.heap, handle, &ptr));
    CHECK_EQ(count_others(bytes_at(ptr), 4 * GRANULE, 0), 0);
    CHECK_OK(allot_heap_unpin(s.heap, handle));
    close_scene(&s);
}

typedef struct leaks {
    uint32_t count;
    uint64_t size;
    uint32_t tag;
} leaks;

static void note_leak(void *context, const allot_block_info *block)
{
    leaks *const found = context;
    found->count++;
    found->size += block->size_requested;
    found->tag = block->tag;
}

static void blocks_that_are_left_are_told(void)
{
    leaks found = {0};
    scene s;
    REQUIRE(open_scene(&s, (allot_heap_options){.leak = note_leak, .leak_context = &found}));
    const allot_request request = {.struct_size = sizeof request, .size = 100, .tag = 42};
    allot_handle handle;
    CHECK_OK(allot_heap_alloc(s.heap, &request, &handle));
    const allot_devptr freed = get(&s, SIZE, 0);
    CHECK_OK(allot_heap_free_pointer(s.heap, freed));
    close_scene(&s);
    CHECK_EQ(found.count, 1);
    CHECK_EQ(found.size, 100);
    CHECK_EQ(found.tag, 42);
}

static const check_test tests[] = {
    {"blocks_are_poisoned", blocks_are_poisoned},
    {"writing_beside_a_block_is_seen_when_it_is_freed",
     writing_beside_a_block_is_seen_when_it_is_freed},
    {"the_detail_says_which_byte", the_detail_says_which_byte},
    {"another_owner_gets_zeros", another_owner_gets_zeros},
    {"another_owner_gets_zeros_in_lent_memory", another_owner_gets_zeros_in_lent_memory},
    {"a_block_that_grows_gets_zeros", a_block_that_grows_gets_zeros},
    {"blocks_that_are_left_are_told", blocks_that_are_left_are_told},
};

CHECK_MAIN(tests)
