/* SPDX-License-Identifier: MIT */
/* What compaction would gain, as a page: figures, memory over time and pictures of memory, above
 * the recording. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "compaction.h"
#include "dryrun_words.h"

enum { ROWS_MAX = 128, TEXT_MAX = 256, SENTENCES = 3, SERIES_MAX = 8 };

/** A table being made, with room for its texts. */
typedef struct table {
    uint32_t count;
    allot_html_fact facts[ROWS_MAX];
    char texts[ROWS_MAX][3][TEXT_MAX];
} table;

/** All that a page tells; large, so on the heap. */
typedef struct book {
    table figures;
    table compactions;
    allot_html_facts tables[2];
    char headline[TEXT_MAX];
    char texts[SENTENCES][2 * TEXT_MAX];
    const char *sentences[SENTENCES];
    allot_html_series series[SERIES_MAX];
    uint64_t *values[SERIES_MAX];
    uint64_t *events;
    allot_html_map maps[2];
    allot_html_story story;
    const allot_history *history;
    uint32_t event;
    uint64_t limit;
} book;

static const char NOTE[] = "Blocks are taken as handles, which a heap may move; those of the "
                           "recorded program may not have been.";

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
    vsnprintf(texts[2], TEXT_MAX, remark, args);
    va_end(args);
    to->facts[to->count++] =
        (allot_html_fact){.name = texts[0], .value = texts[1], .remark = texts[2]};
}

__attribute__((format(printf, 2, 3))) static void say(book *page, const char *format, ...)
{
    const uint32_t at = page->story.sentence_count;
    va_list args;
    va_start(args, format);
    vsnprintf(page->texts[at], sizeof page->texts[at], format, args);
    va_end(args);
    page->sentences[at] = page->texts[at];
    page->story.sentence_count++;
}

static void put_sizes(table *to, const char *name, uint64_t before, uint64_t after,
                      const char *what)
{
    put(to, name, dryrun_size_text(after), "%s %s", what, dryrun_size_text(before));
}

static allot_html_map map_of(const char *title, const compact_map *map)
{
    return (allot_html_map){.title = title,
                            .size = map->size,
                            .segments = map->segments,
                            .segment_count = map->segment_count,
                            .spans = map->spans,
                            .span_count = map->span_count};
}

static allot_status write_page(const void *context, const allot_html_options *options,
                               const allot_sink *sink)
{
    const book *const page = context;
    allot_html_options own = *options;
    own.limit = page->limit;
    return allot_html_tell(page->history, page->event, &page->story, &own, sink);
}

static cli_exit finish(book *page, const char *name)
{
    page->tables[0].facts = page->figures.facts;
    page->tables[0].count = page->figures.count;
    page->tables[1].facts = page->compactions.facts;
    page->tables[1].count = page->compactions.count;
    page->story.struct_size = sizeof page->story;
    page->story.verb = "compact";
    page->story.headline = page->headline;
    page->story.sentences = page->sentences;
    page->story.tables = page->tables;
    page->story.table_count = 2;
    page->story.maps = page->maps;
    page->story.map_count = 2;
    page->story.series = page->series;
    const cli_exit code = cli_write_page(name, write_page, page);
    for (uint32_t i = 0; i < SERIES_MAX; i++) {
        free(page->values[i]);
    }
    free(page->events);
    free(page);
    return code;
}

/* ---- a state ---- */

static void tell_state(book *page, const compact_request *request, const compact_state *s)
{
    char moment[COMPACT_MOMENT_MAX];
    char text[64];
    const allot_compact_forecast *const f = &s->forecast;
    table *const t = &page->figures;
    page->story.level = f->benefit > 0 ? "good" : "info";
    snprintf(page->headline, TEXT_MAX, "Compacting %s %s for %s moved",
             f->benefit > 0 ? "gains" : "does not pay: it would gain",
             dryrun_size_text((uint64_t)(f->benefit + (int64_t)f->bytes)),
             dryrun_size_text(f->bytes));
    say(page, "Memory %s.", compact_moment_text(s, moment, sizeof moment));
    if (s->asked != 0) {
        say(page, "The request of %s that failed here would %s.", dryrun_size_text(s->asked),
            compact_would_fit(s) ? "fit afterwards" : "still fail");
    }
    say(page, "%s", NOTE);
    page->tables[0].title = "Compacted";
    page->tables[0].is_first = true;
    put_sizes(t, "Reserved", s->before.size, s->after.size, "now");
    put_sizes(t, "Largest free range", f->largest_before, f->largest_after, "now");
    snprintf(text, sizeof text, "%" PRIu64, f->segments_after);
    put(t, "Segments that hold blocks", text, "now %" PRIu64, f->segments_before);
    put_sizes(t, "Empty segments", f->releasable_before, f->releasable_after, "now");
    snprintf(text, sizeof text, "%.0f %%", 100 * f->fragmentation_after);
    put(t, "Fragmentation", text, "now %.0f %%", 100 * f->fragmentation_before);
    put(t, "To move", dryrun_size_text(f->bytes), "%" PRIu64 " blocks", f->moves);
    put(t, "Time of that", compact_time_text(f->time_ns, text, sizeof text), "at %s/s, %s",
        dryrun_size_text(s->copy_bytes_per_s), request->copy_rate != 0 ? "as given" : request->gpu);
    page->maps[0] = map_of("Memory now", &s->before);
    page->maps[1] = map_of("Compacted", &s->after);
}

cli_exit compact_page_state(const compact_request *request, const compact_state *state,
                            const allot_history *history)
{
    if (cli_report.html == NULL) {
        return CLI_OK;
    }
    book *const page = calloc(1, sizeof *page);
    if (page == NULL) {
        return cli_fail(ALLOT_STATUS_HOST_MEMORY);
    }
    page->history = history;
    page->event = state->event;
    tell_state(page, request, state);
    return finish(page, request->path);
}

/* ---- a simulation ---- */

static void tell_figures(book *page, const compact_simulation *s)
{
    table *const t = &page->figures;
    char text[COMPACT_FIGURE_MAX];
    char other[COMPACT_FIGURE_MAX];
    char third[COMPACT_FIGURE_MAX];
    for (unsigned i = 0; i < COMPACT_FIGURES; i++) {
        const char *const with = compact_figure_text(i, s->results[COMPACT_WITH], text);
        const char *const without = compact_figure_text(i, s->results[COMPACT_WITHOUT], other);
        if (s->results[COMPACT_TRIM] != NULL) {
            put(t, compact_figure_name(i), with, "giving back alone %s, without %s",
                compact_figure_text(i, s->results[COMPACT_TRIM], third), without);
        } else {
            put(t, compact_figure_name(i), with, "without %s", without);
        }
    }
    put(t, "time to move them", compact_time_text(s->copy_ns, text, sizeof text), "at %s/s",
        dryrun_size_text(s->copy_bytes_per_s));
    page->tables[0].title = "With compaction";
    page->tables[0].is_first = true;
}

static int compare_bytes(const void *a, const void *b)
{
    const allot_replay_compaction *const x = *(const allot_replay_compaction *const *)a;
    const allot_replay_compaction *const y = *(const allot_replay_compaction *const *)b;
    if (x->copy_bytes != y->copy_bytes) {
        return x->copy_bytes > y->copy_bytes ? -1 : 1;
    }
    return (x->event > y->event) - (x->event < y->event);
}

/** The largest compactions. */
static void tell_compactions(book *page, const allot_replay_result *result)
{
    enum { DEFAULT_TOP = 10 };
    const uint32_t asked = cli_report.top != 0 ? cli_report.top : DEFAULT_TOP;
    const allot_replay_compaction **const order =
        calloc((size_t)result->compaction_count + 1, sizeof(const allot_replay_compaction *));
    if (order == NULL) {
        return;
    }
    for (uint32_t i = 0; i < result->compaction_count; i++) {
        order[i] = &result->compactions[i];
    }
    qsort(order, result->compaction_count, sizeof(const allot_replay_compaction *), compare_bytes);
    for (uint32_t i = 0; i < result->compaction_count && i < asked; i++) {
        char name[64];
        snprintf(name, sizeof name, "Event %" PRIu64, order[i]->event);
        put(&page->compactions, name, dryrun_size_text(order[i]->copy_bytes),
            "%" PRIu64 " copies, reserved %s, then %s", order[i]->copy_count,
            dryrun_size_text(order[i]->reserved_before),
            dryrun_size_text(order[i]->reserved_after));
    }
    page->tables[1].title = "Compactions that moved most";
    free(order);
}

typedef uint64_t (*sample_fn)(const allot_replay_sample *sample);

static uint64_t reserved_of(const allot_replay_sample *sample)
{
    return sample->reserved;
}

static uint64_t allocated_of(const allot_replay_sample *sample)
{
    return sample->allocated;
}

static uint64_t largest_of(const allot_replay_sample *sample)
{
    return sample->free_largest;
}

static void add_series(book *page, const char *name, const allot_replay_result *result,
                       sample_fn value)
{
    const uint32_t at = page->story.series_count;
    uint64_t *const values = calloc((size_t)result->sample_count + 1, sizeof *values);
    if (values == NULL) {
        return;
    }
    for (uint32_t i = 0; i < result->sample_count; i++) {
        values[i] = value(&result->samples[i]);
    }
    page->values[at] = values;
    page->series[at] = (allot_html_series){
        .name = name, .events = page->events, .bytes = values, .count = result->sample_count};
    page->story.series_count++;
}

static void tell_series(book *page, const compact_simulation *s)
{
    const allot_replay_result *const a = s->results[COMPACT_WITHOUT];
    const allot_replay_result *const b = s->results[COMPACT_WITH];
    page->events = calloc((size_t)a->sample_count + 1, sizeof *page->events);
    if (page->events == NULL) {
        return;
    }
    for (uint32_t i = 0; i < a->sample_count; i++) {
        page->events[i] = a->samples[i].event;
    }
    add_series(page, "allocated", a, allocated_of);
    add_series(page, "reserved without compaction", a, reserved_of);
    add_series(page, "reserved with compaction", b, reserved_of);
    if (s->results[COMPACT_TRIM] != NULL) {
        add_series(page, "reserved giving back alone", s->results[COMPACT_TRIM], reserved_of);
    }
    const allot_replay_result *const baseline = compact_baseline(s);
    add_series(page, "largest free without", baseline, largest_of);
    add_series(page, "largest free with", b, largest_of);
    add_series(page, "free in pieces without", baseline, compact_stranded);
    add_series(page, "free in pieces with", b, compact_stranded);
    page->story.series_title = "Memory of the heap";
}

static void tell_simulation(book *page, const compact_simulation *s)
{
    const allot_replay_result *const a = compact_baseline(s);
    const allot_replay_result *const b = s->results[COMPACT_WITH];
    char text[64];
    char time[32];
    page->story.level =
        b->oom_count < a->oom_count || b->reserved_peak < a->reserved_peak ? "good" : "info";
    (void)compact_time_text(s->copy_ns, time, sizeof time);
    if (b->oom_count < a->oom_count) {
        snprintf(page->headline, TEXT_MAX,
                 "Compaction serves %" PRIu64 " of %" PRIu64
                 " requests that fail %s, for %s of copies",
                 a->oom_count - b->oom_count, a->oom_count, compact_baseline_words(s), time);
    } else {
        snprintf(page->headline, TEXT_MAX, "Compaction changes the peak by %s%s, for %s of copies",
                 compact_change_text(compact_difference(b->reserved_peak, a->reserved_peak), text,
                                     sizeof text),
                 a == s->results[COMPACT_TRIM] ? " beyond giving back" : "", time);
    }
    if (b->oom_count != 0) {
        say(page, "%" PRIu64 " requests fail %s, %" PRIu64 " with it.", a->oom_count,
            compact_baseline_words(s), b->oom_count);
    }
    say(page, "A heap of allot's own serves the requests (%s).", b->model);
    say(page, "%s", NOTE);
    tell_figures(page, s);
    tell_compactions(page, b);
    tell_series(page, s);
    page->maps[0] = map_of(a == s->results[COMPACT_TRIM] ? "Memory with giving back alone"
                                                         : "Memory without compaction",
                           &s->maps[0]);
    page->maps[1] = map_of("The same moment with compaction", &s->maps[1]);
    page->event = (uint32_t)s->event;
}

cli_exit compact_page_simulation(const compact_request *request,
                                 const compact_simulation *simulation, const allot_history *history)
{
    if (cli_report.html == NULL) {
        return CLI_OK;
    }
    book *const page = calloc(1, sizeof *page);
    if (page == NULL) {
        return cli_fail(ALLOT_STATUS_HOST_MEMORY);
    }
    page->history = history;
    page->limit = request->limit;
    tell_simulation(page, simulation);
    return finish(page, request->path);
}
