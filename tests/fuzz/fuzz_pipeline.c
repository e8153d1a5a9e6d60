/* SPDX-License-Identifier: MIT */
/*
 * Any snapshot through everything: history, explanation, leaks, page, replay and its check, advice.
 * No call may fail for another reason than the input, and no sum may contradict another.
 */
#include <allot/allot.h>
#include <allot/html.h>
#include <stdlib.h>

/* Advice costs hundreds of replays. */
enum { ADVISED_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static allot_status swallow(void *context, const void *data, size_t size)
{
    (void)data;
    *(uint64_t *)context += size;
    return ALLOT_STATUS_OK;
}

static void require_sums(const allot_history *history, uint32_t event)
{
    allot_moment *moment = NULL;
    require(allot_history_at(history, event, &moment) == ALLOT_STATUS_OK);
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    require(totals.free_largest <= totals.free_size);
    require(totals.inactive_split_size <= totals.free_size);
    require(totals.fragmentation >= 0 && totals.fragmentation <= 1);
    allot_moment_destroy(moment);
}

static void run_reports(const allot_history *history, uint32_t event, const allot_sink *sink)
{
    for (int format = ALLOT_REPORT_TEXT; format <= ALLOT_REPORT_JSON; format++) {
        const allot_report_options options = {
            .struct_size = sizeof options, .format = (allot_report_format)format, .name = "input"};
        allot_oom_verdict verdict;
        require(allot_report_explain(history, event, ALLOT_GROUP_LINE, &options, sink, &verdict) ==
                ALLOT_STATUS_OK);
    }
    const allot_html_options page = {.struct_size = sizeof page, .name = "input"};
    require(allot_html_explain(history, event, &page, sink) == ALLOT_STATUS_OK);
}

static void run_replay(const allot_trace *trace, uint32_t device, const allot_sink *sink)
{
    allot_requests *requests = NULL;
    const allot_status status = allot_requests_create(trace, device, &requests, NULL);
    require(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_UNSUPPORTED);
    if (status != ALLOT_STATUS_OK) {
        return;
    }
    allot_replay_check_result result;
    const allot_status checked = allot_replay_check(requests, NULL, &result);
    if (checked == ALLOT_STATUS_OK || checked == ALLOT_STATUS_MISMATCH) {
        const allot_report_options options = {.struct_size = sizeof options, .name = "input"};
        require(allot_report_check(trace, requests, &result, &options, sink) == ALLOT_STATUS_OK);
    }
    allot_requests_destroy(requests);
}

static void run_advice(const allot_history *history, const allot_sink *sink)
{
    const allot_advise_options options = {
        .struct_size = sizeof options, .thread_count = 1, .row_max = 2, .with_strategies = true};
    allot_advice *advice = NULL;
    if (allot_advise(allot_history_trace(history), allot_history_device(history), &options,
                     &advice) == ALLOT_STATUS_OK) {
        const allot_report_options report = {.struct_size = sizeof report, .name = "input"};
        const allot_html_options page = {.struct_size = sizeof page, .name = "input"};
        require(allot_report_advice(advice, &report, sink) == ALLOT_STATUS_OK);
        require(allot_html_advise(history, advice, &page, sink) == ALLOT_STATUS_OK);
    }
    allot_advice_destroy(advice);
}

static void run_device(const allot_trace *trace, uint32_t device, const allot_sink *sink)
{
    allot_history *history = NULL;
    require(allot_history_create(trace, device, NULL, &history) == ALLOT_STATUS_OK);
    uint32_t event = ALLOT_NONE;
    require(allot_history_find(history, "peak", &event) == ALLOT_STATUS_OK);
    require_sums(history, event);
    require(allot_history_find(history, "end", &event) == ALLOT_STATUS_OK);
    require_sums(history, event);
    run_reports(history, event, sink);
    run_replay(trace, device, sink);
    allot_events events;
    allot_trace_get_events(trace, device, &events);
    if (events.count <= ADVISED_MAX) {
        run_advice(history, sink);
    }
    allot_history_destroy(history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t written = 0;
    const allot_sink sink = {.write = swallow, .context = &written};
    allot_trace *trace = NULL;
    if (allot_trace_read_memory(data, size, "input", NULL, &trace) != ALLOT_STATUS_OK) {
        return 0;
    }
    for (uint32_t device = 0; device < allot_trace_device_count(trace) && device < 4; device++) {
        run_device(trace, device, &sink);
    }
    allot_trace_destroy(trace);
    return 0;
}
