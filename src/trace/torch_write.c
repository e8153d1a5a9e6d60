/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace as a PyTorch memory snapshot, for PyTorch's own viewer and scripts.
 *
 * Strings, frames, stacks and pools are written once and recalled from the memo, which keeps the
 * file small; PyTorch itself shares frames, but not stacks. Keys that a trace has no value for are
 * left out, as the versions of PyTorch do that do not know them. What a snapshot cannot say is
 * lost: ordinary host memory, running totals, times below a microsecond.
 */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/pickle_out.h"
#include "trace/trace.h"

#define TORCH_WRITE_KEYS(X)                                                                        \
    X(segments)                                                                                    \
    X(device_traces)                                                                               \
    X(host_segments)                                                                               \
    X(host_traces)                                                                                 \
    X(allocator_settings)                                                                          \
    X(external_annotations)                                                                        \
    X(device)                                                                                      \
    X(address)                                                                                     \
    X(total_size)                                                                                  \
    X(allocated_size)                                                                              \
    X(active_size)                                                                                 \
    X(requested_size)                                                                              \
    X(stream)                                                                                      \
    X(segment_type)                                                                                \
    X(segment_pool_id)                                                                             \
    X(is_expandable)                                                                               \
    X(frames)                                                                                      \
    X(blocks)                                                                                      \
    X(size)                                                                                        \
    X(state)                                                                                       \
    X(action)                                                                                      \
    X(addr)                                                                                        \
    X(device_free)                                                                                 \
    X(time_us)                                                                                     \
    X(compile_context)                                                                             \
    X(user_metadata)                                                                               \
    X(pool_id)                                                                                     \
    X(category)                                                                                    \
    X(name)                                                                                        \
    X(filename)                                                                                    \
    X(line)                                                                                        \
    X(fx_node_op)                                                                                  \
    X(fx_node_name)                                                                                \
    X(fx_node_target)                                                                              \
    X(fx_original_trace)                                                                           \
    X(stage)                                                                                       \
    X(START)                                                                                       \
    X(END)                                                                                         \
    X(large)                                                                                       \
    X(small)                                                                                       \
    X(inactive)                                                                                    \
    X(active_allocated)                                                                            \
    X(active_pending_free)

/** Words that the format itself consists of. */
typedef enum word {
#define WORD_ENUM(text) W_##text,
    TORCH_WRITE_KEYS(WORD_ENUM)
#undef WORD_ENUM
        W_EVENTS,                                     /**< The spellings of allot_event_kind, */
    W_CATEGORIES = W_EVENTS + ALLOT_EVENT_KIND_COUNT, /**< of allot_category. */
    W_COUNT = W_CATEGORIES + ALLOT_CATEGORY_COUNT,
} word;

/** Numbers in the memo, ALLOT_NONE for what was not written yet. */
typedef struct torch_writer {
    const allot_trace *trace;
    alloti_pickle pickle;
    uint32_t words[W_COUNT];
    uint32_t *strings;
    uint32_t *frames;
    uint32_t *stacks;
    uint32_t *pools;
    bool has_categories;
} torch_writer;

static const char *word_text(word w)
{
    static const char *const TEXTS[] = {
#define WORD_TEXT(text) #text,
        TORCH_WRITE_KEYS(WORD_TEXT)
#undef WORD_TEXT
    };
    return w < W_EVENTS       ? TEXTS[w]
           : w < W_CATEGORIES ? allot_event_kind_name((allot_event_kind)(w - W_EVENTS))
                              : allot_category_name((allot_category)(w - W_CATEGORIES));
}

static void put_word(torch_writer *t, word w)
{
    if (t->words[w] != ALLOT_NONE) {
        alloti_pickle_recall(&t->pickle, t->words[w]);
        return;
    }
    const char *const text = word_text(w);
    alloti_pickle_string(&t->pickle, text, strlen(text));
    t->words[w] = alloti_pickle_remember(&t->pickle);
}

static void put_string(torch_writer *t, uint32_t id)
{
    if (id == ALLOT_NONE) {
        alloti_pickle_none(&t->pickle);
    } else if (t->strings[id] != ALLOT_NONE) {
        alloti_pickle_recall(&t->pickle, t->strings[id]);
    } else {
        size_t length = 0;
        const char *const text = allot_trace_string(t->trace, id, &length);
        alloti_pickle_string(&t->pickle, text, length);
        t->strings[id] = alloti_pickle_remember(&t->pickle);
    }
}

static void put_number(torch_writer *t, word key, uint64_t value)
{
    put_word(t, key);
    alloti_pickle_u64(&t->pickle, value);
}

/* A string under a key; nothing if there is none. */
static void put_optional(torch_writer *t, word key, uint32_t string)
{
    if (string != ALLOT_NONE) {
        put_word(t, key);
        put_string(t, string);
    }
}

static void put_fx(torch_writer *t, const allot_frame_fx *fx)
{
    put_optional(t, W_fx_node_op, fx->node_op);
    put_optional(t, W_fx_node_name, fx->node_name);
    put_optional(t, W_fx_node_target, fx->node_target);
    put_optional(t, W_fx_original_trace, fx->original_trace);
}

static void put_frame(torch_writer *t, uint32_t id)
{
    if (t->frames[id] != ALLOT_NONE) {
        alloti_pickle_recall(&t->pickle, t->frames[id]);
        return;
    }
    const allot_frame *const frame = allot_trace_frame(t->trace, id);
    alloti_pickle_dict_begin(&t->pickle);
    put_word(t, W_name);
    put_string(t, frame->name);
    put_word(t, W_filename);
    put_string(t, frame->filename);
    put_number(t, W_line, frame->line);
    if (frame->fx != ALLOT_NONE) {
        put_fx(t, allot_trace_fx(t->trace, frame->fx));
    }
    alloti_pickle_dict_end(&t->pickle);
    t->frames[id] = alloti_pickle_remember(&t->pickle);
}

static void put_frames(torch_writer *t, uint32_t stack)
{
    if (stack == ALLOT_NONE) {
        return;
    }
    put_word(t, W_frames);
    if (t->stacks[stack] != ALLOT_NONE) {
        alloti_pickle_recall(&t->pickle, t->stacks[stack]);
        return;
    }
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(t->trace, stack, &count);
    if (count == 0) {
        alloti_pickle_empty_list(&t->pickle);
        return;
    }
    alloti_pickle_list_begin(&t->pickle);
    for (uint32_t i = 0; i < count; i++) {
        alloti_pickle_list_item(&t->pickle, i);
        put_frame(t, frames[i]);
    }
    alloti_pickle_list_end(&t->pickle);
    t->stacks[stack] = alloti_pickle_remember(&t->pickle);
}

static void put_pool(torch_writer *t, word key, uint32_t pool)
{
    if (pool == ALLOT_NONE) {
        return;
    }
    put_word(t, key);
    if (t->pools[pool] != ALLOT_NONE) {
        alloti_pickle_recall(&t->pickle, t->pools[pool]);
        return;
    }
    const allot_pool_id id = allot_trace_pool(t->trace, pool);
    alloti_pickle_u64(&t->pickle, id.first);
    alloti_pickle_u64(&t->pickle, id.second);
    alloti_pickle_pair(&t->pickle);
    t->pools[pool] = alloti_pickle_remember(&t->pickle);
}

static void put_category(torch_writer *t, uint8_t category)
{
    if (t->has_categories) {
        put_word(t, W_category);
        put_word(t, (word)(W_CATEGORIES + category));
    }
}

static int64_t microseconds(int64_t time_ns)
{
    return time_ns / 1000 - (time_ns % 1000 < 0);
}

static void put_event(torch_writer *t, const allot_events *events, uint64_t i)
{
    const allot_event_kind kind = (allot_event_kind)events->kind[i];
    alloti_pickle_dict_begin(&t->pickle);
    put_word(t, W_action);
    put_word(t, (word)(W_EVENTS + kind));
    put_number(t, kind == ALLOT_EVENT_OOM ? W_device_free : W_addr, events->addr[i]);
    put_number(t, W_size, events->size[i]);
    put_number(t, W_stream, allot_trace_stream(t->trace, events->stream[i]));
    if (events->time_ns[i] != ALLOT_TIME_NONE) {
        put_word(t, W_time_us);
        alloti_pickle_i64(&t->pickle, microseconds(events->time_ns[i]));
    }
    put_optional(t, W_compile_context, events->context == NULL ? ALLOT_NONE : events->context[i]);
    put_optional(t, W_user_metadata, events->metadata == NULL ? ALLOT_NONE : events->metadata[i]);
    put_pool(t, W_pool_id, events->pool[i]);
    put_frames(t, events->stack[i]);
    put_category(t, events->category == NULL ? ALLOT_CATEGORY_UNKNOWN : events->category[i]);
    alloti_pickle_dict_end(&t->pickle);
}

/* The device of this kind and number, ALLOT_NONE if the trace has none. */
static uint32_t find_device(const allot_trace *trace, allot_memory_kind memory, uint64_t index)
{
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, i);
        if (device->memory == memory && device->index == index) {
            return i;
        }
    }
    return ALLOT_NONE;
}

static void put_device_trace(torch_writer *t, uint32_t device)
{
    allot_events events = {.count = 0};
    if (device != ALLOT_NONE) {
        allot_trace_get_events(t->trace, device, &events);
    }
    alloti_pickle_list_begin(&t->pickle);
    for (uint64_t i = 0; i < events.count && t->pickle.output->status == ALLOT_STATUS_OK; i++) {
        alloti_pickle_list_item(&t->pickle, i);
        put_event(t, &events, i);
        alloti_output_progress(t->pickle.output, i, events.count);
    }
    alloti_pickle_list_end(&t->pickle);
}

/* Lists for device 0 and up: as far as the trace's first devices go in order, or events need. */
static uint64_t trace_list_count(const allot_trace *trace, allot_memory_kind memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, i);
        allot_events events;
        allot_trace_get_events(trace, i, &events);
        if (device->memory == memory && device->index >= count &&
            (events.count != 0 || device->index == count)) {
            count = (uint64_t)device->index + 1;
        }
    }
    return count;
}

static void put_traces(torch_writer *t, word key, allot_memory_kind memory)
{
    const uint64_t count = trace_list_count(t->trace, memory);
    put_word(t, key);
    alloti_pickle_list_begin(&t->pickle);
    for (uint64_t i = 0; i < count; i++) {
        put_device_trace(t, find_device(t->trace, memory, i));
    }
    alloti_pickle_list_end(&t->pickle);
}

static void put_block(torch_writer *t, const allot_block *block)
{
    const word state = block->state == ALLOT_BLOCK_ALLOCATED      ? W_active_allocated
                       : block->state == ALLOT_BLOCK_PENDING_FREE ? W_active_pending_free
                                                                  : W_inactive;
    alloti_pickle_dict_begin(&t->pickle);
    put_number(t, W_address, block->address);
    put_number(t, W_size, block->size);
    put_number(t, W_requested_size, block->requested_size);
    put_word(t, W_state);
    put_word(t, state);
    put_optional(t, W_compile_context, block->context);
    put_optional(t, W_user_metadata, block->metadata);
    put_frames(t, block->stack);
    put_category(t, block->category);
    alloti_pickle_dict_end(&t->pickle);
}

static void put_segment(torch_writer *t, const allot_segment *segment)
{
    uint32_t block_count = 0;
    const allot_block *const blocks = allot_trace_blocks(t->trace, &block_count);
    alloti_pickle_dict_begin(&t->pickle);
    put_number(t, W_device, allot_trace_get_device(t->trace, segment->device)->index);
    put_number(t, W_address, segment->address);
    put_number(t, W_total_size, segment->total_size);
    put_number(t, W_allocated_size, segment->allocated_size);
    put_number(t, W_active_size, segment->active_size);
    put_number(t, W_requested_size, segment->requested_size);
    put_number(t, W_stream, allot_trace_stream(t->trace, segment->stream));
    put_word(t, W_segment_type);
    put_word(t, segment->is_large ? W_large : W_small);
    put_pool(t, W_segment_pool_id, segment->pool);
    put_word(t, W_is_expandable);
    alloti_pickle_bool(&t->pickle, segment->is_expandable);
    put_frames(t, segment->stack);
    put_word(t, W_blocks);
    alloti_pickle_list_begin(&t->pickle);
    for (uint32_t i = 0; i < segment->block_count; i++) {
        alloti_pickle_list_item(&t->pickle, i);
        put_block(t, &blocks[segment->block_first + i]);
    }
    alloti_pickle_list_end(&t->pickle);
    alloti_pickle_dict_end(&t->pickle);
}

static void put_segments(torch_writer *t, word key, allot_memory_kind memory)
{
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(t->trace, &count);
    put_word(t, key);
    alloti_pickle_list_begin(&t->pickle);
    uint64_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (allot_trace_get_device(t->trace, segments[i].device)->memory == memory) {
            alloti_pickle_list_item(&t->pickle, written++);
            put_segment(t, &segments[i]);
        }
    }
    alloti_pickle_list_end(&t->pickle);
}

static void put_setting_value(torch_writer *t, const allot_setting *setting)
{
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        alloti_pickle_bool(&t->pickle, setting->integer != 0);
        break;
    case ALLOT_SETTING_INT:
        alloti_pickle_i64(&t->pickle, setting->integer);
        break;
    case ALLOT_SETTING_FLOAT:
        alloti_pickle_double(&t->pickle, setting->number);
        break;
    case ALLOT_SETTING_STRING:
        put_string(t, setting->string);
        break;
    case ALLOT_SETTING_NONE:
        alloti_pickle_none(&t->pickle);
        break;
    }
}

/* Settings [count] whose keys share the first `skip` bytes: "a.b" and "a.c" become a dict "a". */
static void put_settings(torch_writer *t, const allot_setting *settings, uint32_t count,
                         size_t skip)
{
    alloti_pickle_dict_begin(&t->pickle);
    for (uint32_t i = 0; i < count;) {
        const char *const key = allot_trace_string(t->trace, settings[i].key, NULL) + skip;
        const char *const point = strchr(key, '.');
        const size_t length = point == NULL ? strlen(key) : (size_t)(point - key);
        alloti_pickle_string(&t->pickle, key, length);
        if (point == NULL) {
            put_setting_value(t, &settings[i]);
            i++;
            continue;
        }
        uint32_t end = i + 1;
        while (end < count && strncmp(allot_trace_string(t->trace, settings[end].key, NULL) + skip,
                                      key, length + 1) == 0) {
            end++;
        }
        put_settings(t, settings + i, end - i, skip + length + 1);
        i = end;
    }
    alloti_pickle_dict_end(&t->pickle);
}

static void put_annotations(torch_writer *t)
{
    uint32_t count = 0;
    const allot_annotation *const annotations = allot_trace_annotations(t->trace, &count);
    put_word(t, W_external_annotations);
    alloti_pickle_list_begin(&t->pickle);
    for (uint32_t i = 0; i < count; i++) {
        const allot_annotation *const annotation = &annotations[i];
        alloti_pickle_list_item(&t->pickle, i);
        alloti_pickle_dict_begin(&t->pickle);
        put_word(t, W_stage);
        put_word(t, annotation->is_start ? W_START : W_END);
        put_word(t, W_name);
        put_string(t, annotation->name);
        put_word(t, W_device);
        if (annotation->device == ALLOT_NONE) {
            alloti_pickle_i64(&t->pickle, -1);
        } else {
            alloti_pickle_u64(&t->pickle,
                              allot_trace_get_device(t->trace, annotation->device)->index);
        }
        if (annotation->time_ns != ALLOT_TIME_NONE) {
            put_word(t, W_time_us);
            alloti_pickle_i64(&t->pickle, microseconds(annotation->time_ns));
        }
        alloti_pickle_dict_end(&t->pickle);
    }
    alloti_pickle_list_end(&t->pickle);
}

static bool has_memory(const allot_trace *trace, allot_memory_kind memory)
{
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        if (allot_trace_get_device(trace, i)->memory == memory) {
            return true;
        }
    }
    return false;
}

static void put_snapshot(torch_writer *t)
{
    uint32_t setting_count = 0;
    const allot_setting *const settings = allot_trace_settings(t->trace, &setting_count);
    alloti_pickle_dict_begin(&t->pickle);
    put_segments(t, W_segments, ALLOT_MEMORY_DEVICE);
    put_traces(t, W_device_traces, ALLOT_MEMORY_DEVICE);
    if (has_memory(t->trace, ALLOT_MEMORY_PINNED)) {
        put_segments(t, W_host_segments, ALLOT_MEMORY_PINNED);
        put_traces(t, W_host_traces, ALLOT_MEMORY_PINNED);
    }
    put_word(t, W_allocator_settings);
    put_settings(t, settings, setting_count, 0);
    put_annotations(t);
    alloti_pickle_dict_end(&t->pickle);
}

/* Whether anything happened on a device, or in pinned memory. */
static bool has_content(const allot_trace *trace)
{
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, i);
        allot_events events;
        allot_trace_get_events(trace, i, &events);
        if (device->memory != ALLOT_MEMORY_CPU &&
            (events.count != 0 || device->segment_count != 0)) {
            return true;
        }
    }
    return false;
}

/* PyTorch numbers few devices; a trace of another kind may have any number. */

static allot_status check_devices(const allot_trace *trace)
{
    if (!has_content(trace)) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "a PyTorch snapshot tells of a GPU's memory; the trace has none");
    }
    if (!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES) &&
        !allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENTS)) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "a PyTorch snapshot needs addresses; the trace has none");
    }
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        if (allot_trace_get_device(trace, i)->index >= ALLOTI_DEVICES_MAX) {
            return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                               "a PyTorch snapshot has devices 0 to %d at most",
                               ALLOTI_DEVICES_MAX - 1);
        }
    }
    return ALLOT_STATUS_OK;
}

/* A table of memo numbers, all ALLOT_NONE. */
static allot_status memo_create(uint64_t count, uint32_t **out)
{
    *out = alloti_alloc_array(count + 1, sizeof **out);
    if (*out == NULL) {
        return alloti_fail_memory((count + 1) * sizeof **out);
    }
    memset(*out, 0xff, (size_t)(count + 1) * sizeof **out);
    return ALLOT_STATUS_OK;
}

static allot_status write_torch(const allot_trace *trace, alloti_output *output)
{
    torch_writer t = {.trace = trace,
                      .has_categories = allot_trace_has(trace, ALLOT_TRACE_HAS_CATEGORIES)};
    memset(t.words, 0xff, sizeof t.words);
    allot_status status = check_devices(trace);
    if (status == ALLOT_STATUS_OK) {
        status = memo_create(trace->string_count, &t.strings);
    }
    if (status == ALLOT_STATUS_OK) {
        status = memo_create(trace->frame_count, &t.frames);
    }
    if (status == ALLOT_STATUS_OK) {
        status = memo_create(trace->stack_count, &t.stacks);
    }
    if (status == ALLOT_STATUS_OK) {
        status = memo_create(trace->pool_count, &t.pools);
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_pickle_begin(&t.pickle, output);
        put_snapshot(&t);
        alloti_pickle_end(&t.pickle);
        status = output->status;
    }
    free(t.strings);
    free(t.frames);
    free(t.stacks);
    free(t.pools);
    return status;
}

const alloti_writer alloti_writer_torch = {.format = ALLOT_TRACE_FORMAT_TORCH_PICKLE,
                                           .write = write_torch};
