/* SPDX-License-Identifier: MIT */
/* A trace through a heap, without and with compaction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compaction.h"
#include "dryrun_words.h"

enum {
    MODEL_MAX = 256,
    SAMPLES = 1000, /**< Points of the timelines. */
};

/** compact= of a way; "" for none. */
static const char *compact_of(const compact_request *request, compact_way way)
{
    return way == COMPACT_WITH ? request->when : way == COMPACT_TRIM ? "trim" : "";
}

/** Whether too much free memory is something that the heap looks for. */
static bool looks_at_free(const compact_request *request)
{
    return strcmp(request->when, "auto") == 0 || strcmp(request->when, "steps") == 0;
}

static void add(char *model, const char *key, const char *value)
{
    const size_t length = strlen(model);
    snprintf(model + length, MODEL_MAX - length, ",%s=%s", key, value);
}

/** The model of a run. */
static void name_model(const compact_request *request, compact_way way, uint64_t step, char *model)
{
    char text[32];
    const char *const compacts = compact_of(request, way);
    snprintf(model, MODEL_MAX, "heap:%s:mode=%s,blocks=handles,gpu=%s", request->strategy,
             request->is_virtual ? "virtual" : "segments", request->gpu);
    if (*compacts != '\0') {
        add(model, "compact", compacts);
    }
    if (*compacts != '\0' && request->threshold > 0) {
        snprintf(text, sizeof text, "%g", request->threshold);
        add(model, "threshold", text);
    }
    if (strcmp(compacts, "steps") == 0 && step != 0) {
        snprintf(text, sizeof text, "%" PRIu64 "B", step);
        add(model, "step", text);
    }
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

/** Bytes that can be copied in the time of a step; 0: the model's own. */
static uint64_t bytes_of_step(const compact_simulation *s, const compact_request *request)
{
    const double bytes = (double)request->step_ns / 1e9 * (double)s->copy_bytes_per_s;
    const double most = (double)(UINT64_C(1) << 45);
    return request->step_ns == 0 ? 0 : 1 + (uint64_t)(bytes < most ? bytes : most);
}

static allot_status run(const compact_simulation *s, const compact_request *request,
                        const allot_requests *requests, compact_way way, heap_watch *watch,
                        allot_replay_result **out)
{
    char model[MODEL_MAX];
    name_model(request, way, bytes_of_step(s, request), model);
    const allot_replay_options options = {.struct_size = sizeof options,
                                          .model = model,
                                          .limit = request->limit,
                                          .continue_after_oom = true,
                                          .sample_count = watch != NULL ? 0 : SAMPLES,
                                          .progress = cli_progress,
                                          .on_heap = watch != NULL ? look : NULL,
                                          .on_heap_context = watch};
    const allot_status status = allot_replay_run(requests, &options, out);
    cli_progress_end();
    return status;
}

/* ---- the moment that is shown ---- */

/** Event at which compaction saves most; of the peak if it saves nothing. */
static uint64_t event_of_savings(const compact_simulation *s)
{
    const allot_replay_result *const without = compact_baseline(s);
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
    return without->sample_count == 0 ? 0 : without->samples[saved != 0 ? best : peak].event;
}

/** The moment that says most of compaction. */
static uint64_t find_event(const compact_simulation *s)
{
    const allot_replay_result *const with = s->results[COMPACT_WITH];
    const allot_replay_compaction *largest = NULL;
    for (uint32_t i = 0; i < with->compaction_count; i++) {
        const allot_replay_compaction *const here = &with->compactions[i];
        largest = largest == NULL || here->copy_bytes > largest->copy_bytes ? here : largest;
    }
    return largest != NULL && with->oom_count < compact_baseline(s)->oom_count
               ? largest->event
               : event_of_savings(s);
}

/** Draw a run at the moment: it is repeated up to there. */
static allot_status draw_map(compact_simulation *s, const compact_request *request,
                             const allot_requests *requests, compact_way way, compact_map *map)
{
    heap_watch w = {.event = s->event, .map = map};
    allot_replay_result *again = NULL;
    const allot_status status = run(s, request, requests, way, &w, &again);
    allot_replay_result_destroy(again);
    return status == ALLOT_STATUS_CANCELLED ? w.status : status;
}

static allot_status draw_maps(compact_simulation *s, const compact_request *request,
                              const allot_requests *requests)
{
    const allot_status status =
        draw_map(s, request, requests, compact_baseline_way(s), &s->maps[0]);
    return status == ALLOT_STATUS_OK ? draw_map(s, request, requests, COMPACT_WITH, &s->maps[1])
                                     : status;
}

/* ---- all of it ---- */

/** How fast the card copies. */
static allot_status find_rate(compact_simulation *s, const compact_request *request)
{
    allot_device *device = NULL;
    allot_device_info info;
    char text[ALLOT_GPU_NAME_MAX + 32];
    snprintf(text, sizeof text, "simulated,gpu:%s", request->gpu);
    const allot_status status = allot_device_open(text, &device);
    if (status == ALLOT_STATUS_OK) {
        allot_device_get_info(device, &info);
        allot_device_destroy(device);
        s->copy_bytes_per_s = request->copy_rate != 0 ? request->copy_rate : info.copy_bytes_per_s;
        s->copy_latency_ns = info.copy_latency_ns;
    }
    return status;
}

static uint64_t time_of_copies(const compact_simulation *s, const allot_replay_result *result)
{
    const double ns = (double)result->copy_bytes / (double)s->copy_bytes_per_s * 1e9;
    uint64_t sum = ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18;
    for (uint32_t i = 0; i < result->compaction_count; i++) {
        sum += result->compactions[i].copy_count * s->copy_latency_ns;
    }
    return sum;
}

static allot_status run_all(compact_simulation *s, const compact_request *request,
                            const allot_requests *requests)
{
    allot_status status = find_rate(s, request);
    for (int way = 0; way < COMPACT_WAYS && status == ALLOT_STATUS_OK; way++) {
        if (way != COMPACT_TRIM || looks_at_free(request)) {
            status = run(s, request, requests, (compact_way)way, NULL, &s->results[way]);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        s->copy_ns = time_of_copies(s, s->results[COMPACT_WITH]);
        s->event = find_event(s);
        status = draw_maps(s, request, requests);
    }
    return status;
}

cli_exit compact_simulation_init(compact_simulation *simulation, const compact_request *request,
                                 const allot_requests *requests)
{
    *simulation = (compact_simulation){0};
    allot_requests_get_info(requests, &simulation->recorded);
    const allot_status status = run_all(simulation, request, requests);
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
    }
    compact_map_fini(&simulation->maps[0]);
    compact_map_fini(&simulation->maps[1]);
}

/* ---- figures ---- */

const char *compact_way_name(compact_way way)
{
    static const char *const NAMES[COMPACT_WAYS] = {"without", "giving back", "compacting"};
    return NAMES[way];
}

const char *compact_figure_name(unsigned figure)
{
    static const char *const NAMES[] = {
#define FIGURE_NAME(text, kind, value) text,
        COMPACT_FIGURE_LIST(FIGURE_NAME)
#undef FIGURE_NAME
    };
    _Static_assert(sizeof NAMES / sizeof NAMES[0] == COMPACT_FIGURES, "as many as there are");
    return NAMES[figure];
}

const char *compact_figure_text(unsigned figure, const allot_replay_result *result,
                                char buffer[COMPACT_FIGURE_MAX])
{
    const struct {
        compact_kind kind;
        uint64_t value;
    } figures[] = {
#define FIGURE_VALUE(text, kind_, value_) {.kind = (kind_), .value = (value_)},
        COMPACT_FIGURE_LIST(FIGURE_VALUE)
#undef FIGURE_VALUE
    };
    const uint64_t value = figures[figure].value;
    switch (figures[figure].kind) {
    case COMPACT_SIZE:
        snprintf(buffer, COMPACT_FIGURE_MAX, "%s", dryrun_size_text(value));
        break;
    case COMPACT_COUNT:
        snprintf(buffer, COMPACT_FIGURE_MAX, "%" PRIu64, value);
        break;
    case COMPACT_PERCENT:
        snprintf(buffer, COMPACT_FIGURE_MAX, "%" PRIu64 " %%", value);
        break;
    case COMPACT_TIME:
        (void)compact_time_text(value, buffer, COMPACT_FIGURE_MAX);
        break;
    }
    return buffer;
}

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
    const allot_replay_result *const without = compact_baseline(simulation);
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
