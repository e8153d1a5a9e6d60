/* SPDX-License-Identifier: MIT */
/* Small scenes whose outcome follows from each allocator's rules by hand. */
#include "replay/comparison.h"
#include "replay/model_rmm.h"
#include "support/alloc_fault.h"
#include "support/check.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

/** A model under test and the number of its last failure. */
typedef struct scene {
    alloti_model *model;
    allot_status status;
} scene;

static scene open_scene(const alloti_model_ops *ops, const char *argument, uint64_t limit)
{
    const alloti_model_params params = {.argument = argument,
                                        .limit = limit == 0 ? UINT64_MAX : limit};
    scene s = {.model = NULL};
    s.status = ops->create(&params, &s.model);
    return s;
}

static void close_scene(scene *s)
{
    if (s->model != NULL) {
        s->model->ops->destroy(s->model);
    }
}

/** Allocate on a stream; UINT64_MAX, with the status kept, if it fails. */
static uint64_t take(scene *s, uint64_t size, uint64_t stream)
{
    uint64_t block = UINT64_MAX;
    s->status = s->model->ops->alloc(s->model, size, stream, ALLOT_NONE, &block);
    return block;
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

static void async_reserves_multiples_of_32_mib(void)
{
    scene s = open_scene(&alloti_model_async, "", 0);
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), 0);
    take(&s, 1, 0);
    CHECK_EQ(reserved(&s), MIB(32));
    CHECK_EQ(s.model->stats.allocated, 512);
    take(&s, MIB(31), 0);
    CHECK_EQ(reserved(&s), MIB(32));
    take(&s, MIB(33), 0);
    CHECK_EQ(reserved(&s), MIB(96));
    close_scene(&s);
}

static void async_reuses_on_another_stream_and_joins_ranges(void)
{
    scene s = open_scene(&alloti_model_async, "", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(16), 1);
    const uint64_t b = take(&s, MIB(16), 2);
    const uint64_t where = address_of(&s, a);
    CHECK_EQ(reserved(&s), MIB(32));
    give(&s, a);
    give(&s, b);
    const uint64_t c = take(&s, MIB(32), 3);
    CHECK_EQ(address_of(&s, c), where);
    CHECK_EQ(reserved(&s), MIB(32));
    close_scene(&s);
}

static void async_gives_back_above_its_threshold(void)
{
    scene s = open_scene(&alloti_model_async, "release=32MiB", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(32), 0);
    const uint64_t b = take(&s, MIB(32), 0);
    CHECK_EQ(reserved(&s), MIB(64));
    give(&s, a);
    CHECK_EQ(reserved(&s), MIB(32));
    give(&s, b);
    CHECK_EQ(reserved(&s), MIB(32));
    close_scene(&s);
}

static void async_maps_free_granules_anew_at_the_limit(void)
{
    scene s = open_scene(&alloti_model_async, "", MIB(128));
    REQUIRE_OK(s.status);
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(&s, MIB(32), 0);
    }
    give(&s, blocks[0]);
    give(&s, blocks[2]);
    take(&s, MIB(64), 0);
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(128));
    CHECK_EQ(s.model->stats.retry_count, 1);
    take(&s, 1, 0);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    close_scene(&s);
}

static void bfc_doubles_its_regions(void)
{
    scene s = open_scene(&alloti_model_bfc, "", 0);
    REQUIRE_OK(s.status);
    take(&s, 1, 0);
    CHECK_EQ(reserved(&s), MIB(2));
    CHECK_EQ(s.model->stats.allocated, 256);
    take(&s, MIB(2), 0); /* the first region is not whole any more: the next has 4 MiB */
    CHECK_EQ(reserved(&s), MIB(6));
    take(&s, MIB(9), 0); /* 8 MiB would not hold it */
    CHECK_EQ(reserved(&s), MIB(22));
    close_scene(&s);
}

static void bfc_splits_only_if_half_would_be_left(void)
{
    scene s = open_scene(&alloti_model_bfc, "", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(2), 0);
    CHECK_EQ(s.model->stats.allocated, MIB(2));
    give(&s, a);
    const uint64_t b = take(&s, MIB(1) + 256, 0); /* less than half is left: all of it */
    CHECK_EQ(s.model->stats.allocated, MIB(2));
    give(&s, b);
    take(&s, MIB(1), 0); /* exactly half is left: split */
    CHECK_EQ(s.model->stats.allocated, MIB(1));
    CHECK_EQ(reserved(&s), MIB(2));
    close_scene(&s);
}

static void bfc_preallocates_a_share_once(void)
{
    scene s = open_scene(&alloti_model_bfc, "preallocate=0.75", MIB(64));
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(48));
    const uint64_t a = take(&s, MIB(48), 0);
    CHECK_OK(s.status);
    take(&s, 1, 0);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    give(&s, a);
    CHECK_EQ(s.model->stats.active, 0);
    close_scene(&s);
    s = open_scene(&alloti_model_bfc, "preallocate=0.75", 0);
    CHECK_EQ(s.status, ALLOT_STATUS_INVALID);
}

static void bfc_gives_free_regions_back_before_it_fails(void)
{
    scene s = open_scene(&alloti_model_bfc, "", MIB(8));
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(2), 0);
    give(&s, a);
    take(&s, MIB(7), 0);
    CHECK_OK(s.status);
    CHECK_EQ(s.model->stats.retry_count, 1);
    CHECK_EQ(s.model->stats.segment_free_count, 1);
    close_scene(&s);
}

static void rmm_pool_grows_by_what_it_holds(void)
{
    scene s = open_scene(&alloti_model_rmm_pool, "initial=4MiB", 0);
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(4));
    take(&s, MIB(4), 0);
    take(&s, 1, 0);
    CHECK_EQ(reserved(&s), MIB(8));
    take(&s, MIB(20), 0);
    CHECK_EQ(reserved(&s), MIB(28));
    close_scene(&s);
}

static void rmm_pool_halves_a_refused_growth(void)
{
    scene s = open_scene(&alloti_model_rmm_pool, "initial=8MiB", MIB(12));
    REQUIRE_OK(s.status);
    take(&s, MIB(8), 0);
    take(&s, MIB(3), 0); /* 8 is refused, 4 fits */
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(12));
    close_scene(&s);
}

static void rmm_pool_reclaims_below_a_maximum(void)
{
    scene s = open_scene(&alloti_model_rmm_pool, "initial=4MiB,maximum=8MiB", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(4), 0);
    give(&s, a);
    take(&s, MIB(6), 0);
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(6));
    CHECK_EQ(s.model->stats.segment_free_count, 1);
    close_scene(&s);
}

static void rmm_pool_takes_from_other_streams_before_it_grows(void)
{
    scene s = open_scene(&alloti_model_rmm_pool, "initial=4MiB", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(2), 1);
    const uint64_t b = take(&s, MIB(2), 2);
    give(&s, a);
    give(&s, b);
    take(&s, MIB(4), 3); /* only if both lists are merged */
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(4));
    close_scene(&s);
}

static void rmm_binning_hands_out_whole_blocks(void)
{
    scene s = open_scene(&alloti_model_rmm_binning, "min=1MiB,max=2MiB,blocks=4", 0);
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(12));
    take(&s, KIB(1), 0);
    CHECK_EQ(s.model->stats.allocated, MIB(1));
    take(&s, MIB(1) + 1, 0);
    CHECK_EQ(s.model->stats.allocated, MIB(3));
    for (int i = 0; i < 4; i++) {
        take(&s, MIB(1), 0); /* the fifth block of this size needs a chunk */
    }
    CHECK_EQ(reserved(&s), MIB(12 + 12)); /* the pool doubles */
    close_scene(&s);
}

static void rmm_binning_over_the_driver_gives_large_ones_back(void)
{
    scene s = open_scene(&alloti_model_rmm_binning, "min=1MiB,max=1MiB,blocks=1,upstream=cuda", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(5), 0);
    CHECK_EQ(reserved(&s), MIB(6));
    give(&s, a);
    CHECK_EQ(reserved(&s), MIB(1));
    close_scene(&s);
}

static void rmm_arena_takes_half_and_no_more(void)
{
    scene s = open_scene(&alloti_model_rmm_arena, "", MIB(64));
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(32));
    take(&s, MIB(32), 0);
    CHECK_OK(s.status);
    take(&s, 1, 0);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    close_scene(&s);
}

static void rmm_arena_keeps_superblocks_apart_until_it_must_not(void)
{
    scene s = open_scene(&alloti_model_rmm_arena, "size=4MiB", 0);
    REQUIRE_OK(s.status);
    uint64_t small[4];
    for (int i = 0; i < 4; i++) {
        small[i] = take(&s, KIB(512), (uint64_t)i); /* each stream takes over 1 MiB */
    }
    for (int i = 0; i < 4; i++) {
        give(&s, small[i]);
    }
    CHECK_EQ(s.model->stats.retry_count, 0);
    take(&s, MIB(4), 9); /* the streams' superblocks are in the way */
    CHECK_OK(s.status);
    CHECK_EQ(s.model->stats.retry_count, 1);
    close_scene(&s);
}

static void shared_blocks_wait_for_their_completion(void)
{
    scene s = open_scene(&alloti_model_async, "", MIB(32));
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(32), 0);
    CHECK_OK(s.model->ops->free(s.model, a, true));
    CHECK_EQ(s.model->stats.allocated, 0);
    CHECK_EQ(s.model->stats.active, MIB(32));
    take(&s, MIB(32), 0);
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_OK(s.model->ops->complete(s.model, a));
    CHECK_EQ(s.model->stats.active, 0);
    CHECK_EQ(s.model->ops->complete(s.model, a), ALLOT_STATUS_INVALID);
    CHECK_EQ(s.model->ops->free(s.model, a, false), ALLOT_STATUS_INVALID);
    take(&s, MIB(32), 0);
    CHECK_OK(s.status);
    close_scene(&s);
}

static void wrong_arguments_are_named(void)
{
    static const struct {
        const alloti_model_ops *ops;
        const char *argument;
        const char *says;
    } cases[] = {
        {&alloti_model_async, "granul=1", "granul"},
        {&alloti_model_async, "granule=3MiB", "power of two"},
        {&alloti_model_async, "release=", "value"},
        {&alloti_model_async, "release=x", "release"},
        {&alloti_model_bfc, "preallocate=2", "above 0"},
        {&alloti_model_rmm, "lake", "rmm:pool"},
        {&alloti_model_rmm, "pond", "pond"},
        {&alloti_model_rmm, "pool:initial=2MiB,maximum=1MiB", "maximum"},
        {&alloti_model_rmm, "pool:initial=100", "256"},
        {&alloti_model_rmm, "arena", "limit"},
        {&alloti_model_rmm, "arena:size=1000", "1 MiB"},
        {&alloti_model_rmm, "binning:min=3MiB", "powers of two"},
        {&alloti_model_rmm, "binning:blocks=0", "blocks"},
        {&alloti_model_rmm, "binning:upstream=sea", "one of pool, cuda"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s = open_scene(cases[i].ops, cases[i].argument, 0);
        CHECK_EQ(s.status, ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), cases[i].says);
        close_scene(&s);
    }
}

static void rmm_names_lead_to_the_resource(void)
{
    scene s = open_scene(&alloti_model_rmm, "pool:initial=1MiB", 0);
    REQUIRE_OK(s.status);
    char text[64];
    s.model->ops->describe(s.model, text, sizeof text);
    CHECK_STR(s.model->ops->info.name, "rmm:pool");
    CHECK_STR(text, "initial=1048576");
    close_scene(&s);
}

/** A short program on one model, from making it to destroying it. */
static allot_status short_program(void *context)
{
    enum { BLOCKS = 40 };
    const alloti_model_params params = {.limit = MIB(2048)};
    alloti_model *model = NULL;
    allot_status status = alloti_model_create(context, &params, &model);
    uint64_t blocks[BLOCKS] = {0};
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < 2 * (uint64_t)BLOCKS; i++) {
        const uint64_t slot = i * 7 % BLOCKS;
        if (i >= BLOCKS) {
            status = model->ops->free(model, blocks[slot], false);
        }
        if (status == ALLOT_STATUS_OK) {
            status =
                model->ops->alloc(model, KIB(1) << slot % 14, i % 3, ALLOT_NONE, &blocks[slot]);
        }
    }
    alloti_model_destroy(model);
    return status;
}

static void every_failing_allocation_comes_back(void)
{
    static char specs[][24] = {"async",    "bfc",         "bfc:preallocate=0.5",
                               "rmm:pool", "rmm:binning", "rmm:arena"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        CHECK(alloc_fault_each(short_program, specs[i]) > 3);
    }
}

static const check_test TESTS[] = {
    {"every_failing_allocation_comes_back", every_failing_allocation_comes_back},
    {"async_reserves_multiples_of_32_mib", async_reserves_multiples_of_32_mib},
    {"async_reuses_on_another_stream_and_joins_ranges",
     async_reuses_on_another_stream_and_joins_ranges},
    {"async_gives_back_above_its_threshold", async_gives_back_above_its_threshold},
    {"async_maps_free_granules_anew_at_the_limit", async_maps_free_granules_anew_at_the_limit},
    {"bfc_doubles_its_regions", bfc_doubles_its_regions},
    {"bfc_splits_only_if_half_would_be_left", bfc_splits_only_if_half_would_be_left},
    {"bfc_preallocates_a_share_once", bfc_preallocates_a_share_once},
    {"bfc_gives_free_regions_back_before_it_fails", bfc_gives_free_regions_back_before_it_fails},
    {"rmm_pool_grows_by_what_it_holds", rmm_pool_grows_by_what_it_holds},
    {"rmm_pool_halves_a_refused_growth", rmm_pool_halves_a_refused_growth},
    {"rmm_pool_reclaims_below_a_maximum", rmm_pool_reclaims_below_a_maximum},
    {"rmm_pool_takes_from_other_streams_before_it_grows",
     rmm_pool_takes_from_other_streams_before_it_grows},
    {"rmm_binning_hands_out_whole_blocks", rmm_binning_hands_out_whole_blocks},
    {"rmm_binning_over_the_driver_gives_large_ones_back",
     rmm_binning_over_the_driver_gives_large_ones_back},
    {"rmm_arena_takes_half_and_no_more", rmm_arena_takes_half_and_no_more},
    {"rmm_arena_keeps_superblocks_apart_until_it_must_not",
     rmm_arena_keeps_superblocks_apart_until_it_must_not},
    {"shared_blocks_wait_for_their_completion", shared_blocks_wait_for_their_completion},
    {"wrong_arguments_are_named", wrong_arguments_are_named},
    {"rmm_names_lead_to_the_resource", rmm_names_lead_to_the_resource},
};
CHECK_MAIN(TESTS)
