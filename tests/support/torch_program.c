/* SPDX-License-Identifier: MIT */
#include "support/torch_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "trace/builder.h"

#define MIB (1ull << 20)

allot_torch_conf torch_program_conf(uint64_t *state, bool expandable)
{
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    conf.expandable_segments = expandable;
    if (check_random_range(state, 0, 4) == 0) {
        conf.large_segment_size = 2 * check_random_range(state, 6, 16) * MIB;
        conf.max_non_split_rounding = conf.large_segment_size;
    }
    if (check_random_range(state, 0, 2) == 0) {
        const uint64_t least = conf.large_segment_size / MIB;
        conf.max_split_size = check_random_range(state, least, 200) * MIB;
        if (check_random_range(state, 0, 1) == 0) {
            conf.max_non_split_rounding = check_random_range(state, least, 60) * MIB;
        }
    }
    if (check_random_range(state, 0, 2) == 0) {
        conf.garbage_collection_threshold = (double)check_random_range(state, 1, 19) / 20;
    }
    if (check_random_range(state, 0, 2) == 0) {
        for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
            conf.roundup_power2_divisions[i] = 1u << check_random_range(state, 0, 4);
        }
    }
    return conf;
}

torch_program torch_program_random(uint64_t *state)
{
    torch_program program = {
        .seed = check_random(state),
        .operation_count = (uint32_t)check_random_range(state, 200, 1200),
        .stream_count = (uint32_t)check_random_range(state, 1, 3),
        .pool_count = (uint32_t)check_random_range(state, 0, 2),
        .shares = check_random_range(state, 0, 1) == 0,
        .empties = check_random_range(state, 0, 1) == 0,
        .size_max = check_random_range(state, 4, 200) * MIB,
        .version = ALLOT_TORCH_VERSION_NEWEST,
    };
    program.conf = torch_program_conf(state, check_random_range(state, 0, 1) == 0);
    program.limit = check_random_range(state, 200, 4000) * 2 * MIB;
    if (check_random_range(state, 0, 1) == 0) {
        program.fraction = (double)check_random_range(state, 10, 20) / 20;
    }
    return program;
}

uint64_t torch_program_size(uint64_t *state, uint64_t largest)
{
    static const uint64_t COMMON[] = {512, 4096, 300000, MIB, MIB + 1, 5 * MIB, 10 * MIB, 22 * MIB};
    uint64_t size = largest;
    switch (check_random_range(state, 0, 3)) {
    case 0:
        size = check_random_range(state, 1, 4096);
        break;
    case 1:
        size = check_random_range(state, 4096, MIB);
        break;
    case 2:
        size = check_random_range(state, MIB, largest);
        break;
    default:
        size = COMMON[check_random_range(state, 0, sizeof(COMMON) / sizeof(COMMON[0]) - 1)];
        break;
    }
    return size < largest ? size : largest;
}

torch_action torch_program_next(const torch_program *program, uint64_t *state, uint64_t live_count)
{
    const uint64_t dice = check_random_range(state, 0, 999);
    if (program->empties && dice < 8) {
        return TORCH_EMPTY;
    }
    if (live_count > 0 && program->shares && dice < 120) {
        return TORCH_SHARE;
    }
    return live_count == 0 || dice < 560 ? TORCH_ALLOC : TORCH_FREE;
}

/** What the allocator did so far. */
typedef struct recording {
    allot_torch_event *events;
    uint64_t count;
    uint64_t capacity;
    bool has_failed;
} recording;

static void record(void *context, const allot_torch_event *event)
{
    recording *into = context;
    if (into->count == into->capacity) {
        into->capacity = into->capacity == 0 ? 1024 : 2 * into->capacity;
        allot_torch_event *grown =
            realloc(into->events, (size_t)into->capacity * sizeof(*into->events));
        if (grown == NULL) {
            into->has_failed = true;
            into->capacity = into->count;
            return;
        }
        into->events = grown;
    }
    into->events[into->count++] = *event;
}

/** The blocks that the program holds. */
typedef struct holding {
    uint32_t *blocks;
    uint64_t count;
} holding;

static uint32_t take_any(holding *live, uint64_t *state)
{
    const uint64_t at = check_random_range(state, 0, live->count - 1);
    const uint32_t block = live->blocks[at];
    live->blocks[at] = live->blocks[--live->count];
    return block;
}

static void drop_some(allot_torchsim *sim, holding *live, uint64_t *state)
{
    for (uint64_t i = live->count / 8 + 1; i > 0 && live->count > 0; i--) {
        CHECK_OK(allot_torchsim_free(sim, take_any(live, state)));
    }
}

static void act(allot_torchsim *sim, const torch_program *program, holding *live, uint64_t *state)
{
    const uint64_t stream = 16 * check_random_range(state, 0, program->stream_count - 1);
    switch (torch_program_next(program, state, live->count)) {
    case TORCH_ALLOC: {
        const uint64_t size = torch_program_size(state, program->size_max);
        const uint32_t pool = (uint32_t)check_random_range(state, 0, program->pool_count);
        uint32_t block = 0;
        const allot_status status =
            allot_torchsim_alloc(sim, size, stream, pool == 0 ? ALLOT_NONE : pool - 1, &block);
        if (status == ALLOT_STATUS_OK) {
            live->blocks[live->count++] = block;
        } else {
            CHECK(status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED);
            drop_some(sim, live, state);
        }
        break;
    }
    case TORCH_FREE:
        CHECK_OK(allot_torchsim_free(sim, take_any(live, state)));
        break;
    case TORCH_SHARE: {
        const uint32_t block = take_any(live, state);
        CHECK_OK(allot_torchsim_record_stream(sim, block, stream));
        CHECK_OK(allot_torchsim_free(sim, block));
        break;
    }
    case TORCH_EMPTY:
        CHECK_OK(allot_torchsim_empty_cache(sim));
        break;
    }
}

static allot_status add_setting(alloti_builder *builder, const char *key, allot_setting_type type,
                                int64_t integer, double number)
{
    allot_setting setting = {.type = type, .integer = integer, .number = number};
    const allot_status status =
        alloti_builder_intern_string(builder, key, strlen(key), &setting.key);
    return status == ALLOT_STATUS_OK ? alloti_builder_add_setting(builder, &setting) : status;
}

static bool add_settings(alloti_builder *builder, const allot_torch_conf *conf)
{
    const int64_t split =
        conf->max_split_size == ALLOT_TORCH_UNLIMITED ? -1 : (int64_t)conf->max_split_size;
    bool ok = CHECK_OK(add_setting(builder, "max_split_size", ALLOT_SETTING_INT, split, 0)) &&
              CHECK_OK(add_setting(builder, "garbage_collection_threshold", ALLOT_SETTING_FLOAT, 0,
                                   conf->garbage_collection_threshold)) &&
              CHECK_OK(add_setting(builder, "expandable_segments", ALLOT_SETTING_BOOL,
                                   conf->expandable_segments, 0));
    /* Written from 2.13 on. */
    ok = ok && CHECK_OK(add_setting(builder, "max_cached_size", ALLOT_SETTING_INT, -1, 0));
    for (uint32_t i = 0; ok && i < ALLOT_TORCH_INTERVALS; i++) {
        char key[48];
        (void)snprintf(key, sizeof(key), "roundup_power2_divisions.%lu", 1ul << i);
        ok = CHECK_OK(
            add_setting(builder, key, ALLOT_SETTING_INT, conf->roundup_power2_divisions[i], 0));
    }
    /* What has no value of its own in a snapshot is in the string. */
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(conf, text);
    allot_setting setting = {.type = ALLOT_SETTING_STRING};
    const char *key = "PYTORCH_CUDA_ALLOC_CONF";
    return ok && CHECK_OK(alloti_builder_intern_string(builder, key, strlen(key), &setting.key)) &&
           CHECK_OK(alloti_builder_intern_string(builder, text, strlen(text), &setting.string)) &&
           CHECK_OK(alloti_builder_add_setting(builder, &setting));
}

static bool intern(alloti_builder *builder, uint64_t stream, uint32_t pool, uint32_t *stream_id,
                   uint32_t *pool_id)
{
    const allot_pool_id id = {0, pool == ALLOT_NONE ? 0 : (uint64_t)pool + 1};
    return CHECK_OK(alloti_builder_intern_stream(builder, stream, stream_id)) &&
           CHECK_OK(alloti_builder_intern_pool(builder, id, pool_id));
}

static bool add_events(alloti_builder *builder, uint32_t device, const recording *from,
                       uint64_t first)
{
    bool ok = true;
    for (uint64_t i = first; ok && i < from->count; i++) {
        alloti_event event = ALLOTI_EVENT_INIT;
        event.kind = from->events[i].kind;
        event.addr = from->events[i].address;
        event.size = from->events[i].size;
        event.time_ns = (int64_t)i;
        ok = intern(builder, from->events[i].stream, from->events[i].pool, &event.stream,
                    &event.pool) &&
             CHECK_OK(alloti_builder_add_event(builder, device, &event));
    }
    return ok;
}

/** Walks the blocks and adds a segment for each mapped stretch. */
typedef struct writing {
    alloti_builder *builder;
    uint32_t device;
    allot_segment segment;
    allot_block *blocks;
    uint64_t count;
    uint64_t capacity;
    uint64_t chain;
    bool ok;
} writing;

static void end_segment(writing *out)
{
    if (out->count > 0) {
        out->ok = out->ok && CHECK_OK(alloti_builder_add_segment(out->builder, &out->segment));
        for (uint64_t i = 0; out->ok && i < out->count; i++) {
            out->ok = CHECK_OK(alloti_builder_add_block(out->builder, &out->blocks[i]));
        }
    }
    out->count = 0;
}

static bool visit(void *context, const allot_torch_block *block)
{
    writing *out = context;
    if (block->segment != out->chain || !block->is_mapped) {
        end_segment(out);
        out->chain = block->segment;
    }
    if (!block->is_mapped) {
        return out->ok;
    }
    if (out->count == 0) {
        out->segment = (allot_segment){.address = block->address,
                                       .device = out->device,
                                       .stack = ALLOT_NONE,
                                       .is_large = block->is_large,
                                       .is_expandable = block->is_expandable};
        out->ok = out->ok && intern(out->builder, block->stream, block->pool, &out->segment.stream,
                                    &out->segment.pool);
    }
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 64 : 2 * out->capacity;
        out->blocks = realloc(out->blocks, (size_t)out->capacity * sizeof(*out->blocks));
    }
    out->segment.total_size += block->size;
    out->blocks[out->count++] = (allot_block){.address = block->address,
                                              .size = block->size,
                                              .requested_size = block->requested_size,
                                              .stack = ALLOT_NONE,
                                              .context = ALLOT_NONE,
                                              .metadata = ALLOT_NONE,
                                              .state = (uint8_t)block->state};
    return out->ok;
}

static allot_trace *write_trace(const torch_program *program, const allot_torchsim *sim,
                                const recording *from, uint64_t first)
{
    alloti_builder *builder = NULL;
    uint32_t device = 0;
    if (!CHECK_OK(alloti_builder_create(&builder))) {
        return NULL;
    }
    bool ok = CHECK_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device)) &&
              add_settings(builder, &program->conf) && add_events(builder, device, from, first);
    writing out = {.builder = builder, .device = device, .chain = UINT64_MAX, .ok = ok};
    allot_torchsim_walk(sim, visit, &out);
    end_segment(&out);
    free(out.blocks);
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_ADDRESSES);
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_REQUESTED);
    allot_trace *trace = NULL;
    if (!out.ok ||
        !CHECK_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace))) {
        alloti_builder_destroy(builder);
        return NULL;
    }
    return trace;
}

allot_trace *torch_program_record(const torch_program *program, uint32_t dropped)
{
    recording events = {.count = 0};
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .conf = &program->conf,
                                            .limit = program->limit,
                                            .fraction = program->fraction,
                                            .version = program->version,
                                            .on_event = record,
                                            .on_event_context = &events};
    allot_torchsim *sim = NULL;
    holding live = {.blocks = malloc(program->operation_count * sizeof(*live.blocks))};
    bool ok = live.blocks != NULL && CHECK_OK(allot_torchsim_create(&options, &sim));
    for (uint32_t i = 0; ok && i < program->pool_count; i++) {
        ok = CHECK_OK(allot_torchsim_pool_create(sim, NULL, NULL));
    }
    uint64_t state = program->seed;
    for (uint32_t i = 0; ok && i < program->operation_count; i++) {
        act(sim, program, &live, &state);
        ok = !events.has_failed;
    }
    const uint64_t first = dropped == ALLOT_NONE ? events.count / 2 : dropped;
    allot_trace *trace =
        ok ? write_trace(program, sim, &events, first < events.count ? first : events.count) : NULL;
    allot_torchsim_destroy(sim);
    free(live.blocks);
    free(events.events);
    return trace;
}
