/* SPDX-License-Identifier: MIT */
/* "heap:...": a heap on a simulated device serves requests of a recording; small scenes. */
#include "replay/model_heap.h"
#include "replay/requests.h"
#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define SEGMENTS ":mode=segments,segment=8MiB"

/** A model under test and the status of its last request. */
typedef struct scene {
    alloti_model *model;
    allot_status status;
} scene;

static scene open_scene(const char *argument, uint64_t limit)
{
    static const alloti_request_pool POOLS[] = {{.options = {.use_on_oom = true}}, {{0}, 0}};
    const alloti_model_params params = {.argument = argument,
                                        .limit = limit == 0 ? UINT64_MAX : limit,
                                        .pool_count = 2,
                                        .pools = POOLS};
    scene s = {.model = NULL};
    s.status = alloti_model_heap.create(&params, &s.model);
    return s;
}

static void close_scene(scene *s)
{
    if (s->model != NULL && s->model->heap != NULL) {
        CHECK_OK(allot_heap_check(s->model->heap));
    }
    alloti_model_destroy(s->model);
}

/** Allocate on a stream; UINT64_MAX, with the status kept, if it fails. */
static uint64_t take_on(scene *s, uint64_t size, uint64_t stream, uint32_t pool)
{
    uint64_t block = UINT64_MAX;
    s->status = s->model->ops->alloc(s->model, size, stream, pool, &block);
    return block;
}

static uint64_t take(scene *s, uint64_t size)
{
    return take_on(s, size, 0, ALLOT_NONE);
}

static void give(scene *s, uint64_t block)
{
    CHECK_OK(s->model->ops->free(s->model, block, false));
}

static uint64_t reserved(const scene *s)
{
    return s->model->stats.reserved;
}

/* ---- holding memory ---- */

static void granules_are_mapped_and_counted(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    CHECK_EQ(reserved(&s), 0);
    const uint64_t a = take(&s, 1);
    CHECK_EQ(reserved(&s), MIB(2));
    CHECK_EQ(s.model->stats.allocated, 512);
    CHECK_EQ(s.model->stats.requested, 1);
    const uint64_t b = take(&s, MIB(3)); /* up to 3 MiB and 512 bytes */
    CHECK_EQ(reserved(&s), MIB(4));
    CHECK_EQ(s.model->stats.range_map_count, 2);
    CHECK_EQ(s.model->stats.page_map_count, 2);
    CHECK_EQ(s.model->stats.bytes_taken, MIB(4));
    give(&s, a);
    give(&s, b);
    CHECK_EQ(reserved(&s), MIB(4));
    CHECK_EQ(s.model->stats.allocated, 0);
    CHECK_OK(s.model->ops->empty_cache(s.model));
    CHECK_EQ(reserved(&s), 0);
    CHECK_EQ(s.model->stats.page_unmap_count, 2);
    CHECK_EQ(s.model->stats.range_count, 4);
    CHECK_EQ(s.model->stats.reserved_peak, MIB(4));
    CHECK_EQ(s.model->stats.allocated_peak, MIB(3) + 512);
    close_scene(&s);
}

static void segments_are_taken_and_counted(void)
{
    scene s = open_scene("first-fit" SEGMENTS, MIB(16));
    REQUIRE_OK(s.status);
    take(&s, MIB(6));
    CHECK_EQ(reserved(&s), MIB(8));
    CHECK_EQ(s.model->stats.segment_alloc_count, 1);
    CHECK_EQ(s.model->stats.range_count, 0);
    const uint64_t b = take(&s, MIB(8));
    give(&s, b);
    CHECK_OK(s.model->ops->empty_cache(s.model));
    CHECK_EQ(s.model->stats.segment_free_count, 1);
    CHECK_EQ(reserved(&s), MIB(8));
    close_scene(&s);
}

static void free_ranges_count_where_memory_lies_under_them(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(3));
    take(&s, MIB(2));
    const uint64_t c = take(&s, MIB(4)); /* [5, 9) of [0, 10) */
    give(&s, a);
    give(&s, c);
    alloti_model_survey survey;
    s.model->ops->survey(s.model, &survey);
    CHECK_EQ(survey.free_bytes, MIB(8));
    CHECK_EQ(survey.free_largest, MIB(5));
    CHECK_OK(s.model->ops->empty_cache(s.model)); /* [2, 6) stays */
    s.model->ops->survey(s.model, &survey);
    CHECK_EQ(survey.free_bytes, MIB(2));
    CHECK_EQ(survey.free_largest, MIB(1));
    close_scene(&s);
}

static void more_than_the_device_has_is_out_of_memory(void)
{
    static const char *const ARGUMENTS[] = {"first-fit", "buddy", ("tlsf" SEGMENTS)};
    for (size_t i = 0; i < sizeof ARGUMENTS / sizeof ARGUMENTS[0]; i++) {
        scene s = open_scene(ARGUMENTS[i], 0);
        REQUIRE_OK(s.status);
        take(&s, UINT64_MAX);
        CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_EQ(s.model->ops->alloc(s.model, 0, 0, ALLOT_NONE, &(uint64_t){0}), ALLOT_STATUS_OK);
        close_scene(&s);
        s = open_scene(ARGUMENTS[i], MIB(8));
        REQUIRE_OK(s.status);
        take(&s, MIB(8));
        CHECK_OK(s.status);
        take(&s, 1);
        CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_CONTAINS(allot_error_detail(), "heap:");
        close_scene(&s);
    }
}

/* ---- compaction ---- */

/** Blocks of 2 MiB fill `count` segments of 8 MiB, every other one goes. */
static void scatter(scene *s, uint32_t count)
{
    uint64_t blocks[32];
    for (uint32_t i = 0; i < 4 * count; i++) {
        blocks[i] = take(s, MIB(2));
        CHECK_OK(s->status);
    }
    for (uint32_t i = 0; i < 4 * count; i += 2) {
        give(s, blocks[i]);
    }
}

static void pointers_stay_and_the_request_fails_as_fragmented(void)
{
    scene s = open_scene("first-fit" SEGMENTS, MIB(8));
    REQUIRE_OK(s.status);
    scatter(&s, 1);
    take(&s, MIB(4));
    CHECK_EQ(s.status, ALLOT_STATUS_FRAGMENTED);
    CHECK_EQ(s.model->compaction_count, 0);
    take(&s, MIB(5));
    CHECK_EQ(s.status, ALLOT_STATUS_DEVICE_MEMORY);
    close_scene(&s);
}

static void handles_make_room_when_they_are_asked_to(void)
{
    scene s = open_scene("first-fit" SEGMENTS ",blocks=handles", MIB(8));
    REQUIRE_OK(s.status);
    scatter(&s, 1);
    take(&s, MIB(4));
    CHECK_EQ(s.status, ALLOT_STATUS_FRAGMENTED);
    close_scene(&s);
    s = open_scene("first-fit" SEGMENTS ",blocks=handles,compact=forced", MIB(8));
    REQUIRE_OK(s.status);
    scatter(&s, 1);
    take(&s, MIB(4));
    CHECK_OK(s.status);
    REQUIRE(s.model->compaction_count == 1);
    const allot_replay_compaction *const compaction = &s.model->compactions[0];
    CHECK_EQ(compaction->copy_bytes, MIB(2));
    CHECK_EQ(compaction->copy_count, 1);
    CHECK_EQ(compaction->reserved_before, MIB(8));
    CHECK_EQ(compaction->reserved_after, MIB(8));
    CHECK(compaction->copy_ns > 0);
    CHECK_EQ(s.model->stats.copy_bytes, MIB(2));
    CHECK_EQ(s.model->stats.copy_ns, compaction->copy_ns);
    close_scene(&s);
}

static void a_whole_heap_is_packed_for_a_segment_of_another_size(void)
{
    scene s = open_scene("first-fit" SEGMENTS ",blocks=handles,compact=full", MIB(32));
    REQUIRE_OK(s.status);
    scatter(&s, 4);
    take(&s, MIB(16)); /* of no segment, but of the device once two are empty */
    CHECK_OK(s.status);
    CHECK_EQ(reserved(&s), MIB(32));
    REQUIRE(s.model->compaction_count == 1);
    CHECK_EQ(s.model->compactions[0].copy_bytes, MIB(8));
    close_scene(&s);
}

static void a_heap_that_is_half_empty_is_packed_if_that_pays(void)
{
    scene s = open_scene("first-fit" SEGMENTS ",blocks=handles,compact=auto,threshold=0.4", 0);
    REQUIRE_OK(s.status);
    scatter(&s, 4);
    CHECK_EQ(reserved(&s), MIB(32));
    CHECK_EQ(s.model->compaction_count, 0); /* nothing was asked for since */
    give(&s, take(&s, MIB(2)));
    CHECK_EQ(reserved(&s), MIB(24)); /* 18 MiB live at the time */
    REQUIRE(s.model->compaction_count == 1);
    const allot_replay_compaction *const compaction = &s.model->compactions[0];
    CHECK_EQ(compaction->reserved_before, MIB(32));
    CHECK_EQ(compaction->reserved_after, MIB(32)); /* what it emptied goes back after it */
    CHECK_EQ(compaction->largest_before, MIB(2));
    CHECK(compaction->largest_after >= MIB(6));
    give(&s, take(&s, MIB(2)));
    CHECK_EQ(s.model->compaction_count, 1); /* no more is free than then */
    close_scene(&s);
}

static void steps_do_the_same_over_several_requests(void)
{
    scene s =
        open_scene("first-fit" SEGMENTS ",blocks=handles,compact=steps,threshold=0.4,step=2MiB", 0);
    REQUIRE_OK(s.status);
    scatter(&s, 4);
    uint32_t requests = 0;
    while (reserved(&s) == MIB(32) && requests < 20) {
        give(&s, take(&s, MIB(1)));
        requests++;
    }
    CHECK(requests > 1 && requests < 20);
    CHECK_EQ(reserved(&s), MIB(24));
    REQUIRE(s.model->compaction_count > 1);
    for (uint32_t i = 0; i < s.model->compaction_count; i++) {
        CHECK(s.model->compactions[i].copy_bytes <= MIB(2));
    }
    close_scene(&s);
}

static void free_segments_go_back_without_compaction_too(void)
{
    scene s = open_scene("first-fit" SEGMENTS ",compact=trim,threshold=0.4", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, MIB(8));
    const uint64_t b = take(&s, MIB(8));
    give(&s, a);
    give(&s, b);
    CHECK_EQ(reserved(&s), MIB(16));
    take(&s, MIB(1));
    CHECK_EQ(reserved(&s), MIB(8));
    CHECK_EQ(s.model->compaction_count, 0);
    close_scene(&s);
}

static void a_block_that_another_stream_uses_is_not_moved(void)
{
    scene s = open_scene("first-fit" SEGMENTS ",blocks=handles,compact=full", MIB(8));
    REQUIRE_OK(s.status);
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(&s, MIB(2));
    }
    CHECK_OK(s.model->ops->free(s.model, blocks[1], true));
    CHECK_EQ(s.model->stats.allocated, MIB(6));
    CHECK_EQ(s.model->stats.active, MIB(8));
    CHECK_OK(s.model->ops->free(s.model, blocks[3], true));
    give(&s, blocks[0]);
    give(&s, blocks[2]);
    take(&s, MIB(4)); /* at [0, 2) and [4, 6) nothing can be moved to make it */
    CHECK_EQ(s.status, ALLOT_STATUS_FRAGMENTED);
    CHECK_OK(s.model->ops->complete(s.model, blocks[3]));
    CHECK_EQ(s.model->stats.active, MIB(2));
    take(&s, MIB(4));
    CHECK_OK(s.status);
    CHECK_EQ(s.model->compaction_count, 0);
    close_scene(&s);
}

/* ---- streams and pools ---- */

static void streams_share_what_is_idle(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    give(&s, take_on(&s, MIB(8), 1, ALLOT_NONE));
    give(&s, take_on(&s, MIB(8), 2, ALLOT_NONE));
    give(&s, take_on(&s, MIB(8), 0, ALLOT_NONE));
    CHECK_EQ(reserved(&s), MIB(8));
    close_scene(&s);
}

static void private_pools_are_apart_unless_they_are_shared(void)
{
    scene s = open_scene("first-fit", MIB(8));
    REQUIRE_OK(s.status);
    give(&s, take_on(&s, MIB(2), 0, 0));
    take_on(&s, MIB(2), 0, 1);
    CHECK_EQ(reserved(&s), MIB(4));
    take(&s, MIB(2));
    CHECK_EQ(reserved(&s), MIB(6));
    close_scene(&s);
}

/* ---- strings ---- */

static void models_have_a_canonical_name(void)
{
    static const struct {
        const char *argument;
        const char *name;
        const char *text;
    } CASES[] = {
        {"", "heap:first-fit", "mode=virtual,blocks=pointers"},
        {"tlsf:gpu=a100-80", "heap:tlsf", "mode=virtual,blocks=pointers"},
        {"buddy:blocks=handles", "heap:buddy", "mode=virtual,blocks=handles"},
        {"tiered:mode=segments", "heap:tiered", "mode=segments,segment=64MiB,blocks=pointers"},
        {"adaptive:compact=full,gpu=rtx4090,blocks=handles", "heap:adaptive",
         "mode=virtual,blocks=handles,compact=full,gpu=rtx4090"},
        {"tlsf:compact=auto,blocks=handles", "heap:tlsf",
         "mode=virtual,blocks=handles,compact=auto,threshold=0.25"},
        {"tlsf:compact=steps,step=1MiB,threshold=0.5,blocks=handles", "heap:tlsf",
         "mode=virtual,blocks=handles,compact=steps,threshold=0.5,step=1048576B"},
        {"tlsf:compact=trim", "heap:tlsf",
         "mode=virtual,blocks=pointers,compact=trim,threshold=0.25"},
        {"best-fit:compact=forced,blocks=handles", "heap:best-fit",
         "mode=virtual,blocks=handles,compact=forced"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        scene s = open_scene(CASES[i].argument, 0);
        REQUIRE_OK(s.status);
        char text[128];
        s.model->ops->describe(s.model, text, sizeof text);
        CHECK_STR(s.model->ops->info.name, CASES[i].name);
        CHECK_STR(text, CASES[i].text);
        CHECK(!s.model->ops->info.is_exact);
        close_scene(&s);
    }
}

static void wrong_arguments_are_named(void)
{
    static const struct {
        const char *argument;
        const char *says;
    } CASES[] = {
        {"worst-fit", "want heap:first-fit, best-fit, buddy, tlsf, tiered or adaptive"},
        {"first-fit:mode=vm", "mode: \"vm\": want one of virtual, segments"},
        {"tlsf:segment=64MiB", "needs mode=segments"},
        {"tlsf:mode=segments,segment=1000", "multiple of 1 MiB"},
        {"tlsf:compact=full", "needs blocks=handles"},
        {"tlsf:blocks=handles,compact=full,threshold=0.5", "threshold= needs compact=trim"},
        {"tlsf:blocks=handles,compact=auto,step=1MiB", "step= needs compact=steps"},
        {"tlsf:gpu=abacus", "no GPU profile \"abacus\""},
        {"tlsf:blocks=maybe", "want one of pointers, handles"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        scene s = open_scene(CASES[i].argument, 0);
        CHECK_EQ(s.status, ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), CASES[i].says);
        CHECK(s.model == NULL);
    }
}

static void frees_of_what_is_not_there_are_refused(void)
{
    scene s = open_scene("first-fit", 0);
    REQUIRE_OK(s.status);
    const uint64_t a = take(&s, 1);
    CHECK_EQ(s.model->ops->free(s.model, a + 1, false), ALLOT_STATUS_INVALID);
    CHECK_EQ(s.model->ops->complete(s.model, a), ALLOT_STATUS_INVALID);
    give(&s, a);
    CHECK_EQ(s.model->ops->free(s.model, a, false), ALLOT_STATUS_INVALID);
    close_scene(&s);
}

static allot_status short_program(void *context)
{
    const char *const argument = context;
    const alloti_model_params params = {.argument = argument, .limit = MIB(24), .pool_count = 1};
    alloti_model *model = NULL;
    allot_status status = alloti_model_heap.create(&params, &model);
    uint64_t blocks[9];
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < 9; i++) {
        status = model->ops->alloc(model, MIB(2), i / 8, i < 8 ? ALLOT_NONE : 0, &blocks[i]);
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < 8; i += 2) {
        status = model->ops->free(model, blocks[i], false);
    }
    if (status == ALLOT_STATUS_OK) {
        status = model->ops->alloc(model, MIB(4), 0, ALLOT_NONE, &blocks[0]);
    }
    alloti_model_destroy(model);
    return status;
}

static void every_failing_allocation_comes_back(void)
{
    static char arguments[][80] = {"first-fit:blocks=handles,compact=auto,threshold=0.1",
                                   "best-fit" SEGMENTS ",blocks=handles,compact=full", "buddy",
                                   "first-fit" SEGMENTS
                                   ",blocks=handles,compact=steps,threshold=0.1"};
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        CHECK(alloc_fault_each(short_program, arguments[i]) > 8);
    }
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(granules_are_mapped_and_counted),
    TEST(segments_are_taken_and_counted),
    TEST(free_ranges_count_where_memory_lies_under_them),
    TEST(more_than_the_device_has_is_out_of_memory),
    TEST(pointers_stay_and_the_request_fails_as_fragmented),
    TEST(handles_make_room_when_they_are_asked_to),
    TEST(a_whole_heap_is_packed_for_a_segment_of_another_size),
    TEST(a_heap_that_is_half_empty_is_packed_if_that_pays),
    TEST(steps_do_the_same_over_several_requests),
    TEST(free_segments_go_back_without_compaction_too),
    TEST(a_block_that_another_stream_uses_is_not_moved),
    TEST(streams_share_what_is_idle),
    TEST(private_pools_are_apart_unless_they_are_shared),
    TEST(models_have_a_canonical_name),
    TEST(wrong_arguments_are_named),
    TEST(frees_of_what_is_not_there_are_refused),
    TEST(every_failing_allocation_comes_back),
};
CHECK_MAIN(TESTS)
