/* SPDX-License-Identifier: MIT */
/*
 * dump_trace FILE: everything a trace holds, one value a line, with nothing left out or rounded, to
 * be compared with what another program reads from the same file.
 */
#include <allot/trace.h>
#include <inttypes.h>
#include <stdio.h>

/* Text in JSON's escapes, so that one line stays one line. */
static void print_string(const allot_trace *trace, uint32_t id)
{
    if (id == ALLOT_NONE) {
        printf(" null");
        return;
    }
    size_t length = 0;
    const char *const text = allot_trace_string(trace, id, &length);
    printf(" \"");
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void print_pool(const allot_trace *trace, uint32_t id)
{
    if (id == ALLOT_NONE) {
        printf(" -");
        return;
    }
    const allot_pool_id pool = allot_trace_pool(trace, id);
    printf(" %" PRIu64 ",%" PRIu64, pool.first, pool.second);
}

static void print_stack(const allot_trace *trace, uint32_t id)
{
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(trace, id, &count);
    printf(id == ALLOT_NONE ? " -" : " stack %" PRIu32, count);
    for (uint32_t i = 0; i < count; i++) {
        const allot_frame *const frame = allot_trace_frame(trace, frames[i]);
        print_string(trace, frame->name);
        print_string(trace, frame->filename);
        printf(" %" PRIu32, frame->line);
        if (frame->fx != ALLOT_NONE) {
            const allot_frame_fx *const fx = allot_trace_fx(trace, frame->fx);
            printf(" fx");
            print_string(trace, fx->node_op);
            print_string(trace, fx->node_name);
            print_string(trace, fx->node_target);
            print_string(trace, fx->original_trace);
        }
    }
}

static void print_time(int64_t time_ns)
{
    if (time_ns == ALLOT_TIME_NONE) {
        printf(" -");
    } else {
        printf(" %" PRId64, time_ns);
    }
}

static void print_events(const allot_trace *trace, uint32_t device)
{
    allot_events e;
    allot_trace_get_events(trace, device, &e);
    for (uint64_t i = 0; i < e.count; i++) {
        printf("event %" PRIu32 " %s %" PRIu64 " %" PRIu64 " %" PRIu64, device,
               allot_event_kind_name((allot_event_kind)e.kind[i]), e.addr[i], e.size[i],
               allot_trace_stream(trace, e.stream[i]));
        print_time(e.time_ns[i]);
        print_pool(trace, e.pool[i]);
        print_string(trace, e.context == NULL ? ALLOT_NONE : e.context[i]);
        print_string(trace, e.metadata == NULL ? ALLOT_NONE : e.metadata[i]);
        printf(" %s",
               e.category == NULL ? "unknown" : allot_category_name((allot_category)e.category[i]));
        print_stack(trace, e.stack[i]);
        putchar('\n');
    }
}

static void print_segments(const allot_trace *trace)
{
    uint32_t segment_count = 0;
    uint32_t block_count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &segment_count);
    const allot_block *const blocks = allot_trace_blocks(trace, &block_count);
    for (uint32_t i = 0; i < segment_count; i++) {
        const allot_segment *const s = &segments[i];
        printf("segment %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
               " %" PRIu64 " %s %s",
               s->device, s->address, s->total_size, s->allocated_size, s->active_size,
               s->requested_size, allot_trace_stream(trace, s->stream),
               s->is_large ? "large" : "small", s->is_expandable ? "expandable" : "fixed");
        print_pool(trace, s->pool);
        print_stack(trace, s->stack);
        putchar('\n');
        for (uint32_t k = s->block_first; k < s->block_first + s->block_count; k++) {
            const allot_block *const b = &blocks[k];
            printf("block %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %s", b->address, b->size,
                   b->requested_size, (unsigned)b->state,
                   allot_category_name((allot_category)b->category));
            print_string(trace, b->context);
            print_string(trace, b->metadata);
            print_stack(trace, b->stack);
            putchar('\n');
        }
    }
}

static void print_setting(const allot_trace *trace, const allot_setting *setting)
{
    printf("setting");
    print_string(trace, setting->key);
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        puts(setting->integer != 0 ? " true" : " false");
        break;
    case ALLOT_SETTING_INT:
        printf(" %" PRId64 "\n", setting->integer);
        break;
    case ALLOT_SETTING_FLOAT:
        printf(" %a\n", setting->number);
        break;
    case ALLOT_SETTING_STRING:
        print_string(trace, setting->string);
        putchar('\n');
        break;
    case ALLOT_SETTING_NONE:
        puts(" null");
        break;
    }
}

static void print_rest(const allot_trace *trace)
{
    uint32_t count = 0;
    const allot_setting *const settings = allot_trace_settings(trace, &count);
    for (uint32_t i = 0; i < count; i++) {
        print_setting(trace, &settings[i]);
    }
    const allot_annotation *const annotations = allot_trace_annotations(trace, &count);
    for (uint32_t i = 0; i < count; i++) {
        printf("annotation %s", annotations[i].is_start ? "START" : "END");
        print_string(trace, annotations[i].name);
        print_time(annotations[i].time_ns);
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: dump_trace FILE\n", stderr);
        return 2;
    }
    allot_trace *trace = NULL;
    const allot_status status = allot_trace_read(argv[1], NULL, &trace);
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "%s\n", allot_error_detail());
        return 3;
    }
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, i);
        printf("device %d %" PRIu32 "\n", (int)device->memory, device->index);
    }
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        print_events(trace, i);
    }
    print_segments(trace);
    print_rest(trace);
    allot_trace_destroy(trace);
    return 0;
}
