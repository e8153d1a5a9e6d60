/* SPDX-License-Identifier: MIT */
/* What calls of a heap refuse, each status once; handles and pools that are over; limits to the
 * byte. */
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "heap/heap.h"
#include "small_heap.h"
#include "support/check.h"

/* ---- options ---- */

static allot_status create(const char *device, allot_heap_options options)
{
    allot_device *d = NULL;
    allot_heap *heap = NULL;
    CHECK_OK(allot_device_open(device, &d));
    options.struct_size = options.struct_size == 1 ? 0 : sizeof options;
    const allot_status status = allot_heap_create(d, &options, &heap);
    CHECK_EQ(heap != NULL, status == ALLOT_STATUS_OK);
    allot_heap_destroy(heap);
    allot_device_destroy(d);
    return status;
}

static void wrong_options_are_refused(void)
{
    static const char DEVICE[] = "simulated,memory:64MiB";
    CHECK_EQ(create(DEVICE, (allot_heap_options){.struct_size = 1}), ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.granule = 768}), ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.granule = UINT64_C(1) << 40}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.mode = (allot_heap_mode)3}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.scrub = (allot_heap_scrub)3}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.strategy = (allot_space_strategy)99}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.segment_size = UINT64_MAX}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.limit_fraction = 1.5}), ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.limit_fraction = -0.1}), ALLOT_STATUS_INVALID);
    CHECK_EQ(create(DEVICE, (allot_heap_options){.limit_fraction = NAN}), ALLOT_STATUS_INVALID);
    CHECK_OK(create(DEVICE, (allot_heap_options){.limit_fraction = 1}));
    CHECK_OK(create(DEVICE, (allot_heap_options){.granule = 1}));
    allot_heap *heap = NULL;
    CHECK_EQ(allot_heap_create(NULL, NULL, &heap), ALLOT_STATUS_INVALID);
    allot_heap_destroy(NULL);
}

static void tiers_grow_where_only_another_tier_has_room(void)
{
    small_heap h = small_open((allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL,
                                                   .strategy = ALLOT_SPACE_STRATEGY_TIERED});
    const allot_handle first = small_alloc(&h, 18 * MIB, 0);
    small_free(&h, small_alloc(&h, 18 * MIB, 0));
    const allot_handle filler = small_alloc(&h, 2 * MIB, 0);
    /* A chunk of 16 MiB for requests up to 1 MiB is now the end of all there is. */
    const allot_handle chunk = small_alloc(&h, 100 * KIB, 0);
    const allot_handle small = small_alloc(&h, 512, 0);
    small_free(&h, first);
    small_free(&h, filler);
    small_free(&h, chunk);
    small_free(&h, small);
    small_close(&h);
}

static void mode_virtual_needs_a_device_that_has_it(void)
{
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_VIRTUAL};
    REQUIRE_OK(allot_device_open("null,memory:64MiB", &device));
    device->info.granule = 0; /* as of a device that has none */
    CHECK_EQ(allot_heap_create(device, &options, &heap), ALLOT_STATUS_UNSUPPORTED);
    allot_device_destroy(device);
}

/* ---- requests ---- */

static void wrong_requests_are_refused(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle handle = {7};
    allot_devptr ptr = {7};
    allot_request request = {.size = 1};
    CHECK_EQ(allot_heap_alloc(h.heap, &request, &handle), ALLOT_STATUS_INVALID); /* no size set */
    CHECK_EQ(small_try(&h, (allot_request){.size = 0}, &handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .align = 3}, &handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .flags = 3}, &handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .flags = 4}, &handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .pool = {1}}, &handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_try(&h, (allot_request){.size = UINT64_MAX}, &handle),
             ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .align = UINT64_C(1) << 63}, &handle),
             ALLOT_STATUS_DEVICE_MEMORY);
    request =
        (allot_request){.struct_size = sizeof request, .size = 1, .flags = ALLOT_BLOCK_TEMPORARY};
    CHECK_EQ(allot_heap_alloc_pointer(h.heap, &request, &ptr), ALLOT_STATUS_INVALID);
    CHECK_EQ(handle.value, 7);
    CHECK_EQ(ptr.address, 7);
    CHECK_EQ(small_held(&h), 0);
    small_close(&h);
}

/* ---- handles ---- */

static void check_dead(small_heap *h, allot_handle handle)
{
    allot_devptr ptr = {0};
    allot_block_info info;
    CHECK_EQ(allot_heap_free(h->heap, handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_pin(h->heap, handle, &ptr), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_unpin(h->heap, handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_use(h->heap, handle, h->streams[1]), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_resize(h->heap, handle, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_get_block(h->heap, handle, &info), ALLOT_STATUS_INVALID);
}

static void a_freed_handle_stays_dead_when_its_place_lives_again(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle old[100];
    for (int i = 0; i < 100; i++) {
        old[i] = small_alloc(&h, 1 * KIB, 0);
        small_free(&h, old[i]);
    }
    const allot_handle live = small_alloc(&h, 1 * KIB, 0);
    for (int i = 0; i < 100; i++) {
        check_dead(&h, old[i]);
    }
    check_dead(&h, (allot_handle){0});
    check_dead(&h, (allot_handle){UINT64_MAX});
    check_dead(&h, (allot_handle){live.value + 1});
    check_dead(&h, (allot_handle){live.value & UINT32_MAX});
    small_free(&h, live);
    small_close(&h);
}

static void handles_of_another_heap_are_refused(void)
{
    small_heap h = small_open((allot_heap_options){0});
    small_heap other = small_open((allot_heap_options){0});
    const allot_handle mine = small_alloc(&h, 1 * KIB, 0);
    const allot_handle foreign = small_alloc(&other, 1 * KIB, 0);
    check_dead(&h, foreign);
    check_dead(&other, mine);
    small_free(&h, mine);
    small_free(&other, foreign);
    small_close(&other);
    small_close(&h);
}

static void pointers_are_freed_once_and_at_their_begin(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_request request = {.struct_size = sizeof request, .size = 4 * KIB};
    allot_devptr ptr = {0};
    allot_handle handle = {0};
    REQUIRE_OK(allot_heap_alloc_pointer(h.heap, &request, &ptr));
    CHECK_EQ(allot_heap_free_pointer(h.heap, (allot_devptr){ptr.address + 512}),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_free_pointer(h.heap, (allot_devptr){0}), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_find(h.heap, (allot_devptr){ptr.address + 1}, &handle),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_find(h.heap, ptr, &handle));
    CHECK_EQ(allot_heap_use_pointer(h.heap, (allot_devptr){1}, h.streams[1]), ALLOT_STATUS_INVALID);
    /* A pointer has a handle, and stays where it is. */
    CHECK_OK(allot_heap_resize(h.heap, handle, 8 * KIB));
    CHECK_EQ(small_address(&h, handle), ptr.address);
    const allot_handle wall = small_alloc(&h, 4 * KIB, 0);
    CHECK_EQ(allot_heap_resize(h.heap, handle, 16 * KIB), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_heap_free_pointer(h.heap, ptr));
    CHECK_EQ(allot_heap_free_pointer(h.heap, ptr), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_find(h.heap, ptr, &handle), ALLOT_STATUS_INVALID);
    check_dead(&h, handle);
    /* Handles have no pointer to be freed by. */
    CHECK_EQ(allot_heap_free_pointer(h.heap, (allot_devptr){small_address(&h, wall)}),
             ALLOT_STATUS_INVALID);
    small_free(&h, wall);
    small_close(&h);
}

static void pinned_blocks_are_neither_freed_nor_moved(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle handle = small_alloc(&h, 4 * KIB, 0);
    (void)small_alloc(&h, 4 * KIB, 0);
    allot_devptr ptr = {0};
    CHECK_OK(allot_heap_pin(h.heap, handle, &ptr));
    CHECK_OK(allot_heap_pin(h.heap, handle, &ptr));
    CHECK_EQ(allot_heap_free(h.heap, handle), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_heap_resize(h.heap, handle, 64 * KIB), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_heap_unpin(h.heap, handle));
    CHECK_EQ(allot_heap_free(h.heap, handle), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_heap_unpin(h.heap, handle));
    CHECK_EQ(allot_heap_unpin(h.heap, handle), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_resize(h.heap, handle, 64 * KIB));
    CHECK(small_address(&h, handle) != ptr.address);
    small_free(&h, handle);
    small_close(&h);
}

static void a_dropped_block_can_only_be_freed(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle handle = {0};
    CHECK_OK(
        small_try(&h, (allot_request){.size = 900 * KIB, .flags = ALLOT_BLOCK_TEMPORARY}, &handle));
    small_close_limit(&h);
    (void)small_alloc(&h, 900 * KIB, 0);
    allot_devptr ptr = {0};
    CHECK_EQ(allot_heap_pin(h.heap, handle, &ptr), ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(allot_heap_resize(h.heap, handle, 1 * KIB), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_heap_use(h.heap, handle, h.streams[1]));
    CHECK_EQ(allot_heap_unpin(h.heap, handle), ALLOT_STATUS_INVALID);
    CHECK_EQ(small_stats(&h).allocation.current, 1);
    small_free(&h, handle);
    check_dead(&h, handle);
    small_close(&h);
}

static void a_block_that_is_dropped_for_its_own_growth_says_so(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle handle = {0};
    CHECK_OK(
        small_try(&h, (allot_request){.size = 600 * KIB, .flags = ALLOT_BLOCK_TEMPORARY}, &handle));
    (void)small_alloc(&h, 100 * KIB, 0); /* behind it */
    small_close_limit(&h);
    (void)small_alloc(&h, 200 * KIB, 0);
    const allot_status status = allot_heap_resize(h.heap, handle, 610 * KIB);
    CHECK(status == ALLOT_STATUS_NOT_FOUND || status == ALLOT_STATUS_FRAGMENTED ||
          status == ALLOT_STATUS_BUDGET);
    CHECK_EQ(allot_heap_resize(h.heap, handle, 610 * KIB), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_heap_check(h.heap));
    small_free(&h, handle);
    small_close(&h);
}

/* ---- pools ---- */

static void a_destroyed_pool_stays_dead(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    allot_heap_pool first = {0};
    allot_heap_pool second = {0};
    allot_handle handle = {0};
    allot_heap_stats stats;
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &first));
    CHECK_OK(small_try(&h, (allot_request){.size = 1, .pool = first}, &handle));
    CHECK_EQ(allot_heap_pool_destroy(h.heap, first), ALLOT_STATUS_BUSY);
    small_free(&h, handle);
    CHECK_OK(allot_heap_pool_destroy(h.heap, first));
    CHECK_EQ(small_held(&h), 0);
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &second));
    CHECK(first.value != second.value);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .pool = first}, &handle),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_pool_destroy(h.heap, first), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_get_pool_stats(h.heap, first, &stats), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_pool_destroy(h.heap, (allot_heap_pool){0}), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_get_pool_stats(h.heap, second, &stats));
    CHECK_EQ(stats.reserved_bytes.current, 0);
    CHECK_EQ(
        allot_heap_pool_create(h.heap,
                               &(allot_heap_pool_options){.struct_size = sizeof options,
                                                          .strategy = (allot_space_strategy)99},
                               &second),
        ALLOT_STATUS_INVALID);
    small_close(&h);
}

static void a_pool_is_not_destroyed_under_its_guests(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .is_shared_on_oom = true};
    allot_heap_pool pool = {0};
    allot_handle own = {0};
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
    CHECK_OK(small_try(&h, (allot_request){.size = 100 * KIB, .pool = pool}, &own));
    small_close_limit(&h);
    const allot_handle guest = small_alloc(&h, 500 * KIB, 0);
    small_free(&h, own);
    CHECK_EQ(allot_heap_pool_destroy(h.heap, pool), ALLOT_STATUS_BUSY);
    CHECK_CONTAINS(allot_error_detail(), "the pool holds 1 blocks");
    CHECK_OK(allot_heap_check(h.heap));
    small_free(&h, guest);
    CHECK_OK(allot_heap_pool_destroy(h.heap, pool));
    CHECK_EQ(small_held(&h), 0);
    small_close(&h);
}

static void a_pool_with_freed_blocks_that_wait_is_destroyed(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    allot_heap_pool pool = {0};
    allot_handle handle = {0};
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
    CHECK_OK(small_try(&h, (allot_request){.size = 1, .pool = pool}, &handle));
    CHECK_OK(allot_heap_use(h.heap, handle, h.streams[2]));
    small_busy(&h, 2);
    small_free(&h, handle);
    CHECK_OK(allot_heap_pool_destroy(h.heap, pool));
    CHECK_EQ(small_stats(&h).active.current, 0);
    CHECK_EQ(small_held(&h), 0);
    small_close(&h);
}

/* ---- streams ---- */

static void an_ended_stream_leaves_its_memory_to_the_default_stream(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_heap_stats stats = {0};
    const allot_handle kept = small_alloc(&h, 100 * KIB, 1);
    CHECK_OK(allot_heap_end_stream(h.heap, h.streams[1]));
    CHECK_EQ(allot_heap_get_stream_stats(h.heap, h.streams[1], &stats), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_heap_get_stream_stats(h.heap, h.streams[0], &stats));
    CHECK_EQ(stats.reserved_bytes.current, 1 * MIB);
    CHECK_EQ(stats.segment.current, 1);
    (void)small_alloc(&h, 900 * KIB, 0);
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_free(&h, kept);
    CHECK_EQ(small_stats(&h).active.current, 1); /* at once: nothing uses it any more */
    CHECK_EQ(allot_heap_end_stream(h.heap, h.streams[0]), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_end_stream(h.heap, h.streams[3])); /* never heard of */
    small_close(&h);
}

static void figures_of_streams_are_right_after_one_ended(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_heap_stats stats = {0};
    const allot_handle kept = small_alloc(&h, 100 * KIB, 1);
    CHECK_OK(allot_heap_end_stream(h.heap, h.streams[1]));
    small_free(&h, kept);
    CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
    CHECK_OK(allot_heap_get_stream_stats(h.heap, h.streams[0], &stats));
    CHECK_EQ(stats.reserved_bytes.current, 0);
    CHECK_EQ(stats.segment.current, 0);
    CHECK_EQ(stats.inactive_split.current, 0);
    CHECK_EQ(stats.inactive_split_bytes.current, 0);
    small_close(&h);
}

static void streams_may_come_and_go_for_ever(void)
{
    small_heap h = small_open((allot_heap_options){0});
    for (int i = 0; i < STREAMS_MAX + 100; i++) {
        allot_stream stream = {0};
        REQUIRE_OK(allot_device_stream_create(h.device, &stream));
        const allot_request request = {.struct_size = sizeof request, .size = 1, .stream = stream};
        allot_handle handle = {0};
        REQUIRE_OK(allot_heap_alloc(h.heap, &request, &handle));
        REQUIRE_OK(allot_heap_use(h.heap, handle, h.streams[1]));
        REQUIRE_OK(allot_heap_free(h.heap, handle));
        REQUIRE_OK(allot_heap_end_stream(h.heap, stream));
        REQUIRE_OK(allot_device_stream_destroy(h.device, stream));
    }
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close(&h);
}

/* ---- limits ---- */

static void a_limit_can_be_filled_to_the_byte(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        const uint64_t limit = 1 * MIB + 256 * KIB;
        small_heap h =
            small_open((allot_heap_options){.mode = (allot_heap_mode)mode, .limit = limit});
        allot_handle handle = {0};
        CHECK_EQ(small_try(&h, (allot_request){.size = limit + 1}, &handle), ALLOT_STATUS_BUDGET);
        const allot_handle all = small_alloc(&h, limit, 0);
        CHECK_EQ(small_held(&h), limit);
        CHECK_EQ(small_try(&h, (allot_request){.size = 1}, &handle), ALLOT_STATUS_BUDGET);
        small_free(&h, all);
        (void)small_alloc(&h, 1 * MIB, 0);
        (void)small_alloc(&h, 256 * KIB, 0);
        CHECK_EQ(small_held(&h), limit);
        small_close(&h);
    }
}

static void a_limit_one_byte_short_refuses(void)
{
    small_heap h = small_open((allot_heap_options){.limit = 1 * MIB - 1, .granule = 1});
    allot_handle handle = {0};
    CHECK_EQ(small_try(&h, (allot_request){.size = 1 * MIB}, &handle), ALLOT_STATUS_BUDGET);
    CHECK_EQ(small_held(&h), 0);
    (void)small_alloc(&h, 1 * MIB - 1, 0);
    CHECK_EQ(small_held(&h), 1 * MIB - 1);
    small_close(&h);
}

static void a_fraction_is_of_the_memory_and_never_above_the_limit(void)
{
    small_heap h = small_open((allot_heap_options){.limit_fraction = 0.5, .limit = 100 * MIB});
    allot_handle handle = {0};
    CHECK_EQ(small_try(&h, (allot_request){.size = 32 * MIB + 1}, &handle), ALLOT_STATUS_BUDGET);
    const allot_handle half = small_alloc(&h, 32 * MIB, 0);
    CHECK_EQ(allot_heap_set_limit_fraction(h.heap, 0), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_set_limit_fraction(h.heap, 1.01), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_set_limit_fraction(h.heap, NAN), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_heap_set_limit_fraction(h.heap, 0.25), ALLOT_STATUS_BUDGET);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1}, &handle), ALLOT_STATUS_BUDGET);
    small_free(&h, half);
    CHECK_OK(allot_heap_set_limit_fraction(h.heap, 0.25));
    CHECK_EQ(small_held(&h), 0);
    CHECK_OK(allot_heap_set_limit_fraction(h.heap, 1));
    (void)small_alloc(&h, 64 * MIB, 0);
    small_close(&h);
}

static void a_lower_limit_gives_back_only_what_is_above_it(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = small_alloc(&h, 1 * MIB, 0);
    }
    small_free(&h, blocks[0]);
    small_free(&h, blocks[1]);
    small_free(&h, blocks[2]);
    CHECK_OK(allot_heap_set_limit(h.heap, 3 * MIB));
    CHECK_EQ(small_held(&h), 3 * MIB);
    CHECK_EQ(allot_heap_set_limit(h.heap, 1 * MIB - 1), ALLOT_STATUS_BUDGET);
    CHECK_EQ(small_held(&h), 1 * MIB);
    CHECK_OK(allot_heap_set_limit(h.heap, 0));
    (void)small_alloc(&h, 10 * MIB, 0);
    small_close(&h);
}

/* ---- forks ---- */

static void the_child_of_a_fork_is_told(void)
{
    small_heap h = small_open((allot_heap_options){.front_size = 64 * KIB});
    const allot_handle handle = small_alloc(&h, 1 * KIB, 0);
    const pid_t child = fork();
    if (child == 0) {
        allot_devptr ptr = {0};
        allot_handle other = {0};
        const allot_request request = {.struct_size = sizeof request, .size = 1};
        const bool is_right =
            allot_heap_alloc(h.heap, &request, &other) == ALLOT_STATUS_FORKED &&
            allot_heap_alloc_pointer(h.heap, &request, &ptr) == ALLOT_STATUS_FORKED &&
            allot_heap_free(h.heap, handle) == ALLOT_STATUS_FORKED &&
            allot_heap_resize(h.heap, handle, 2) == ALLOT_STATUS_FORKED &&
            allot_heap_trim(h.heap, 0, NULL) == ALLOT_STATUS_FORKED &&
            allot_heap_check(h.heap) == ALLOT_STATUS_FORKED;
        allot_heap_destroy(h.heap);
        _exit(is_right ? 0 : 1);
    }
    int how = 0;
    CHECK_EQ(waitpid(child, &how, 0), child);
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    small_free(&h, handle);
    small_close(&h);
}

static const check_test tests[] = {
    {"wrong_options_are_refused", wrong_options_are_refused},
    {"tiers_grow_where_only_another_tier_has_room", tiers_grow_where_only_another_tier_has_room},
    {"mode_virtual_needs_a_device_that_has_it", mode_virtual_needs_a_device_that_has_it},
    {"wrong_requests_are_refused", wrong_requests_are_refused},
    {"a_freed_handle_stays_dead_when_its_place_lives_again",
     a_freed_handle_stays_dead_when_its_place_lives_again},
    {"handles_of_another_heap_are_refused", handles_of_another_heap_are_refused},
    {"pointers_are_freed_once_and_at_their_begin", pointers_are_freed_once_and_at_their_begin},
    {"pinned_blocks_are_neither_freed_nor_moved", pinned_blocks_are_neither_freed_nor_moved},
    {"a_dropped_block_can_only_be_freed", a_dropped_block_can_only_be_freed},
    {"a_block_that_is_dropped_for_its_own_growth_says_so",
     a_block_that_is_dropped_for_its_own_growth_says_so},
    {"a_destroyed_pool_stays_dead", a_destroyed_pool_stays_dead},
    {"a_pool_is_not_destroyed_under_its_guests", a_pool_is_not_destroyed_under_its_guests},
    {"a_pool_with_freed_blocks_that_wait_is_destroyed",
     a_pool_with_freed_blocks_that_wait_is_destroyed},
    {"an_ended_stream_leaves_its_memory_to_the_default_stream",
     an_ended_stream_leaves_its_memory_to_the_default_stream},
    {"figures_of_streams_are_right_after_one_ended", figures_of_streams_are_right_after_one_ended},
    {"streams_may_come_and_go_for_ever", streams_may_come_and_go_for_ever},
    {"a_limit_can_be_filled_to_the_byte", a_limit_can_be_filled_to_the_byte},
    {"a_limit_one_byte_short_refuses", a_limit_one_byte_short_refuses},
    {"a_fraction_is_of_the_memory_and_never_above_the_limit",
     a_fraction_is_of_the_memory_and_never_above_the_limit},
    {"a_lower_limit_gives_back_only_what_is_above_it",
     a_lower_limit_gives_back_only_what_is_above_it},
    {"the_child_of_a_fork_is_told", the_child_of_a_fork_is_told},
};

CHECK_MAIN(tests)
