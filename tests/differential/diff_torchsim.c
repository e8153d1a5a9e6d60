/* SPDX-License-Identifier: MIT */
/* The model against the slow one: the same random program under random settings gives the same
 * events, one by one, and all invariants hold after each step. */
#include "slow_torch.h"

#include "support/check.h"
#include "support/torch_program.h"
#include "torchsim/sim.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROGRAM_COUNT = 120, LIVE_MAX = 2000 };

/** Compares each event with the slow model's next one. */
typedef struct comparing {
    const slow_torch *slow;
    uint64_t seen;
    bool equal;
} comparing;

static void compare(void *context, const allot_torch_event *event)
{
    comparing *with = context;
    if (!with->equal) {
        return;
    }
    const uint64_t at = with->seen++;
    if (!CHECK(at < with->slow->event_count)) {
        with->equal = false;
        return;
    }
    const allot_torch_event *other = &with->slow->events[at];
    with->equal =
        CHECK_STR(allot_event_kind_name(event->kind), allot_event_kind_name(other->kind)) &&
        CHECK_EQ(event->address, other->address) && CHECK_EQ(event->size, other->size) &&
        CHECK_EQ(event->stream, other->stream);
}

typedef struct pair {
    slow_torch slow;
    allot_torchsim *fast;
    comparing with;
    uint32_t names[LIVE_MAX];
    uint64_t addresses[LIVE_MAX];
    uint64_t count;
    uint32_t pool_count;
    uint32_t captured; /**< Pool that a capture is underway into, or ALLOT_NONE. */
} pair;

static void make_alloc(pair *both, const torch_program *program, uint64_t *state)
{
    if (both->count == LIVE_MAX) {
        return;
    }
    const uint64_t size = torch_program_size(state, program->size_max);
    const uint64_t stream = 16 * check_random_range(state, 0, program->stream_count - 1);
    const int pool = (int)check_random_range(state, 0, program->pool_count);
    const uint64_t address = slow_alloc(&both->slow, size, stream, pool);
    uint32_t block = 0;
    const allot_status status = allot_torchsim_alloc(
        both->fast, size, stream, pool == 0 ? ALLOT_NONE : (uint32_t)pool - 1, &block);
    CHECK_EQ(status == ALLOT_STATUS_OK, address != 0);
    if (status == ALLOT_STATUS_OK) {
        both->names[both->count] = block;
        both->addresses[both->count++] = address;
    }
}

static void make_free(pair *both, uint64_t *state, bool shared)
{
    const uint64_t at = check_random_range(state, 0, both->count - 1);
    if (shared) {
        slow_use(&both->slow, both->addresses[at]);
        CHECK_OK(allot_torchsim_record_stream(both->fast, both->names[at], 7));
    }
    if (shared && check_random_range(state, 0, 3) == 0) {
        return; /* Used now, freed later. */
    }
    slow_free(&both->slow, both->addresses[at]);
    CHECK_OK(allot_torchsim_free(both->fast, both->names[at]));
    both->names[at] = both->names[--both->count];
    both->addresses[at] = both->addresses[both->count];
}

/** Begin or end a capture, into a graph's pool. */
static void make_capture(pair *both, uint64_t *state)
{
    if (both->captured != ALLOT_NONE) {
        slow_end(&both->slow, (int)both->captured + 1);
        CHECK_OK(allot_torchsim_pool_end(both->fast, both->captured));
        both->captured = ALLOT_NONE;
        return;
    }
    const uint32_t pool = (uint32_t)check_random_range(state, 0, both->pool_count - 1);
    if ((both->slow.graphs >> pool & 1) != 0) {
        CHECK_OK(allot_torchsim_pool_begin(both->fast, pool));
        slow_begin(&both->slow);
        both->captured = pool;
    }
}

static void make_pools(pair *both, uint32_t count, uint64_t *state)
{
    both->pool_count = count;
    both->captured = ALLOT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const allot_torch_pool_options pool = {.struct_size = sizeof(pool),
                                               .is_graph = i % 2 == 0,
                                               .use_on_oom = check_random_range(state, 0, 2) == 0,
                                               .no_split = check_random_range(state, 0, 2) == 0};
        both->slow.graphs |= (uint32_t)pool.is_graph << i;
        both->slow.offers |= (uint32_t)pool.use_on_oom << i;
        both->slow.whole |= (uint32_t)pool.no_split << i;
        CHECK_OK(allot_torchsim_pool_create(both->fast, &pool, NULL));
    }
}

static void make_step(pair *both, const torch_program *program, uint64_t *state)
{
    if (both->pool_count > 0 && check_random_range(state, 0, 19) == 0) {
        make_capture(both, state);
    }
    switch (torch_program_next(program, state, both->count)) {
    case TORCH_ALLOC:
        make_alloc(both, program, state);
        break;
    case TORCH_FREE:
        make_free(both, state, false);
        break;
    case TORCH_SHARE:
        make_free(both, state, true);
        break;
    case TORCH_EMPTY:
        if (both->captured == ALLOT_NONE) { /* PyTorch leaves the default pool alone there. */
            slow_empty(&both->slow);
        }
        CHECK_OK(allot_torchsim_empty_cache(both->fast));
        break;
    }
}

static bool run_program(const torch_program *program)
{
    pair *both = calloc(1, sizeof(*both));
    slow_init(&both->slow, &program->conf, program->limit, program->fraction);
    both->with = (comparing){.slow = &both->slow, .equal = true};
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .conf = &program->conf,
                                            .limit = program->limit,
                                            .fraction = program->fraction,
                                            .on_event = compare,
                                            .on_event_context = &both->with};
    bool ok = CHECK_OK(allot_torchsim_create(&options, &both->fast));
    uint64_t state = program->seed;
    if (ok) {
        make_pools(both, program->pool_count, &state);
    }
    for (uint32_t i = 0; ok && i < program->operation_count; i++) {
        make_step(both, program, &state);
        ok = both->with.equal && CHECK_EQ(both->with.seen, both->slow.event_count) &&
             CHECK(alloti_torchsim_check(both->fast));
    }
    if (ok) {
        const allot_torch_stats *stats = allot_torchsim_get_stats(both->fast);
        CHECK_EQ(stats->reserved.now, both->slow.held);
        CHECK_EQ(stats->retry_count, both->slow.retry_count);
    } else {
        char text[ALLOT_TORCH_CONF_TEXT_MAX];
        printf("  seed %llu conf \"%s\" limit %llu fraction %g: %s\n",
               (unsigned long long)program->seed, allot_torch_conf_format(&program->conf, text),
               (unsigned long long)program->limit, program->fraction, allot_error_detail());
    }
    allot_torchsim_destroy(both->fast);
    slow_fini(&both->slow);
    free(both);
    return ok;
}

static void both_models_make_the_same_events(void)
{
    uint64_t state = check_seed();
    for (int i = 0; i < PROGRAM_COUNT; i++) {
        const torch_program program = torch_program_random(&state);
        REQUIRE(run_program(&program));
    }
}

static void also_under_constant_pressure(void)
{
    uint64_t state = check_seed() + 1;
    for (int i = 0; i < PROGRAM_COUNT; i++) {
        torch_program program = torch_program_random(&state);
        program.conf.graph_capture_record_stream_reuse = i % 2 == 0;
        program.limit = check_random_range(&state, 30, 200) * 2 * (1ull << 20);
        REQUIRE(run_program(&program));
    }
}

static const check_test TESTS[] = {
    {"both_models_make_the_same_events", both_models_make_the_same_events},
    {"also_under_constant_pressure", also_under_constant_pressure},
};
CHECK_MAIN(TESTS)
