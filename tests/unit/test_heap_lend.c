/* SPDX-License-Identifier: MIT */
/* Free memory between fixed blocks is mapped where a request goes, in pools that place adaptively.
 */
#include <allot/compact.h>

#include "support/check.h"

#define MIB (UINT64_C(1) << 20)

enum { COUNT = 8 };

typedef struct fixture {
    allot_device *device;
    allot_heap *heap;
    allot_devptr blocks[COUNT];
} fixture;

static const allot_stream stream = {0};

static allot_status get(fixture *f, uint64_t size, allot_devptr *out)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    return allot_heap_alloc_pointer(f->heap, &request, out);
}

/** Nothing is taken while work of the stream may use it, as far as the heap knows. */
static void wait_for_work(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        CHECK_OK(allot_heap_collect(f->heap));
        CHECK_OK(allot_device_stream_synchronize(f->device, stream));
    }
    CHECK_OK(allot_heap_collect(f->heap));
}

/** The same in a pool that does not look by itself: the first time it is asked, it only sets a
 * checkpoint. */
static void wait_until_known(fixture *f)
{
    const allot_request never = {.struct_size = sizeof never, .size = 100 * MIB};
    CHECK_EQ(allot_compact_make_room(f->heap, &never, NULL), ALLOT_STATUS_FRAGMENTED);
    wait_for_work(f);
}

/** Eight blocks of 4 MiB with bytes, of which every other one is freed: 16 MiB are free. */
static bool open_fixture(fixture *f, allot_space_strategy strategy)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_VIRTUAL,
                                        .strategy = strategy,
                                        .reserve_size = 256 * MIB};
    if (!CHECK_OK(allot_device_open("host,memory:128MiB", &f->device)) ||
        !CHECK_OK(allot_heap_create(f->device, &options, &f->heap))) {
        return false;
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(get(f, 4 * MIB, &f->blocks[i]));
        CHECK_OK(allot_device_fill(f->device, stream, f->blocks[i], (uint8_t)(i + 1), 4 * MIB));
    }
    for (int i = 0; i < COUNT; i += 2) {
        CHECK_OK(allot_heap_free_pointer(f->heap, f->blocks[i]));
    }
    wait_for_work(f);
    return true;
}

static void close_fixture(fixture *f)
{
    static uint8_t bytes[4 * MIB];
    for (int i = 1; i < COUNT; i += 2) {
        uint64_t wrong = 0;
        CHECK_OK(allot_device_read(f->device, stream, bytes, f->blocks[i], sizeof bytes));
        CHECK_OK(allot_device_stream_synchronize(f->device, stream));
        for (size_t j = 0; j < sizeof bytes; j++) {
            wrong += bytes[j] != i + 1;
        }
        CHECK_EQ(wrong, 0);
        CHECK_OK(allot_heap_free_pointer(f->heap, f->blocks[i]));
    }
    CHECK_OK(allot_heap_check(f->heap));
    allot_heap_destroy(f->heap);
    allot_device_destroy(f->device);
}

static allot_heap_stats stats_of(fixture *f)
{
    allot_heap_stats stats = {0};
    CHECK_OK(allot_heap_get_stats(f->heap, &stats));
    return stats;
}

static void free_memory_goes_where_it_is_needed(void)
{
    fixture f;
    allot_devptr large;
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_ADAPTIVE));
    const uint64_t before = stats_of(&f).reserved_bytes.current;
    CHECK_OK(get(&f, 16 * MIB, &large));
    CHECK_OK(allot_device_fill(f.device, stream, large, 99, 16 * MIB));
    CHECK_EQ(stats_of(&f).reserved_bytes.current, before);
    CHECK_EQ(stats_of(&f).reserved_bytes.peak, before);
    CHECK_EQ(stats_of(&f).remapped_bytes, 16 * MIB);
    /* What it lacks, the device gives. */
    allot_devptr more;
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    wait_for_work(&f);
    CHECK_OK(get(&f, 20 * MIB, &more));
    CHECK_EQ(stats_of(&f).reserved_bytes.current, before + 4 * MIB);
    CHECK_OK(allot_heap_free_pointer(f.heap, more));
    close_fixture(&f);
}

static void other_strategies_grow(void)
{
    fixture f;
    allot_devptr large;
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_FIRST_FIT));
    const uint64_t before = stats_of(&f).reserved_bytes.current;
    CHECK_OK(get(&f, 16 * MIB, &large));
    CHECK(stats_of(&f).reserved_bytes.current > before);
    CHECK_EQ(stats_of(&f).remapped_bytes, 0);
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    close_fixture(&f);
}

/** After memory was lent, ranges that lack it are passed over for one that has it. */
static void a_range_with_memory_is_found_behind_those_without(void)
{
    fixture f;
    allot_devptr large;
    allot_devptr small;
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_ADAPTIVE));
    CHECK_OK(get(&f, 14 * MIB, &large)); /* 2 MiB of the four holes are left */
    const uint64_t remapped = stats_of(&f).remapped_bytes;
    CHECK_OK(get(&f, 2 * MIB, &small));
    CHECK_EQ(stats_of(&f).remapped_bytes, remapped);
    CHECK_OK(allot_heap_free_pointer(f.heap, small));
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    close_fixture(&f);
}

static void the_memory_of_other_pools_stays_there(void)
{
    fixture f;
    allot_devptr large;
    allot_heap_pool pool;
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE};
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_ADAPTIVE));
    CHECK_OK(allot_heap_pool_create(f.heap, &options, &pool));
    const allot_request request = {.struct_size = sizeof request, .size = 16 * MIB, .pool = pool};
    CHECK_OK(allot_heap_alloc_pointer(f.heap, &request, &large));
    CHECK_EQ(stats_of(&f).remapped_bytes, 0);
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    CHECK_OK(allot_heap_pool_destroy(f.heap, pool));
    close_fixture(&f);
}

/** A heap that compacts does so for any strategy, rather than grow beyond its limit. */
static void a_heap_that_compacts_brings_pages_before_bytes(void)
{
    fixture f;
    allot_devptr large;
    uint64_t moved = 1;
    const allot_request request = {.struct_size = sizeof request, .size = 16 * MIB};
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_FIRST_FIT));
    const uint64_t before = stats_of(&f).reserved_bytes.current;
    CHECK_OK(allot_heap_set_limit(f.heap, before));
    wait_until_known(&f);
    CHECK_OK(allot_compact_make_room(f.heap, &request, &moved));
    CHECK_EQ(moved, 0);
    CHECK_EQ(stats_of(&f).remapped_bytes, 16 * MIB);
    CHECK_OK(get(&f, 16 * MIB, &large));
    CHECK_EQ(stats_of(&f).remapped_bytes, 16 * MIB);
    CHECK_EQ(stats_of(&f).reserved_bytes.peak, before);
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    close_fixture(&f);
}

static void so_does_its_ladder(void)
{
    fixture f;
    allot_devptr large;
    REQUIRE(open_fixture(&f, ALLOT_SPACE_STRATEGY_BEST_FIT));
    const uint64_t before = stats_of(&f).reserved_bytes.current;
    CHECK_OK(allot_compact_attach(f.heap, NULL));
    CHECK_OK(allot_heap_set_limit(f.heap, before));
    wait_until_known(&f);
    CHECK_OK(get(&f, 16 * MIB, &large));
    CHECK_EQ(stats_of(&f).remapped_bytes, 16 * MIB);
    CHECK_EQ(stats_of(&f).reserved_bytes.peak, before);
    CHECK_OK(allot_heap_free_pointer(f.heap, large));
    close_fixture(&f);
}

static const check_test tests[] = {
    {"free_memory_goes_where_it_is_needed", free_memory_goes_where_it_is_needed},
    {"other_strategies_grow", other_strategies_grow},
    {"a_range_with_memory_is_found_behind_those_without",
     a_range_with_memory_is_found_behind_those_without},
    {"a_heap_that_compacts_brings_pages_before_bytes",
     a_heap_that_compacts_brings_pages_before_bytes},
    {"so_does_its_ladder", so_does_its_ladder},
    {"the_memory_of_other_pools_stays_there", the_memory_of_other_pools_stays_there},
};

CHECK_MAIN(tests)
