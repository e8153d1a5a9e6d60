/* SPDX-License-Identifier: MIT */
/* What grows from step to step. */
#include <inttypes.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"

/* One row for each stack; what did not grow has no figures of growth. */
static void write_rows(alloti_text *text, const allot_leaks *leaks, const allot_lines *lines,
                       uint32_t first, uint32_t end)
{
    static const alloti_column COLUMNS[] = {{"per step", ALLOTI_COLUMN_RIGHT},
                                            {"steps grown", ALLOTI_COLUMN_RIGHT},
                                            {"never freed", ALLOTI_COLUMN_RIGHT},
                                            {"blocks", ALLOTI_COLUMN_RIGHT},
                                            {"stack, by line", ALLOTI_COLUMN_FLEX}};
    const bool grows = first < leaks->growing_count;
    const uint32_t skipped = grows ? 0 : 2;
    alloti_table table;
    alloti_table_init(&table, COLUMNS + skipped, sizeof COLUMNS / sizeof COLUMNS[0] - skipped);
    for (uint32_t i = first; i < end; i++) {
        const allot_leak *const leak = &leaks->items[i];
        if (grows) {
            alloti_table_cell(&table, "%s", alloti_size(leak->size_per_step).text);
            alloti_table_cell(&table, "%" PRIu32 " of %" PRIu32, leak->grown_steps,
                              leaks->step_count);
        }
        alloti_table_cell(&table, "%s", alloti_size(leak->size).text);
        alloti_table_cell(&table, "%" PRIu32, leak->count);
        alloti_table_cell(&table, "%s", allot_lines_text(lines, leak->line));
    }
    alloti_table_write(&table, text);
}

/* Rows [first, end), as many as `top` allows. */
static void write_section(alloti_text *text, const allot_leaks *leaks, const allot_lines *lines,
                          uint32_t first, uint32_t end, uint32_t top)
{
    const uint32_t shown = end - first < top ? end - first : top;
    write_rows(text, leaks, lines, first, first + shown);
    if (end - first > shown) {
        alloti_text_style(text, ALLOTI_STYLE_DIM, "  and %" PRIu32 " more (--top N)\n",
                          end - first - shown);
    }
}

static void write_steps(alloti_text *text, const allot_leaks *leaks)
{
    const uint32_t all = leaks->step_count + leaks->warmup_count;
    const bool is_rhythm = leaks->source == ALLOT_STEPS_RHYTHM;
    if (all == 0) {
        alloti_text_wrap(text, "",
                         "No steps were found: neither annotations nor a rhythm. "
                         "--steps N cuts the trace into equal parts.");
        return;
    }
    alloti_text_wrap(text, "",
                     "%s (%s), the first %" PRIu32
                     " taken as warm-up; active bytes %s after the first, %s "
                     "after the last",
                     alloti_count(all, is_rhythm ? "repetition" : "step").text,
                     allot_steps_source_name(leaks->source), leaks->warmup_count,
                     alloti_size(leaks->active[0]).text, alloti_size(leaks->active[all - 1]).text);
}

static void write_verdict(alloti_text *text, const allot_leaks *leaks)
{
    if (leaks->leak_count != 0) {
        alloti_text_style(text, ALLOTI_STYLE_BAD, "leaks: they grow in nearly every step\n");
    } else if (leaks->growing_count != 0) {
        alloti_text_wrap(text, "",
                         "cannot tell: these grow from repetition to repetition. If each is a step "
                         "they leak; if each is a layer of one pass they are meant to stay. "
                         "Annotated steps (optimizer, profiler) or --steps N decide.");
    } else if (leaks->source != ALLOT_STEPS_NONE && !leaks->is_judged) {
        alloti_text_wrap(text, "",
                         "cannot tell: too few %s to tell growth from chance; record at least 5",
                         leaks->source == ALLOT_STEPS_RHYTHM ? "repetitions" : "steps");
    } else if (leaks->source != ALLOT_STEPS_NONE) {
        alloti_text_style(text, ALLOTI_STYLE_GOOD, "no leak: nothing grows in nearly every %s\n",
                          leaks->source == ALLOT_STEPS_RHYTHM ? "repetition" : "step");
    }
}

static void write_text(alloti_text *text, const allot_history *history, const allot_leaks *leaks,
                       const allot_lines *lines, const allot_report_options *options)
{
    const uint32_t top = alloti_report_top(options);
    alloti_text_subject(text, history, options->name, "");
    write_steps(text, leaks);
    if (leaks->growing_count != 0) {
        alloti_text_printf(text, "\n");
    }
    write_verdict(text, leaks);
    if (leaks->growing_count != 0) {
        write_section(text, leaks, lines, 0, leaks->growing_count, top);
    }
    if (leaks->count > leaks->growing_count) {
        alloti_text_printf(text, "\nallocated during the trace and still live at its end\n");
        write_section(text, leaks, lines, leaks->growing_count, leaks->count, top);
    }
}

static allot_status write_json(const allot_sink *sink, const allot_history *history,
                               const allot_leaks *leaks, const allot_lines *lines,
                               const allot_report_options *options)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.leaks/1");
    alloti_json_subject(&json, history, options->name);
    alloti_json_put_string(&json, "steps_from", allot_steps_source_name(leaks->source));
    alloti_json_put_u64(&json, "warmup_count", leaks->warmup_count);
    alloti_json_put_u64(&json, "step_count", leaks->step_count);
    alloti_json_array_begin(&json, "steps");
    for (uint32_t i = 0; i < leaks->step_count + leaks->warmup_count; i++) {
        alloti_json_object_begin(&json, NULL);
        alloti_json_put_u64(&json, "end_event", leaks->steps[i]);
        alloti_json_put_u64(&json, "active", leaks->active[i]);
        alloti_json_object_end(&json);
    }
    alloti_json_array_end(&json);
    alloti_json_put_bool(&json, "is_judged", leaks->is_judged);
    alloti_json_put_u64(&json, "growing_count", leaks->growing_count);
    alloti_json_put_u64(&json, "leak_count", leaks->leak_count);
    alloti_json_array_begin(&json, "stacks");
    for (uint32_t i = 0; i < leaks->count; i++) {
        const allot_leak *const leak = &leaks->items[i];
        alloti_json_object_begin(&json, NULL);
        alloti_json_put_string(&json, "label", allot_lines_text(lines, leak->line));
        alloti_json_put_index(&json, "stack", leak->stack);
        alloti_json_put_bool(&json, "is_growing", leak->is_growing);
        alloti_json_put_bool(&json, "is_leak", leak->is_leak);
        alloti_json_put_u64(&json, "size_per_step", leak->size_per_step);
        alloti_json_put_u64(&json, "grown_steps", leak->grown_steps);
        alloti_json_put_u64(&json, "size", leak->size);
        alloti_json_put_u64(&json, "count", leak->count);
        alloti_json_object_end(&json);
    }
    alloti_json_array_end(&json);
    return alloti_json_end(&json);
}

allot_status allot_report_leaks(const allot_history *history, const allot_leaks *leaks,
                                const allot_lines *lines, const allot_report_options *given,
                                const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (options.format == ALLOT_REPORT_JSON) {
        return write_json(sink, history, leaks, lines, &options);
    }
    alloti_text text = alloti_text_begin(sink, &options);
    write_text(&text, history, leaks, lines, &options);
    return text.status;
}
