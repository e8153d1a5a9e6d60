/* SPDX-License-Identifier: MIT */
/* What compaction would gain, as text. */
#include <inttypes.h>

#include "compaction.h"
#include "dryrun_words.h"

/** Cells of a picture, and worst moments that are shown. */
enum { CELLS = 64, WORST = 3, WORST_MAX = 32 };

/* ---- words ---- */

const char *compact_time_text(uint64_t ns, char *buffer, size_t size)
{
    if (ns >= 1000000000) {
        snprintf(buffer, size, "%.2f s", (double)ns / 1e9);
    } else {
        snprintf(buffer, size, "%.2f ms", (double)ns / 1e6);
    }
    return buffer;
}

const char *compact_moment_text(const compact_state *state, char *buffer, size_t size)
{
    if (state->event != ALLOT_NONE) {
        snprintf(buffer, size, "after event %" PRIu32, state->event);
    } else {
        snprintf(buffer, size, "%s", state->is_only ? "as recorded" : "before its first event");
    }
    return buffer;
}

/** "+1.5 GiB", "-20.0 MiB". */
const char *compact_change_text(int64_t bytes, char *buffer, size_t size)
{
    const uint64_t amount = bytes < 0 ? (uint64_t) - (bytes + 1) + 1 : (uint64_t)bytes;
    snprintf(buffer, size, "%s%s", bytes < 0 ? "-" : "+", dryrun_size_text(amount));
    return buffer;
}

int64_t compact_difference(uint64_t a, uint64_t b)
{
    return a >= b ? (int64_t)(a - b) : -(int64_t)(b - a);
}

/** A row of a table of two columns. */
static void put_row(FILE *out, const char *name, const char *a, const char *b)
{
    fprintf(out, "  %-26s %14s %14s\n", name, a, b);
}

static void put_sizes(FILE *out, const char *name, uint64_t a, uint64_t b)
{
    put_row(out, name, dryrun_size_text(a), dryrun_size_text(b));
}

static void put_counts(FILE *out, const char *name, uint64_t a, uint64_t b)
{
    char first[32];
    char second[32];
    snprintf(first, sizeof first, "%" PRIu64, a);
    snprintf(second, sizeof second, "%" PRIu64, b);
    put_row(out, name, first, second);
}

static void put_shares(FILE *out, const char *name, double a, double b)
{
    char first[32];
    char second[32];
    snprintf(first, sizeof first, "%.0f %%", 100 * a);
    snprintf(second, sizeof second, "%.0f %%", 100 * b);
    put_row(out, name, first, second);
}

static void put_note(FILE *out)
{
    fputs("  Blocks are taken as handles, which may move; those of the recorded program may not "
          "have been.\n",
          out);
}

/* ---- pictures ---- */

/** 0 for an empty cell, 4 for a full one. */
static unsigned shade_of(double share)
{
    if (share <= 0) {
        return 0;
    }
    return share > 0.99 ? 4 : 1 + (unsigned)(share * 3);
}

/** Memory as a row of cells, `size` bytes wide: darker is fuller, a blank is not held. */
static void put_map(FILE *out, const char *name, const compact_map *map, uint64_t size)
{
    static const char *const SHADES[] = {"·", "░", "▒", "▓", "█"};
    fprintf(out, "  %-11s ", name);
    const double step = (double)size / CELLS;
    for (int i = 0; i < CELLS; i++) {
        const uint64_t begin = (uint64_t)(i * step);
        uint64_t end = (uint64_t)((i + 1) * step);
        end = end < map->size ? end : map->size;
        if (begin < end) {
            fputs(SHADES[shade_of(compact_map_share(map, begin, end))], out);
        }
    }
    fputc('\n', out);
}

typedef double (*sample_fn)(const allot_replay_sample *sample);

static double reserved_of(const allot_replay_sample *sample)
{
    return (double)sample->reserved;
}

static double allocated_of(const allot_replay_sample *sample)
{
    return (double)sample->allocated;
}

static double stranded_of(const allot_replay_sample *sample)
{
    return (double)compact_stranded(sample);
}

/** A timeline as bars, each the highest value of its stretch, `high` at full height. */
static void put_bars(FILE *out, const char *name, const allot_replay_result *result,
                     sample_fn value, double high)
{
    static const char *const BARS[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    fprintf(out, "  %-22s ", name);
    for (uint64_t i = 0; i < CELLS; i++) {
        const uint64_t first = i * result->sample_count / CELLS;
        const uint64_t last = (i + 1) * result->sample_count / CELLS;
        double most = 0;
        for (uint64_t s = first; s < last || s == first; s++) {
            const double here = s < result->sample_count ? value(&result->samples[s]) : 0;
            most = here > most ? here : most;
        }
        const int level = high > 0 ? (int)(most / high * 8 + 0.5) : 0;
        fputs(BARS[most > 0 && level == 0 ? 1 : level], out);
    }
    fputc('\n', out);
}

/* ---- a state ---- */

static void put_state_table(FILE *out, const compact_state *s)
{
    const allot_compact_forecast *const f = &s->forecast;
    put_row(out, "", "now", "compacted");
    put_sizes(out, "reserved", s->before.size, s->after.size);
    put_sizes(out, "in use", s->active, s->active);
    put_counts(out, "segments that hold blocks", f->segments_before, f->segments_after);
    put_sizes(out, "empty segments", f->releasable_before, f->releasable_after);
    put_sizes(out, "largest free range", f->largest_before, f->largest_after);
    put_shares(out, "fragmentation", f->fragmentation_before, f->fragmentation_after);
    if (f->releasable_after != 0) {
        fputs("  compacted: what is left once the empty segments are given back\n", out);
    }
}

static void put_request(FILE *out, const compact_state *s)
{
    if (s->asked == 0) {
        return;
    }
    const bool has_range = s->forecast.largest_after >= s->asked;
    fprintf(out, "\n  The request of %s that failed here %s: %s", dryrun_size_text(s->asked),
            compact_would_fit(s) ? "would fit" : "would still fail",
            has_range ? "a free range is large enough.\n" : "");
    if (!has_range) {
        fprintf(out, "%s of empty segments can be given back, the device has %s more.\n",
                dryrun_size_text(s->forecast.releasable_after), dryrun_size_text(s->device_free));
    }
}

static void put_state(FILE *out, const compact_request *request, const compact_state *s)
{
    char time[32];
    char change[64];
    const allot_compact_forecast *const f = &s->forecast;
    char moment[COMPACT_MOMENT_MAX];
    fprintf(out, "%s: memory %s, compacted\n", request->path,
            compact_moment_text(s, moment, sizeof moment));
    put_note(out);
    fputc('\n', out);
    put_state_table(out, s);
    fprintf(out, "\n  to move: %" PRIu64 " blocks, %s, %s at %s/s (%s)\n", f->moves,
            dryrun_size_text(f->bytes), compact_time_text(f->time_ns, time, sizeof time),
            dryrun_size_text(s->copy_bytes_per_s),
            request->copy_rate != 0 ? "as given" : request->gpu);
    fprintf(out, "  benefit: %s, bytes gained less bytes moved%s\n",
            compact_change_text(f->benefit, change, sizeof change),
            f->moves == 0     ? "; nothing to move"
            : f->benefit <= 0 ? "; not worth it"
                              : "");
    put_request(out, s);
    if (s->outside_count != 0) {
        fprintf(out, "  Left out: %" PRIu64 " blocks that lie in no known segment.\n",
                s->outside_count);
    }
    if (s->before.size != 0) {
        fputc('\n', out);
        put_map(out, "now", &s->before, s->before.size);
        put_map(out, "compacted", &s->after, s->before.size);
    }
}

/* ---- a simulation ---- */

static void put_simulation_table(FILE *out, const compact_simulation *s)
{
    char text[COMPACT_FIGURE_MAX];
    fprintf(out, "  %-22s", "");
    for (int way = 0; way < COMPACT_WAYS; way++) {
        if (s->results[way] != NULL) {
            fprintf(out, " %13s", compact_way_name((compact_way)way));
        }
    }
    fputc('\n', out);
    for (unsigned figure = 0; figure < COMPACT_FIGURES; figure++) {
        fprintf(out, "  %-22s", compact_figure_name(figure));
        for (int way = 0; way < COMPACT_WAYS; way++) {
            if (s->results[way] != NULL) {
                fprintf(out, " %13s", compact_figure_text(figure, s->results[way], text));
            }
        }
        fputc('\n', out);
    }
    if (s->results[COMPACT_TRIM] != NULL) {
        fputs(
            "  giving back: what is free goes back to the device when the heap would compact, and "
            "nothing\n  moves; compacting does so after it\n",
            out);
    }
}

static void put_timelines(FILE *out, const compact_simulation *s)
{
    char name[64];
    uint64_t high = 0;
    for (int way = 0; way < COMPACT_WAYS; way++) {
        const allot_replay_result *const result = s->results[way];
        high = result != NULL && result->reserved_peak > high ? result->reserved_peak : high;
    }
    fprintf(out, "\n  over %" PRIu64 " events, full height %s\n", s->recorded.event_count,
            dryrun_size_text(high));
    put_bars(out, "allocated", s->results[COMPACT_WITHOUT], allocated_of, (double)high);
    for (int way = 0; way < COMPACT_WAYS; way++) {
        if (s->results[way] != NULL) {
            snprintf(name, sizeof name, "reserved, %s", compact_way_name((compact_way)way));
            put_bars(out, name, s->results[way], reserved_of, (double)high);
        }
    }
    for (int way = 0; way < COMPACT_WAYS; way++) {
        if (s->results[way] != NULL) {
            snprintf(name, sizeof name, "in pieces, %s", compact_way_name((compact_way)way));
            put_bars(out, name, s->results[way], stranded_of, (double)high);
        }
    }
    fputs("  in pieces: free, but not in the largest free range\n", out);
}

static void put_worst(FILE *out, const compact_simulation *s)
{
    uint32_t worst[WORST_MAX];
    const uint32_t wanted = cli_report.top != 0 ? cli_report.top : WORST;
    const uint32_t count = compact_worst_samples(s, wanted < WORST_MAX ? wanted : WORST_MAX, worst);
    if (count == 0) {
        return;
    }
    const char *const name = compact_way_name(compact_baseline_way(s));
    fprintf(out, "\n  where most was in pieces %s: free, and largest free ranges\n", name);
    fprintf(out, "  %12s %14s %14s %14s\n", "event", "free", name, "compacting");
    for (uint32_t i = 0; i < count; i++) {
        const allot_replay_sample *const a = &compact_baseline(s)->samples[worst[i]];
        const allot_replay_sample *const b = &s->results[COMPACT_WITH]->samples[worst[i]];
        fprintf(out, "  %12" PRIu64 " %14s %14s %14s\n", a->event,
                dryrun_size_text(compact_free(a)), dryrun_size_text(a->free_largest),
                dryrun_size_text(b->free_largest));
    }
}

static void put_simulation_maps(FILE *out, const compact_simulation *s)
{
    const compact_map *const a = &s->maps[0];
    const compact_map *const b = &s->maps[1];
    const uint64_t size = a->size > b->size ? a->size : b->size;
    if (size == 0) {
        return;
    }
    fprintf(out, "\n  memory after event %" PRIu64 "\n", s->event);
    put_map(out, compact_way_name(compact_baseline_way(s)), a, size);
    put_map(out, compact_way_name(COMPACT_WITH), b, size);
}

/** The answer in a sentence or two. */
static void put_answer(FILE *out, const compact_request *request, const compact_simulation *s)
{
    const allot_replay_result *const a = compact_baseline(s);
    const allot_replay_result *const b = s->results[COMPACT_WITH];
    char change[64];
    char time[32];
    if (b->compaction_count == 0) {
        const bool is_forced = s->results[COMPACT_TRIM] == NULL;
        fprintf(out, "\n  Nothing was compacted: %s.\n",
                !is_forced            ? "not enough was free, or moving did not pay"
                : request->limit == 0 ? "without --limit no request fails"
                : b->oom_count != 0   ? "it would not have made room for what failed"
                                      : "no request needed it");
        return;
    }
    fprintf(out, "\n  Compaction changes the peak by %s%s and takes %s of copies at %s/s",
            compact_change_text(compact_difference(b->reserved_peak, a->reserved_peak), change,
                                sizeof change),
            a == s->results[COMPACT_TRIM] ? " beyond giving back" : "",
            compact_time_text(s->copy_ns, time, sizeof time),
            dryrun_size_text(s->copy_bytes_per_s));
    const uint64_t before = s->results[COMPACT_WITHOUT]->cost_ns;
    const uint64_t driver_ns = b->cost_ns - b->copy_ns;
    if (driver_ns > before) {
        fprintf(out, ",\n  and %s more of driver calls than without",
                compact_time_text(driver_ns - before, time, sizeof time));
    }
    if (a->oom_count != 0 || b->oom_count != 0) {
        fprintf(out, ".\n  Requests that fail: %" PRIu64 " %s, %" PRIu64 " with it", a->oom_count,
                compact_baseline_words(s), b->oom_count);
    }
    fputs(".\n", out);
}

static void put_simulation(FILE *out, const compact_request *request, const compact_simulation *s)
{
    fprintf(out, "%s: %" PRIu64 " requests, served by a heap\n", request->path,
            s->recorded.alloc_count);
    fprintf(out, "  %s\n", s->results[COMPACT_WITH]->model);
    put_note(out);
    if (request->limit == 0 && s->recorded.oom_limit != 0) {
        fprintf(out,
                "  No limit is given, so nothing can fail. The recorded run ran out of memory; its "
                "limit was\n  about %s: --limit %" PRIu64 "MiB\n",
                dryrun_size_text(s->recorded.oom_limit), s->recorded.oom_limit >> 20);
    }
    fputc('\n', out);
    put_simulation_table(out, s);
    put_answer(out, request, s);
    put_timelines(out, s);
    put_worst(out, s);
    put_simulation_maps(out, s);
}

/* ---- where to ---- */

cli_exit compact_report_state(const compact_request *request, const compact_state *state)
{
    FILE *out = NULL;
    cli_exit code = cli_open_output(cli_report.output, &out);
    if (code != CLI_OK) {
        return code;
    }
    if (cli_report.wants_json != 0) {
        code = compact_put_state(request, state, out);
    } else {
        put_state(out, request, state);
    }
    const cli_exit closed = cli_close_output(cli_report.output, out);
    return code == CLI_OK ? closed : code;
}

cli_exit compact_report_simulation(const compact_request *request,
                                   const compact_simulation *simulation)
{
    FILE *out = NULL;
    cli_exit code = cli_open_output(cli_report.output, &out);
    if (code != CLI_OK) {
        return code;
    }
    if (cli_report.wants_json != 0) {
        code = compact_put_simulation(request, simulation, out);
    } else {
        put_simulation(out, request, simulation);
    }
    const cli_exit closed = cli_close_output(cli_report.output, out);
    return code == CLI_OK ? closed : code;
}
