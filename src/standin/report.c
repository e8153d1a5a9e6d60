/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dladdr */
#include "standin/report.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_gen.h>

#include "standin/cudnn_oracle.h"
#include "standin/nccl.h"
#include "standin/python.h"
#include "standin/reads.h"
#include "standin/state.h"

enum { NAMES_MAX = 256, NAME_SIZE = 256 };

/** Different names, in the order in which they came. */
typedef struct name_list {
    char names[NAMES_MAX][NAME_SIZE];
    unsigned count;
} name_list;

static _Atomic(report_guess *) guesses;
static _Atomic(report_size *) sizes;
static name_list missing;
static name_list own_runtimes;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two above */

bool report_guess_call(report_guess *guess)
{
    if (atomic_fetch_add_explicit(&guess->calls, 1, memory_order_relaxed) == 0) {
        if (standin_settings()->has_bytes) {
            fprintf(stderr, "allot: %s is answered by guess and moves no bytes\n", guess->name);
        }
        report_guess *head = atomic_load_explicit(&guesses, memory_order_relaxed);
        do {
            guess->next = head;
            /* Release: whoever reads the list sees `next`. */
        } while (!atomic_compare_exchange_weak_explicit(
            &guesses, &head, guess, memory_order_release, memory_order_relaxed));
    }
    return !standin_settings()->is_strict;
}

static void raise_to(atomic_uint_least64_t *place, uint64_t value)
{
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed);
    while (before < value &&
           !atomic_compare_exchange_weak_explicit(place, &before, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

bool report_size_call(report_size *size, report_basis basis, uint64_t bytes, uint64_t most)
{
    atomic_fetch_add_explicit(&size->calls[basis], 1, memory_order_relaxed);
    raise_to(&size->largest[basis], bytes);
    raise_to(&size->most[basis], most);
    if (!atomic_exchange_explicit(&size->is_listed, true, memory_order_relaxed)) {
        report_size *head = atomic_load_explicit(&sizes, memory_order_relaxed);
        do {
            size->next = head;
            /* Release: whoever reads the list sees `next`. */
        } while (!atomic_compare_exchange_weak_explicit(&sizes, &head, size, memory_order_release,
                                                        memory_order_relaxed));
    }
    return basis != REPORT_UNKNOWN || !standin_settings()->is_strict;
}

bool report_size_by_table(report_size *size, report_basis otherwise, uint64_t *bytes, uint64_t most)
{
    const allot_workspaces *const table = &standin_settings()->workspaces;
    if (!table->is_set[size->workspace]) {
        return report_size_call(size, otherwise, *bytes, most);
    }
    *bytes = table->size[size->workspace];
    return report_size_call(size, REPORT_TABLE, *bytes, *bytes);
}

static void add_name(name_list *list, const char *name)
{
    pthread_mutex_lock(&names_lock);
    unsigned i = 0;
    while (i < list->count && strncmp(list->names[i], name, NAME_SIZE - 1) != 0) {
        i++;
    }
    if (i == list->count && i < NAMES_MAX) {
        snprintf(list->names[i], NAME_SIZE, "%s", name);
        list->count++;
    }
    pthread_mutex_unlock(&names_lock);
}

void report_missing(const char *name)
{
    add_name(&missing, name);
}

void report_own_runtime(const void *address)
{
    Dl_info info;
    /* NVRTC asks too, and does without. */
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL &&
        strstr(info.dli_fname, "libnvrtc") == NULL) {
        (void)standin_settings(); /* what is set up writes a report */
        add_name(&own_runtimes, info.dli_fname);
    }
}

static void put_text(yajl_gen json, const char *text)
{
    yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void put_number(yajl_gen json, const char *key, uint64_t value)
{
    put_text(json, key);
    yajl_gen_integer(json, (long long)value);
}

static void put_names(yajl_gen json, const char *key, const name_list *list)
{
    put_text(json, key);
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < list->count; i++) {
        put_text(json, list->names[i]);
    }
    yajl_gen_array_close(json);
}

static void put_calls(yajl_gen json)
{
    put_text(json, "guessed");
    yajl_gen_map_open(json);
    for (const report_guess *guess = atomic_load_explicit(&guesses, memory_order_acquire);
         guess != NULL; guess = guess->next) {
        put_number(json, guess->name, atomic_load_explicit(&guess->calls, memory_order_relaxed));
    }
    yajl_gen_map_close(json);
    put_names(json, "missing", &missing);
    put_names(json, "own_runtimes", &own_runtimes);
}

static void put_lines(yajl_gen json, const char *key, read_kind kind)
{
    const read_counts *const counts = read_counts_get();
    put_text(json, key);
    yajl_gen_map_open(json);
    for (uint32_t i = 0; i < counts->line_count; i++) {
        if (counts->lines[i].kind == kind) {
            put_number(json, counts->lines[i].text, counts->lines[i].count);
        }
    }
    yajl_gen_map_close(json);
}

/** Rules of --booleans for a line, and how often each was used. */
static void put_rules(yajl_gen json)
{
    const answer_rules *const rules = &standin_settings()->answers;
    put_text(json, "rules");
    yajl_gen_map_open(json);
    for (uint32_t i = 0; i < rules->line_count; i++) {
        put_number(json, rules->lines[i].line, answer_rule_uses(i));
    }
    yajl_gen_map_close(json);
}

static void put_size(yajl_gen json, report_size *size, report_basis basis)
{
    static const char *const texts[] = {"exact", "table", "library", "rule", "unknown"};
    const uint64_t calls = atomic_load_explicit(&size->calls[basis], memory_order_relaxed);
    if (calls == 0) {
        return;
    }
    yajl_gen_map_open(json);
    put_text(json, "name");
    put_text(json, size->name);
    put_text(json, "basis");
    put_text(json, texts[basis]);
    put_text(json, "workspace");
    put_text(json, allot_workspace_name(size->workspace));
    if (basis == REPORT_RULE && size->source != NULL) {
        put_text(json, "source");
        put_text(json, size->source);
    }
    put_text(json, "taken");
    yajl_gen_bool(json, size->is_taken);
    put_number(json, "calls", calls);
    put_number(json, "largest", atomic_load_explicit(&size->largest[basis], memory_order_relaxed));
    put_number(json, "most", atomic_load_explicit(&size->most[basis], memory_order_relaxed));
    yajl_gen_map_close(json);
}

static void put_sizes(yajl_gen json)
{
    put_text(json, "sizes");
    yajl_gen_array_open(json);
    for (report_size *size = atomic_load_explicit(&sizes, memory_order_acquire); size != NULL;
         size = size->next) {
        for (unsigned basis = 0; basis < REPORT_BASIS_COUNT; basis++) {
            put_size(json, size, (report_basis)basis);
        }
    }
    yajl_gen_array_close(json);
}

/** What the real cuDNN was asked, if there is one. */
static void put_oracle(yajl_gen json, const standin_config *config)
{
    cudnn_oracle_state oracle;
    if (!cudnn_oracle_describe(&oracle)) {
        return;
    }
    put_text(json, "cudnn");
    yajl_gen_map_open(json);
    put_text(json, "library");
    put_text(json, config->oracle);
    put_number(json, "version", oracle.version);
    put_number(json, "queries", oracle.queries);
    put_number(json, "repeated", oracle.repeated);
    put_text(json, "problem");
    put_text(json, oracle.problem);
    yajl_gen_map_close(json);
}

static void put_reads(yajl_gen json)
{
    const read_counts *const counts = read_counts_get();
    put_text(json, "reads");
    yajl_gen_map_open(json);
    put_number(json, "count", counts->reads);
    put_number(json, "bytes", counts->bytes);
    put_number(json, "small", counts->small);
    put_text(json, "stopped");
    yajl_gen_bool(json, counts->is_stopped);
    put_text(json, "last_question");
    put_text(json, counts->last_question);
    put_lines(json, "values", READ_VALUE);
    put_lines(json, "booleans", READ_BOOLEAN);
    put_lines(json, "sizes", READ_SIZE);
    put_rules(json);
    yajl_gen_map_close(json);
}

static void put_devices(yajl_gen json, const standin *state)
{
    put_text(json, "devices");
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < state->config.device_count; i++) {
        const memory_device *const device = &state->memory.devices[i];
        yajl_gen_map_open(json);
        put_number(json, "number", state->config.visible[i]);
        put_number(json, "total", device->total);
        put_number(json, "used", device->used);
        put_number(json, "peak", device->peak);
        put_number(json, "refusals", device->refusals);
        put_number(json, "refused_size", device->refused_size);
        put_number(json, "context", device->has_context ? state->config.context : 0);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_nccl(yajl_gen json, const standin *state)
{
    const nccl_counts counts = nccl_counts_get();
    put_text(json, "nccl");
    yajl_gen_map_open(json);
    put_number(json, "calls", counts.calls);
    put_text(json, "fault");
    put_text(json, counts.fault);
    put_text(json, "communicators");
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < state->config.device_count; i++) {
        yajl_gen_integer(json, (long long)counts.communicators[i]);
    }
    yajl_gen_array_close(json);
    yajl_gen_map_close(json);
}

static void put_all(yajl_gen json, const standin *state)
{
    yajl_gen_map_open(json);
    put_text(json, "schema");
    put_text(json, "allot.standin/1");
    put_text(json, "gpu");
    put_text(json, state->config.gpu.id);
    put_devices(json, state);
    put_nccl(json, state);
    put_number(json, "pinned_peak", state->host.pinned_peak);
    put_number(json, "managed_peak", state->host.managed_peak);
    put_text(json, "is_python");
    yajl_gen_bool(json, python_is_here());
    put_number(json, "launches", state->values.launches);
    put_number(json, "streams", state->streams.created);
    put_number(json, "rules_broken", state->rules_broken);
    put_reads(json);
    put_calls(json);
    put_sizes(json);
    put_oracle(json, &state->config);
    yajl_gen_map_close(json);
}

static void write_to_file(void *file, const char *text, size_t size)
{
    (void)!fwrite(text, 1, size, file);
}

void report_write(void)
{
    static pid_t writer; /* children of fork() inherit exit handlers */
    const standin_config *const config = standin_settings();
    if (config->report[0] == '\0' || writer != 0) {
        return;
    }
    writer = getpid();
    char path[STANDIN_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s.%ld", config->report, (long)writer);
    FILE *const file = fopen(path, "w");
    yajl_gen json = file == NULL ? NULL : yajl_gen_alloc(NULL);
    if (json != NULL) {
        yajl_gen_config(json, yajl_gen_print_callback, write_to_file, file);
        standin *const state = standin_open();
        put_all(json, state);
        standin_close(state);
        yajl_gen_free(json);
    }
    if (file != NULL) {
        fclose(file);
    }
}

void allot_standin_write_report(void)
{
    report_write();
}
