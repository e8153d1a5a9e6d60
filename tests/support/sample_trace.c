/* SPDX-License-Identifier: MIT */
#include "support/sample_trace.h"

#include <string.h>

#include "support/check.h"
#include "trace/builder.h"

/** What the sample's pieces refer to. */
typedef struct sample {
    alloti_builder *builder;
    uint32_t gpu;
    uint32_t streams[2];
    uint32_t pools[2];
    uint32_t stacks[3]; /**< Two frames; one frame with torch.fx; none. */
    bool with_categories;
    uint64_t allocated;
} sample;

static const uint64_t BASE = UINT64_C(0x7f0000000000);

static uint32_t string(sample *s, const char *text)
{
    uint32_t id = 0;
    CHECK_OK(alloti_builder_intern_string(s->builder, text, strlen(text), &id));
    return id;
}

static uint32_t frame(sample *s, const char *name, const char *file, uint32_t line, uint32_t fx)
{
    const allot_frame added = {
        .name = string(s, name), .filename = string(s, file), .line = line, .fx = fx};
    uint32_t id = 0;
    CHECK_OK(alloti_builder_intern_frame(s->builder, &added, &id));
    return id;
}

static void add_stacks(sample *s)
{
    const allot_frame_fx fx = {.node_op = string(s, "call_function"),
                               .node_name = string(s, "mul_1"),
                               .node_target = ALLOT_NONE,
                               .original_trace = string(s, "File \"m.py\", line 3\n  y = x * 2")};
    uint32_t fx_id = 0;
    CHECK_OK(alloti_builder_intern_fx(s->builder, &fx, &fx_id));
    const uint32_t frames[] = {
        frame(s, "forward", "C:\\model\\net.py", 12, ALLOT_NONE),
        frame(s, "main; \"quoted\", |odd|", "train.py", 88, ALLOT_NONE),
        frame(s, "mul", "net.py", 3, fx_id),
    };
    CHECK_OK(alloti_builder_intern_stack(s->builder, frames, 2, &s->stacks[0]));
    CHECK_OK(alloti_builder_intern_stack(s->builder, frames + 2, 1, &s->stacks[1]));
    CHECK_OK(alloti_builder_intern_stack(s->builder, NULL, 0, &s->stacks[2]));
}

/** One row; ids are indices into the sample's tables, -1 for none. */
typedef struct row {
    allot_event_kind kind;
    uint64_t addr;
    uint64_t size;
    int stream;
    int pool;
    int stack;
    const char *context;
    const char *metadata;
    allot_category category;
} row;

static void add_row(sample *s, const row *r, int64_t time_ns)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = r->kind;
    event.addr = r->addr;
    event.size = r->size;
    event.time_ns = time_ns;
    event.stream = s->streams[r->stream];
    event.pool = r->pool < 0 ? ALLOT_NONE : s->pools[r->pool];
    event.stack = r->stack < 0 ? ALLOT_NONE : s->stacks[r->stack];
    event.context = r->context == NULL ? ALLOT_NONE : string(s, r->context);
    event.metadata = r->metadata == NULL ? ALLOT_NONE : string(s, r->metadata);
    if (s->with_categories) {
        s->allocated += r->kind == ALLOT_EVENT_ALLOC ? r->size : 0;
        s->allocated -= r->kind == ALLOT_EVENT_FREE_COMPLETED ? r->size : 0;
        event.category = r->category;
        event.total_allocated = s->allocated;
        event.total_reserved = 40 << 20;
    }
    CHECK_OK(alloti_builder_add_event(s->builder, s->gpu, &event));
}

static void add_events(sample *s)
{
    const row rows[] = {
        {ALLOT_EVENT_SEGMENT_ALLOC, BASE, 2 << 20, 0, 0, 0, NULL, NULL, 0},
        {ALLOT_EVENT_ALLOC, BASE, 1000, 0, 0, 0, "N/A", NULL, ALLOT_CATEGORY_PARAMETER},
        {ALLOT_EVENT_ALLOC, BASE + 1024, 2000, 0, -1, 1, "graph 0/1", "kept, \"so\"\nlong", 0},
        {ALLOT_EVENT_ALLOC, BASE + 4096, 512, 1, 1, 2, NULL, "", ALLOT_CATEGORY_GRADIENT},
        {ALLOT_EVENT_FREE_REQUESTED, BASE, 1000, 0, 0, -1, NULL, NULL, 0},
        {ALLOT_EVENT_FREE_COMPLETED, BASE, 1000, 0, 0, -1, NULL, NULL, ALLOT_CATEGORY_PARAMETER},
        {ALLOT_EVENT_SEGMENT_MAP, BASE + (64 << 20), 20 << 20, 1, 1, 0, NULL, NULL, 0},
        {ALLOT_EVENT_SEGMENT_UNMAP, BASE + (64 << 20), 20 << 20, 1, 1, -1, NULL, NULL, 0},
        {ALLOT_EVENT_SEGMENT_ALLOC, BASE + (32 << 20), 2 << 20, 0, 0, 0, NULL, NULL, 0},
        {ALLOT_EVENT_SEGMENT_FREE, BASE + (32 << 20), 2 << 20, 0, 0, 0, NULL, NULL, 0},
        {ALLOT_EVENT_OOM, 4096, 1 << 30, 0, 0, 0, NULL, NULL, 0},
        {ALLOT_EVENT_SNAPSHOT, 0, 2560, 0, -1, -1, NULL, NULL, 0},
        {ALLOT_EVENT_USER_DEFINED, 0, 0, 0, -1, -1, NULL, "step 3", 0},
        {ALLOT_EVENT_WORKSPACE_SNAPSHOT, 0, 0, 0, -1, -1, NULL, NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        add_row(s, &rows[i], INT64_C(1700000000000000000) + (int64_t)i * 250000);
    }
}

static void add_segments(sample *s)
{
    const allot_segment gpu = {.address = BASE,
                               .total_size = 2 << 20,
                               .allocated_size = 2048,
                               .active_size = 2560,
                               .requested_size = 2512,
                               .device = s->gpu,
                               .stream = s->streams[0],
                               .pool = s->pools[0],
                               .stack = s->stacks[0]};
    const allot_block blocks[] = {
        {.address = BASE, .size = 1024, .requested_size = 1000, .stack = s->stacks[0]},
        {.address = BASE + 1024,
         .size = 2048,
         .requested_size = 2000,
         .stack = s->stacks[1],
         .state = ALLOT_BLOCK_ALLOCATED},
        {.address = BASE + 3072,
         .size = 1024,
         .requested_size = 512,
         .stack = s->stacks[2],
         .state = ALLOT_BLOCK_PENDING_FREE},
        {.address = BASE + 4096, .size = (2 << 20) - 4096, .stack = ALLOT_NONE},
    };
    CHECK_OK(alloti_builder_add_segment(s->builder, &gpu));
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        allot_block block = blocks[i];
        block.context = ALLOT_NONE;
        block.metadata = ALLOT_NONE;
        CHECK_OK(alloti_builder_add_block(s->builder, &block));
    }
    const allot_segment expandable = {.address = BASE + (96 << 20),
                                      .total_size = 20 << 20,
                                      .device = s->gpu,
                                      .stream = s->streams[1],
                                      .pool = s->pools[1],
                                      .stack = ALLOT_NONE,
                                      .is_large = true,
                                      .is_expandable = true};
    const allot_block whole = {.address = BASE + (96 << 20),
                               .size = 20 << 20,
                               .stack = ALLOT_NONE,
                               .context = ALLOT_NONE,
                               .metadata = ALLOT_NONE};
    CHECK_OK(alloti_builder_add_segment(s->builder, &expandable));
    CHECK_OK(alloti_builder_add_block(s->builder, &whole));
}

static void add_rest(sample *s)
{
    const allot_setting settings[] = {
        {.key = string(s, "PYTORCH_CUDA_ALLOC_CONF"),
         .type = ALLOT_SETTING_STRING,
         .string = string(s, "max_split_size_mb:128")},
        {.key = string(s, "max_split_size"), .type = ALLOT_SETTING_INT, .integer = -1},
        {.key = string(s, "garbage_collection_threshold"),
         .type = ALLOT_SETTING_FLOAT,
         .number = 0.1},
        {.key = string(s, "expandable_segments"), .type = ALLOT_SETTING_BOOL, .integer = 1},
        {.key = string(s, "roundup_power2_divisions.1"), .type = ALLOT_SETTING_INT, .integer = 4},
        {.key = string(s, "roundup_power2_divisions.2"), .type = ALLOT_SETTING_INT, .integer = 8},
        {.key = string(s, "backend"), .type = ALLOT_SETTING_NONE},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        CHECK_OK(alloti_builder_add_setting(s->builder, &settings[i]));
    }
    const int64_t start = INT64_C(1700000000000100000);
    const allot_annotation annotations[] = {
        {.name = string(s, "step"), .time_ns = start, .is_start = true},
        {.name = string(s, "Optimizer.step"), .time_ns = start + 1000000, .is_start = true},
        {.name = string(s, "Optimizer.step"), .time_ns = start + 2000000},
        {.name = string(s, "step"), .time_ns = start + 3000000},
    };
    for (size_t i = 0; i < sizeof annotations / sizeof annotations[0]; i++) {
        CHECK_OK(alloti_builder_add_annotation(s->builder, &annotations[i]));
    }
}

allot_trace *sample_trace(bool with_categories)
{
    sample s = {.with_categories = with_categories};
    uint32_t empty = 0;
    allot_trace *trace = NULL;
    if (!CHECK_OK(alloti_builder_create(&s.builder))) {
        return NULL;
    }
    CHECK_OK(alloti_builder_device(s.builder, ALLOT_MEMORY_DEVICE, 0, &s.gpu));
    CHECK_OK(alloti_builder_device(s.builder, ALLOT_MEMORY_DEVICE, 1, &empty));
    CHECK_OK(alloti_builder_intern_stream(s.builder, 0, &s.streams[0]));
    CHECK_OK(alloti_builder_intern_stream(s.builder, UINT64_C(0x55d0c0ffee00), &s.streams[1]));
    CHECK_OK(alloti_builder_intern_pool(s.builder, (allot_pool_id){0, 0}, &s.pools[0]));
    CHECK_OK(alloti_builder_intern_pool(s.builder, (allot_pool_id){0, 7}, &s.pools[1]));
    add_stacks(&s);
    add_events(&s);
    add_segments(&s);
    add_rest(&s);
    alloti_builder_set_trait(s.builder, ALLOT_TRACE_HAS_ADDRESSES);
    alloti_builder_set_trait(s.builder, ALLOT_TRACE_HAS_REQUESTED);
    if (with_categories) {
        alloti_builder_set_trait(s.builder, ALLOT_TRACE_HAS_CATEGORIES);
    }
    if (!CHECK_OK(alloti_builder_finish(s.builder, ALLOT_TRACE_FORMAT_AUTO, &trace))) {
        alloti_builder_destroy(s.builder);
    }
    return trace;
}
