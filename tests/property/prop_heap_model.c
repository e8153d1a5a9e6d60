/* SPDX-License-Identifier: MIT */
/* "heap:...": random programs on several streams and in pools, with blocks that other streams still
 * use, under a limit; sums are counted again and the heap is checked after steps. */
#include <stdio.h>

#include "replay/model_heap.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)

enum { STEPS = 1500, LIVE_MAX = 300, STREAMS = 3, POOLS = 2, CHECK_EVERY = 25 };

typedef struct live_block {
    uint64_t block;
    uint64_t size;
    bool is_shared; /**< Freed; another stream still uses it. */
} live_block;

typedef struct program {
    alloti_model *model;
    uint64_t limit;
    uint64_t random;
    live_block live[LIVE_MAX];
    uint32_t count;
    uint32_t refused;
} program;

static void check_sums(const program *p)
{
    const alloti_model_stats *const stats = &p->model->stats;
    const alloti_heap_model *const model = (const alloti_heap_model *)p->model;
    uint64_t allocated = 0;
    uint64_t pending = 0;
    uint64_t requested = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t size = model->blocks[p->live[i].block].size;
        CHECK(size >= p->live[i].size);
        *(p->live[i].is_shared ? &pending : &allocated) += size;
        requested += p->live[i].size;
    }
    CHECK_EQ(stats->allocated, allocated);
    CHECK_EQ(stats->requested, requested);
    CHECK(stats->active >= allocated + pending);
    CHECK(stats->active <= stats->reserved);
    CHECK(stats->reserved <= p->limit);
    CHECK(stats->reserved <= stats->reserved_peak);
    alloti_model_survey survey;
    p->model->ops->survey(p->model, &survey);
    CHECK_EQ(survey.free_bytes, stats->reserved - stats->active);
    CHECK(survey.free_largest <= survey.free_bytes);
}

static void ask(program *p)
{
    const uint64_t order = check_random_range(&p->random, 0, 9);
    const uint64_t most = order < 5 ? MIB / 2 : (order < 9 ? 24 * MIB : 200 * MIB);
    const uint64_t pool = check_random_range(&p->random, 0, 9);
    live_block *const block = &p->live[p->count];
    *block = (live_block){.size = check_random_range(&p->random, 1, most)};
    p->model->site = (uint32_t)check_random_range(&p->random, 0, 5);
    const allot_status status =
        p->model->ops->alloc(p->model, block->size, check_random_range(&p->random, 0, STREAMS - 1),
                             pool < POOLS ? (uint32_t)pool : ALLOT_NONE, &block->block);
    if (status == ALLOT_STATUS_OK) {
        p->count++;
        return;
    }
    p->refused++;
    CHECK(status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED);
}

/** Free a block, or tell that the other stream is done with it. */
static void let_go(program *p)
{
    const uint32_t at = (uint32_t)check_random_range(&p->random, 0, p->count - 1);
    live_block *const block = &p->live[at];
    if (!block->is_shared && check_random_range(&p->random, 0, 3) == 0) {
        CHECK_OK(p->model->ops->free(p->model, block->block, true));
        block->is_shared = true;
        return;
    }
    CHECK_OK(block->is_shared ? p->model->ops->complete(p->model, block->block)
                              : p->model->ops->free(p->model, block->block, false));
    *block = p->live[--p->count];
}

static void make_step(program *p)
{
    const uint64_t what = check_random_range(&p->random, 0, 199);
    if (what == 0) {
        CHECK_OK(p->model->ops->empty_cache(p->model));
    } else if (p->count < LIVE_MAX && (p->count == 0 || what < 110)) {
        ask(p);
    } else {
        let_go(p);
    }
}

static void run_program(const char *argument, uint64_t limit)
{
    const alloti_model_params params = {.argument = argument, .limit = limit, .pool_count = POOLS};
    static program p;
    p = (program){.limit = limit, .random = check_seed()};
    REQUIRE_OK(alloti_model_heap.create(&params, &p.model));
    for (int step = 0; step < STEPS && check_failures() == 0; step++) {
        make_step(&p);
        check_sums(&p);
        if (step % CHECK_EVERY == 0) {
            CHECK_OK(allot_heap_check(p.model->heap));
        }
    }
    if (check_failures() != 0) {
        printf("  heap:%s, limit %llu\n", argument, (unsigned long long)limit);
    }
    CHECK((p.refused > 0) == (limit != UINT64_MAX));
    while (p.count > 0) {
        p.count--;
        const live_block *const last = &p.live[p.count];
        CHECK_OK(last->is_shared ? p.model->ops->complete(p.model, last->block)
                                 : p.model->ops->free(p.model, last->block, false));
    }
    CHECK_EQ(p.model->stats.allocated, 0);
    CHECK_OK(allot_heap_check(p.model->heap));
    alloti_model_destroy(p.model);
}

/** All strategies, with what is put behind the name. */
static void run_strategies(const char *rest, uint64_t limit)
{
    static const char *const NAMES[] = {"first-fit", "best-fit", "buddy",
                                        "tlsf",      "tiered",   "adaptive"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char argument[96];
        snprintf(argument, sizeof argument, "%s:%s", NAMES[i], rest);
        run_program(argument, limit);
    }
}

static const uint64_t TIGHT = UINT64_C(400) << 20;

static void pointers_keep_all_sums(void)
{
    run_strategies("mode=virtual", UINT64_MAX);
    run_strategies("mode=virtual", TIGHT);
    run_strategies("mode=segments,segment=16MiB", TIGHT);
    run_strategies("mode=segments,compact=trim", UINT64_MAX);
}

static void handles_keep_all_sums_while_they_move(void)
{
    run_strategies("blocks=handles,compact=full", TIGHT);
    run_strategies("mode=segments,segment=16MiB,blocks=handles,compact=forced", TIGHT);
    run_strategies("mode=segments,segment=16MiB,blocks=handles,compact=auto", TIGHT);
    run_strategies("mode=segments,segment=16MiB,blocks=handles,compact=steps,step=4MiB",
                   UINT64_MAX);
}

static const check_test TESTS[] = {
    {"pointers_keep_all_sums", pointers_keep_all_sums},
    {"handles_keep_all_sums_while_they_move", handles_keep_all_sums_while_they_move},
};
CHECK_MAIN(TESTS)
