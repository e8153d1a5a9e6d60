/* SPDX-License-Identifier: MIT */
#include "support/sim_trace.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "trace/builder.h"

enum { BLOCKS_MAX = 65536 };

struct sim_trace {
    allot_torchsim *sim;
    alloti_builder *builder;
    uint32_t device;
    uint32_t stream;
    uint32_t line; /* of the call that is being made */
    int64_t time_ns;
    allot_torch_block blocks[BLOCKS_MAX]; /* at the end */
    size_t block_count;
};

static uint32_t string(sim_trace *s, const char *text)
{
    uint32_t id = ALLOT_NONE;
    CHECK_OK(alloti_builder_intern_string(s->builder, text, strlen(text), &id));
    return id;
}

static uint32_t stack(sim_trace *s)
{
    const allot_frame frame = {.name = string(s, "main"),
                               .filename = string(s, "program.py"),
                               .line = s->line,
                               .fx = ALLOT_NONE};
    uint32_t id = ALLOT_NONE;
    uint32_t out = ALLOT_NONE;
    CHECK_OK(alloti_builder_intern_frame(s->builder, &frame, &id));
    CHECK_OK(alloti_builder_intern_stack(s->builder, &id, 1, &out));
    return out;
}

static void record(void *context, const allot_torch_event *made)
{
    sim_trace *const s = context;
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = made->kind;
    event.addr = made->address;
    event.size = made->size;
    event.stream = s->stream;
    event.stack = stack(s);
    event.time_ns = s->time_ns += 1000;
    CHECK_OK(alloti_builder_add_event(s->builder, s->device, &event));
}

/** Settings as a snapshot has them, as far as the reader of settings asks for them. */
static void add_settings(sim_trace *s, const char *settings)
{
    const allot_setting text = {.key = string(s, "PYTORCH_CUDA_ALLOC_CONF"),
                                .type = ALLOT_SETTING_STRING,
                                .string = string(s, settings)};
    CHECK_OK(alloti_builder_add_setting(s->builder, &text));
}

sim_trace *sim_trace_begin(const char *settings, uint64_t limit)
{
    sim_trace *const s = calloc(1, sizeof *s);
    allot_torch_conf conf;
    if (!CHECK(s != NULL) || !CHECK_OK(allot_torch_conf_parse(settings, &conf, NULL))) {
        abort();
    }
    const allot_torchsim_options options = {.struct_size = sizeof options,
                                            .conf = &conf,
                                            .limit = limit,
                                            .completion = ALLOT_TORCH_COMPLETE_ON_CALL,
                                            .on_event = record,
                                            .on_event_context = s};
    s->time_ns = 1000000;
    CHECK_OK(alloti_builder_create(&s->builder));
    CHECK_OK(alloti_builder_device(s->builder, ALLOT_MEMORY_DEVICE, 0, &s->device));
    CHECK_OK(alloti_builder_intern_stream(s->builder, 0, &s->stream));
    alloti_builder_set_trait(s->builder, ALLOT_TRACE_HAS_REQUESTED);
    alloti_builder_set_trait(s->builder, ALLOT_TRACE_HAS_ADDRESSES);
    add_settings(s, settings);
    CHECK_OK(allot_torchsim_create(&options, &s->sim));
    return s;
}

uint32_t sim_trace_alloc(sim_trace *sim, uint64_t size, uint32_t line)
{
    uint32_t block = ALLOT_NONE;
    sim->line = line;
    const allot_status status = allot_torchsim_alloc(sim->sim, size, 0, ALLOT_NONE, &block);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_DEVICE_MEMORY ||
          status == ALLOT_STATUS_FRAGMENTED);
    return status == ALLOT_STATUS_OK ? block : ALLOT_NONE;
}

void sim_trace_empty_cache(sim_trace *s)
{
    CHECK_OK(allot_torchsim_empty_cache(s->sim));
}

void sim_trace_free_shared(sim_trace *s, uint32_t block)
{
    CHECK_OK(allot_torchsim_record_stream(s->sim, block, 7));
    CHECK_OK(allot_torchsim_free(s->sim, block));
}

void sim_trace_free(sim_trace *sim, uint32_t block)
{
    CHECK_OK(allot_torchsim_free(sim->sim, block));
}

static bool collect(void *context, const allot_torch_block *block)
{
    sim_trace *const s = context;
    if (block->is_mapped) {
        s->blocks[s->block_count++] = *block;
    }
    return CHECK(s->block_count < BLOCKS_MAX);
}

static int by_address(const void *a, const void *b)
{
    const uint64_t x = ((const allot_torch_block *)a)->address;
    const uint64_t y = ((const allot_torch_block *)b)->address;
    return (x > y) - (x < y);
}

/** One past the blocks that make one segment: the same one, touching. */
static size_t segment_end(const sim_trace *s, size_t first)
{
    size_t end = first + 1;
    while (end < s->block_count && s->blocks[end].segment == s->blocks[first].segment &&
           s->blocks[end - 1].address + s->blocks[end - 1].size == s->blocks[end].address) {
        end++;
    }
    return end;
}

static void add_segment(sim_trace *s, size_t first, size_t end)
{
    allot_segment segment = {.address = s->blocks[first].address,
                             .device = s->device,
                             .stream = s->stream,
                             .pool = ALLOT_NONE,
                             .stack = ALLOT_NONE,
                             .is_large = s->blocks[first].is_large,
                             .is_expandable = s->blocks[first].is_expandable};
    for (size_t i = first; i < end; i++) {
        const allot_torch_block *const b = &s->blocks[i];
        const bool used = b->state != ALLOT_BLOCK_INACTIVE;
        segment.total_size += b->size;
        segment.allocated_size += b->state == ALLOT_BLOCK_ALLOCATED ? b->size : 0;
        segment.active_size += used ? b->size : 0;
        segment.requested_size += used ? b->requested_size : 0;
    }
    CHECK_OK(alloti_builder_add_segment(s->builder, &segment));
    for (size_t i = first; i < end; i++) {
        const allot_block block = {.address = s->blocks[i].address,
                                   .size = s->blocks[i].size,
                                   .requested_size = s->blocks[i].requested_size,
                                   .stack = ALLOT_NONE,
                                   .context = ALLOT_NONE,
                                   .metadata = ALLOT_NONE,
                                   .state = (uint8_t)s->blocks[i].state};
        CHECK_OK(alloti_builder_add_block(s->builder, &block));
    }
}

allot_trace *sim_trace_end(sim_trace *sim)
{
    allot_torchsim_walk(sim->sim, collect, sim);
    qsort(sim->blocks, sim->block_count, sizeof sim->blocks[0], by_address);
    for (size_t i = 0; i < sim->block_count;) {
        const size_t end = segment_end(sim, i);
        add_segment(sim, i, end);
        i = end;
    }
    allot_trace *trace = NULL;
    CHECK_OK(alloti_builder_finish(sim->builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace));
    allot_torchsim_destroy(sim->sim);
    free(sim);
    return trace;
}
