/* SPDX-License-Identifier: MIT */
#include "advise/advice.h"

#include <stdlib.h>
#include <string.h>

#include "advise/words.h"
#include "core/array.h"

enum { LINES_MAX = 10, WORDS_SIZE = 1024 /* what failing to allocate a sentence reports */ };

static void rows_free(allot_advice_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)rows[i].setting);
        free((char *)(uintptr_t)rows[i].change);
    }
    free(rows);
}

void allot_advice_destroy(allot_advice *advice)
{
    if (advice == NULL) {
        return;
    }
    rows_free(advice->rows, advice->row_count);
    rows_free(advice->strategies, advice->strategy_count);
    for (uint32_t i = 0; i < advice->line_count; i++) {
        free((char *)(uintptr_t)advice->lines[i].text);
    }
    for (uint32_t i = 0; i < advice->note_count; i++) {
        free(advice->notes[i]);
    }
    free(advice->lines);
    free((void *)advice->notes);
    free(advice->where);
    free(advice->headline);
    free(advice->reason);
    free(advice);
}

static allot_status row_set(allot_advice_row *row, const alloti_search *search,
                            const alloti_candidate *c)
{
    *row = (allot_advice_row){
        .setting = strdup(c->text),
        .change = strdup(c->change),
        .finishes = c->run.finishes,
        .stop_event = c->run.stop_event,
        .peak_reserved = c->run.peak_reserved,
        .peak_allocated = c->run.peak_allocated,
        .driver_calls = c->run.driver_calls,
        .retries = c->run.retries,
        .cost_ns = (double)c->run.cost_ns,
        .roomy_reserved = c->roomy.peak_reserved,
        .limit_min = c->tight.is_known ? c->need_high : 0,
        .limit_min_cost_ns = (double)c->tight.cost_ns,
        .is_tried = c->is_wanted,
    };
    row->has_saving = alloti_search_saving(search, c, &row->saving);
    return row->setting != NULL && row->change != NULL ? ALLOT_STATUS_OK
                                                       : alloti_fail_memory(sizeof *row);
}

static allot_status add_strategies(allot_advice *advice, const alloti_search *search)
{
    const uint32_t count = search->strategy_count;
    advice->strategies = alloti_calloc_array((uint64_t)count + 1, sizeof *advice->strategies);
    if (advice->strategies == NULL) {
        return alloti_fail_memory(((uint64_t)count + 1) * sizeof *advice->strategies);
    }
    advice->strategy_count = count;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        status = row_set(&advice->strategies[i], search, &search->strategies[i]);
    }
    return status;
}

allot_status alloti_advice_add_rows(allot_advice *advice, const alloti_search *search,
                                    const uint32_t *shown, uint32_t count)
{
    advice->rows = alloti_calloc_array((uint64_t)count + 1, sizeof *advice->rows);
    if (advice->rows == NULL) {
        return alloti_fail_memory(((uint64_t)count + 1) * sizeof *advice->rows);
    }
    advice->row_count = count + 1;
    allot_status status = row_set(&advice->rows[0], search, &search->candidates[0]);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        status = row_set(&advice->rows[i + 1], search, &search->candidates[shown[i]]);
    }
    return status == ALLOT_STATUS_OK ? add_strategies(advice, search) : status;
}

static allot_status lines_copy(allot_advice *advice, const allot_groups *groups,
                               const allot_lines *lines)
{
    const uint32_t count = groups->count < LINES_MAX ? groups->count : LINES_MAX;
    advice->lines = alloti_calloc_array((uint64_t)count + 1, sizeof *advice->lines);
    if (advice->lines == NULL) {
        return alloti_fail_memory(count * sizeof *advice->lines);
    }
    for (uint32_t i = 0; i < count; i++) {
        const allot_group *const group = &groups->items[i];
        char *const text = strdup(allot_lines_text(lines, group->key));
        if (text == NULL) {
            return alloti_fail_memory(WORDS_SIZE);
        }
        advice->lines[advice->line_count++] =
            (allot_advice_line){.text = text, .bytes = group->size, .count = group->count};
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_advice_add_lines(allot_advice *advice, const allot_history *history,
                                     const allot_lines *lines, const alloti_need *need)
{
    const allot_trace *const trace = allot_history_trace(history);
    const uint32_t event = need->oom_count > 0 ? need->oom_event : need->live_event;
    allot_events events = {0};
    allot_trace_get_events(trace, allot_history_device(history), &events);
    const uint32_t stack = event == ALLOT_NONE ? ALLOT_NONE : events.stack[event];
    const bool says = allot_trace_has(trace, ALLOT_TRACE_HAS_STACKS) && stack != ALLOT_NONE;
    advice->where = strdup(says ? allot_lines_text(lines, allot_lines_of(lines, stack)) : "");
    if (advice->where == NULL) {
        return alloti_fail_memory(WORDS_SIZE);
    }
    allot_moment *moment = NULL;
    allot_status status = allot_history_at(history, event, &moment);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_groups groups = {0};
    status = allot_groups_init(moment, ALLOT_GROUP_LINE, lines, NULL, &groups);
    if (status == ALLOT_STATUS_OK) {
        status = lines_copy(advice, &groups, lines);
        allot_groups_fini(&groups);
    }
    allot_moment_destroy(moment);
    return status;
}

allot_status alloti_advice_add_words(allot_advice *advice, const alloti_search *search,
                                     const alloti_need *need, const alloti_candidate *recommended,
                                     const alloti_candidate *closest)
{
    const alloti_topic topic = {.search = search,
                                .need = need,
                                .summary = &advice->summary,
                                .recommended = recommended,
                                .closest = closest,
                                .where = advice->where};
    advice->headline = alloti_words_headline(&topic);
    advice->reason = alloti_words_reason(&topic);
    advice->notes = alloti_calloc_array(ALLOTI_NOTE_COUNT, sizeof *advice->notes);
    if (advice->headline == NULL || advice->reason == NULL || advice->notes == NULL) {
        return alloti_fail_memory(WORDS_SIZE);
    }
    for (uint32_t i = 0; i < ALLOTI_NOTE_COUNT; i++) {
        bool silent = false;
        char *const note = alloti_words_note(&topic, i, &silent);
        if (note != NULL) {
            advice->notes[advice->note_count++] = note;
        } else if (!silent) {
            return alloti_fail_memory(WORDS_SIZE);
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_advice_refuse(allot_advice *advice, const char *reason)
{
    advice->summary.verdict = ALLOT_ADVICE_VERDICT_CANNOT_SAY;
    advice->summary.recommended_row = ALLOT_NONE;
    advice->headline = strdup("No advice is possible on this file.");
    advice->reason = strdup(reason);
    advice->where = advice->where == NULL ? strdup("") : advice->where;
    const bool is_done =
        advice->headline != NULL && advice->reason != NULL && advice->where != NULL;
    return is_done ? ALLOT_STATUS_OK : alloti_fail_memory(WORDS_SIZE);
}

void allot_advice_get_summary(const allot_advice *advice, allot_advice_summary *out)
{
    *out = advice->summary;
}

uint32_t allot_advice_row_count(const allot_advice *advice)
{
    return advice->row_count;
}

void allot_advice_get_row(const allot_advice *advice, uint32_t index, allot_advice_row *out)
{
    *out = advice->rows[index];
}

uint32_t allot_advice_strategy_count(const allot_advice *advice)
{
    return advice->strategy_count;
}

void allot_advice_get_strategy(const allot_advice *advice, uint32_t index, allot_advice_row *out)
{
    *out = advice->strategies[index];
}

uint32_t allot_advice_line_count(const allot_advice *advice)
{
    return advice->line_count;
}

void allot_advice_get_line(const allot_advice *advice, uint32_t index, allot_advice_line *out)
{
    *out = advice->lines[index];
}

const char *allot_advice_where(const allot_advice *advice)
{
    return advice->where;
}

const char *allot_advice_headline(const allot_advice *advice)
{
    return advice->headline;
}

const char *allot_advice_reason(const allot_advice *advice)
{
    return advice->reason;
}

uint32_t allot_advice_note_count(const allot_advice *advice)
{
    return advice->note_count;
}

const char *allot_advice_note(const allot_advice *advice, uint32_t index)
{
    return advice->notes[index];
}
