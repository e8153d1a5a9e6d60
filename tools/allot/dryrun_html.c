/* SPDX-License-Identifier: MIT */
/* The page of a dry run: the answer, its figures, what was taken for granted and what is not known,
 * around the recording of the run that stands for all. */
#include "dryrun_html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"
#include "dryrun_hint.h"
#include "dryrun_words.h"

enum { ROWS_MAX = 64, TEXT_MAX = 512 };

/** A table being made, with room for its texts. */
typedef struct table {
    uint32_t count;
    allot_html_fact facts[ROWS_MAX];
    char texts[ROWS_MAX][3][TEXT_MAX];
} table;

typedef enum table_name { RUN, RUNS, GRANTED, UNKNOWN, TABLE_COUNT } table_name;

/** All that the page tells; large, so on the heap. */
typedef struct book {
    table tables[TABLE_COUNT];
    allot_html_facts facts[TABLE_COUNT]; /**< The same, for the page. */
    char headline[TEXT_MAX];
    char first[TEXT_MAX]; /**< The sentence that comes first; "" for none. */
    dryrun_hints hints;
    const char *sentences[DRYRUN_HINT_MAX + 1];
    const allot_history *history; /**< NULL: nothing was recorded. */
    uint32_t event;
    allot_html_story story;
    uint64_t limit;
} book;

/** A size does not break between its number and its unit. */
static void keep_together(char *text)
{
    char *const blank = strchr(text, ' ');
    const size_t length = strlen(text);
    if (blank != NULL && length < 12 && text[length - 1] == 'B') {
        memmove(blank + 2, blank + 1, strlen(blank));
        blank[0] = '\xc2'; /* U+00A0 */
        blank[1] = '\xa0';
    }
}

/** Add a row; the remark is a format. */
__attribute__((format(printf, 4, 5))) static void put(table *to, const char *name,
                                                      const char *value, const char *remark, ...)
{
    if (to->count == ROWS_MAX) {
        return;
    }
    char(*const texts)[TEXT_MAX] = to->texts[to->count];
    va_list args;
    va_start(args, remark);
    snprintf(texts[0], TEXT_MAX, "%s", name);
    snprintf(texts[1], TEXT_MAX, "%s", value);
    keep_together(texts[1]);
    vsnprintf(texts[2], TEXT_MAX, remark, args);
    va_end(args);
    to->facts[to->count++] =
        (allot_html_fact){.name = texts[0], .value = texts[1], .remark = texts[2]};
}

static void put_number(table *to, const char *name, uint64_t number, const char *remark)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    put(to, name, text, "%s", remark);
}

/* ---- the answer ---- */

static void tell_verdict(const dryrun_request *request, const dryrun_answer *answer, book *out)
{
    const dryrun_attempt *const run = answer->run;
    const dryrun_result *const result = &run->result;
    char card[256];
    char remark[64];
    (void)dryrun_card_text(request, card, sizeof card);
    switch (run->verdict) {
    case DRYRUN_FITS:
        out->story.level = "good";
        snprintf(out->headline, TEXT_MAX, "It fits on %s%s", card,
                 dryrun_fits_remark(result, remark, sizeof remark));
        break;
    case DRYRUN_OUT_OF_MEMORY:
        out->story.level = "bad";
        snprintf(out->headline, TEXT_MAX, "Out of memory on %s", card);
        if (result->oom_count != 0) {
            snprintf(out->first, TEXT_MAX, "%.300s asked for %s after %" PRIu64 " optimizer steps.",
                     result->oom[0].line[0] == '\0' ? "An unknown line"
                                                    : dryrun_short_line(result->oom[0].line),
                     dryrun_size_text(result->oom[0].size), result->oom[0].step);
        }
        break;
    case DRYRUN_FAILED:
        out->story.level = "warn";
        snprintf(out->headline, TEXT_MAX, "The program failed for another reason than memory");
        snprintf(out->first, TEXT_MAX, "%.380s %s%.100s", result->exception,
                 result->exception_line[0] == '\0' ? "" : "at ",
                 dryrun_short_line(result->exception_line));
        break;
    case DRYRUN_INCOMPLETE:
        out->story.level = "warn";
        snprintf(out->headline, TEXT_MAX, "Tracking incomplete: whether it fits on %s is not known",
                 card);
        break;
    }
}

/** Several runs: what was asked of them leads. */
static void tell_search(const dryrun_answer *answer, book *out)
{
    const dryrun_sweep *const sweep = &answer->sweep;
    if (answer->question == DRYRUN_ASK_FIT && answer->least != NULL) {
        snprintf(out->headline, TEXT_MAX, "The least memory with which it fits is %s",
                 dryrun_size_text(answer->least->fit.limit_min));
    } else if (answer->question == DRYRUN_ASK_SWEEP && sweep->largest != NULL) {
        snprintf(out->headline, TEXT_MAX, "The largest that fits is %s=%" PRIu64, sweep->range.name,
                 sweep->largest->value);
    } else if (answer->question == DRYRUN_ASK_CONFS) {
        snprintf(out->headline, TEXT_MAX, "Settings compared, one run each");
        out->story.level = "info";
    }
}

/* ---- tables ---- */

static void tell_run(const dryrun_request *request, const dryrun_attempt *run, table *out)
{
    const dryrun_result *const result = &run->result;
    if (!result->has_peaks) {
        return;
    }
    put(out, "peak allocated", dryrun_size_text(result->allocated_peak), "what the program holds");
    put(out, "peak reserved", dryrun_size_text(result->reserved_peak),
        "what PyTorch holds from the driver");
    if (result->retries != 0) {
        put_number(out, "retries", result->retries,
                   result->oom_count == 0 ? "cached memory was given back to go on"
                                          : "cached memory was to be given back first");
    }
    for (uint32_t i = 0; i < result->use_count && result->use_count > 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "cuda:%" PRIu32, result->uses[i].device);
        put(out, name, dryrun_size_text(result->uses[i].allocated_peak), "peak; reserved %s",
            dryrun_size_text(result->uses[i].reserved_peak));
    }
    put(out, "device at its peak", dryrun_size_text(result->device_peak), "of %s, context included",
        dryrun_size_text(result->device_total));
    if (run->verdict != DRYRUN_OUT_OF_MEMORY && result->device_total >= result->device_peak) {
        put(out, "headroom", dryrun_size_text(result->device_total - result->device_peak), "%s",
            "");
    }
    dryrun_smallest smallest;
    if (run->verdict == DRYRUN_FITS && result->oom_count == 0 &&
        dryrun_find_smallest(request, result->reserved_peak, &smallest)) {
        char text[128];
        put(out, "smallest card", smallest.gpu.id, "%s, %s",
            dryrun_size_text(smallest.gpu.memory_total),
            dryrun_smallest_text(&smallest, text, sizeof text));
    }
    put_number(out, "optimizer steps", result->steps,
               request->steps == 0 ? "" : "the run was stopped after these");
    if (result->rank_count > 1) {
        put_number(out, "processes with CUDA", result->rank_count,
                   "the one that is worst off is shown");
    }
}

static void tell_runs(const dryrun_answer *answer, table *out)
{
    for (uint32_t i = 0; i < answer->series.count && answer->series.count > 1; i++) {
        const dryrun_attempt *const run = answer->series.runs[i];
        put(out, run->label, dryrun_verdict_text(run->verdict),
            "allocated %s, reserved %s, %" PRIu64 " retries",
            dryrun_size_text(run->result.allocated_peak),
            dryrun_size_text(run->result.reserved_peak), run->result.retries);
    }
}

static void tell_context(const dryrun_request *request, const dryrun_result *result, table *out)
{
    if (request->limit != 0 && result->context == 0) {
        put(out, "CUDA context", "0 B", "--limit is all for the program");
        return;
    }
    const char *reference = "";
    const char *const source = dryrun_context_source(request, result, &reference);
    put(out, "CUDA context", dryrun_size_text(result->context), "%s%s%s", source,
        reference[0] == '\0' ? "" : ": ", reference);
}

/** Sizes that real hardware would tell and that were answered otherwise. */
static void tell_sizes(const dryrun_result *result, table *out)
{
    for (uint32_t i = 0; i < result->size_count; i++) {
        const dryrun_size *const size = &result->sizes[i];
        if (size->basis == DRYRUN_BASIS_EXACT || size->basis == DRYRUN_BASIS_UNKNOWN) {
            continue;
        }
        put(out, size->name, dryrun_size_text(size->largest), "%s%s%s",
            size->basis == DRYRUN_BASIS_TABLE     ? "from --workspace"
            : size->basis == DRYRUN_BASIS_LIBRARY ? "from the installed cuDNN"
                                                  : size->source,
            size->most > size->largest ? "; at most " : "",
            size->most > size->largest ? dryrun_size_text(size->most) : "");
    }
}

static void tell_granted(const dryrun_request *request, const dryrun_result *result, table *out)
{
    const allot_gpu *const gpu = &request->gpu;
    const unsigned total = ALLOT_GPU_FIELD_memory_total;
    if (result->device_peak == 0) {
        return;
    }
    if (request->limit == 0) {
        put(out, "memory of the card", dryrun_size_text(gpu->memory_total), "%s%s%s",
            allot_gpu_source_text((allot_gpu_source)gpu->source[total]),
            gpu->reference[total][0] == '\0' ? "" : ": ", gpu->reference[total]);
    }
    tell_context(request, result, out);
    tell_sizes(result, out);
    put(out, "work is finished", request->events,
        strcmp(request->events, "instant") == 0
            ? "at once: the least memory; --events sync gives the other bound"
            : "later than at once: memory that waits for a stream is held longer");
}

static void tell_list(const char *name, const dryrun_count *list, uint32_t count, table *out)
{
    for (uint32_t i = 0; i < count; i++) {
        put(out, i == 0 ? name : "", dryrun_short_line(list[i].name), "%s",
            dryrun_times_text(list[i].count));
    }
}

static void tell_unknown(const dryrun_result *result, table *out)
{
    for (uint32_t i = 0; i < result->size_count; i++) {
        const dryrun_size *const size = &result->sizes[i];
        if (size->basis == DRYRUN_BASIS_UNKNOWN) {
            put(out, "size not known", size->name, "%s%s%s%s", dryrun_times_text(size->calls),
                size->workspace[0] == '\0' ? "" : "; to assume one: --workspace ", size->workspace,
                size->workspace[0] == '\0' ? "" : "=SIZE");
        }
    }
    tell_list("functions that do not exist here", result->missing, result->missing_count, out);
    for (uint32_t i = 0; i < result->problem_count; i++) {
        put(out, "recording", result->problems[i].name, "%s", "");
    }
    tell_list("assumptions", result->assumptions, result->assumption_count, out);
    tell_list("sizes and integers read as the least possible", result->size_lines,
              result->size_line_count, out);
    tell_list("booleans answered by rule", result->boolean_lines, result->boolean_line_count, out);
    tell_list("values read as zero", result->value_lines, result->value_line_count, out);
}

/* ---- the page ---- */

/** The program's name: its script, else the command. */
static const char *name_of(const dryrun_request *request)
{
    for (char *const *at = request->command; *at != NULL; at++) {
        const size_t length = strlen(*at);
        if (length > 3 && strcmp(*at + length - 3, ".py") == 0) {
            return *at;
        }
    }
    return request->command[0];
}

static void tell(const dryrun_request *request, const dryrun_answer *answer, book *out)
{
    static const char *const titles[TABLE_COUNT] = {"This run", "All runs", "Taken for granted",
                                                    "Not known"};
    uint32_t sentences = 0;
    out->story = (allot_html_story){.struct_size = sizeof out->story,
                                    .verb = "dryrun",
                                    .headline = out->headline,
                                    .sentences = out->sentences,
                                    .tables = out->facts,
                                    .table_count = TABLE_COUNT};
    tell_verdict(request, answer, out);
    tell_search(answer, out);
    dryrun_find_hints(request, &answer->run->result, answer->run->verdict, &out->hints);
    if (out->first[0] != '\0') {
        out->sentences[sentences++] = out->first;
    }
    for (uint32_t i = 0; i < out->hints.count; i++) {
        char *const text = out->hints.text[i];
        snprintf(text + strlen(text), DRYRUN_HINT_SIZE - strlen(text), ".");
        out->sentences[sentences++] = out->hints.text[i];
    }
    out->story.sentence_count = sentences;
    tell_run(request, answer->run, &out->tables[RUN]);
    tell_runs(answer, &out->tables[RUNS]);
    tell_granted(request, &answer->run->result, &out->tables[GRANTED]);
    tell_unknown(&answer->run->result, &out->tables[UNKNOWN]);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        out->facts[i] = (allot_html_facts){.title = titles[i],
                                           .facts = out->tables[i].facts,
                                           .count = out->tables[i].count,
                                           .is_first = i != GRANTED};
    }
}

static allot_status write_page(const void *context, const allot_html_options *options,
                               const allot_sink *sink)
{
    const book *const from = context;
    allot_html_options with_limit = *options;
    with_limit.limit = from->limit;
    return allot_html_tell(from->history, from->event, &from->story, &with_limit, sink);
}

/** What the page opens with: the first out-of-memory, else the peak. */
static uint32_t first_event(const dryrun_attempt *run, const allot_history *history)
{
    uint32_t event = ALLOT_NONE;
    const char *const moment = run->verdict == DRYRUN_OUT_OF_MEMORY ? "oom" : "peak";
    return allot_history_find(history, moment, &event) == ALLOT_STATUS_OK
               ? event
               : allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event;
}

cli_exit dryrun_write_html(const dryrun_request *request, const dryrun_answer *answer)
{
    if (cli_report.html == NULL) {
        return CLI_OK;
    }
    book *const page = calloc(1, sizeof *page);
    if (page == NULL) {
        return cli_fail(ALLOT_STATUS_HOST_MEMORY);
    }
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    const dryrun_result *const result = &answer->run->result;
    if (result->snapshot[0] != '\0' &&
        (allot_trace_read(result->snapshot, NULL, &trace) != ALLOT_STATUS_OK ||
         allot_history_create(trace, result->device, NULL, &history) != ALLOT_STATUS_OK)) {
        fprintf(stderr, "allot: the page is without the recording: %s\n", allot_error_detail());
    }
    if (history != NULL) {
        page->history = history;
        page->event = first_event(answer->run, history);
    }
    page->limit =
        result->device_total > result->context ? result->device_total - result->context : 0;
    tell(request, answer, page);
    const cli_exit code = cli_write_page(name_of(request), write_page, page);
    allot_history_destroy(history);
    allot_trace_destroy(trace);
    free(page);
    return code;
}
