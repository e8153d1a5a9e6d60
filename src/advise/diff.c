/* SPDX-License-Identifier: MIT */
/*
 * What differs between two traces. Lines of code are paired by their text, because two runs of one
 * program may have been recorded in different folders; each trace is summed at its own peak.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <allot/compare.h>

#include "core/array.h"
#include "core/map64.h"
#include "core/options.h"

enum { SETTING_TEXT = 256 };
static const double TOLERANCE = 0.01;

/** A growing list of texts that the diff owns, freed one by one. */
typedef struct texts {
    char **items;
    uint64_t count;
    uint64_t capacity;
} texts;

/** Rows under construction, found by the hash of their label. */
typedef struct pairing {
    texts *texts;
    alloti_map64 index;
    allot_diff_row *rows;
    uint64_t count;
    uint64_t capacity;
} pairing;

static allot_status keep_text(texts *t, const char *text, const char **out)
{
    const allot_status status =
        alloti_array_reserve(&t->items, &t->capacity, t->count + 1, sizeof *t->items);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    char *const copy = strdup(text);
    if (copy == NULL) {
        return alloti_fail_memory(strlen(text) + 1);
    }
    t->items[t->count++] = copy;
    *out = copy;
    return ALLOT_STATUS_OK;
}

static allot_status row_of(pairing *p, const char *label, allot_diff_row **out)
{
    const uint64_t key = XXH3_64bits(label, strlen(label));
    uint32_t at = alloti_map64_get(&p->index, key);
    if (at == ALLOT_NONE) {
        allot_status status =
            alloti_array_reserve(&p->rows, &p->capacity, p->count + 1, sizeof *p->rows);
        if (status == ALLOT_STATUS_OK) {
            at = (uint32_t)p->count;
            p->rows[at] = (allot_diff_row){0};
            status = keep_text(p->texts, label, &p->rows[at].label);
        }
        if (status == ALLOT_STATUS_OK) {
            p->count++;
            status = alloti_map64_set(&p->index, key, at);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = &p->rows[at];
    return ALLOT_STATUS_OK;
}

static allot_status add_to_row(pairing *p, const char *label, bool is_b, uint64_t size,
                               uint32_t count)
{
    allot_diff_row *row = NULL;
    const allot_status status = row_of(p, label, &row);
    if (status == ALLOT_STATUS_OK) {
        *(is_b ? &row->size_b : &row->size_a) += size;
        *(is_b ? &row->count_b : &row->count_a) += count;
    }
    return status;
}

static uint64_t change_of(const allot_diff_row *row)
{
    return row->size_b > row->size_a ? row->size_b - row->size_a : row->size_a - row->size_b;
}

static int compare_row(const void *a, const void *b)
{
    const uint64_t left = change_of(a);
    const uint64_t right = change_of(b);
    if (left != right) {
        return left < right ? 1 : -1;
    }
    return strcmp(((const allot_diff_row *)a)->label, ((const allot_diff_row *)b)->label);
}

/* Hand the rows out, largest difference first. */
static void finish_rows(pairing *p, allot_diff_rows *out)
{
    if (p->count != 0) {
        qsort(p->rows, p->count, sizeof *p->rows, compare_row);
    }
    *out = (allot_diff_rows){.count = (uint32_t)p->count, .items = p->rows};
    alloti_map64_fini(&p->index);
}

/** One trace with what is needed to sum it. */
typedef struct side {
    const allot_history *history;
    allot_lines *lines;
    allot_categories *categories;
    allot_moment *moment;
} side;

static allot_status open_side(side *s, const allot_lines_options *options)
{
    const uint32_t peak = allot_history_peak(s->history, ALLOT_MEASURE_ALLOCATED).event;
    allot_status status = allot_lines_create(allot_history_trace(s->history), options, &s->lines);
    if (status == ALLOT_STATUS_OK) {
        status = allot_categories_create(s->history, &s->categories);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_history_at(s->history, peak, &s->moment);
    }
    return status;
}

static void close_side(side *s)
{
    allot_moment_destroy(s->moment);
    allot_categories_destroy(s->categories);
    allot_lines_destroy(s->lines);
}

static allot_status add_groups(pairing *p, const side *s, allot_group_by by, bool is_b)
{
    allot_groups groups = {0};
    allot_status status = allot_groups_init(s->moment, by, s->lines, s->categories, &groups);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < groups.count; i++) {
        const allot_group *const group = &groups.items[i];
        const char *const label = by == ALLOT_GROUP_LINE
                                      ? allot_lines_text(s->lines, group->key)
                                      : allot_category_name((allot_category)group->key);
        status = add_to_row(p, label, is_b, group->size, group->count);
    }
    allot_groups_fini(&groups);
    return status;
}

static allot_status diff_groups(texts *t, const side *a, const side *b, allot_group_by by,
                                allot_diff_rows *out)
{
    pairing p = {.texts = t};
    allot_status status = add_groups(&p, a, by, false);
    if (status == ALLOT_STATUS_OK) {
        status = add_groups(&p, b, by, true);
    }
    finish_rows(&p, out);
    return status;
}

static allot_status add_segments(pairing *p, const allot_history *history, bool is_b)
{
    const allot_trace *const trace = allot_history_trace(history);
    const allot_trace_device *const device =
        allot_trace_get_device(trace, allot_history_device(history));
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < device->segment_count; i++) {
        const allot_segment *const segment = &segments[device->segment_first + i];
        char size[ALLOT_SIZE_TEXT_MAX];
        char label[ALLOT_SIZE_TEXT_MAX + 32];
        snprintf(label, sizeof label, "%s%s",
                 segment->is_expandable ? "expandable"
                                        : allot_size_format(segment->total_size, size),
                 segment->is_large ? "" : " small");
        status = add_to_row(p, label, is_b, segment->total_size, 1);
    }
    return status;
}

static allot_status diff_segments(texts *t, const side *a, const side *b, allot_diff_rows *out)
{
    pairing p = {.texts = t};
    allot_status status = add_segments(&p, a->history, false);
    if (status == ALLOT_STATUS_OK) {
        status = add_segments(&p, b->history, true);
    }
    finish_rows(&p, out);
    return status;
}

static void format_setting(const allot_trace *trace, const allot_setting *setting, char *out)
{
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        snprintf(out, SETTING_TEXT, "%s", setting->integer != 0 ? "True" : "False");
        break;
    case ALLOT_SETTING_INT:
        snprintf(out, SETTING_TEXT, "%" PRId64, setting->integer);
        break;
    case ALLOT_SETTING_FLOAT:
        snprintf(out, SETTING_TEXT, "%g", setting->number);
        break;
    case ALLOT_SETTING_STRING:
        snprintf(out, SETTING_TEXT, "\"%s\"", allot_trace_string(trace, setting->string, NULL));
        break;
    default:
        snprintf(out, SETTING_TEXT, "None");
        break;
    }
}

/* Text of a setting by key; NULL if the trace does not have it. */
static const char *setting_text(const allot_trace *trace, const char *key, char *buffer)
{
    const allot_setting *const setting = allot_trace_find_setting(trace, key);
    if (setting == NULL) {
        return NULL;
    }
    format_setting(trace, setting, buffer);
    return buffer;
}

static allot_status add_setting(allot_diff *diff, texts *t, uint64_t *capacity, const char *key,
                                const char *value_a, const char *value_b)
{
    allot_diff_setting row = {0};
    allot_status status = alloti_array_reserve(&diff->settings, capacity, diff->setting_count + 1,
                                               sizeof *diff->settings);
    if (status == ALLOT_STATUS_OK) {
        status = keep_text(t, key, &row.key);
    }
    if (status == ALLOT_STATUS_OK && value_a != NULL) {
        status = keep_text(t, value_a, &row.value_a);
    }
    if (status == ALLOT_STATUS_OK && value_b != NULL) {
        status = keep_text(t, value_b, &row.value_b);
    }
    if (status == ALLOT_STATUS_OK) {
        diff->settings[diff->setting_count++] = row;
    }
    return status;
}

/* Settings of `from` that `to` has otherwise or not at all; those that both have only once. */
static allot_status diff_settings_of(allot_diff *diff, texts *t, uint64_t *capacity,
                                     const allot_trace *a, const allot_trace *b, bool from_b)
{
    uint32_t count = 0;
    const allot_trace *const from = from_b ? b : a;
    const allot_setting *const settings = allot_trace_settings(from, &count);
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        const char *const key = allot_trace_string(from, settings[i].key, NULL);
        char buffer_a[SETTING_TEXT];
        char buffer_b[SETTING_TEXT];
        const char *const value_a = setting_text(a, key, buffer_a);
        const char *const value_b = setting_text(b, key, buffer_b);
        const bool is_same = value_a != NULL && value_b != NULL && strcmp(value_a, value_b) == 0;
        if (!is_same && !(from_b && value_a != NULL)) {
            status = add_setting(diff, t, capacity, key, value_a, value_b);
        }
    }
    return status;
}

/* Whether nothing was allocated after the last out-of-memory. */
static bool stops_at_oom(const allot_events *events)
{
    for (uint64_t i = events->count; i-- > 0;) {
        if (events->kind[i] == ALLOT_EVENT_OOM || events->kind[i] == ALLOT_EVENT_ALLOC) {
            return events->kind[i] == ALLOT_EVENT_OOM;
        }
    }
    return false;
}

static void fill_side(const side *s, const char *name, allot_diff_side *out)
{
    const allot_trace *const trace = allot_history_trace(s->history);
    allot_events events;
    allot_trace_get_events(trace, allot_history_device(s->history), &events);
    allot_history_counts counts;
    allot_history_get_counts(s->history, &counts);
    const uint32_t end = events.count == 0 ? ALLOT_NONE : (uint32_t)(events.count - 1);
    *out = (allot_diff_side){
        .name = name,
        .segment_count =
            allot_trace_get_device(trace, allot_history_device(s->history))->segment_count,
        .event_count = events.count,
        .oom_count = counts.oom,
        .is_unfinished = stops_at_oom(&events)};
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        out->peak[m] = allot_history_peak(s->history, (allot_measure)m);
        out->end[m] = allot_history_value(s->history, (allot_measure)m, end);
    }
    allot_moment_get_totals(s->moment, &out->totals);
}

static bool is_above(const allot_diff *diff, allot_measure measure, double tolerance)
{
    return (double)diff->b.peak[measure].size >
           (double)diff->a.peak[measure].size * (1 + tolerance);
}

static bool is_worse(const allot_diff *diff, double tolerance)
{
    if (diff->a.is_unfinished != diff->b.is_unfinished) {
        return diff->b.is_unfinished;
    }
    return is_above(diff, ALLOT_MEASURE_ALLOCATED, tolerance) ||
           is_above(diff, ALLOT_MEASURE_RESERVED, tolerance);
}

static allot_status compare(const side *a, const side *b, const allot_diff_options *options,
                            texts *t, allot_diff *diff)
{
    const allot_trace *const trace_a = allot_history_trace(a->history);
    const allot_trace *const trace_b = allot_history_trace(b->history);
    fill_side(a, options->name_a == NULL ? "A" : options->name_a, &diff->a);
    fill_side(b, options->name_b == NULL ? "B" : options->name_b, &diff->b);
    const double tolerance = options->tolerance > 0 ? options->tolerance : TOLERANCE;
    diff->is_worse = is_worse(diff, tolerance);
    diff->categories_inferred = allot_categories_are_inferred(a->categories) ||
                                allot_categories_are_inferred(b->categories);
    allot_status status = diff_groups(t, a, b, ALLOT_GROUP_LINE, &diff->lines);
    if (status == ALLOT_STATUS_OK) {
        status = diff_groups(t, a, b, ALLOT_GROUP_CATEGORY, &diff->categories);
    }
    if (status == ALLOT_STATUS_OK) {
        status = diff_segments(t, a, b, &diff->segments);
    }
    uint64_t capacity = 0;
    if (status == ALLOT_STATUS_OK) {
        status = diff_settings_of(diff, t, &capacity, trace_a, trace_b, false);
    }
    if (status == ALLOT_STATUS_OK) {
        status = diff_settings_of(diff, t, &capacity, trace_a, trace_b, true);
    }
    return status;
}

allot_status allot_diff_init(const allot_history *a, const allot_history *b,
                             const allot_diff_options *given, allot_diff *out)
{
    allot_diff_options options;
    allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    texts *const t = calloc(1, sizeof *t);
    if (t == NULL) {
        return alloti_fail_memory(sizeof *t);
    }
    allot_diff diff = {.text = t};
    side side_a = {.history = a};
    side side_b = {.history = b};
    status = open_side(&side_a, options.lines);
    if (status == ALLOT_STATUS_OK) {
        status = open_side(&side_b, options.lines);
    }
    if (status == ALLOT_STATUS_OK) {
        status = compare(&side_a, &side_b, &options, t, &diff);
    }
    close_side(&side_a);
    close_side(&side_b);
    if (status != ALLOT_STATUS_OK) {
        allot_diff_fini(&diff);
        return status;
    }
    *out = diff;
    return ALLOT_STATUS_OK;
}

void allot_diff_fini(allot_diff *diff)
{
    texts *const t = diff->text;
    for (uint64_t i = 0; t != NULL && i < t->count; i++) {
        free(t->items[i]);
    }
    if (t != NULL) {
        free(t->items);
    }
    free(t);
    free(diff->lines.items);
    free(diff->categories.items);
    free(diff->segments.items);
    free(diff->settings);
    *diff = (allot_diff){0};
}
