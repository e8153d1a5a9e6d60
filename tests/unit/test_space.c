/* SPDX-License-Identifier: MIT */
/* What <allot/space.h> promises of arguments, results, figures and failures. */
#include <allot/space.h>
#include <string.h>

#include "space/space.h"
#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)

enum { STRATEGIES = 6 };

static allot_space *make(allot_space_strategy strategy, uint64_t capacity)
{
    const allot_space_options options = {.struct_size = sizeof options, .strategy = strategy};
    allot_space *space = NULL;
    CHECK_OK(allot_space_create(capacity, &options, &space));
    return space;
}

static uint32_t alloc(allot_space *space, uint64_t size)
{
    allot_range range = {.id = ALLOT_NONE};
    CHECK_OK(allot_space_alloc(space, size, 0, 0, &range));
    return range.id;
}

static void strategies_have_spellings(void)
{
    for (int i = 0; i < STRATEGIES; i++) {
        allot_space_strategy parsed = ALLOT_SPACE_STRATEGY_FIRST_FIT;
        CHECK_OK(allot_space_strategy_parse(allot_space_strategy_name((allot_space_strategy)i),
                                            &parsed));
        CHECK_EQ(parsed, i);
    }
    allot_space_strategy parsed = ALLOT_SPACE_STRATEGY_TLSF;
    CHECK_EQ(allot_space_strategy_parse("worst-fit", &parsed), ALLOT_STATUS_NOT_FOUND);
    CHECK_CONTAINS(allot_error_detail(), "first-fit");
    CHECK_EQ(parsed, ALLOT_SPACE_STRATEGY_TLSF);
    CHECK_STR(allot_space_strategy_name((allot_space_strategy)STRATEGIES), "unknown");
}

static void wrong_options_are_refused(void)
{
    allot_space *space = NULL;
    allot_space_options options = {.struct_size = sizeof options, .granule = 3};
    CHECK_EQ(allot_space_create(MIB, &options, &space), ALLOT_STATUS_INVALID);
    options =
        (allot_space_options){.struct_size = sizeof options, .strategy = (allot_space_strategy)99};
    CHECK_EQ(allot_space_create(MIB, &options, &space), ALLOT_STATUS_INVALID);
    options = (allot_space_options){.struct_size = sizeof options,
                                    .strategy = ALLOT_SPACE_STRATEGY_TIERED,
                                    .tier_sizes = {4096, 4096}};
    CHECK_EQ(allot_space_create(MIB, &options, &space), ALLOT_STATUS_INVALID);
    options = (allot_space_options){0};
    CHECK_EQ(allot_space_create(MIB, &options, &space), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_space_create((UINT64_C(1) << 63) + 1, NULL, &space), ALLOT_STATUS_INVALID);
    CHECK(space == NULL);
    allot_space_destroy(NULL);
}

static void wrong_requests_are_refused(void)
{
    for (int i = 0; i < STRATEGIES; i++) {
        allot_space *const space = make((allot_space_strategy)i, MIB);
        allot_range range = {.id = 5};
        CHECK_EQ(allot_space_alloc(space, 0, 0, 0, &range), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_space_alloc(space, 1, 3, 0, &range), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_space_alloc(space, UINT64_MAX, 0, 0, &range), ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_EQ(allot_space_alloc(space, (UINT64_C(1) << 63) + 1, 0, 0, &range),
                 ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_CONTAINS(allot_error_detail(), "9223372036854775809 bytes aligned to 256");
        CHECK_EQ(range.id, 5);
        const uint32_t id = alloc(space, 1);
        CHECK_EQ(allot_space_free(space, id + 1), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_space_free(space, ALLOT_NONE), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_space_resize(space, id, 0), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_space_resize(space, id, UINT64_MAX), ALLOT_STATUS_FRAGMENTED);
        CHECK_EQ(allot_space_get(space, ALLOT_NONE, &range), ALLOT_STATUS_INVALID);
        CHECK_OK(allot_space_get(space, id, &range));
        CHECK_EQ(range.size, 256);
        CHECK_OK(allot_space_check(space));
        allot_space_destroy(space);
    }
}

static void an_alignment_above_the_size_is_kept(void)
{
    for (int i = 0; i < STRATEGIES; i++) {
        allot_space *const space = make((allot_space_strategy)i, MIB);
        allot_range first;
        allot_range second;
        CHECK_OK(allot_space_alloc(space, 256, MIB / 2, 0, &first));
        CHECK_OK(allot_space_alloc(space, 256, MIB / 2, 0, &second));
        CHECK_EQ(first.offset + second.offset, MIB / 2);
        CHECK_EQ(allot_space_alloc(space, 256, MIB / 2, 0, &second), ALLOT_STATUS_FRAGMENTED);
        allot_space_destroy(space);
    }
}

static void a_refusal_says_fragmented_or_full(void)
{
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_FIRST_FIT, 4 * MIB);
    alloc(space, MIB);
    const uint32_t hole = alloc(space, MIB);
    alloc(space, MIB);
    CHECK_OK(allot_space_free(space, hole));
    allot_range range;
    CHECK_EQ(allot_space_alloc(space, 2 * MIB, 0, 0, &range), ALLOT_STATUS_FRAGMENTED);
    CHECK_CONTAINS(allot_error_detail(),
                   "2097152 of 4194304 are free, the largest range has 1048576");
    CHECK_EQ(allot_space_alloc(space, 3 * MIB, 0, 0, &range), ALLOT_STATUS_DEVICE_MEMORY);
    allot_space_destroy(space);
}

static void figures_are_those_of_the_ranges(void)
{
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_FIRST_FIT, 16 * MIB);
    const uint32_t low = alloc(space, 4 * MIB);
    alloc(space, 1000);
    const uint32_t high = alloc(space, 2 * MIB);
    CHECK_OK(allot_space_free(space, high));
    CHECK_OK(allot_space_free(space, low));
    allot_space_stats stats;
    allot_space_get_stats(space, &stats);
    CHECK_EQ(stats.size_used, 1024);
    CHECK_EQ(stats.size_used_peak, 6 * MIB + 1024);
    CHECK_EQ(stats.offset_high, 4 * MIB + 1024);
    CHECK_EQ(stats.offset_high_peak, 6 * MIB + 1024);
    CHECK_EQ(stats.used_count, 1);
    CHECK_EQ(stats.free_count, 2);
    CHECK_EQ(stats.alloc_count, 3);
    CHECK_EQ(stats.size_free_largest, 12 * MIB - 1024);
    CHECK_EQ(stats.used_histogram[10], 1);
    CHECK_EQ(stats.free_histogram[22], 1);
    CHECK_EQ(stats.free_histogram[23], 1);
    const double expected = 1 - (double)(12 * MIB - 1024) / (double)(16 * MIB - 1024);
    CHECK(stats.fragmentation == expected);
    allot_space_destroy(space);
}

static void tiers_keep_small_ranges_together(void)
{
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_TIERED, 64 * MIB);
    allot_range small;
    allot_range large;
    allot_range other;
    CHECK_OK(allot_space_alloc(space, 4096, 0, 0, &small));
    CHECK_OK(allot_space_alloc(space, 20 * MIB, 0, 0, &large));
    CHECK_OK(allot_space_alloc(space, 4096, 0, 0, &other));
    CHECK_EQ(other.offset, small.offset + 4096);
    CHECK_EQ(large.offset, MIB); /* after the chunk of 16 x 64 KiB */
    CHECK_OK(allot_space_free(space, small.id));
    CHECK_OK(allot_space_free(space, large.id));
    CHECK_OK(allot_space_free(space, other.id));
    CHECK_EQ(allot_space_largest_free(space), 64 * MIB);
    allot_space_destroy(space);
}

/* The smallest ranges go, all of them, and come back: what an inner node of a tree said of the rest
 * must not come before them. */
static void best_fit_finds_the_smallest_when_they_come_back(void)
{
    enum { COUNT = 200, SMALL = 4 * 256, LARGE = 5 * 256 };
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_BEST_FIT, 16 * MIB);
    uint32_t small[COUNT];
    uint32_t large[COUNT];
    for (int i = 0; i < COUNT; i++) {
        small[i] = alloc(space, SMALL);
        (void)alloc(space, 256);
        large[i] = alloc(space, LARGE);
        (void)alloc(space, 256);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(allot_space_free(space, large[i]));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            CHECK_OK(allot_space_free(space, small[round == 1 ? COUNT - 1 - i : i]));
            CHECK_OK(allot_space_check(space));
        }
        for (int i = 0; i < COUNT; i++) {
            allot_range range = {.id = ALLOT_NONE};
            CHECK_OK(allot_space_alloc(space, SMALL, 0, 0, &range));
            CHECK_EQ(range.offset, (uint64_t)i * (SMALL + LARGE + 512));
            CHECK_OK(allot_space_check(space));
            small[i] = range.id;
        }
    }
    allot_space_destroy(space);
}

/* Many of a kind that goes at once, and few of another that stays. */
static void a_tier_takes_no_chunk_that_is_of_no_use(void)
{
    const allot_space_options options = {.struct_size = sizeof options,
                                         .strategy = ALLOT_SPACE_STRATEGY_TIERED,
                                         .tier_sizes = {4096},
                                         .chunk_factor = 1};
    allot_space *space = NULL;
    allot_range range;
    CHECK_OK(allot_space_create(MIB, &options, &space));
    (void)alloc(space, 8192 + 256); /* what follows does not begin at 4096 */
    CHECK_OK(allot_space_alloc(space, 4096, 4096, 0, &range));
    CHECK_EQ(range.offset % 4096, 0);
    CHECK_OK(allot_space_check(space));
    allot_space_destroy(space);
}

/** Blocks of 128 KiB that go at once, and some of 512 bytes that stay; the last of the former. */
static allot_range mix_lifetimes(allot_space *space)
{
    enum { ROUNDS = 4000 };
    uint32_t kept[ROUNDS / 4];
    uint32_t kept_count = 0;
    allot_range brief;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(allot_space_alloc(space, 128 << 10, 0, 1, &brief));
        if (i % 8 == 0) {
            kept[kept_count++] = alloc(space, 512);
        }
        CHECK_OK(allot_space_free(space, brief.id));
        if (kept_count == 300) {
            kept_count = 0;
            for (int j = 0; j < 300; j++) {
                CHECK_OK(allot_space_free(space, kept[j]));
            }
        }
    }
    CHECK_OK(allot_space_check(space));
    return brief;
}

static void adaptive_learns_what_goes_soon(void)
{
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_ADAPTIVE, 64 * MIB);
    CHECK_EQ(mix_lifetimes(space).offset, 64 * MIB - (128 << 10));
    allot_space_destroy(space);
}

static void adaptive_has_one_end_in_a_space_that_grows(void)
{
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_ADAPTIVE, MIB);
    CHECK_OK(allot_space_free(space, alloc(space, 512)));
    CHECK_OK(allot_space_set_capacity(space, 64 * MIB));
    CHECK(mix_lifetimes(space).offset < MIB);
    allot_space_destroy(space);
}

/** Where a request of 512 bytes goes: to a hole of 1024 at 0, or one of just its size behind. */
static uint64_t choose_hole(allot_space *space)
{
    allot_range again;
    CHECK_OK(allot_space_alloc(space, 512, 0, 0, &again));
    CHECK_OK(allot_space_free(space, again.id));
    return again.offset;
}

static void adaptive_takes_tight_holes_for_small_requests_only(void)
{
    enum { ROUNDS = 5000 };
    allot_space *const space = make(ALLOT_SPACE_STRATEGY_ADAPTIVE, 64 * MIB);
    const uint32_t wide = alloc(space, 1024);
    (void)alloc(space, 512);
    const uint32_t tight = alloc(space, 512);
    (void)alloc(space, 512);
    CHECK_OK(allot_space_free(space, wide));
    CHECK_OK(allot_space_free(space, tight));
    CHECK_EQ(choose_hole(space), 0);
    for (int i = 0; i < ROUNDS; i++) {
        (void)choose_hole(space);
    }
    CHECK_EQ(choose_hole(space), 1536);
    CHECK_OK(allot_space_check(space));
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(allot_space_free(space, alloc(space, MIB)));
    }
    CHECK_EQ(choose_hole(space), 0);
    CHECK_OK(allot_space_check(space));
    allot_space_destroy(space);
}

/** Slide a range as far down as it goes, or half of that. */
static void slide_down(allot_space *space, uint32_t id, bool is_half)
{
    const uint32_t before = space->ranges[id].prev;
    const uint64_t size = range_size(space, id);
    const uint64_t offset = range_offset(space, id);
    const uint64_t used = space->size_used;
    if (!space_is_free(space, before)) {
        CHECK_EQ(alloti_space_reserve_slide(space, id, offset == 0 ? 0 : offset - 256),
                 ALLOT_STATUS_FRAGMENTED);
        return;
    }
    const uint64_t room = range_size(space, before);
    const uint64_t to = offset - (is_half && room >= 512 ? room / 512 * 256 : room);
    CHECK_OK(alloti_space_reserve_slide(space, id, to));
    alloti_space_slide(space, id, to);
    CHECK_EQ(range_offset(space, id), to);
    CHECK_EQ(range_size(space, id), size);
    CHECK_EQ(space->size_used, used);
    CHECK_OK(allot_space_check(space));
}

static void used_ranges_slide_into_what_is_free_before_them(void)
{
    enum { RANGES = 200 };
    uint64_t random = check_seed();
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        allot_space *const space = make((allot_space_strategy)strategy, MIB);
        uint32_t ids[RANGES];
        for (int i = 0; i < RANGES; i++) {
            ids[i] = alloc(space, 256 * check_random_range(&random, 1, 8));
        }
        if (!space_can_take(space)) {
            CHECK_EQ(alloti_space_reserve_slide(space, ids[1], 0), ALLOT_STATUS_UNSUPPORTED);
            allot_space_destroy(space);
            continue;
        }
        for (int i = 0; i < 4 * RANGES; i++) {
            uint32_t *const id = &ids[check_random_range(&random, 0, RANGES - 1)];
            if (i % 2 == 0) {
                CHECK_OK(allot_space_free(space, *id));
                *id = alloc(space, 256 * check_random_range(&random, 1, 8));
            }
            slide_down(space, *id, i % 3 == 0);
        }
        allot_space_destroy(space);
    }
}

static void free_memory_is_found_from_a_range_that_is_near(void)
{
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        allot_space *const space = make((allot_space_strategy)strategy, MIB);
        uint32_t ids[5];
        for (int i = 0; i < 5; i++) {
            ids[i] = alloc(space, 4096);
        }
        const uint64_t offset = range_offset(space, ids[2]);
        CHECK_OK(allot_space_free(space, ids[2]));
        CHECK_EQ(alloti_space_find_free(space, ALLOT_NONE, offset + 4095), ids[2]);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(alloti_space_find_free(space, ids[i], offset + 4095), ids[2]);
            CHECK_EQ(alloti_space_find_free(space, ids[i], range_offset(space, ids[1])),
                     ALLOT_NONE);
        }
        allot_space_destroy(space);
    }
}

/* Small ranges, free and used in turns, in a space where a range far above them is free too. */
static void small_ranges_keep_their_order_in_a_huge_space(void)
{
    enum { COUNT = 300 };
    for (int i = 0; i < STRATEGIES; i++) {
        const allot_space_options options = {.struct_size = sizeof options,
                                             .strategy = (allot_space_strategy)i};
        allot_space *space = NULL;
        REQUIRE_OK(allot_space_create(UINT64_C(1) << 50, &options, &space));
        allot_range ranges[COUNT];
        for (int j = 0; j < COUNT; j++) {
            REQUIRE_OK(allot_space_alloc(space, 256, 0, 0, &ranges[j]));
        }
        allot_range far;
        REQUIRE_OK(allot_space_alloc(space, UINT64_C(1) << 48, 0, 0, &far));
        for (int j = 0; j < COUNT; j += 2) {
            CHECK_OK(allot_space_free(space, ranges[(j * 7) % COUNT].id));
            CHECK_OK(allot_space_check(space));
        }
        for (int j = 0; j < COUNT; j += 2) {
            allot_range again;
            REQUIRE_OK(allot_space_alloc(space, 256, 0, 0, &again));
            CHECK_OK(allot_space_check(space));
            if (options.strategy == ALLOT_SPACE_STRATEGY_FIRST_FIT) {
                CHECK_EQ(again.offset, ranges[j].offset);
            }
        }
        allot_space_destroy(space);
    }
}

static allot_status fill(void *context)
{
    enum { COUNT = 300 };
    const allot_space_options options = {.struct_size = sizeof options,
                                         .strategy = *(allot_space_strategy *)context};
    allot_space *space = NULL;
    allot_status status = allot_space_create(64 * MIB, &options, &space);
    uint32_t ids[COUNT];
    uint32_t count = 0;
    for (; status == ALLOT_STATUS_OK && count < COUNT; count++) {
        allot_range range = {.id = ALLOT_NONE};
        status = allot_space_alloc(space, 4096, 0, 0, &range);
        ids[count] = range.id;
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i += 2) {
        status = allot_space_free(space, ids[i]);
    }
    if (status == ALLOT_STATUS_OK) { /* more than 2^32 granules */
        status = allot_space_set_capacity(space, UINT64_C(1) << 50);
    }
    if (space != NULL) { /* as it was before the call that failed */
        CHECK_EQ(allot_space_check(space), ALLOT_STATUS_OK);
        allot_space_stats stats;
        allot_space_get_stats(space, &stats);
        CHECK(stats.size_used == stats.used_count * 4096);
    }
    allot_space_destroy(space);
    return status;
}

static void without_host_memory_nothing_changes(void)
{
    for (int i = 0; i < STRATEGIES; i++) {
        allot_space_strategy strategy = (allot_space_strategy)i;
        CHECK(alloc_fault_each(fill, &strategy) > 2);
    }
}

static const check_test TESTS[] = {
    {"strategies_have_spellings", strategies_have_spellings},
    {"wrong_options_are_refused", wrong_options_are_refused},
    {"wrong_requests_are_refused", wrong_requests_are_refused},
    {"an_alignment_above_the_size_is_kept", an_alignment_above_the_size_is_kept},
    {"a_refusal_says_fragmented_or_full", a_refusal_says_fragmented_or_full},
    {"figures_are_those_of_the_ranges", figures_are_those_of_the_ranges},
    {"tiers_keep_small_ranges_together", tiers_keep_small_ranges_together},
    {"a_tier_takes_no_chunk_that_is_of_no_use", a_tier_takes_no_chunk_that_is_of_no_use},
    {"best_fit_finds_the_smallest_when_they_come_back",
     best_fit_finds_the_smallest_when_they_come_back},
    {"adaptive_learns_what_goes_soon", adaptive_learns_what_goes_soon},
    {"adaptive_has_one_end_in_a_space_that_grows", adaptive_has_one_end_in_a_space_that_grows},
    {"adaptive_takes_tight_holes_for_small_requests_only",
     adaptive_takes_tight_holes_for_small_requests_only},
    {"used_ranges_slide_into_what_is_free_before_them",
     used_ranges_slide_into_what_is_free_before_them},
    {"free_memory_is_found_from_a_range_that_is_near",
     free_memory_is_found_from_a_range_that_is_near},
    {"small_ranges_keep_their_order_in_a_huge_space",
     small_ranges_keep_their_order_in_a_huge_space},
    {"without_host_memory_nothing_changes", without_host_memory_nothing_changes},
};

CHECK_MAIN(TESTS)
