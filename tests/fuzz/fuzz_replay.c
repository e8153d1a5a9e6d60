/* SPDX-License-Identifier: MIT */
/* Bytes as a recorded history, mostly nonsense: extracting requests, checking and replaying them
 * may fail, never crash. */
#include <allot/replay.h>

#include "trace/builder.h"

#include <stdlib.h>

enum { EVENT_MAX = 400, SEGMENT_MAX = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint8_t next_byte(input *in)
{
    if (in->size == 0) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

/** Addresses on a coarse grid collide often; now and then one near the end of the range. */
static uint64_t next_address(input *in)
{
    const uint8_t value = next_byte(in);
    return value == 255 ? UINT64_MAX - 511 : 0x10000000ull + (uint64_t)value % 32 * 0x80000ull;
}

static uint64_t next_size(input *in)
{
    static const uint64_t SIZES[] = {512,     1000,    0x80000,  0x100000, 0x200000, 0x1400000,
                                     0x40000, 0x80200, 0x280000, 0,        1,        UINT64_MAX};
    return SIZES[next_byte(in) % (sizeof(SIZES) / sizeof(SIZES[0]))];
}

static allot_status add_event(alloti_builder *builder, input *in)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    const uint8_t kind = next_byte(in);
    event.kind = (allot_event_kind)(kind % ALLOT_EVENT_KIND_COUNT);
    event.addr = next_address(in);
    event.size = next_size(in);
    allot_status status = alloti_builder_intern_stream(builder, kind / 64, &event.stream);
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_builder_intern_pool(builder, (allot_pool_id){0, kind / 32 % 2}, &event.pool);
    }
    return status == ALLOT_STATUS_OK ? alloti_builder_add_event(builder, 0, &event) : status;
}

/** A segment of one to three blocks that fill it, at a place that may be taken. */
static allot_status add_segment(alloti_builder *builder, input *in)
{
    const uint8_t how = next_byte(in);
    allot_segment segment = {.address = next_address(in),
                             .stack = ALLOT_NONE,
                             .is_large = (how & 1) != 0,
                             .is_expandable = (how & 2) != 0};
    allot_block blocks[3];
    const unsigned count = 1 + how / 4 % 3;
    uint64_t address = segment.address;
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = (allot_block){.address = address,
                                  .size = next_size(in),
                                  .requested_size = next_size(in),
                                  .stack = ALLOT_NONE,
                                  .context = ALLOT_NONE,
                                  .metadata = ALLOT_NONE,
                                  .state = next_byte(in) % 3};
        address += blocks[i].size;
        segment.total_size += blocks[i].size;
    }
    allot_status status = alloti_builder_intern_stream(builder, how / 64, &segment.stream);
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_builder_intern_pool(builder, (allot_pool_id){0, how / 32 % 2}, &segment.pool);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_segment(builder, &segment);
    }
    for (unsigned i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        status = alloti_builder_add_block(builder, &blocks[i]);
    }
    return status;
}

static allot_trace *make_trace(input *in)
{
    alloti_builder *builder = NULL;
    uint32_t device = 0;
    allot_trace *trace = NULL;
    allot_status status = alloti_builder_create(&builder);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device);
    }
    const unsigned segments = next_byte(in) % SEGMENT_MAX;
    for (unsigned i = 0; status == ALLOT_STATUS_OK && i < segments; i++) {
        status = add_segment(builder, in);
    }
    for (unsigned i = 0; status == ALLOT_STATUS_OK && i < EVENT_MAX && in->size > 0; i++) {
        status = add_event(builder, in);
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_ADDRESSES);
        status = alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace);
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_builder_destroy(builder);
    }
    return trace;
}

static void replay(const allot_requests *requests, const char *model, uint64_t limit)
{
    const allot_replay_options options = {.struct_size = sizeof(options),
                                          .model = model,
                                          .limit = limit,
                                          .continue_after_oom = true,
                                          .sample_count = 5};
    allot_replay_result *result = NULL;
    if (allot_replay_run(requests, &options, &result) == ALLOT_STATUS_OK) {
        allot_replay_result_destroy(result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    const uint64_t limit = (uint64_t)next_byte(&in) << 22;
    allot_trace *trace = make_trace(&in);
    allot_requests *requests = NULL;
    if (trace != NULL &&
        allot_requests_create(trace, ALLOT_NONE, &requests, NULL) == ALLOT_STATUS_OK) {
        const allot_replay_check_options options = {.struct_size = sizeof(options), .limit = limit};
        allot_replay_check_result result;
        const allot_status status = allot_replay_check(requests, &options, &result);
        (void)status;
        replay(requests, NULL, 0);
        replay(requests, "torch:expandable_segments:True", limit);
        replay(requests, "torch:max_split_size_mb:20", limit);
        replay(requests, "space:first-fit", limit);
        replay(requests, "space:tiered:streams=apart", limit);
        replay(requests, "space:buddy:mode=segments,segment=2MiB", limit);
        replay(requests, "heap:best-fit:blocks=handles,compact=auto", limit);
        replay(requests,
               "heap:first-fit:mode=segments,segment=2MiB,blocks=handles,compact=steps,step=1MiB",
               limit);
        replay(requests, "heap:adaptive", 0);
    }
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
    return 0;
}
