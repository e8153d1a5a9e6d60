/* SPDX-License-Identifier: MIT */
/*
 * The comparison models under random programs. After every step the invariants that hold for any
 * allocator are checked by brute force, and BFC and RMM's pool (one stream) are compared block by
 * block with an allocator that scans an unordered list of free ranges.
 */
#include "replay/comparison.h"
#include "support/check.h"

#include <stdio.h>

enum { STEPS = 3000, LIVE_MAX = 128, FREE_MAX = 2048, STREAMS = 3 };

static const uint64_t MIB = UINT64_C(1) << 20;

typedef struct live_block {
    uint64_t block;
    uint64_t size;
} live_block;

/** A range that is free, or a piece of driver memory. */
typedef struct range {
    uint64_t address;
    uint64_t size;
    uint64_t piece;
} range;

/** The obvious allocator: everything is found by looking at everything. */
typedef struct slow {
    bool is_bfc; /* else RMM's pool */
    range free[FREE_MAX];
    uint32_t free_count;
    uint64_t next;
    uint64_t held;
    uint64_t region_next;
    uint64_t pieces;
} slow;

static void slow_grow(slow *s, uint64_t size)
{
    uint64_t bytes = size > s->held ? size : s->held;
    if (s->is_bfc) {
        const uint64_t before = s->region_next;
        while (s->region_next < size) {
            s->region_next *= 2;
        }
        bytes = s->region_next;
        s->region_next *= before == s->region_next ? 2 : 1;
    }
    s->free[s->free_count++] = (range){s->next, bytes, s->pieces++};
    s->next += (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    s->held += bytes;
}

static uint32_t slow_find(const slow *s, uint64_t size)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->free_count; i++) {
        const range *const r = &s->free[i];
        if (r->size >= size &&
            (best == UINT32_MAX || r->size < s->free[best].size ||
             (r->size == s->free[best].size && r->address < s->free[best].address))) {
            best = i;
        }
    }
    return best;
}

static range slow_take(slow *s, uint64_t size)
{
    size = (size + 255) / 256 * 256;
    uint32_t at = slow_find(s, size);
    if (at == UINT32_MAX) {
        slow_grow(s, size);
        at = slow_find(s, size);
    }
    range *const r = &s->free[at];
    const uint64_t rest = r->size - size;
    const bool whole = s->is_bfc && r->size < 2 * size && rest < 128 * MIB;
    const range taken = {r->address, whole ? r->size : size, r->piece};
    r->address += taken.size;
    r->size -= taken.size;
    if (r->size == 0) {
        *r = s->free[--s->free_count];
    }
    return taken;
}

static void slow_give(slow *s, range taken)
{
    for (uint32_t i = 0; i < s->free_count;) {
        const range r = s->free[i];
        if (r.piece == taken.piece &&
            (r.address + r.size == taken.address || taken.address + taken.size == r.address)) {
            taken.address = r.address < taken.address ? r.address : taken.address;
            taken.size += r.size;
            s->free[i] = s->free[--s->free_count];
            i = 0;
        } else {
            i++;
        }
    }
    s->free[s->free_count++] = taken;
}

static uint64_t random_size(uint64_t *random)
{
    const uint64_t order = check_random_range(random, 0, 9);
    const uint64_t most = order < 5 ? MIB / 2 : (order < 9 ? 24 * MIB : 200 * MIB);
    return check_random_range(random, 1, most);
}

static void check_invariants(const alloti_model *model, const live_block *live, uint32_t count,
                             uint64_t limit)
{
    const alloti_comparison *const c = (const alloti_comparison *)model;
    uint64_t allocated = 0;
    uint64_t requested = 0;
    for (uint32_t i = 0; i < count; i++) {
        const alloti_span *const a = &c->handed[live[i].block].span;
        allocated += a->size;
        requested += live[i].size;
        CHECK(a->size >= live[i].size);
        for (uint32_t k = 0; k < i; k++) {
            const alloti_span *const b = &c->handed[live[k].block].span;
            REQUIRE(a->address + a->size <= b->address || b->address + b->size <= a->address);
        }
    }
    alloti_model_survey survey = {0};
    model->ops->survey(model, &survey);
    CHECK_EQ(model->stats.allocated, allocated);
    CHECK_EQ(model->stats.requested, requested);
    CHECK_EQ(survey.free_bytes + allocated, model->stats.reserved);
    CHECK(survey.free_largest <= survey.free_bytes);
    CHECK(model->stats.reserved >= allocated);
    CHECK(model->stats.reserved <= limit);
    CHECK(model->stats.reserved <= model->stats.reserved_peak);
}

/** Run a random program; with `other` every address is compared with it. */
static void run_program(const alloti_model_ops *ops, const char *argument, uint64_t limit,
                        slow *other)
{
    const alloti_model_params params = {.argument = argument, .limit = limit};
    alloti_model *model = NULL;
    REQUIRE_OK(ops->create(&params, &model));
    ops = model->ops;
    uint64_t random = check_seed();
    live_block live[LIVE_MAX];
    range ranges[LIVE_MAX];
    uint32_t count = 0;
    uint32_t refused = 0;
    for (int step = 0; step < STEPS; step++) {
        const bool full = count == LIVE_MAX;
        if (!full && (count == 0 || check_random_range(&random, 0, 99) < 55)) {
            const uint64_t size = random_size(&random);
            const uint64_t stream = other != NULL ? 0 : check_random_range(&random, 0, STREAMS - 1);
            const allot_status status =
                ops->alloc(model, size, stream, ALLOT_NONE, &live[count].block);
            if (status == ALLOT_STATUS_OK) {
                live[count].size = size;
                if (other != NULL) {
                    ranges[count] = slow_take(other, size);
                    const alloti_span *const span =
                        &((const alloti_comparison *)model)->handed[live[count].block].span;
                    REQUIRE(CHECK_EQ(span->address, ranges[count].address));
                    CHECK_EQ(span->size, ranges[count].size);
                    CHECK_EQ(model->stats.reserved, other->held);
                }
                count++;
            } else {
                refused++;
                REQUIRE(status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED);
            }
        } else {
            const uint32_t victim = (uint32_t)check_random_range(&random, 0, count - 1);
            REQUIRE_OK(ops->free(model, live[victim].block, false));
            if (other != NULL) {
                slow_give(other, ranges[victim]);
            }
            count--;
            live[victim] = live[count];
            ranges[victim] = ranges[count];
        }
        check_invariants(model, live, count, limit);
    }
    CHECK((refused > 0) == (limit != UINT64_MAX));
    while (count > 0) {
        REQUIRE_OK(ops->free(model, live[--count].block, false));
    }
    CHECK_EQ(model->stats.active, 0);
    ops->destroy(model);
}

static const uint64_t TIGHT = UINT64_C(400) << 20;

static void async_keeps_its_invariants(void)
{
    run_program(&alloti_model_async, "", UINT64_MAX, NULL);
    run_program(&alloti_model_async, "release=0", UINT64_MAX, NULL);
    run_program(&alloti_model_async, "granule=2MiB", TIGHT, NULL);
}

static void bfc_keeps_its_invariants(void)
{
    run_program(&alloti_model_bfc, "", TIGHT, NULL);
    run_program(&alloti_model_bfc, "preallocate=0.9", TIGHT, NULL);
}

static void bfc_agrees_with_a_scan(void)
{
    static slow other;
    other = (slow){.is_bfc = true, .next = ALLOTI_UPSTREAM_START, .region_next = 2 * MIB};
    run_program(&alloti_model_bfc, "", UINT64_MAX, &other);
}

static void rmm_pool_keeps_its_invariants(void)
{
    run_program(&alloti_model_rmm, "pool:initial=16MiB", TIGHT, NULL);
    run_program(&alloti_model_rmm, "pool:maximum=400MiB", TIGHT, NULL);
}

static void rmm_pool_agrees_with_a_scan(void)
{
    static slow other;
    other = (slow){.next = ALLOTI_UPSTREAM_START};
    run_program(&alloti_model_rmm, "pool", UINT64_MAX, &other);
}

static void rmm_binning_keeps_its_invariants(void)
{
    run_program(&alloti_model_rmm, "binning:blocks=4", UINT64_MAX, NULL);
    run_program(&alloti_model_rmm, "binning:blocks=4,upstream=cuda", TIGHT, NULL);
}

static void rmm_arena_keeps_its_invariants(void)
{
    run_program(&alloti_model_rmm, "arena:size=400MiB", TIGHT, NULL);
}

/** All strategies of our own, with what is put behind the name. */
static void run_strategies(const char *rest, uint64_t limit)
{
    static const char *const names[] = {"first-fit", "best-fit", "buddy",
                                        "tlsf",      "tiered",   "adaptive"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char argument[80];
        snprintf(argument, sizeof argument, "%s:%s", names[i], rest);
        run_program(&alloti_model_space, argument, limit, NULL);
    }
}

static void strategies_keep_their_invariants_in_virtual_memory(void)
{
    run_strategies("mode=vm", UINT64_MAX);
    run_strategies("mode=vm", TIGHT);
    run_strategies("mode=vm,streams=apart", TIGHT);
}

static void strategies_keep_their_invariants_in_segments(void)
{
    run_strategies("mode=segments", UINT64_MAX);
    run_strategies("mode=segments,segment=16MiB", TIGHT);
    run_strategies("mode=segments,segment=16MiB,streams=apart", TIGHT);
}

/** Without a limit nothing is unmapped: reserved is every granule a block ever touched. */
static void granules_are_counted_one_by_one(void)
{
    enum { GRANULES = 8192 };
    static bool touched[GRANULES];
    const alloti_model_params params = {.argument = "first-fit", .limit = UINT64_MAX};
    alloti_model *model = NULL;
    REQUIRE_OK(alloti_model_space.create(&params, &model));
    uint64_t random = check_seed();
    uint64_t live[LIVE_MAX];
    uint32_t count = 0;
    uint64_t mapped = 0;
    for (int step = 0; step < STEPS; step++) {
        if (count > 0 && (count == LIVE_MAX || check_random_range(&random, 0, 99) < 45)) {
            const uint32_t victim = (uint32_t)check_random_range(&random, 0, count - 1);
            REQUIRE_OK(model->ops->free(model, live[victim], false));
            live[victim] = live[--count];
            continue;
        }
        REQUIRE_OK(model->ops->alloc(model, random_size(&random), 0, ALLOT_NONE, &live[count]));
        const alloti_span *const span =
            &((const alloti_comparison *)model)->handed[live[count++]].span;
        const uint64_t first = (span->address - ALLOTI_UPSTREAM_START) / (2 * MIB);
        const uint64_t last = (span->address + span->size - 1 - ALLOTI_UPSTREAM_START) / (2 * MIB);
        REQUIRE(last < GRANULES);
        for (uint64_t i = first; i <= last; i++) {
            mapped += touched[i] ? 0 : 2 * MIB;
            touched[i] = true;
        }
        CHECK_EQ(model->stats.reserved, mapped);
    }
    model->ops->destroy(model);
}

static const check_test TESTS[] = {
    {"async_keeps_its_invariants", async_keeps_its_invariants},
    {"bfc_keeps_its_invariants", bfc_keeps_its_invariants},
    {"bfc_agrees_with_a_scan", bfc_agrees_with_a_scan},
    {"rmm_pool_keeps_its_invariants", rmm_pool_keeps_its_invariants},
    {"rmm_pool_agrees_with_a_scan", rmm_pool_agrees_with_a_scan},
    {"rmm_binning_keeps_its_invariants", rmm_binning_keeps_its_invariants},
    {"rmm_arena_keeps_its_invariants", rmm_arena_keeps_its_invariants},
    {"strategies_keep_their_invariants_in_virtual_memory",
     strategies_keep_their_invariants_in_virtual_memory},
    {"strategies_keep_their_invariants_in_segments", strategies_keep_their_invariants_in_segments},
    {"granules_are_counted_one_by_one", granules_are_counted_one_by_one},
};
CHECK_MAIN(TESTS)
