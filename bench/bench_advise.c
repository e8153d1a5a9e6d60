/* SPDX-License-Identifier: MIT */
/*
 * bench_advise [FILE...]: the time of a whole `allot advise`, reading included, and replays per
 * second. Without files: the example, and the two recordings that the goal names (under 10 s each
 * on two processors) where the shared data is there. Five runs each after one to warm up; median,
 * fastest and slowest.
 */
#include <allot/advise.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 5 };

typedef struct measure {
    double seconds[RUNS];
    allot_advice_summary summary;
} measure;

static double now_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static allot_status advise_once(const char *path, double *seconds, allot_advice_summary *summary)
{
    const double begin = now_s();
    allot_trace *trace = NULL;
    allot_status status = allot_trace_read(path, NULL, &trace);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_advice *advice = NULL;
    status = allot_advise(trace, allot_trace_main_device(trace), NULL, &advice);
    if (status == ALLOT_STATUS_OK) {
        *seconds = now_s() - begin;
        allot_advice_get_summary(advice, summary);
        summary->recommended = summary->present = NULL; /* gone with the advice */
    }
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool bench(const char *path)
{
    measure m = {.seconds = {0}};
    double warm_up = 0;
    allot_status status = advise_once(path, &warm_up, &m.summary);
    for (int i = 0; status == ALLOT_STATUS_OK && i < RUNS; i++) {
        status = advise_once(path, &m.seconds[i], &m.summary);
    }
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "bench_advise: %s\n", allot_error_detail());
        return false;
    }
    qsort(m.seconds, RUNS, sizeof m.seconds[0], by_value);
    const char *const slash = strrchr(path, '/');
    const double median = m.seconds[RUNS / 2];
    printf("%-34.34s %8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %8.3f %8.3f %8.3f %10.0f\n",
           slash == NULL ? path : slash + 1, m.summary.event_count, m.summary.setting_count,
           m.summary.replay_count, median, m.seconds[0], m.seconds[RUNS - 1],
           (double)m.summary.replay_count / median);
    return true;
}

/** A file of the shared data, if it is there. */
static bool bench_shared(const char *relative)
{
    const char *const given = getenv("ALLOT_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", given == NULL ? ALLOT_BENCH_DATA : given, relative);
    return access(path, R_OK) != 0 || bench(path);
}

int main(int argc, char **argv)
{
    printf("advise on %ld processors\n%-34s %8s %9s %8s %8s %8s %8s %10s\n",
           sysconf(_SC_NPROCESSORS_ONLN), "file", "events", "settings", "replays", "median s",
           "fastest", "slowest", "replays/s");
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        ok = bench(argv[i]) && ok;
    }
    if (argc == 1) {
        ok = bench(ALLOT_BENCH_EXAMPLE) && bench_shared("oracle/finetune_80gib.pickle.gz") &&
             bench_shared("snapshots/a15_1423_segments_45gib.pickle");
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
