/* SPDX-License-Identifier: MIT */
/* "space:..." in both modes: small scenes whose outcome follows by hand. */
#include "replay/comparison.h"
#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define KIB(n) ((uint64_t)(n) << 10)

/** A model under test and the status of its last request. */
typedef struct scene {
    alloti_model *model;
    allot_status status;
} scene;

static scene open_scene(const char *argument, uint64_t limit)
{
    const alloti_model_params params = {.argument = argument,
                                        .limit = limit == 0 ? UINT64_MAX : limit};
    scene s = {.model = NULL};
    s.status = alloti_model_space.create(&params, &s.model);
    return s;
}

static void close_scene(scene *s)
{
    alloti_model_destroy(s->model);
}

/** Allocate on a stream; UINT64_MAX, with the status kept, if it fails. */
static uint64_t take_on(scene *s, uint64_t size, uint64_t stream)
{
    uint64_t block = UINT64_MAX;
    s->status = s->model->ops->alloc(s->model, size, stream, ALLOT_NONE, &block);
    return block;
}

static uint64_t take(scene *s, uint64_t size)
{
    return take_on(s, size, 0);
}

static void give(scene *s, uint64_t block)
{
    CHECK_OK(s->model->ops->free(s->model, block, false));
}

static uint64_t address_of(const scene *s, uint64_t block)
{
    return ((const alloti_comparison *)s->model)->handed[block].span.address;
}

static uint64_t reserved(const scene *s)
{
    return s->model->stats.reserved;
}

/* ---- virtual memory ---- */

static void vm_maps_the_granules_that_blocks_touch(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), 0);
    take(&s, 1);
    CHECK_EQ(reserved(&s), MIB(2));
    CHECK_EQ(s.model->stats.allocated, 512);
    take(&s, MIB(3)); /* up to 3 MiB and 512 bytes */
    CHECK_EQ(reserved(&s), MIB(4));
    CHECK_EQ(s.model->stats.range_map_count, 2);
    CHECK_EQ(s.model->stats.page_map_count, 2);
    close_scene(&s);
}

static void vm_keeps_what_is_mapped_until_the_cache_is_emptied(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(3));
    take(&s, MIB(1));
    const uint64_t c = take(&s, MIB(4));
    give(&s, a);
    give(&s, c);
    CHECK_EQ(reserved(&s), MIB(8));
    /* The second block lies in [3, 4): the granule from 2 on stays. */
    CHECK_OK(s.model->ops->empty_cache(s.model));
    CHECK_EQ(reserved(&s), MIB(2));
    CHECK_EQ(s.model->stats.reserved_peak, MIB(8));
    CHECK_EQ(s.model->stats.page_unmap_count, 3);
    CHECK_EQ(s.model->stats.retry_count, 0);
    take(&s, MIB(3)); /* [0, 3): one granule has to be mapped */
    CHECK_EQ(reserved(&s), MIB(4));
    close_scene(&s);
}

static void vm_unmaps_the_highest_and_no_more_than_it_is_short_of(void)
{
    scene s = open_scene("first-fit", MIB(10));
    REQUIRE_OK(s.status);
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(&s, MIB(2));
    }
    give(&s, blocks[0]);
    give(&s, blocks[2]);
    take(&s, MIB(3)); /* at 8: two granules, and there is room for one */
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(10));
    CHECK_EQ(s.model->stats.page_unmap_count, 1);
    CHECK_EQ(s.model->stats.retry_count, 1);
    take(&s, MIB(2)); /* the lowest hole is still mapped */
    CHECK_OK(s.status);
    CHECK_EQ(s.model->stats.retry_count, 1);
    /* No memory is left for the hole in the middle, but there is some at the end. */
    const uint64_t last = take(&s, MIB(1));
    CHECK_OK(s.status);
    CHECK_EQ(address_of(&s, last), ALLOTI_UPSTREAM_START + MIB(11));
    take(&s, 1);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    close_scene(&s);
}

static void vm_fails_as_fragmented_or_exhausted(void)
{
    scene s = open_scene("first-fit", MIB(6));
    REQUIRE_OK(s.status);
    uint64_t blocks[6];
    for (int i = 0; i < 6; i++) {
        blocks[i] = take(&s, MIB(1));
    }
    take(&s, 1);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    give(&s, blocks[0]);
    give(&s, blocks[2]);
    give(&s, blocks[4]);
    take(&s, MIB(2)); /* no granule is free as a whole */
    CHECK_EQ(s.status, ALLOT_STATUS_FRAGMENTED);
    CHECK_CONTAINS(allot_error_detail(), "free 3.0 MiB of which the largest range is 1.0 MiB");
    CHECK_EQ(s.model->stats.allocated, MIB(3));
    const uint64_t again = take(&s, MIB(1));
    CHECK_OK(s.status);
    CHECK_EQ(address_of(&s, again), ALLOTI_UPSTREAM_START);
    close_scene(&s);
}

static void vm_memory_moves_where_addresses_cannot(void)
{
    /* Four blocks of which every other goes: no hole of 4 MiB, but memory for one. */
    scene s = open_scene("first-fit", MIB(8));
    REQUIRE_OK(s.status);
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(&s, MIB(2));
    }
    give(&s, blocks[0]);
    give(&s, blocks[2]);
    take(&s, MIB(4));
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(8));
    close_scene(&s);
}

/* ---- segments ---- */

static void segments_have_the_growth_size_or_that_of_the_request(void)
{
    scene s = open_scene("first-fit:mode=segments", 0);
    REQUIRE_OK(s.status);
    take(&s, 1);
    CHECK_EQ(reserved(&s), MIB(64));
    take(&s, MIB(60));
    CHECK_EQ(reserved(&s), MIB(64));
    take(&s, MIB(60));
    CHECK_EQ(reserved(&s), MIB(128));
    take(&s, MIB(100) + 1);
    CHECK_EQ(reserved(&s), MIB(128 + 102));
    CHECK_EQ(s.model->stats.segment_alloc_count, 3);
    close_scene(&s);
    s = open_scene("first-fit:mode=segments,segment=4MiB", 0);
    REQUIRE_OK(s.status);
    take(&s, 1);
    CHECK_EQ(reserved(&s), MIB(4));
    close_scene(&s);
}

static void segments_are_filled_from_the_first(void)
{
    scene s = open_scene("first-fit:mode=segments,segment=4MiB", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(4));
    take(&s, MIB(1));
    const uint64_t where = address_of(&s, a);
    give(&s, a);
    CHECK_EQ(address_of(&s, take(&s, MIB(3))), where);
    CHECK_EQ(address_of(&s, take(&s, MIB(1))), where + MIB(3));
    CHECK_EQ(reserved(&s), MIB(8));
    close_scene(&s);
}

static void segments_shrink_to_what_the_driver_has(void)
{
    scene s = open_scene("first-fit:mode=segments", MIB(72));
    REQUIRE_OK(s.status);
    take(&s, MIB(60));
    take(&s, MIB(7));
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(72));
    CHECK_EQ(s.model->stats.retry_count, 0);
    close_scene(&s);
}

static void empty_segments_go_back_the_newest_first(void)
{
    scene s = open_scene("first-fit:mode=segments", MIB(192));
    REQUIRE_OK(s.status);
    uint64_t blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = take(&s, MIB(64));
    }
    const uint64_t where = address_of(&s, blocks[0]);
    for (int i = 0; i < 3; i++) {
        give(&s, blocks[i]);
    }
    take(&s, MIB(65)); /* 66 in place of two of 64 */
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(64 + 66));
    CHECK_EQ(s.model->stats.segment_free_count, 2);
    CHECK_EQ(s.model->stats.retry_count, 1);
    CHECK_EQ(address_of(&s, take(&s, MIB(64))), where);
    CHECK_OK(s.model->ops->empty_cache(s.model)); /* nothing is empty */
    CHECK_EQ(reserved(&s), MIB(64 + 66));
    close_scene(&s);
}

static void segments_in_use_do_not_go_back(void)
{
    scene s = open_scene("first-fit:mode=segments", MIB(128));
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(63));
    take(&s, MIB(1));
    const uint64_t b = take(&s, MIB(63));
    take(&s, MIB(1));
    give(&s, a);
    give(&s, b);
    take(&s, MIB(64));
    CHECK_EQ(s.status, ALLOT_STATUS_FRAGMENTED);
    take(&s, MIB(127));
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(reserved(&s), MIB(128));
    CHECK_OK(s.model->ops->empty_cache(s.model));
    CHECK_EQ(reserved(&s), MIB(128));
    close_scene(&s);
}

/* ---- strategies and streams ---- */

static void buddies_take_powers_of_two(void)
{
    scene s = open_scene("buddy", 0);
    REQUIRE_OK(s.status);
    take(&s, MIB(3));
    CHECK_EQ(s.model->stats.allocated, MIB(4));
    CHECK_EQ(s.model->stats.requested, MIB(3));
    CHECK_EQ(reserved(&s), MIB(4));
    close_scene(&s);
    s = open_scene("buddy:mode=segments", 0);
    REQUIRE_OK(s.status);
    take(&s, MIB(65));
    CHECK_EQ(reserved(&s), MIB(128));
    close_scene(&s);
}

/** Two holes, the lower one larger than needed: who goes where. */
static void strategies_differ_as_they_should(void)
{
    static const struct {
        const char *argument;
        uint64_t offset;
    } cases[] = {{"first-fit", 0},
                 {"best-fit", MIB(5)},
                 {"first-fit:mode=segments", 0},
                 {"best-fit:mode=segments", MIB(5)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s = open_scene(cases[i].argument, 0);
        REQUIRE_OK(s.status);
        const uint64_t a = take(&s, MIB(4));
        take(&s, MIB(1));
        const uint64_t b = take(&s, MIB(2));
        take(&s, MIB(1));
        give(&s, a);
        give(&s, b);
        CHECK_EQ(address_of(&s, take(&s, MIB(2))), ALLOTI_UPSTREAM_START + cases[i].offset);
        close_scene(&s);
    }
}

static void streams_share_what_is_free_or_are_apart(void)
{
    static const struct {
        const char *argument;
        uint64_t reserved;
    } cases[] = {{"first-fit", MIB(8)},
                 {"first-fit:streams=apart", MIB(16)},
                 {"first-fit:mode=segments,segment=8MiB", MIB(8)},
                 {"first-fit:mode=segments,segment=8MiB,streams=apart", MIB(16)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s = open_scene(cases[i].argument, 0);
        REQUIRE_OK(s.status);
        const uint64_t a = take_on(&s, MIB(8), 1);
        const uint64_t where = address_of(&s, a);
        give(&s, a);
        const uint64_t b = take_on(&s, MIB(8), 1); /* its own stream has it at once */
        CHECK_EQ(address_of(&s, b), where);
        give(&s, b);
        take_on(&s, MIB(8), 2);
        CHECK_EQ(reserved(&s), cases[i].reserved);
        close_scene(&s);
    }
}

static void memory_of_streams_apart_changes_hands_when_it_is_short(void)
{
    static const char *const arguments[] = {"first-fit:streams=apart",
                                            "first-fit:mode=segments,segment=8MiB,streams=apart"};
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        scene s = open_scene(arguments[i], MIB(8));
        REQUIRE_OK(s.status);
        give(&s, take_on(&s, MIB(8), 1));
        take_on(&s, MIB(8), 2);
        CHECK_OK(s.status);
        CHECK_EQ(reserved(&s), MIB(8));
        CHECK_EQ(s.model->stats.retry_count, 1);
        take_on(&s, 1, 1);
        CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
        close_scene(&s);
    }
}

static void blocks_in_use_elsewhere_wait_for_their_completion(void)
{
    static const char *const arguments[] = {"first-fit", "first-fit:mode=segments,segment=2MiB"};
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        scene s = open_scene(arguments[i], MIB(4));
        REQUIRE_OK(s.status);
        const uint64_t a = take_on(&s, MIB(2), 1);
        const uint64_t where = address_of(&s, a);
        CHECK_OK(s.model->ops->free(s.model, a, true));
        CHECK_EQ(s.model->stats.allocated, 0);
        const uint64_t b = take_on(&s, MIB(2), 1); /* its own stream too */
        CHECK_EQ(address_of(&s, b), where + MIB(2));
        take_on(&s, MIB(2), 2);
        CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_OK(s.model->ops->complete(s.model, a));
        CHECK_EQ(address_of(&s, take_on(&s, MIB(2), 2)), where);
        CHECK_EQ(reserved(&s), MIB(4));
        close_scene(&s);
    }
}

static void sizes_beyond_all_addresses_are_out_of_memory(void)
{
    static const char *const arguments[] = {"first-fit", "buddy", "tlsf", "buddy:mode=segments",
                                            "tiered:mode=segments"};
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        scene s = open_scene(arguments[i], 0);
        REQUIRE_OK(s.status);
        take(&s, UINT64_MAX);
        CHECK(s.status == ALLOT_STATUS_DEVICE_MEMORY || s.status == ALLOT_STATUS_FRAGMENTED);
        take(&s, KIB(1));
        CHECK_OK(s.status);
        close_scene(&s);
    }
}

/* ---- strings ---- */

static void models_have_a_canonical_name(void)
{
    static const struct {
        const char *argument;
        const char *name;
        const char *text;
    } cases[] = {
        {"", "space:first-fit", "mode=vm"},
        {"tlsf", "space:tlsf", "mode=vm"},
        {"buddy:streams=apart", "space:buddy", "mode=vm,streams=apart"},
        {"tiered:mode=segments", "space:tiered", "mode=segments,segment=64MiB"},
        {"adaptive:segment=1GiB,mode=segments", "space:adaptive", "mode=segments,segment=1024MiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s = open_scene(cases[i].argument, 0);
        REQUIRE_OK(s.status);
        char text[64];
        s.model->ops->describe(s.model, text, sizeof text);
        CHECK_STR(s.model->ops->info.name, cases[i].name);
        CHECK_STR(text, cases[i].text);
        CHECK(!s.model->ops->info.is_exact);
        close_scene(&s);
    }
}

static void wrong_arguments_are_named(void)
{
    static const struct {
        const char *argument;
        const char *says;
    } cases[] = {
        {"worst-fit", "tiered or adaptive, not \"worst-fit\""},
        {"first", "\"first\""},
        {"first-fit:mode=pages",
         "first-fit: character 1: mode: \"pages\": want one of vm, segments"},
        {"tlsf:granule=4MiB", "\"granule\" is no parameter (mode, segment, streams)"},
        {"tlsf:segment=64MiB", "needs mode=segments"},
        {"tlsf:mode=segments,segment=1MiB", "multiple of 2 MiB"},
        {"tlsf:mode=segments,segment=2TiB", "up to 1 TiB"},
        {"tlsf:streams=all", "one of shared, apart"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s = open_scene(cases[i].argument, 0);
        CHECK_EQ(s.status, ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), cases[i].says);
    }
}

/** Under pressure, so that memory is given back and taken again. */
static allot_status short_program(void *context)
{
    enum { BLOCKS = 24 };
    const alloti_model_params params = {.limit = MIB(24)};
    alloti_model *model = NULL;
    allot_status status = alloti_model_create(context, &params, &model);
    uint64_t blocks[BLOCKS];
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < 4 * (uint64_t)BLOCKS; i++) {
        const uint64_t slot = i * 7 % BLOCKS;
        if (i >= BLOCKS && blocks[slot] != UINT64_MAX) {
            status = model->ops->free(model, blocks[slot], false);
        }
        if (status == ALLOT_STATUS_OK) {
            blocks[slot] = UINT64_MAX;
            status =
                model->ops->alloc(model, KIB(512) << (i * 5 % 4), i % 2, ALLOT_NONE, &blocks[slot]);
        }
        const bool is_full =
            status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED;
        status = is_full ? ALLOT_STATUS_OK : status;
    }
    if (status == ALLOT_STATUS_OK) {
        status = model->ops->empty_cache(model);
    }
    alloti_model_destroy(model);
    return status;
}

static void every_failing_allocation_comes_back(void)
{
    static char specs[][56] = {"space:first-fit", "space:tiered:streams=apart",
                               "space:best-fit:mode=segments,segment=4MiB",
                               "space:buddy:mode=segments,segment=4MiB,streams=apart"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        CHECK(alloc_fault_each(short_program, specs[i]) > 8);
    }
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(vm_maps_the_granules_that_blocks_touch),
    TEST(vm_keeps_what_is_mapped_until_the_cache_is_emptied),
    TEST(vm_unmaps_the_highest_and_no_more_than_it_is_short_of),
    TEST(vm_fails_as_fragmented_or_exhausted),
    TEST(vm_memory_moves_where_addresses_cannot),
    TEST(segments_have_the_growth_size_or_that_of_the_request),
    TEST(segments_are_filled_from_the_first),
    TEST(segments_shrink_to_what_the_driver_has),
    TEST(empty_segments_go_back_the_newest_first),
    TEST(segments_in_use_do_not_go_back),
    TEST(buddies_take_powers_of_two),
    TEST(strategies_differ_as_they_should),
    TEST(streams_share_what_is_free_or_are_apart),
    TEST(memory_of_streams_apart_changes_hands_when_it_is_short),
    TEST(blocks_in_use_elsewhere_wait_for_their_completion),
    TEST(sizes_beyond_all_addresses_are_out_of_memory),
    TEST(models_have_a_canonical_name),
    TEST(wrong_arguments_are_named),
    TEST(every_failing_allocation_comes_back),
};
CHECK_MAIN(TESTS)
