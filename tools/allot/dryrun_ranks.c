/* SPDX-License-Identifier: MIT */
#include "dryrun_ranks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dryrun_put.h"
#include "dryrun_run.h"
#include "dryrun_words.h"

enum { DEVICES_MAX = 64 };

/** What is known so far while the processes are read. */
typedef struct reading {
    const dryrun_request *request;
    dryrun_result *main;  /**< Of the process that was started. */
    dryrun_result *other; /**< Of a Python that it started, where it is not Python itself. */
    dryrun_result *worst; /**< NULL: no rank yet. */
    dryrun_rank worst_rank;
    bool has_exception; /**< In `first`: of the rank that failed first. */
    dryrun_result *first;
    uint64_t device_peaks[DEVICES_MAX]; /**< Summed over processes. */
    uint32_t device_users[DEVICES_MAX];
} reading;

/* ---- one process ---- */

/** A process by itself: how it ended is not known, so a failure shows in what it left. */
static dryrun_verdict judge_rank(const dryrun_request *request, const dryrun_result *process)
{
    const dryrun_verdict verdict = dryrun_judge(request, process);
    return verdict == DRYRUN_INCOMPLETE && process->exception[0] != '\0' ? DRYRUN_FAILED : verdict;
}

static dryrun_rank rank_of(const reading *all, const dryrun_result *process, long pid)
{
    return (dryrun_rank){.process = pid,
                         .number = process->rank,
                         .verdict = judge_rank(all->request, process),
                         .is_finished = process->is_finished,
                         .steps = process->steps,
                         .allocated_peak = process->allocated_peak,
                         .reserved_peak = process->reserved_peak,
                         .device_peak = process->device_peak,
                         .has_oom = process->oom_count != 0,
                         .has_snapshot = process->snapshot[0] != '\0'};
}

/** Whether a process takes part in the work on GPUs; others only feed or start it. */
static bool is_rank(const dryrun_result *process)
{
    return process->has_peaks || process->device_peak != 0 || process->rank >= 0 ||
           process->oom_count != 0;
}

static int severity(const dryrun_rank *rank)
{
    static const int of[] = {[DRYRUN_FITS] = 0,
                             [DRYRUN_INCOMPLETE] = 1,
                             [DRYRUN_FAILED] = 2,
                             [DRYRUN_OUT_OF_MEMORY] = 3};
    return of[rank->verdict];
}

static bool is_worse(const dryrun_rank *a, const dryrun_rank *b)
{
    if (severity(a) != severity(b)) {
        return severity(a) > severity(b);
    }
    if (a->has_oom != b->has_oom) {
        return a->has_oom;
    }
    if (a->device_peak != b->device_peak) {
        return a->device_peak > b->device_peak;
    }
    return a->allocated_peak != b->allocated_peak ? a->allocated_peak > b->allocated_peak
                                                  : a->number < b->number;
}

static void count_devices(reading *all, const dryrun_result *process)
{
    for (uint32_t i = 0; i < process->device_count; i++) {
        const dryrun_device *const device = &process->devices[i];
        if (device->peak != 0 && device->number < DEVICES_MAX) {
            all->device_peaks[device->number] += device->peak;
            all->device_users[device->number]++;
        }
    }
}

/** Take one process in; `process` is scratch. */
static void take(reading *all, dryrun_result *out, dryrun_result *process, long pid)
{
    if (!is_rank(process)) {
        return;
    }
    const dryrun_rank rank = rank_of(all, process, pid);
    if (out->rank_count < DRYRUN_RANKS_MAX) {
        out->ranks[out->rank_count] = rank;
    }
    out->rank_count++;
    count_devices(all, process);
    if (out->fault[0] == '\0') {
        memcpy(out->fault, process->fault, sizeof out->fault);
    }
    if (process->exception[0] != '\0' &&
        (!all->has_exception || process->failed_at < all->first->failed_at)) {
        *all->first = *process;
        all->has_exception = true;
    }
    if (out->rank_count == 1 || is_worse(&rank, &all->worst_rank)) {
        *all->worst = *process;
        all->worst_rank = rank;
    }
}

/* ---- all of them ---- */

static int by_number(const void *a, const void *b)
{
    const dryrun_rank *const x = a;
    const dryrun_rank *const y = b;
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return x->process < y->process ? -1 : x->process > y->process;
}

/**
 * The number of a report "123.json", or of "standin.123" if there is no such report: a program that
 * is not Python, or a Python that was kept from recording. 0 for other files.
 */
static long process_of(const char *folder, const char *name)
{
    static const char standin[] = "standin.";
    const bool is_standin = strncmp(name, standin, sizeof standin - 1) == 0;
    char *end = NULL;
    const long pid = strtol(is_standin ? name + sizeof standin - 1 : name, &end, 10);
    if (pid <= 0 || strcmp(end, is_standin ? "" : ".json") != 0) {
        return 0;
    }
    char path[DRYRUN_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%ld.json", folder, pid);
    return is_standin && access(path, F_OK) == 0 ? 0 : pid;
}

/** Of what a shell or a launcher started: the Python that came as far as torch, else any. */
static void take_other(reading *all, const dryrun_result *process)
{
    if (!all->other->has_process || (all->other->torch[0] == '\0' && process->torch[0] != '\0')) {
        *all->other = *process;
    }
}

static void read_folder(reading *all, dryrun_result *out, dryrun_result *scratch, long main)
{
    DIR *const folder = opendir(out->folder);
    const struct dirent *entry = NULL;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const long pid = process_of(out->folder, entry->d_name);
        if (pid != 0) {
            *scratch = (dryrun_result){0};
            dryrun_read_process(out->folder, pid, scratch);
            if (pid == main) {
                *all->main = *scratch;
            }
            take_other(all, scratch);
            take(all, out, scratch, pid);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/** GPUs that several processes use hold the sum of what these need. */
static void check_shared(const reading *all, dryrun_result *out)
{
    for (uint32_t i = 0; i < DEVICES_MAX; i++) {
        if (all->device_users[i] > 1 && all->device_peaks[i] > out->device_total &&
            out->problem_count < DRYRUN_LIST_MAX) {
            dryrun_count *const problem = &out->problems[out->problem_count++];
            problem->count = 1;
            snprintf(problem->name, sizeof problem->name,
                     "%" PRIu32 " processes share GPU %" PRIu32 " and need up to %s of its %s "
                     "together",
                     all->device_users[i], i, dryrun_size_text(all->device_peaks[i]),
                     dryrun_size_text(out->device_total));
        }
    }
}

/** The worst rank stands for the run, with the first failure and how the command ended. */
static void conclude(const reading *all, dryrun_result *out)
{
    const dryrun_result run = *out;
    if (!all->main->has_process && !all->main->has_standin) {
        *all->main = *all->other;
    }
    *out = run.rank_count == 0 ? *all->main : *all->worst;
    out->exit_code = run.exit_code;
    out->rank_count = run.rank_count < DRYRUN_RANKS_MAX ? run.rank_count : DRYRUN_RANKS_MAX;
    memcpy(out->ranks, run.ranks, sizeof out->ranks);
    memcpy(out->fault, run.fault, sizeof out->fault);
    memcpy(out->folder, run.folder, sizeof out->folder);
    memcpy(out->output, run.output, sizeof out->output);
    const dryrun_result *const failed = all->has_exception ? all->first : all->main;
    if (all->worst_rank.verdict != DRYRUN_OUT_OF_MEMORY || out->exception[0] == '\0') {
        memcpy(out->exception, failed->exception, sizeof out->exception);
        memcpy(out->exception_line, failed->exception_line, sizeof out->exception_line);
    }
    for (uint32_t i = 0; i < out->rank_count; i++) {
        out->is_finished = out->is_finished && out->ranks[i].is_finished;
    }
    check_shared(all, out);
    qsort(out->ranks, out->rank_count, sizeof *out->ranks, by_number);
}

void dryrun_read_ranks(const dryrun_request *request, dryrun_result *result, long main)
{
    dryrun_result *const scratch = calloc(5, sizeof *scratch);
    if (scratch == NULL) {
        return; /* nothing was read: the verdict is "incomplete" */
    }
    reading all = {.request = request,
                   .main = &scratch[1],
                   .other = &scratch[2],
                   .worst = &scratch[3],
                   .first = &scratch[4]};
    read_folder(&all, result, &scratch[0], main);
    conclude(&all, result);
    free(scratch);
}

/* ---- saying it ---- */

static const char *name_of(const dryrun_rank *rank, char *buffer, size_t size)
{
    if (rank->number >= 0) {
        snprintf(buffer, size, "rank %" PRId64, rank->number);
    } else {
        snprintf(buffer, size, "process %ld", rank->process);
    }
    return buffer;
}

void dryrun_print_ranks(const dryrun_result *result)
{
    if (result->rank_count < 2) {
        return;
    }
    printf("\n  %-14s %12s %12s %8s  %s\n", "", "allocated", "reserved", "steps", "");
    for (uint32_t i = 0; i < result->rank_count; i++) {
        const dryrun_rank *const rank = &result->ranks[i];
        char name[32];
        printf("  %-14s %12s %12s %8" PRIu64 "  %s%s\n", name_of(rank, name, sizeof name),
               dryrun_size_text(rank->allocated_peak), dryrun_size_text(rank->reserved_peak),
               rank->steps,
               rank->is_finished ? dryrun_verdict_text(rank->verdict) : "ended by the others' end",
               rank->process == result->process ? "   <- shown here" : "");
    }
}

void dryrun_put_ranks(yajl_gen json, const dryrun_result *result)
{
    dryrun_put_key(json, "ranks");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < result->rank_count && result->rank_count > 1; i++) {
        const dryrun_rank *const rank = &result->ranks[i];
        yajl_gen_map_open(json);
        if (rank->number >= 0) {
            dryrun_put_number(json, "rank", (uint64_t)rank->number);
        } else {
            dryrun_put_null(json, "rank");
        }
        dryrun_put_number(json, "process", (uint64_t)rank->process);
        dryrun_put_text(json, "verdict", dryrun_verdict_name(rank->verdict));
        dryrun_put_bool(json, "finished", rank->is_finished);
        dryrun_put_number(json, "steps", rank->steps);
        dryrun_put_number(json, "allocated_peak", rank->allocated_peak);
        dryrun_put_number(json, "reserved_peak", rank->reserved_peak);
        dryrun_put_number(json, "device_peak", rank->device_peak);
        dryrun_put_bool(json, "worst", rank->process == result->process);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

void dryrun_rank_snapshot(const dryrun_result *result, const dryrun_rank *rank, char *out,
                          size_t size)
{
    snprintf(out, size, "%.4000s/%ld.pickle", result->folder, rank->process);
}

bool dryrun_rank_path(const char *path, const dryrun_rank *rank, char *out, size_t size)
{
    static const char mark[] = "{rank}";
    char number[32];
    snprintf(number, sizeof number, "%" PRId64, rank->number >= 0 ? rank->number : rank->process);
    const char *const place = strstr(path, mark);
    if (place != NULL) {
        return snprintf(out, size, "%.*s%s%s", (int)(place - path), path, number,
                        place + sizeof mark - 1) < (int)size;
    }
    const char *const slash = strrchr(path, '/');
    const char *const dot = strrchr(slash == NULL ? path : slash, '.');
    const size_t length = dot == NULL ? strlen(path) : (size_t)(dot - path);
    return snprintf(out, size, "%.*s.rank%s%s", (int)length, path, number, dot == NULL ? "" : dot) <
           (int)size;
}
