/* SPDX-License-Identifier: MIT */
/* What compaction would gain, as JSON: allot.compact/1, see docs/json.md. */
#include <yajl/yajl_gen.h>

#include "compaction.h"
#include "dryrun_put.h"

static yajl_gen open_document(const compact_request *request, const char *kind)
{
    yajl_gen json = dryrun_put_open("allot.compact/1", true);
    if (json != NULL) {
        dryrun_put_text(json, "file", request->path);
        dryrun_put_text(json, "kind", kind);
        dryrun_put_text(json, "gpu", request->gpu);
    }
    return json;
}

static cli_exit close_document(yajl_gen json, FILE *out)
{
    const unsigned char *text = NULL;
    size_t size = 0;
    yajl_gen_map_close(json);
    const bool is_ok = yajl_gen_get_buf(json, &text, &size) == yajl_gen_status_ok;
    if (is_ok) {
        fwrite(text, 1, size, out); /* a failure is found when the output is closed */
    } else {
        fputs("allot: out of memory\n", stderr);
    }
    yajl_gen_free(json);
    return is_ok ? CLI_OK : CLI_FAILED;
}

static void put_double(yajl_gen json, const char *key, double value)
{
    dryrun_put_key(json, key);
    yajl_gen_double(json, value);
}

static void open_map(yajl_gen json, const char *key)
{
    dryrun_put_key(json, key);
    yajl_gen_map_open(json);
}

static void open_array(yajl_gen json, const char *key)
{
    dryrun_put_key(json, key);
    yajl_gen_array_open(json);
}

/* ---- a state ---- */

static void put_side(yajl_gen json, const char *key, uint64_t reserved, uint64_t segments,
                     uint64_t releasable, uint64_t largest, double fragmentation)
{
    open_map(json, key);
    dryrun_put_number(json, "reserved", reserved);
    dryrun_put_number(json, "segments", segments);
    dryrun_put_number(json, "releasable", releasable);
    dryrun_put_number(json, "free_largest", largest);
    put_double(json, "fragmentation", fragmentation);
    yajl_gen_map_close(json);
}

cli_exit compact_put_state(const compact_request *request, const compact_state *state, FILE *out)
{
    yajl_gen json = open_document(request, "state");
    if (json == NULL) {
        return CLI_FAILED;
    }
    const allot_compact_forecast *const f = &state->forecast;
    if (state->event == ALLOT_NONE) {
        dryrun_put_null(json, "event");
    } else {
        dryrun_put_number(json, "event", state->event);
    }
    if (state->asked == 0) {
        dryrun_put_null(json, "failed_request");
    } else {
        dryrun_put_number(json, "failed_request", state->asked);
    }
    dryrun_put_number(json, "device_free", state->device_free);
    dryrun_put_number(json, "active", state->active);
    dryrun_put_number(json, "outside_count", state->outside_count);
    put_side(json, "before", state->before.size, f->segments_before, f->releasable_before,
             f->largest_before, f->fragmentation_before);
    put_side(json, "after", state->after.size, f->segments_after, f->releasable_after,
             f->largest_after, f->fragmentation_after);
    dryrun_put_number(json, "moves", f->moves);
    dryrun_put_number(json, "moved_bytes", f->bytes);
    dryrun_put_number(json, "moved_ns", f->time_ns);
    dryrun_put_number(json, "copy_bytes_per_s", state->copy_bytes_per_s);
    dryrun_put_key(json, "benefit");
    yajl_gen_integer(json, f->benefit);
    return close_document(json, out);
}

/* ---- a simulation ---- */

static void put_samples(yajl_gen json, const allot_replay_result *result)
{
    open_array(json, "timeline");
    for (uint32_t i = 0; i < result->sample_count; i++) {
        const allot_replay_sample *const sample = &result->samples[i];
        yajl_gen_map_open(json);
        dryrun_put_number(json, "event", sample->event);
        dryrun_put_number(json, "reserved", sample->reserved);
        dryrun_put_number(json, "allocated", sample->allocated);
        dryrun_put_number(json, "active", sample->active);
        dryrun_put_number(json, "free_largest", sample->free_largest);
        put_double(json, "fragmentation", sample->fragmentation);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_compactions(yajl_gen json, const allot_replay_result *result)
{
    open_array(json, "compactions");
    for (uint32_t i = 0; i < result->compaction_count; i++) {
        const allot_replay_compaction *const compaction = &result->compactions[i];
        yajl_gen_map_open(json);
        dryrun_put_number(json, "event", compaction->event);
        dryrun_put_number(json, "moves", compaction->copy_count);
        dryrun_put_number(json, "moved_bytes", compaction->copy_bytes);
        dryrun_put_number(json, "reserved_before", compaction->reserved_before);
        dryrun_put_number(json, "reserved_after", compaction->reserved_after);
        dryrun_put_number(json, "free_largest_before", compaction->largest_before);
        dryrun_put_number(json, "free_largest_after", compaction->largest_after);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_run(yajl_gen json, const char *key, const allot_replay_result *result)
{
    open_map(json, key);
    dryrun_put_text(json, "model", result->model);
    dryrun_put_number(json, "reserved_peak", result->reserved_peak);
    dryrun_put_number(json, "active_peak", result->active_peak);
    dryrun_put_number(json, "reserved_end", result->reserved_end);
    dryrun_put_number(json, "oom_count", result->oom_count);
    put_double(json, "fragmentation_mean", compact_mean_fragmentation(result));
    dryrun_put_number(json, "in_pieces_mean", compact_mean_stranded(result));
    dryrun_put_number(json, "driver_calls", result->driver_alloc_count + result->driver_free_count);
    dryrun_put_number(json, "driver_ns", result->cost_ns - result->copy_ns);
    dryrun_put_number(json, "moved_bytes", result->copy_bytes);
    put_compactions(json, result);
    put_samples(json, result);
    yajl_gen_map_close(json);
}

static void put_worst(yajl_gen json, const compact_simulation *simulation)
{
    enum { WORST = 10 };
    uint32_t worst[WORST];
    const uint32_t count = compact_worst_samples(simulation, WORST, worst);
    open_array(json, "worst");
    for (uint32_t i = 0; i < count; i++) {
        const allot_replay_sample *const a = &compact_baseline(simulation)->samples[worst[i]];
        yajl_gen_map_open(json);
        dryrun_put_number(json, "event", a->event);
        dryrun_put_number(json, "free", compact_free(a));
        dryrun_put_number(json, "free_largest_without", a->free_largest);
        dryrun_put_number(json, "free_largest_with",
                          simulation->results[COMPACT_WITH]->samples[worst[i]].free_largest);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

cli_exit compact_put_simulation(const compact_request *request,
                                const compact_simulation *simulation, FILE *out)
{
    yajl_gen json = open_document(request, "simulation");
    if (json == NULL) {
        return CLI_FAILED;
    }
    if (request->limit == 0) {
        dryrun_put_null(json, "limit");
    } else {
        dryrun_put_number(json, "limit", request->limit);
    }
    dryrun_put_text(json, "when", request->when);
    dryrun_put_number(json, "requests", simulation->recorded.alloc_count);
    dryrun_put_number(json, "copy_bytes_per_s", simulation->copy_bytes_per_s);
    dryrun_put_number(json, "moved_ns", simulation->copy_ns);
    put_run(json, "without", simulation->results[COMPACT_WITHOUT]);
    if (simulation->results[COMPACT_TRIM] != NULL) {
        put_run(json, "trimmed", simulation->results[COMPACT_TRIM]);
    } else {
        dryrun_put_null(json, "trimmed");
    }
    put_run(json, "with", simulation->results[COMPACT_WITH]);
    put_worst(json, simulation);
    return close_document(json, out);
}
