/* SPDX-License-Identifier: MIT */
#include "dryrun_series.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dryrun_run.h"
#include "dryrun_signal.h"

const char *dryrun_purpose_name(dryrun_purpose purpose)
{
    switch (purpose) {
#define DRYRUN_PURPOSE_NAME(name, spelling)                                                        \
    case DRYRUN_PURPOSE_##name:                                                                    \
        return spelling;
        DRYRUN_PURPOSE_LIST(DRYRUN_PURPOSE_NAME)
#undef DRYRUN_PURPOSE_NAME
    }
    return "";
}

bool dryrun_attempt_is_good(const dryrun_attempt *attempt)
{
    if (attempt->result.oom_count != 0) {
        return false; /* what comes after one that was caught is another program */
    }
    return attempt->verdict == DRYRUN_FITS ||
           (attempt->verdict == DRYRUN_INCOMPLETE && attempt->result.has_peaks &&
            !attempt->result.is_stopped);
}

bool dryrun_attempt_is_useless(const dryrun_attempt *attempt)
{
    return attempt->verdict != DRYRUN_OUT_OF_MEMORY && attempt->result.oom_count == 0 &&
           !dryrun_attempt_is_good(attempt);
}

/* ---- what the user sees of it ---- */

static void show_progress(const dryrun_series *series, const char *label)
{
    if (isatty(STDERR_FILENO) != 0) {
        fprintf(stderr, "\r\033[Kdry run %u: %s ...", (unsigned)series->count + 1, label);
        fflush(stderr);
    }
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO) != 0) {
        fputs("\r\033[K", stderr);
    }
}

/** The last lines of what a quiet program printed. */
static void show_output(const dryrun_attempt *attempt)
{
    char tail[4096];
    FILE *const file = fopen(attempt->result.output, "rb");
    if (file == NULL) {
        return;
    }
    fprintf(stderr, "allot: with %s the program failed; the end of what it printed:\n",
            attempt->label);
    (void)(fseek(file, -(long)sizeof tail, SEEK_END) == 0 || fseek(file, 0, SEEK_SET) == 0);
    const size_t size = fread(tail, 1, sizeof tail, file);
    fwrite(tail, 1, size, stderr);
    fclose(file);
}

/* ---- running ---- */

void dryrun_attempt_keep(dryrun_attempt *attempt, dryrun_attempt *before)
{
    if (before != NULL && before != attempt) {
        before->is_kept = false;
        dryrun_clean(&before->result);
    }
    if (attempt != NULL) {
        attempt->is_kept = true;
    }
}

/** Make room: snapshots are large. */
static void clean_latest(const dryrun_series *series)
{
    if (series->count != 0 && !series->runs[series->count - 1]->is_kept) {
        dryrun_clean(&series->runs[series->count - 1]->result);
    }
}

static void describe(dryrun_attempt *attempt, const dryrun_request *request)
{
    attempt->limit = request->limit != 0 ? request->limit : request->gpu.memory_total;
    attempt->has_conf = request->conf != NULL;
    snprintf(attempt->conf, sizeof attempt->conf, "%s", request->conf == NULL ? "" : request->conf);
    snprintf(attempt->gpu, sizeof attempt->gpu, "%s", request->gpu.id);
}

/** Room for one more run; NULL if there must be none. */
static dryrun_attempt *begin(const dryrun_series *series)
{
    if (dryrun_signal_is_caught()) {
        return NULL;
    }
    if (series->count == DRYRUN_RUNS_MAX) {
        fprintf(stderr, "allot: the search ends after %d runs\n", DRYRUN_RUNS_MAX);
        return NULL;
    }
    dryrun_attempt *const attempt = calloc(1, sizeof *attempt);
    if (attempt == NULL) {
        fputs("allot: no memory for another run\n", stderr);
    }
    return attempt;
}

cli_exit dryrun_series_run(dryrun_series *series, const dryrun_request *request,
                           dryrun_purpose purpose, const char *label, dryrun_attempt **out)
{
    dryrun_attempt *const attempt = begin(series);
    if (attempt == NULL) {
        return CLI_FAILED;
    }
    attempt->purpose = purpose;
    snprintf(attempt->label, sizeof attempt->label, "%s", label);
    describe(attempt, request);
    dryrun_request own = *request;
    own.is_quiet = series->count != 0;
    if (own.is_quiet) {
        show_progress(series, label);
    }
    const cli_exit code = dryrun_run(&own, &attempt->result);
    if (own.is_quiet) {
        end_progress();
    }
    /* A later run that a signal ended says nothing about memory. */
    if (code != CLI_OK || (own.is_quiet && dryrun_signal_is_caught())) {
        dryrun_clean(&attempt->result);
        free(attempt);
        return code == CLI_OK ? CLI_FAILED : code;
    }
    attempt->verdict = dryrun_judge(&own, &attempt->result);
    if (own.is_quiet && attempt->verdict == DRYRUN_FAILED) {
        show_output(attempt);
    }
    clean_latest(series);
    series->runs[series->count++] = attempt;
    *out = attempt;
    return CLI_OK;
}

void dryrun_series_end(dryrun_series *series)
{
    for (uint32_t i = 0; i < series->count; i++) {
        dryrun_clean(&series->runs[i]->result);
        free(series->runs[i]);
    }
    *series = (dryrun_series){0};
}
