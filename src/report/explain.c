/* SPDX-License-Identifier: MIT */
/* Who holds memory at a moment. What is particular to an out-of-memory is in oom.c. */
#include "report/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"

static const char *group_label(const alloti_explained *e, uint32_t key, alloti_event_text *buffer)
{
    const allot_trace *const trace = allot_history_trace(e->history);
    switch (e->by) {
    case ALLOT_GROUP_LINE:
        return allot_lines_text(e->lines, key);
    case ALLOT_GROUP_STACK:
        return allot_lines_text(e->lines, allot_lines_of(e->lines, key));
    case ALLOT_GROUP_CATEGORY:
        return allot_category_name((allot_category)key);
    case ALLOT_GROUP_STREAM:
        *buffer = alloti_stream_words(trace, key);
        return buffer->text;
    default:
        *buffer = alloti_pool_words(trace, key);
        return buffer->text;
    }
}

static void write_stack(alloti_text *text, const alloti_explained *e, uint32_t stack)
{
    const allot_trace *const trace = allot_history_trace(e->history);
    uint32_t count = 0;
    const uint32_t *const frames =
        stack == ALLOT_NONE ? NULL : allot_trace_stack(trace, stack, &count);
    for (uint32_t i = 0; i < count; i++) {
        const allot_frame *const frame = allot_trace_frame(trace, frames[i]);
        alloti_text_style(text, ALLOTI_STYLE_DIM, "      %s:%" PRIu32 " %s\n",
                          allot_trace_string(trace, frame->filename, NULL), frame->line,
                          allot_trace_string(trace, frame->name, NULL));
    }
}

/* What a group is for, and whether that is true of nearly all of it. */
static void write_category(alloti_table *table, const allot_group *group)
{
    static const double NEARLY_ALL = 0.99;
    alloti_table_cell(table, "%s%s", group->category_share < NEARLY_ALL ? "mostly " : "",
                      allot_category_name((allot_category)group->category));
}

static void write_groups(alloti_text *text, const alloti_explained *e, allot_group_by by,
                         const allot_groups *groups, uint32_t top)
{
    const alloti_column columns[] = {
        {"size", ALLOTI_COLUMN_RIGHT},
        {"share", ALLOTI_COLUMN_RIGHT},
        {"blocks", ALLOTI_COLUMN_RIGHT},
        {by == ALLOT_GROUP_CATEGORY ? "" : "category", ALLOTI_COLUMN_LEFT},
        {allot_group_name(by), ALLOTI_COLUMN_FLEX}};
    alloti_table table;
    alloti_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    alloti_explained labelled = *e;
    labelled.by = by;
    for (uint32_t i = 0; i < groups->count && i < top; i++) {
        const allot_group *const group = &groups->items[i];
        alloti_event_text buffer;
        alloti_table_cell(&table, "%s", alloti_size(group->size).text);
        alloti_table_cell(&table, "%.1f %%", 100 * group->share);
        alloti_table_cell(&table, "%" PRIu32, group->count);
        if (by == ALLOT_GROUP_CATEGORY) {
            alloti_table_cell(&table, "%s", "");
        } else {
            write_category(&table, group);
        }
        alloti_table_cell(&table, "%s", group_label(&labelled, group->key, &buffer));
    }
    alloti_table_write(&table, text);
    if (groups->count > top) {
        alloti_text_style(text, ALLOTI_STYLE_DIM, "  and %" PRIu32 " more (--top N)\n",
                          groups->count - top);
    }
}

static void write_heading(alloti_text *text, const alloti_explained *e)
{
    char moment[sizeof(alloti_event_text) + 48];
    const bool is_peak =
        e->totals.event == allot_history_peak(e->history, ALLOT_MEASURE_ALLOCATED).event;
    snprintf(moment, sizeof moment, ", %s at %s",
             e->oom != NULL ? "out of memory"
             : is_peak      ? "peak of allocated memory"
                            : "memory",
             alloti_event_words(e->history, e->totals.event).text);
    alloti_text_subject(text, e->history, e->name, moment);
    alloti_text_printf(text, "\n");
}

static void write_text(alloti_text *text, const alloti_explained *e, uint32_t top)
{
    write_heading(text, e);
    if (e->oom != NULL) {
        alloti_oom_text(text, e);
        alloti_text_printf(text, "\n");
    }
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "state\n");
    alloti_text_totals(text, &e->totals);
    alloti_text_printf(text, "\n");
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "who holds the active bytes, by %s\n",
                      allot_group_name(e->by));
    write_groups(text, e, e->by, &e->groups, top);
    if (e->by == ALLOT_GROUP_STACK) {
        for (uint32_t i = 0; i < e->groups.count && i < top; i++) {
            alloti_text_printf(text, "\n  %s in %s:\n", alloti_size(e->groups.items[i].size).text,
                               alloti_count(e->groups.items[i].count, "block").text);
            write_stack(text, e, e->groups.items[i].key);
        }
    }
    if (e->by != ALLOT_GROUP_CATEGORY) {
        alloti_text_printf(text, "\n");
        alloti_text_style(text, ALLOTI_STYLE_HEADING, "what for (%s)\n",
                          allot_categories_are_inferred(e->categories)
                              ? "inferred from frames and lifetimes"
                              : "as the file says");
        write_groups(text, e, ALLOT_GROUP_CATEGORY, &e->by_category, ALLOT_CATEGORY_COUNT);
    }
    if (e->oom != NULL) {
        alloti_text_printf(text, "\nnext: allot advise %s\n", e->name == NULL ? "FILE" : e->name);
    }
}

static void json_line(alloti_json *json, const alloti_explained *e, uint32_t stack)
{
    const allot_trace *const trace = allot_history_trace(e->history);
    const allot_line *const line = allot_lines_get(e->lines, allot_lines_of(e->lines, stack));
    const bool has_file = line->filename != ALLOT_NONE;
    alloti_json_object_begin(json, "line");
    alloti_json_put_string(json, "file",
                           has_file ? allot_trace_string(trace, line->filename, NULL) : NULL);
    alloti_json_put_u64(json, "line", line->line);
    alloti_json_put_string(json, "function",
                           has_file ? allot_trace_string(trace, line->name, NULL) : NULL);
    alloti_json_object_end(json);
}

static void json_stack(alloti_json *json, const alloti_explained *e, uint32_t stack)
{
    const allot_trace *const trace = allot_history_trace(e->history);
    uint32_t count = 0;
    const uint32_t *const frames =
        stack == ALLOT_NONE ? NULL : allot_trace_stack(trace, stack, &count);
    alloti_json_array_begin(json, "stack");
    for (uint32_t i = 0; i < count; i++) {
        const allot_frame *const frame = allot_trace_frame(trace, frames[i]);
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "file", allot_trace_string(trace, frame->filename, NULL));
        alloti_json_put_u64(json, "line", frame->line);
        alloti_json_put_string(json, "function", allot_trace_string(trace, frame->name, NULL));
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

static void json_groups(alloti_json *json, const char *key, const alloti_explained *e,
                        allot_group_by by, const allot_groups *groups, uint32_t top)
{
    allot_allocations table;
    allot_history_get_allocations(e->history, &table);
    alloti_explained labelled = *e;
    labelled.by = by;
    alloti_json_array_begin(json, key);
    for (uint32_t i = 0; i < groups->count && i < top; i++) {
        const allot_group *const group = &groups->items[i];
        const uint32_t stack = table.stack[group->example];
        alloti_event_text buffer;
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "label", group_label(&labelled, group->key, &buffer));
        alloti_json_put_u64(json, "size", group->size);
        alloti_json_put_double(json, "share", group->share);
        alloti_json_put_u64(json, "count", group->count);
        alloti_json_put_string(json, "category",
                               allot_category_name((allot_category)group->category));
        alloti_json_put_double(json, "category_share", group->category_share);
        if (by == ALLOT_GROUP_LINE) {
            json_line(json, e, stack);
        } else if (by == ALLOT_GROUP_STACK) {
            json_stack(json, e, stack);
        }
        alloti_json_object_begin(json, "example");
        alloti_json_put_u64(json, "address", table.addr[group->example]);
        alloti_json_put_u64(json, "size", table.size[group->example]);
        alloti_json_put_u64(json, "requested", table.requested[group->example]);
        alloti_json_put_index(json, "alloc_event", table.alloc_event[group->example]);
        alloti_json_object_end(json);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

static allot_status write_json(const allot_sink *sink, const alloti_explained *e, uint32_t top)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.explain/1");
    alloti_json_subject(&json, e->history, e->name);
    alloti_json_totals(&json, "state", &e->totals);
    alloti_json_put_string(&json, "by", allot_group_name(e->by));
    alloti_json_put_u64(&json, "group_count", e->groups.count);
    json_groups(&json, "groups", e, e->by, &e->groups, top);
    alloti_json_put_bool(&json, "categories_inferred",
                         allot_categories_are_inferred(e->categories));
    json_groups(&json, "categories", e, ALLOT_GROUP_CATEGORY, &e->by_category,
                ALLOT_CATEGORY_COUNT);
    if (e->oom != NULL) {
        alloti_oom_json(&json, e);
    } else {
        alloti_json_put_null(&json, "oom");
    }
    return alloti_json_end(&json);
}

static bool is_oom(const allot_history *history, uint32_t event)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    return event < events.count && events.kind[event] == ALLOT_EVENT_OOM;
}

/* Everything that is said, from the history; what is made stays in `e` for close(). */
static allot_status explained_open(alloti_explained *e, uint32_t event,
                                   const allot_report_options *options, allot_oom *oom)
{
    allot_status status =
        allot_lines_create(allot_history_trace(e->history), options->lines, &e->lines);
    if (status == ALLOT_STATUS_OK) {
        status = allot_categories_create(e->history, &e->categories);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_history_at(e->history, event, &e->moment);
    }
    if (status == ALLOT_STATUS_OK) {
        allot_moment_get_totals(e->moment, &e->totals);
        status = allot_groups_init(e->moment, e->by, e->lines, e->categories, &e->groups);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_groups_init(e->moment, ALLOT_GROUP_CATEGORY, e->lines, e->categories,
                                   &e->by_category);
    }
    if (status == ALLOT_STATUS_OK && is_oom(e->history, event)) {
        status = allot_oom_init(e->moment, e->lines, oom);
        e->oom = status == ALLOT_STATUS_OK ? oom : NULL;
    }
    return status;
}

static void close(alloti_explained *e, allot_oom *oom)
{
    if (e->oom != NULL) {
        allot_oom_fini(oom);
    }
    allot_groups_fini(&e->groups);
    allot_groups_fini(&e->by_category);
    allot_moment_destroy(e->moment);
    allot_categories_destroy(e->categories);
    allot_lines_destroy(e->lines);
}

allot_status allot_report_explain(const allot_history *history, uint32_t event, allot_group_by by,
                                  const allot_report_options *given, const allot_sink *sink,
                                  allot_oom_verdict *verdict)
{
    allot_report_options options;
    allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_explained e = {.history = history, .by = by, .name = options.name};
    allot_oom oom = {0};
    status = explained_open(&e, event, &options, &oom);
    if (status == ALLOT_STATUS_OK && e.oom != NULL) {
        if (options.device_total != 0) {
            allot_oom_set_device_total(&oom, options.device_total);
        }
        if (verdict != NULL) {
            *verdict = oom.verdict;
        }
    }
    if (status == ALLOT_STATUS_OK && options.format == ALLOT_REPORT_JSON) {
        status = write_json(sink, &e, options.top == 0 ? UINT32_MAX : options.top);
    } else if (status == ALLOT_STATUS_OK) {
        alloti_text text = alloti_text_begin(sink, &options);
        write_text(&text, &e, alloti_report_top(&options));
        status = text.status;
    }
    close(&e, &oom);
    return status;
}
