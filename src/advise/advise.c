/* SPDX-License-Identifier: MIT */
/*
 * From a trace to an advice: what can be asked of it, the limit, the search, the choice.
 *
 * The order of questions matters. Whether the file can be replayed at all; what it needs whatever
 * the settings (if that exceeds the limit no search is made); whether the present settings explain
 * a recorded out-of-memory under the limit inferred from it; then the search.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "advise/advice.h"
#include "advise/shown.h"
#include "advise/words.h"
#include "core/array.h"
#include "core/options.h"
#include "core/size_text.h"

enum {
    ROWS_DEFAULT = 10,
    JOBS_STRATEGIES = 12,
    JOBS_EXPECTED = 75, /* settings tried and finished by a usual search; for progress alone */
};

/** Everything one call holds. */
typedef struct advising {
    const allot_trace *trace;
    uint32_t device;
    const allot_advise_options *options;
    allot_requests *requests;
    allot_history *history;
    allot_lines *lines;
    alloti_need need;
    alloti_search search;
    allot_advice *advice;
    alloti_shown shown;
} advising;

static void advising_fini(advising *a)
{
    alloti_search_fini(&a->search);
    allot_requests_destroy(a->requests);
    allot_history_destroy(a->history);
    allot_lines_destroy(a->lines);
    alloti_shown_fini(&a->shown);
}

static allot_status check_options(const allot_trace *trace, uint32_t device,
                                  const allot_advise_options *options)
{
    if (device >= allot_trace_device_count(trace)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "device %u is not in the trace (%u devices)",
                           device, allot_trace_device_count(trace));
    }
    if (!(options->fraction >= 0.0 && options->fraction <= 1.0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "fraction %g: want a number above 0, up to 1",
                           options->fraction);
    }
    if (options->limit != 0 && options->fraction > 0.0 &&
        options->fraction * (double)options->limit < (double)ALLOTI_ADVISE_STEP) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "a fraction of %g of %" PRIu64 " bytes is less than any segment",
                           options->fraction, options->limit);
    }
    if (options->fraction > 0.0 && options->limit == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a fraction needs a limit to be a fraction of");
    }
    return ALLOT_STATUS_OK;
}

/** Why a kind of file has no settings of PyTorch to advise on; NULL if it may have. */
static const char *format_refusal(const allot_trace *trace)
{
    switch (allot_trace_get_format(trace)) {
    case ALLOT_TRACE_FORMAT_RMM_CSV:
        return "This is a log of RAPIDS RMM: PyTorch's settings do not apply to it. allot replay "
               "--model rmm:pool (or rmm:arena, rmm:binning, async, space:first-fit) compares what "
               "would.";
    case ALLOT_TRACE_FORMAT_UMPIRE_JSON:
    case ALLOT_TRACE_FORMAT_UMPIRE_CSV:
        return "This is a log of Umpire: PyTorch's settings do not apply to it. allot replay "
               "--model NAME compares allocators on it.";
    case ALLOT_TRACE_FORMAT_VMA_JSON:
        return "This is a dump of the state of a graphics allocator, without history: there is "
               "nothing to replay.";
    case ALLOT_TRACE_FORMAT_TIMELINE:
        return "A memory timeline has categories and sizes but no addresses and no frees by block: "
               "it cannot be replayed. Record a snapshot (torch.cuda.memory._dump_snapshot).";
    default:
        return NULL;
    }
}

/** Say why the history cannot be replayed, and what to record instead. */
static allot_status refuse_history(advising *a)
{
    char *const text = alloti_words_format(
        "No setting can be tried here: %s. A snapshot is needed that was recorded with "
        "torch.cuda.memory._record_memory_history(), best from the program's start.",
        allot_error_detail());
    if (text == NULL) {
        return alloti_fail_memory(ALLOTI_DETAIL_SIZE);
    }
    const allot_status status = alloti_advice_refuse(a->advice, text);
    free(text);
    return status;
}

/** Read what is needed; *refused is set if the file cannot be advised on. */
static allot_status prepare(advising *a, bool *refused)
{
    const char *const why = format_refusal(a->trace);
    *refused = why != NULL;
    if (why != NULL) {
        return alloti_advice_refuse(a->advice, why);
    }
    allot_status status = allot_requests_create(a->trace, a->device, &a->requests, NULL);
    if (status == ALLOT_STATUS_UNSUPPORTED) {
        *refused = true;
        return refuse_history(a);
    }
    const allot_history_options history = {.struct_size = sizeof history,
                                           .progress = a->options->progress,
                                           .progress_context = a->options->progress_context};
    if (status == ALLOT_STATUS_OK) {
        status = allot_history_create(a->trace, a->device, &history, &a->history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_lines_create(a->trace, a->options->lines, &a->lines);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_need_measure(a->history, a->lines, &a->need);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_sizes_init(&a->search.sizes, a->trace, a->device);
    }
    return status;
}

/** One comparison of the model with the recording; a difference is not a failure. */
static allot_status check_once(advising *a, uint64_t limit, double fraction)
{
    allot_advice_summary *const s = &a->advice->summary;
    const allot_replay_check_options options = {.struct_size = sizeof options,
                                                .limit = limit,
                                                .fraction = fraction,
                                                .progress = a->options->progress,
                                                .progress_context = a->options->progress_context};
    allot_replay_check_result result = {.struct_size = sizeof result};
    const allot_status status = allot_replay_check(a->requests, &options, &result);
    if (status != ALLOT_STATUS_OK && status != ALLOT_STATUS_MISMATCH) {
        return status;
    }
    if (!s->is_checked || result.placement_equal > s->placements_equal) {
        s->placements = result.placement_count;
        s->placements_equal = result.placement_equal;
    }
    s->is_checked = true;
    return ALLOT_STATUS_OK;
}

/**
 * How well the model repeats the recording: with the driver's refusals as recorded, and, if that
 * differs somewhere, under the limit given, which may be the one it was recorded under.
 */
static allot_status check_fidelity(advising *a)
{
    const allot_status status = check_once(a, 0, 0.0);
    const allot_advice_summary *const s = &a->advice->summary;
    if (status != ALLOT_STATUS_OK || s->placements_equal == s->placements ||
        a->options->limit == 0) {
        return status;
    }
    return check_once(a, a->options->limit, a->options->fraction);
}

static allot_status evaluate_present(advising *a, uint64_t limit)
{
    a->search.limit = limit;
    alloti_candidate *const present = &a->search.candidates[0];
    present->run = (alloti_outcome){.is_known = false};
    present->roomy = (alloti_outcome){.is_known = false};
    present->tight = (alloti_outcome){.is_known = false};
    present->need_low = present->need_high = present->need_sure = 0;
    return alloti_search_evaluate(&a->search, 0);
}

/** Whether the present settings do within the limit what the recording shows. */
static bool present_repeats(const advising *a)
{
    const alloti_outcome *const run = &a->search.candidates[0].run;
    return a->need.oom_count == 0 ? run->finishes
                                  : !run->finishes && run->stop_event == a->need.oom_event;
}

/**
 * Settle the limit and replay the present settings within it. A limit that is not given must bring
 * about what was recorded: the out-of-memory, or a run under pressure without one. First what was
 * held and what was left at the out-of-memory, then the most that was ever held (a memory fraction
 * stops a process before the device is full).
 */
static allot_status settle_limit(advising *a)
{
    allot_advice_summary *const s = &a->advice->summary;
    if (a->options->limit != 0) {
        s->limit_source = ALLOT_LIMIT_SOURCE_GIVEN;
        return evaluate_present(a, a->options->limit);
    }
    const bool was_refused = a->need.oom_count > 0 || a->search.info.pressure_count > 0;
    const struct {
        uint64_t limit;
        allot_limit_source source;
    } guesses[] = {{a->need.oom_total, ALLOT_LIMIT_SOURCE_INFERRED},
                   {was_refused ? a->need.reserved_peak : 0, ALLOT_LIMIT_SOURCE_HELD}};
    for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++) {
        if (guesses[i].limit == 0) {
            continue;
        }
        const allot_status status = evaluate_present(a, guesses[i].limit);
        if (status != ALLOT_STATUS_OK || present_repeats(a)) {
            s->limit_source = guesses[i].source;
            return status;
        }
    }
    s->limit_source = ALLOT_LIMIT_SOURCE_NONE;
    return evaluate_present(a, 0);
}

static allot_status add_wanted(advising *a)
{
    const uint32_t first = a->search.candidate_count;
    for (uint32_t i = 0; i < a->options->setting_count; i++) {
        allot_torch_conf conf;
        allot_status status = allot_torch_conf_parse(a->options->settings[i], &conf, NULL);
        if (status == ALLOT_STATUS_OK && conf.backend != ALLOT_TORCH_BACKEND_NATIVE) {
            status = alloti_fail(ALLOT_STATUS_INVALID,
                                 "\"%s\": only PyTorch's native backend can be advised on",
                                 a->options->settings[i]);
        }
        if (status == ALLOT_STATUS_OK) {
            status = alloti_search_add(&a->search, &conf, true, NULL);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return alloti_search_evaluate(&a->search, first);
}

static bool exceeds_limit(const advising *a)
{
    const alloti_search *const s = &a->search;
    const double share = s->fraction > 0.0 ? s->fraction : 1.0;
    return s->limit != 0 && (double)a->need.live_peak > (double)s->limit * share;
}

/** Search and fill in the rows shown. */
static allot_status search_all(advising *a)
{
    allot_status status = add_wanted(a);
    if (status == ALLOT_STATUS_OK && !exceeds_limit(a)) {
        status = alloti_search_plan(&a->search);
    }
    if (status == ALLOT_STATUS_OK) {
        const uint32_t max = a->options->row_max == 0 ? ROWS_DEFAULT : a->options->row_max;
        status = alloti_shown_choose(&a->search, max, &a->shown);
    }
    if (status == ALLOT_STATUS_OK) {
        const uint32_t present = 0;
        status = alloti_search_finish(&a->search, &present, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_search_finish(&a->search, a->shown.items, a->shown.count);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_shown_order(&a->search, &a->shown);
    }
    const bool goes_on = status == ALLOT_STATUS_OK && a->options->with_strategies;
    return goes_on ? alloti_search_strategies(&a->search) : status;
}

/** The recommended setting, or the present one if it is to be kept; NULL if none runs. */
static const alloti_candidate *setting_to_use(const advising *a)
{
    const allot_advice_summary *const s = &a->advice->summary;
    if (s->verdict == ALLOT_ADVICE_VERDICT_CHANGE) {
        return &a->search.candidates[a->shown.items[s->recommended_row - 1]];
    }
    return s->verdict == ALLOT_ADVICE_VERDICT_KEEP ? &a->search.candidates[0] : NULL;
}

static void fill_summary(advising *a)
{
    allot_advice_summary *const s = &a->advice->summary;
    const alloti_need *const need = &a->need;
    s->limit = a->search.limit;
    s->fraction = a->search.fraction;
    s->has_oom = need->oom_count > 0;
    s->oom_event = need->oom_event;
    s->oom_size = need->oom_size;
    s->event_count = need->event_count;
    s->span_ns = need->span_ns;
    s->is_complete = a->search.info.is_complete;
    s->is_by_need = alloti_search_is_by_need(&a->search);
    s->live_peak = need->live_peak;
    s->live_event = need->live_event;
    s->recorded_reserved_peak = need->reserved_peak;
    s->setting_count = a->search.candidate_count;
    s->replay_count = atomic_load_explicit(&a->search.replay_count, memory_order_relaxed);
    s->recommended_row =
        exceeds_limit(a) ? ALLOT_NONE : alloti_shown_first_gain(&a->search, &a->shown);
    if (s->recommended_row != ALLOT_NONE) {
        s->verdict = ALLOT_ADVICE_VERDICT_CHANGE;
    } else if (exceeds_limit(a)) {
        s->verdict = ALLOT_ADVICE_VERDICT_NOTHING_HELPS;
    } else {
        s->verdict = a->search.candidates[0].run.finishes ? ALLOT_ADVICE_VERDICT_KEEP
                                                          : ALLOT_ADVICE_VERDICT_NOT_FOUND;
    }
    const alloti_candidate *const used = setting_to_use(a);
    s->spare = used == NULL ? 0 : alloti_search_spare(&a->search, used);
    s->is_tight = used != NULL && alloti_search_is_tight(&a->search, used);
}

static allot_status conclude(advising *a)
{
    fill_summary(a);
    allot_advice *const advice = a->advice;
    const uint32_t row = advice->summary.recommended_row;
    const alloti_candidate *const recommended =
        row == ALLOT_NONE ? NULL : &a->search.candidates[a->shown.items[row - 1]];
    allot_status status =
        alloti_advice_add_rows(advice, &a->search, a->shown.items, a->shown.count);
    if (status == ALLOT_STATUS_OK) {
        advice->summary.present = advice->rows[0].setting;
        advice->summary.recommended = row == ALLOT_NONE ? NULL : advice->rows[row].setting;
        status = alloti_advice_add_lines(advice, a->history, a->lines, &a->need);
    }
    return status == ALLOT_STATUS_OK
               ? alloti_advice_add_words(advice, &a->search, &a->need, recommended,
                                         alloti_shown_closest(&a->search, &a->shown))
               : status;
}

static allot_status advise(advising *a)
{
    bool refused = false;
    allot_status status = prepare(a, &refused);
    if (status != ALLOT_STATUS_OK || refused) {
        return status;
    }
    alloti_search *const search = &a->search;
    search->requests = a->requests;
    allot_requests_get_info(a->requests, &search->info);
    if (search->info.conf.backend != ALLOT_TORCH_BACKEND_NATIVE) {
        return alloti_advice_refuse(a->advice,
                                    "Recorded with backend:cudaMallocAsync: the driver places the "
                                    "memory, and these settings do not apply to it.");
    }
    search->fraction = a->options->fraction;
    search->live_peak = a->need.live_peak;
    search->span_ns = a->need.span_ns;
    search->workers = (alloti_workers){.thread_count = a->options->thread_count,
                                       .total = JOBS_EXPECTED +
                                                (a->options->with_strategies ? JOBS_STRATEGIES : 0),
                                       .progress = {.report = a->options->progress,
                                                    .context = a->options->progress_context,
                                                    .stage = "trying settings"}};
    status = check_fidelity(a);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_search_add(search, &search->info.conf, false, NULL);
    }
    if (status == ALLOT_STATUS_OK) {
        status = settle_limit(a);
    }
    if (status == ALLOT_STATUS_OK) {
        status = search_all(a);
    }
    return status == ALLOT_STATUS_OK ? conclude(a) : status;
}

allot_status allot_advise(const allot_trace *trace, uint32_t device,
                          const allot_advise_options *options, allot_advice **out)
{
    allot_advise_options o;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    advising a = {.trace = trace, .device = device, .options = &o};
    status = check_options(trace, device, a.options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    a.advice = calloc(1, sizeof *a.advice);
    if (a.advice == NULL) {
        return alloti_fail_memory(sizeof *a.advice);
    }
    a.advice->summary.present = "";
    a.advice->summary.recommended_row = ALLOT_NONE;
    a.advice->summary.device = device;
    a.advice->summary.memory = allot_trace_get_device(trace, device)->memory;
    a.advice->summary.device_number = allot_trace_get_device(trace, device)->index;
    status = advise(&a);
    advising_fini(&a);
    if (status != ALLOT_STATUS_OK) {
        allot_advice_destroy(a.advice);
        return status;
    }
    *out = a.advice;
    return ALLOT_STATUS_OK;
}
