/* SPDX-License-Identifier: MIT */
/* A dry run in words: the verdict, the peaks, the notes, the lines that hold the memory. */
#include "dryrun_text.h"

#include <inttypes.h>
#include <string.h>

#include "cli_report.h"
#include "dryrun_hint.h"
#include "dryrun_ranks.h"
#include "dryrun_sizes.h"
#include "dryrun_words.h"

/** Of a program that is not Python, whose lines are not known. */
static void print_refusals(const dryrun_result *result, const char *card)
{
    printf("OUT OF MEMORY on %s\n", card);
    printf("  the driver refused %s%s\n", dryrun_size_text(result->refused_size),
           result->refusals == 1 ? "" : " and more");
    if (result->exit_code == 0) {
        printf("  the program went on; it happened %s\n", dryrun_times_text(result->refusals));
    }
}

/** The first time that a request could not be met. */
static void print_oom(const dryrun_result *result)
{
    const dryrun_oom *const oom = &result->oom[0];
    printf("  asked for %s", dryrun_size_text(oom->size));
    if (result->use_count > 1 || oom->device != 0) {
        printf(" on cuda:%" PRIu32, oom->device);
    }
    printf(" at %s\n", oom->line[0] == '\0' ? "an unknown line" : oom->line);
    printf("  after %" PRIu64
           " optimizer steps; %s allocated, %s reserved, %s left on the device\n",
           oom->step, dryrun_size_text(oom->allocated), dryrun_size_text(oom->reserved),
           dryrun_size_text(oom->free));
}

static void print_out_of_memory(const dryrun_result *result, const char *card)
{
    if (result->oom_count == 0) {
        print_refusals(result, card);
        return;
    }
    printf("OUT OF MEMORY on %s\n", card);
    print_oom(result);
    if (result->oom_count > 1 || result->exit_code == 0) {
        printf("  the program caught it and went on; it happened %s\n",
               dryrun_times_text(result->oom_count));
    }
}

static void print_fits(const dryrun_result *result, const char *card)
{
    char remark[64];
    printf("FITS%s on %s\n", dryrun_fits_remark(result, remark, sizeof remark), card);
    if (result->oom_count != 0) {
        printf("  the program caught what follows, %s, and came to its end; on a larger card it "
               "may do something else\n",
               dryrun_times_text(result->oom_count));
        print_oom(result);
    }
}

/** How a program ended that neither a signal nor an out-of-memory did. */
static void print_exit(const dryrun_result *result)
{
    if (strncmp(result->exception, "KeyboardInterrupt", strlen("KeyboardInterrupt")) == 0) {
        printf("FAILED: it was interrupted (SIGINT)\n");
        return;
    }
    printf("FAILED for another reason than memory: exit code %d%s\n", result->exit_code,
           result->is_finished && result->exception[0] == '\0'
               ? ", which the program chose itself, without an exception"
               : "");
}

static void print_failed(const dryrun_result *result)
{
    if (result->exit_code > 128) {
        const char *const name = strsignal(result->exit_code - 128);
        printf("FAILED: signal %d (%s) ended the program%s%s\n", result->exit_code - 128,
               name == NULL ? "unknown" : name, result->fault_line[0] == '\0' ? "" : " at ",
               dryrun_near_line(result->fault_line));
    } else {
        print_exit(result);
    }
    if (result->exception[0] != '\0') {
        printf("  %s\n", result->exception);
    }
    if (result->exception_line[0] != '\0') {
        printf("  at %s\n", result->exception_line);
    }
    if (result->fault[0] != '\0') {
        printf("  between ranks: %s\n", result->fault);
    }
}

static void print_list(const char *title, const dryrun_count *list, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < 6; i++) {
        printf("  %s%s (%s)\n", i == 0 ? title : "    ", dryrun_near_line(list[i].name),
               dryrun_times_text(list[i].count));
    }
}

/** What is missing. */
static void print_incomplete(const dryrun_result *result)
{
    printf("TRACKING INCOMPLETE: whether it fits is not known\n");
    print_list("sizes not known: ", result->unknown, result->unknown_count);
    dryrun_print_ways_out(result);
    if (result->unknown_count == 0 &&
        dryrun_sizes_spread(result) > result->device_total - result->device_peak) {
        printf("  the sizes answered by rules may be larger than the headroom: --workspace sets "
               "them\n");
    }
    print_list("functions that do not exist here: ", result->missing, result->missing_count);
    for (uint32_t i = 0; i < result->problem_count; i++) {
        printf("  %s\n", result->problems[i].name);
    }
}

/** The way out. */
static void print_hints(const dryrun_request *request, const dryrun_result *result,
                        dryrun_verdict verdict)
{
    dryrun_hints hints;
    dryrun_find_hints(request, result, verdict, &hints);
    for (uint32_t i = 0; i < hints.count; i++) {
        printf("  %s\n", hints.text[i]);
    }
}

static void print_verdict(const dryrun_request *request, const dryrun_result *result,
                          dryrun_verdict verdict)
{
    char card[256];
    dryrun_card_text(request, card, sizeof card);
    switch (verdict) {
    case DRYRUN_FITS:
        print_fits(result, card);
        break;
    case DRYRUN_OUT_OF_MEMORY:
        print_out_of_memory(result, card);
        break;
    case DRYRUN_FAILED:
        print_failed(result);
        break;
    case DRYRUN_INCOMPLETE:
        print_incomplete(result);
        break;
    }
}

static void print_peaks(const dryrun_request *request, const dryrun_result *result,
                        dryrun_verdict verdict)
{
    if (!result->has_peaks || result->device_peak == 0) {
        return;
    }
    printf("%s\n  peak allocated   %s\n  peak reserved    %s",
           verdict == DRYRUN_FAILED ? "\n  until then:" : "",
           dryrun_size_text(result->allocated_peak), dryrun_size_text(result->reserved_peak));
    if (result->retries != 0) {
        printf("   (%s cached memory was %s)", dryrun_times_text(result->retries),
               result->oom_count == 0 ? "given back to go on" : "to be given back first");
    }
    printf("\n");
    if (result->context != 0) {
        printf("  CUDA context     %s   (%s)\n", dryrun_size_text(result->context),
               dryrun_context_source(request, result, NULL));
    }
    if (verdict != DRYRUN_OUT_OF_MEMORY && result->device_total > result->device_peak) {
        printf("  headroom         %s%s\n",
               dryrun_size_text(result->device_total - result->device_peak),
               result->unknown_count != 0 ? "   (less what is not known)" : "");
    }
    if (!dryrun_is_native(result)) {
        printf("  optimizer steps  %" PRIu64 "%s\n", result->steps,
               request->steps != 0 && result->steps >= request->steps
                   ? "   (stopped there: what comes later was not run)"
                   : "");
    }
    dryrun_smallest smallest;
    if (verdict == DRYRUN_FITS && result->oom_count == 0 &&
        dryrun_find_smallest(request, result->reserved_peak, &smallest)) {
        char text[128];
        printf("  smallest card    %s (%s), %s\n", smallest.gpu.id,
               dryrun_size_text(smallest.gpu.memory_total),
               dryrun_smallest_text(&smallest, text, sizeof text));
    }
    if (request->events[0] == 'i' && verdict != DRYRUN_FAILED) {
        printf("  work counts as finished at once: --events sync gives the other bound\n");
    }
}

/** Where one process uses several GPUs. */
static void print_devices(const dryrun_result *result)
{
    if (result->use_count < 2) {
        return;
    }
    printf("\n  %-14s %12s %12s\n", "", "allocated", "reserved");
    for (uint32_t i = 0; i < result->use_count; i++) {
        const dryrun_use *const use = &result->uses[i];
        printf("  cuda:%-9" PRIu32 " %12s %12s%s\n", use->device,
               dryrun_size_text(use->allocated_peak), dryrun_size_text(use->reserved_peak),
               use->device == result->device ? "   <- shown here" : "");
    }
}

static void print_notes(const dryrun_result *result)
{
    if (dryrun_is_approximate(result)) {
        printf("  approximate: what the device computes is not known\n");
        print_list("  ", result->assumptions, result->assumption_count);
        print_list("  sizes and integers read as the least possible: ", result->size_lines,
                   result->size_line_count);
        print_list("  booleans answered by rule (--booleans): ", result->boolean_lines,
                   result->boolean_line_count);
    }
    print_list("values read as zero: ", result->value_lines, result->value_line_count);
    dryrun_print_sizes(result);
    if (result->pinned_peak > UINT64_C(1) << 30) {
        printf("  pinned host memory at its peak: %s\n", dryrun_size_text(result->pinned_peak));
    }
}

/** The lines that hold the peak, from the snapshot, as `allot explain` shows them. */
static void print_holders(const dryrun_request *request, const dryrun_result *result)
{
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    uint32_t event = 0;
    if (result->snapshot[0] == '\0' ||
        allot_trace_read(result->snapshot, NULL, &trace) != ALLOT_STATUS_OK) {
        return;
    }
    if (allot_history_create(trace, result->device, NULL, &history) == ALLOT_STATUS_OK &&
        allot_history_find(history, "peak", &event) == ALLOT_STATUS_OK) {
        allot_report_options options =
            cli_report_options(false, cli_report.top != 0 ? cli_report.top : 8, NULL);
        options.lines = cli_lines_options();
        const allot_sink sink = allot_sink_stdio(stdout);
        printf("\n");
        if (allot_report_explain(history, event, request->by, &options, &sink, NULL) !=
            ALLOT_STATUS_OK) {
            printf("  %s\n", allot_error_detail());
        }
    }
    allot_history_destroy(history);
    allot_trace_destroy(trace);
}

void dryrun_print(const dryrun_request *request, const dryrun_result *result,
                  dryrun_verdict verdict)
{
    print_verdict(request, result, verdict);
    print_hints(request, result, verdict);
    dryrun_print_ranks(result);
    print_devices(result);
    print_peaks(request, result, verdict);
    print_notes(result);
    print_holders(request, result);
}
