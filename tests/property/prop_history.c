/* SPDX-License-Identifier: MIT */
/*
 * Histories against the model of PyTorch's allocator: random programs run in the model, which knows
 * every block and sum at every moment; the history sees the events and the final state only, whole
 * or from the middle on, and must come to the same.
 */
#include <allot/compare.h>
#include <allot/torchsim.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/history.h"
#include "support/check.h"
#include "trace/builder.h"

enum { OPERATIONS = 400, EVENTS_MAX = 8192, BLOCKS_MAX = 4096, ROUNDS = 40, MOMENTS = 8 };

/* What the model knew after an operation. */
typedef struct mark {
    uint32_t event_count;
    uint64_t allocated;
    uint64_t active;
    uint64_t reserved;
} mark;

/* All blocks of the model after an operation. */
typedef struct picture {
    uint32_t event_count;
    uint32_t block_count;
    allot_torch_block blocks[BLOCKS_MAX];
} picture;

typedef struct program {
    uint64_t random;
    allot_torchsim *sim;
    const char *settings;
    allot_torch_event events[EVENTS_MAX];
    uint32_t event_count;
    mark marks[OPERATIONS];
    picture moments[MOMENTS];
    picture end;
    uint32_t live[OPERATIONS];
    uint32_t live_count;
} program;

static void record(void *context, const allot_torch_event *event)
{
    program *const p = context;
    if (CHECK(p->event_count < EVENTS_MAX)) {
        p->events[p->event_count++] = *event;
    }
}

static bool see_block(void *context, const allot_torch_block *block)
{
    picture *const to = context;
    if (block->is_mapped && CHECK(to->block_count < BLOCKS_MAX)) {
        to->blocks[to->block_count++] = *block;
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    const uint64_t left = ((const allot_torch_block *)a)->address;
    const uint64_t right = ((const allot_torch_block *)b)->address;
    return (left > right) - (left < right);
}

static void take_picture(program *p, picture *to)
{
    to->event_count = p->event_count;
    to->block_count = 0;
    allot_torchsim_walk(p->sim, see_block, to);
    qsort(to->blocks, to->block_count, sizeof to->blocks[0], by_address);
}

static uint64_t random_size(uint64_t *random)
{
    switch (check_random_range(random, 0, 3)) {
    case 0:
        return check_random_range(random, 1, 4096);
    case 1:
        return check_random_range(random, 1, 3 << 20);
    case 2:
        return check_random_range(random, 1 << 20, 30 << 20);
    default:
        return check_random_range(random, 8 << 20, 200 << 20);
    }
}

static void step(program *p)
{
    const bool wants_free = p->live_count > 0 && check_random_range(&p->random, 0, 99) < 45;
    if (wants_free) {
        const uint32_t at = (uint32_t)check_random_range(&p->random, 0, p->live_count - 1);
        const uint32_t block = p->live[at];
        p->live[at] = p->live[--p->live_count];
        if (check_random_range(&p->random, 0, 9) == 0) {
            CHECK_OK(allot_torchsim_record_stream(p->sim, block, 7));
        }
        CHECK_OK(allot_torchsim_free(p->sim, block));
        return;
    }
    if (check_random_range(&p->random, 0, 99) == 0) {
        CHECK_OK(allot_torchsim_empty_cache(p->sim));
    }
    uint32_t block = 0;
    const uint64_t stream = check_random_range(&p->random, 0, 4) == 0 ? 7 : 0;
    if (allot_torchsim_alloc(p->sim, random_size(&p->random), stream, ALLOT_NONE, &block) ==
        ALLOT_STATUS_OK) {
        p->live[p->live_count++] = block;
    }
}

/* The release that writes traces like those of make_trace(). */
enum { TRACE_VERSION = 203 };

static void run_program(program *p)
{
    allot_torch_conf conf;
    CHECK_OK(allot_torch_conf_parse_for(p->settings, TRACE_VERSION, &conf, NULL));
    const allot_torchsim_options options = {.struct_size = sizeof options,
                                            .conf = &conf,
                                            .limit = UINT64_C(4) << 30,
                                            .version = TRACE_VERSION,
                                            .on_event = record,
                                            .on_event_context = p};
    CHECK_OK(allot_torchsim_create(&options, &p->sim));
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        step(p);
        const allot_torch_stats *const stats = allot_torchsim_get_stats(p->sim);
        p->marks[i] =
            (mark){p->event_count, stats->allocated.now, stats->active.now, stats->reserved.now};
        if (i % (OPERATIONS / MOMENTS) == 0) {
            take_picture(p, &p->moments[i / (OPERATIONS / MOMENTS)]);
        }
    }
    take_picture(p, &p->end);
    allot_torchsim_destroy(p->sim);
}

static uint32_t stream_id(alloti_builder *builder, uint64_t value)
{
    uint32_t id = 0;
    CHECK_OK(alloti_builder_intern_stream(builder, value, &id));
    return id;
}

static void add_setting(alloti_builder *builder, const char *settings)
{
    static const char KEY[] = "PYTORCH_CUDA_ALLOC_CONF";
    allot_setting setting = {.type = ALLOT_SETTING_STRING};
    CHECK_OK(alloti_builder_intern_string(builder, KEY, sizeof KEY - 1, &setting.key));
    CHECK_OK(alloti_builder_intern_string(builder, settings, strlen(settings), &setting.string));
    CHECK_OK(alloti_builder_add_setting(builder, &setting));
}

/* One past the blocks of the segment that begins with block `first`. */
static uint32_t segment_end(const picture *end, uint32_t first)
{
    uint32_t at = first + 1;
    while (at < end->block_count && end->blocks[at].segment == end->blocks[first].segment &&
           end->blocks[at - 1].address + end->blocks[at - 1].size == end->blocks[at].address) {
        at++;
    }
    return at;
}

static void add_segment(alloti_builder *builder, const picture *end, uint32_t first, uint32_t past)
{
    const allot_torch_block *const head = &end->blocks[first];
    allot_segment segment = {.address = head->address,
                             .stream = stream_id(builder, head->stream),
                             .pool = ALLOT_NONE,
                             .stack = ALLOT_NONE,
                             .is_large = head->is_large,
                             .is_expandable = head->is_expandable};
    for (uint32_t i = first; i < past; i++) {
        const allot_torch_block *const b = &end->blocks[i];
        segment.total_size += b->size;
        segment.allocated_size += b->state == ALLOT_BLOCK_ALLOCATED ? b->size : 0;
        segment.active_size += b->state != ALLOT_BLOCK_INACTIVE ? b->size : 0;
    }
    CHECK_OK(alloti_builder_add_segment(builder, &segment));
    for (uint32_t i = first; i < past; i++) {
        const allot_torch_block *const b = &end->blocks[i];
        const allot_block block = {.address = b->address,
                                   .size = b->size,
                                   .requested_size = b->requested_size,
                                   .stack = ALLOT_NONE,
                                   .context = ALLOT_NONE,
                                   .metadata = ALLOT_NONE,
                                   .state = (uint8_t)b->state};
        CHECK_OK(alloti_builder_add_block(builder, &block));
    }
}

/* The trace from event `first` on, as a ring buffer would have kept it. */
static allot_trace *make_trace(const program *p, uint32_t first)
{
    alloti_builder *builder = NULL;
    uint32_t device = 0;
    allot_trace *trace = NULL;
    CHECK_OK(alloti_builder_create(&builder));
    CHECK_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device));
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_REQUESTED);
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_ADDRESSES);
    add_setting(builder, p->settings);
    for (uint32_t i = first; i < p->event_count; i++) {
        alloti_event event = ALLOTI_EVENT_INIT;
        event.kind = p->events[i].kind;
        event.addr = p->events[i].address;
        event.size = p->events[i].size;
        event.stream = stream_id(builder, p->events[i].stream);
        CHECK_OK(alloti_builder_add_event(builder, device, &event));
    }
    for (uint32_t at = 0; at < p->end.block_count;) {
        const uint32_t past = segment_end(&p->end, at);
        add_segment(builder, &p->end, at, past);
        at = past;
    }
    CHECK_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace));
    return trace;
}

/* Event of the cut trace after which `event_count` events of the whole one have happened. */
static uint32_t event_after(uint32_t event_count, uint32_t first)
{
    return event_count == first ? ALLOT_NONE : event_count - first - 1;
}

/*
 * Bytes that a cut history cannot know of: the rest of a block from before the cut that has a free
 * range behind it and is freed before anything is put there. At most 1 MiB for each such block.
 */
static uint64_t hidden_max(const program *p, const allot_history *history, uint32_t first)
{
    allot_history_counts counts;
    allot_history_get_counts(history, &counts);
    const bool has_rests = strstr(p->settings, "expandable") == NULL;
    return has_rests && first != 0 ? counts.initial_freed << 20 : 0;
}

static void compare_sums(const program *p, const allot_history *history, uint32_t first)
{
    const uint64_t hidden = hidden_max(p, history, first);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        const mark *const m = &p->marks[i];
        if (m->event_count < first) {
            continue;
        }
        const uint32_t event = event_after(m->event_count, first);
        CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_RESERVED, event), m->reserved);
        const uint64_t active = allot_history_value(history, ALLOT_MEASURE_ACTIVE, event);
        CHECK(active <= m->active && m->active - active <= hidden);
        /* A block let go before the cut is known to be so only from its later events. */
        if (first == 0) {
            CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, event), m->allocated);
        }
    }
}

static void compare_picture(const picture *want, const allot_history *history, uint32_t first)
{
    if (want->event_count < first) {
        return;
    }
    allot_moment *moment = NULL;
    REQUIRE_OK(allot_history_at(history, event_after(want->event_count, first), &moment));
    uint32_t count = 0;
    const allot_moment_block *const blocks = allot_moment_blocks(moment, &count);
    CHECK_EQ(count, want->block_count);
    for (uint32_t i = 0; i < count && i < want->block_count; i++) {
        CHECK_EQ(blocks[i].address, want->blocks[i].address);
        CHECK_EQ(blocks[i].size, want->blocks[i].size);
        CHECK_EQ(blocks[i].allocation == ALLOT_NONE, want->blocks[i].state == ALLOT_BLOCK_INACTIVE);
    }
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    CHECK_EQ(totals.outside_count, 0);
    CHECK_EQ(totals.reserved, totals.active + totals.free_size);
    allot_moment_destroy(moment);
}

static void compare_from(const program *p, uint32_t first)
{
    allot_trace *const trace = make_trace(p, first);
    allot_history *history = NULL;
    REQUIRE_OK(allot_history_create(trace, 0, NULL, &history));
    CHECK_OK(alloti_history_check(history));
    compare_sums(p, history, first);
    compare_picture(&p->end, history, first);
    for (uint32_t i = 0; i < MOMENTS && hidden_max(p, history, first) == 0; i++) {
        compare_picture(&p->moments[i], history, first);
    }
    allot_history_destroy(history);
    allot_trace_destroy(trace);
}

static void run_rounds(const char *settings, bool is_cut)
{
    uint64_t random = check_seed();
    program *const p = malloc(sizeof *p);
    REQUIRE(p != NULL);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        memset(p, 0, sizeof *p);
        p->random = check_random(&random);
        p->settings = settings;
        run_program(p);
        const uint32_t operation = (uint32_t)check_random_range(&random, 0, OPERATIONS - 1);
        compare_from(p, is_cut ? p->marks[operation].event_count : 0);
    }
    free(p);
}

static void whole_histories_have_the_models_sums_and_blocks(void)
{
    run_rounds("", false);
}

static void cut_histories_have_the_models_sums_and_blocks(void)
{
    run_rounds("", true);
}

static void expandable_histories_have_the_models_sums_and_blocks(void)
{
    run_rounds("expandable_segments:True", false);
}

static void cut_expandable_histories_have_the_models_sums_and_blocks(void)
{
    run_rounds("expandable_segments:True", true);
}

static void limited_splitting_is_understood(void)
{
    run_rounds("max_split_size_mb:64", false);
}

static void roundup_is_understood(void)
{
    run_rounds("roundup_power2_divisions:[16:8,>:4]", false);
}

/* An event of no program: contradictory, overlapping, with sizes up to the largest. */
static void add_nonsense(alloti_builder *builder, uint32_t device, uint64_t *random)
{
    static const uint64_t SIZES[] = {0, 1, 511, 512, 1 << 20, 3 << 20, 64 << 20, UINT64_MAX};
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = (allot_event_kind)check_random_range(random, 0, ALLOT_EVENT_KIND_COUNT - 1);
    event.addr = check_random_range(random, 0, 15) << check_random_range(random, 18, 60);
    event.size = SIZES[check_random_range(random, 0, sizeof SIZES / sizeof SIZES[0] - 1)];
    event.stream = stream_id(builder, check_random_range(random, 0, 2));
    CHECK_OK(alloti_builder_add_event(builder, device, &event));
}

static void add_nonsense_segment(alloti_builder *builder, uint64_t *random)
{
    const allot_segment segment = {
        .address = check_random_range(random, 0, 15) << check_random_range(random, 18, 60),
        .total_size = check_random(random) >> check_random_range(random, 0, 50),
        .stream = stream_id(builder, 0),
        .pool = ALLOT_NONE,
        .stack = ALLOT_NONE,
        .is_large = check_random_range(random, 0, 1) == 0,
        .is_expandable = check_random_range(random, 0, 1) == 0};
    CHECK_OK(alloti_builder_add_segment(builder, &segment));
    for (uint64_t i = check_random_range(random, 0, 4); i > 0; i--) {
        const allot_block block = {
            .address = segment.address + (check_random_range(random, 0, 7) << 18),
            .size = check_random(random) >> check_random_range(random, 0, 60),
            .requested_size = check_random(random) >> check_random_range(random, 0, 60),
            .stack = ALLOT_NONE,
            .context = ALLOT_NONE,
            .metadata = ALLOT_NONE,
            .state = (uint8_t)check_random_range(random, 0, 2)};
        CHECK_OK(alloti_builder_add_block(builder, &block));
    }
}

/* Ask for everything that can be asked of a history. */
static void ask_everything(const allot_trace *trace)
{
    allot_history *history = NULL;
    allot_lines *lines = NULL;
    allot_categories *categories = NULL;
    allot_leaks leaks = {0};
    REQUIRE_OK(allot_history_create(trace, 0, NULL, &history));
    CHECK_OK(allot_lines_create(trace, NULL, &lines));
    CHECK_OK(allot_categories_create(history, &categories));
    CHECK_OK(allot_leaks_init(history, lines, NULL, &leaks));
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    for (uint32_t i = 0; i <= events.count; i++) {
        const uint32_t event = i == events.count ? ALLOT_NONE : i;
        allot_moment *moment = NULL;
        REQUIRE_OK(allot_history_at(history, event, &moment));
        allot_groups groups = {0};
        CHECK_OK(allot_groups_init(moment, ALLOT_GROUP_LINE, lines, categories, &groups));
        allot_groups_fini(&groups);
        if (event != ALLOT_NONE && events.kind[i] == ALLOT_EVENT_OOM) {
            allot_oom oom;
            CHECK_OK(allot_oom_init(moment, lines, &oom));
            allot_oom_fini(&oom);
        }
        allot_moment_destroy(moment);
    }
    allot_diff diff;
    CHECK_OK(allot_diff_init(history, history, NULL, &diff));
    allot_diff_fini(&diff);
    allot_leaks_fini(&leaks);
    allot_categories_destroy(categories);
    allot_lines_destroy(lines);
    allot_history_destroy(history);
}

static void nonsense_is_survived(void)
{
    uint64_t random = check_seed();
    for (uint32_t round = 0; round < 300; round++) {
        alloti_builder *builder = NULL;
        uint32_t device = 0;
        allot_trace *trace = NULL;
        CHECK_OK(alloti_builder_create(&builder));
        CHECK_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device));
        alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_REQUESTED);
        if (round % 4 != 0) {
            alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_ADDRESSES);
        }
        for (uint64_t i = check_random_range(&random, 0, 80); i > 0; i--) {
            add_nonsense(builder, device, &random);
        }
        for (uint64_t i = check_random_range(&random, 0, 5); i > 0; i--) {
            add_nonsense_segment(builder, &random);
        }
        CHECK_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace));
        ask_everything(trace);
        allot_trace_destroy(trace);
    }
}

static const check_test TESTS[] = {
    {"nonsense_is_survived", nonsense_is_survived},
    {"whole_histories_have_the_models_sums_and_blocks",
     whole_histories_have_the_models_sums_and_blocks},
    {"cut_histories_have_the_models_sums_and_blocks",
     cut_histories_have_the_models_sums_and_blocks},
    {"expandable_histories_have_the_models_sums_and_blocks",
     expandable_histories_have_the_models_sums_and_blocks},
    {"cut_expandable_histories_have_the_models_sums_and_blocks",
     cut_expandable_histories_have_the_models_sums_and_blocks},
    {"limited_splitting_is_understood", limited_splitting_is_understood},
    {"roundup_is_understood", roundup_is_understood},
};

CHECK_MAIN(TESTS)
