/* SPDX-License-Identifier: MIT */
#include "dryrun_json.h"

#include <string.h>
#include <yajl/yajl_gen.h>

static void put_text(yajl_gen json, const char *key, const char *text)
{
    yajl_gen_string(json, (const unsigned char *)key, strlen(key));
    yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void put_number(yajl_gen json, const char *key, uint64_t value)
{
    yajl_gen_string(json, (const unsigned char *)key, strlen(key));
    yajl_gen_integer(json, (long long)value);
}

static void put_counts(yajl_gen json, const char *key, const dryrun_count *list, uint32_t count)
{
    yajl_gen_string(json, (const unsigned char *)key, strlen(key));
    yajl_gen_map_open(json);
    for (uint32_t i = 0; i < count; i++) {
        put_number(json, list[i].name, list[i].count);
    }
    yajl_gen_map_close(json);
}

static void put_ooms(yajl_gen json, const dryrun_result *result)
{
    yajl_gen_string(json, (const unsigned char *)"out_of_memory", strlen("out_of_memory"));
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < result->oom_count; i++) {
        yajl_gen_map_open(json);
        put_number(json, "size", result->oom[i].size);
        put_number(json, "device_free", result->oom[i].free);
        put_number(json, "allocated", result->oom[i].allocated);
        put_number(json, "reserved", result->oom[i].reserved);
        put_number(json, "step", result->oom[i].step);
        put_text(json, "line", result->oom[i].line);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

void dryrun_print_json(const dryrun_request *request, const dryrun_result *result,
                       dryrun_verdict verdict)
{
    static const char *const verdicts[] = {"fits", "out_of_memory", "failed", "incomplete"};
    yajl_gen json = yajl_gen_alloc(NULL);
    if (json == NULL) {
        return;
    }
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_map_open(json);
    put_text(json, "schema", "allot.dryrun/1");
    put_text(json, "verdict", verdicts[verdict]);
    put_text(json, "gpu", request->gpu.id);
    put_text(json, "events", request->events);
    put_text(json, "torch", result->torch);
    put_number(json, "exit_code", (uint64_t)result->exit_code);
    put_number(json, "device_total", result->device_total);
    put_number(json, "device_peak", result->device_peak);
    put_number(json, "context", result->context);
    put_number(json, "allocated_peak", result->allocated_peak);
    put_number(json, "reserved_peak", result->reserved_peak);
    put_number(json, "retries", result->retries);
    put_number(json, "steps", result->steps);
    put_number(json, "pinned_peak", result->pinned_peak);
    put_ooms(json, result);
    put_text(json, "exception", result->exception);
    put_text(json, "exception_line", result->exception_line);
    put_counts(json, "reads", result->read_lines, result->read_line_count);
    put_counts(json, "unknown", result->unknown, result->unknown_count);
    put_counts(json, "missing", result->missing, result->missing_count);
    put_counts(json, "problems", result->problems, result->problem_count);
    put_number(json, "guess_calls", result->guess_calls);
    yajl_gen_map_close(json);
    const unsigned char *text = NULL;
    size_t size = 0;
    yajl_gen_get_buf(json, &text, &size);
    fwrite(text, 1, size, stdout);
    yajl_gen_free(json);
}
