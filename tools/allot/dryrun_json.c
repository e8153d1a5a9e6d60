/* SPDX-License-Identifier: MIT */
#include "dryrun_json.h"

#include <string.h>
#include <yajl/yajl_gen.h>

#include "dryrun_hint.h"
#include "dryrun_put.h"
#include "dryrun_ranks.h"
#include "dryrun_search_json.h"
#include "dryrun_sizes.h"

static void put_counts(yajl_gen json, const char *key, const dryrun_count *list, uint32_t count)
{
    dryrun_put_key(json, key);
    yajl_gen_map_open(json);
    for (uint32_t i = 0; i < count; i++) {
        dryrun_put_number(json, list[i].name, list[i].count);
    }
    yajl_gen_map_close(json);
}

static void put_ooms(yajl_gen json, const dryrun_result *result)
{
    dryrun_put_key(json, "out_of_memory");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < result->oom_count; i++) {
        yajl_gen_map_open(json);
        dryrun_put_number(json, "device", result->oom[i].device);
        dryrun_put_number(json, "size", result->oom[i].size);
        dryrun_put_number(json, "device_free", result->oom[i].free);
        dryrun_put_number(json, "allocated", result->oom[i].allocated);
        dryrun_put_number(json, "reserved", result->oom[i].reserved);
        dryrun_put_number(json, "step", result->oom[i].step);
        dryrun_put_text(json, "line", result->oom[i].line);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_devices(yajl_gen json, const dryrun_result *result)
{
    dryrun_put_key(json, "devices");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < result->use_count; i++) {
        const dryrun_use *const use = &result->uses[i];
        yajl_gen_map_open(json);
        dryrun_put_number(json, "device", use->device);
        dryrun_put_number(json, "allocated_peak", use->allocated_peak);
        dryrun_put_number(json, "reserved_peak", use->reserved_peak);
        dryrun_put_bool(json, "shown", use->device == result->device);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_hints(yajl_gen json, const dryrun_request *request, const dryrun_attempt *run)
{
    dryrun_hints hints;
    dryrun_find_hints(request, &run->result, run->verdict, &hints);
    dryrun_put_key(json, "hints");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < hints.count; i++) {
        yajl_gen_string(json, (const unsigned char *)hints.text[i], strlen(hints.text[i]));
    }
    yajl_gen_array_close(json);
}

/** Where the program read from the device, by what it read. */
static void put_reads(yajl_gen json, const dryrun_result *result)
{
    dryrun_put_bool(json, "approximate", dryrun_is_approximate(result));
    put_counts(json, "assumptions", result->assumptions, result->assumption_count);
    put_counts(json, "booleans", result->boolean_lines, result->boolean_line_count);
    put_counts(json, "sizes", result->size_lines, result->size_line_count);
    put_counts(json, "values", result->value_lines, result->value_line_count);
}

void dryrun_print_json(const dryrun_request *request, const dryrun_answer *answer)
{
    const dryrun_result *const result = &answer->run->result;
    yajl_gen json = dryrun_put_open("allot.dryrun/1", false);
    if (json == NULL) {
        return;
    }
    dryrun_put_text(json, "verdict", dryrun_verdict_name(answer->run->verdict));
    dryrun_put_text(json, "gpu", request->gpu.id);
    dryrun_put_text(json, "events", request->events);
    dryrun_put_text(json, "torch", result->torch);
    dryrun_put_number(json, "exit_code", (uint64_t)result->exit_code);
    dryrun_put_number(json, "device_total", result->device_total);
    dryrun_put_number(json, "device_peak", result->device_peak);
    dryrun_put_number(json, "context", result->context);
    dryrun_put_number(json, "allocated_peak", result->allocated_peak);
    dryrun_put_number(json, "reserved_peak", result->reserved_peak);
    dryrun_put_number(json, "retries", result->retries);
    dryrun_put_number(json, "steps", result->steps);
    dryrun_put_number(json, "pinned_peak", result->pinned_peak);
    put_devices(json, result);
    put_ooms(json, result);
    dryrun_put_text(json, "exception", result->exception);
    dryrun_put_text(json, "exception_line", result->exception_line);
    dryrun_put_text(json, "rank_fault", result->fault);
    dryrun_put_ranks(json, result);
    put_reads(json, result);
    put_counts(json, "unknown", result->unknown, result->unknown_count);
    dryrun_put_sizes(json, result);
    put_counts(json, "missing", result->missing, result->missing_count);
    put_counts(json, "problems", result->problems, result->problem_count);
    dryrun_put_number(json, "guess_calls", result->guess_calls);
    put_counts(json, "own_runtimes", result->own_runtimes, result->own_runtime_count);
    dryrun_put_text(json, "touched", result->touched);
    dryrun_put_text(json, "fault_line", result->fault_line);
    put_hints(json, request, answer->run);
    dryrun_put_answer(json, answer);
    dryrun_put_close(json);
}
