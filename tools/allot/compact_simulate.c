/* SPDX-License-Identifier: MIT */
/* A trace through a heap, without and with compaction. */
#include <stdlib.h>
#include <string.h>

#include "compaction.h"

enum { MODEL_MAX = 256 };

/** The model of a run. */
static void name_model(const compact_request *request, compact_way way, char *out)
{
    char compacts[64] = "";
    if (way == COMPACT_WITH) {
        snprintf(compacts, sizeof compacts, ",compact=%s", request->when);
    }
    if (way == COMPACT_WITH && request->threshold > 0) {
        const size_t length = strlen(compacts);
        snprintf(compacts + length, sizeof compacts - length, ",threshold=%g", request->threshold);
    }
    snprintf(out, MODEL_MAX, "heap:%s:mode=%s,blocks=handles,gpu=%s%s", request->strategy,
             request->is_virtual ? "virtual" : "segments", request->gpu, compacts);
}

/** Waits for a moment of a run. */
typedef struct heap_watch {
    uint64_t event;
    compact_map *map;
    allot_status status;
} heap_watch;

/** Draw the heap once the event is reached. */
static bool look(void *context, allot_heap *heap, uint64_t event)
{
    heap_watch *const w = context;
    if (event < w->event) {
        return true;
    }
    w->status = compact_map_init(w->map, heap);
    return false;
}

static allot_status run(const compact_request *request, const allot_requests *requests,
                        compact_way way, uint32_t samples, heap_watch *watch,
                        allot_replay_result **out)
{
    char model[MODEL_MAX];
    name_model(request, way, model);
    const allot_replay_options options = {.struct_size = sizeof options,
                                          .model = model,
                                          .limit = request->limit,
                                          .continue_after_oom = true,
                                          .sample_count = samples,
                                          .progress = cli_progress,
                                          .on_heap = watch != NULL ? look : NULL,
                                          .on_heap_context = watch};
    const allot_status status = allot_replay_run(requests, &options, out);
    cli_progress_end();
    return status;
}

/* ---- the moment that is shown ---- */

/** Sample at which compaction saves most. */
static uint32_t find_worst(const compact_simulation *s)
{
    const allot_replay_result *const without = s->results[COMPACT_WITHOUT];
    const allot_replay_result *const with = s->results[COMPACT_WITH];
    uint32_t best = 0;
    uint64_t saved = 0;
    uint32_t peak = 0;
    for (uint32_t i = 0; i < without->sample_count && i < with->sample_count; i++) {
        const uint64_t a = without->samples[i].reserved;
        const uint64_t b = with->samples[i].reserved;
        if (a > b && a - b > saved) {
            saved = a - b;
            best = i;
        }
        peak = a > without->samples[peak].reserved ? i : peak;
    }
    return saved != 0 ? best : peak;
}

/** Draw both runs at the moment: they are repeated up to there. */
static allot_status draw_maps(compact_simulation *s, const compact_request *request,
                              const allot_requests *requests)
{
    const allot_replay_result *const without = s->results[COMPACT_WITHOUT];
    allot_status status = ALLOT_STATUS_OK;
    if (without->sample_count == 0) {
        return status;
    }
    for (int way = 0; way < COMPACT_WAYS && status == ALLOT_STATUS_OK; way++) {
        heap_watch w = {.event = without->samples[s->worst].event, .map = &s->maps[way]};
        allot_replay_result *again = NULL;
        status = run(request, requests, (compact_way)way, 0, &w, &again);
        allot_replay_result_destroy(again);
        if (w.status != ALLOT_STATUS_OK || status == ALLOT_STATUS_CANCELLED) {
            status = w.status;
        }
    }
    return status;
}

/* ---- all of it ---- */

static allot_status find_rate(compact_simulation *s, const compact_request *request)
{
    allot_device *device = NULL;
    allot_device_info info;
    char text[ALLOT_GPU_NAME_MAX + 32];
    snprintf(text, sizeof text, "simulated,gpu:%s", request->gpu);
    const allot_status status = allot_device_open(text, &device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_device_get_info(device, &info);
    allot_device_destroy(device);
    const allot_replay_result *const with = s->results[COMPACT_WITH];
    s->copy_bytes_per_s = info.copy_bytes_per_s;
    s->copy_ns = with->copy_ns;
    if (request->copy_rate != 0) {
        s->copy_bytes_per_s = request->copy_rate;
        s->copy_ns = (uint64_t)((double)with->copy_bytes / (double)request->copy_rate * 1e9);
        for (uint32_t i = 0; i < with->compaction_count; i++) {
            s->copy_ns += with->compactions[i].copy_count * info.copy_latency_ns;
        }
    }
    return status;
}

cli_exit compact_simulation_init(compact_simulation *simulation, const compact_request *request,
                                 const allot_requests *requests, uint32_t samples)
{
    *simulation = (compact_simulation){0};
    allot_requests_get_info(requests, &simulation->recorded);
    allot_status status = ALLOT_STATUS_OK;
    for (int way = 0; way < COMPACT_WAYS && status == ALLOT_STATUS_OK; way++) {
        status = run(request, requests, (compact_way)way, samples, NULL, &simulation->results[way]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = find_rate(simulation, request);
    }
    if (status == ALLOT_STATUS_OK) {
        simulation->worst = find_worst(simulation);
        status = draw_maps(simulation, request, requests);
    }
    if (status != ALLOT_STATUS_OK) {
        compact_simulation_fini(simulation);
        return cli_fail(status);
    }
    return CLI_OK;
}

void compact_simulation_fini(compact_simulation *simulation)
{
    for (int way = 0; way < COMPACT_WAYS; way++) {
        allot_replay_result_destroy(simulation->results[way]);
        simulation->results[way] = NULL;
        compact_map_fini(&simulation->maps[way]);
    }
}

/* ---- figures ---- */

double compact_mean_fragmentation(const allot_replay_result *result)
{
    double sum = 0;
    for (uint32_t i = 0; i < result->sample_count; i++) {
        sum += result->samples[i].fragmentation;
    }
    return result->sample_count == 0 ? 0 : sum / result->sample_count;
}

uint64_t compact_mean_stranded(const allot_replay_result *result)
{
    double sum = 0;
    for (uint32_t i = 0; i < result->sample_count; i++) {
        sum += (double)compact_stranded(&result->samples[i]);
    }
    return result->sample_count == 0 ? 0 : (uint64_t)(sum / result->sample_count);
}

static bool is_apart(const uint32_t *chosen, uint32_t count, uint32_t sample, uint32_t distance)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t between = chosen[i] > sample ? chosen[i] - sample : sample - chosen[i];
        if (between < distance) {
            return false;
        }
    }
    return true;
}

uint32_t compact_worst_samples(const compact_simulation *simulation, uint32_t max, uint32_t *out)
{
    const allot_replay_result *const without = simulation->results[COMPACT_WITHOUT];
    const uint32_t distance = without->sample_count / 10 + 1;
    uint32_t count = 0;
    while (count < max) {
        uint32_t worst = ALLOT_NONE;
        for (uint32_t i = 0; i < without->sample_count; i++) {
            const uint64_t here = compact_stranded(&without->samples[i]);
            if (here != 0 && is_apart(out, count, i, distance) &&
                (worst == ALLOT_NONE || here > compact_stranded(&without->samples[worst]))) {
                worst = i;
            }
        }
        if (worst == ALLOT_NONE) {
            break;
        }
        out[count++] = worst;
    }
    return count;
}
