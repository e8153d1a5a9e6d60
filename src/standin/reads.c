/* SPDX-License-Identifier: MIT */
#include "standin/reads.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "standin/module.h"
#include "standin/python.h"
#include "standin/state.h"

enum {
    SMALL = 8,
    LAUNCHES_OF_A_LOOP = 64, /* a loop that does more than this between two reads gets somewhere */
    PATIENCE = 10            /* values are read in a row more often than booleans */
};
static const uint64_t LINES_ASKED_MAX = 4096; /* asking Python costs microseconds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static read_counts counts;
static uint64_t in_row;
static read_facts last;

static void remember(const char *line, read_kind kind)
{
    uint32_t i = 0;
    while (i < counts.line_count &&
           (counts.lines[i].kind != kind || strcmp(counts.lines[i].text, line) != 0)) {
        i++;
    }
    if (i == READ_LINES_MAX) {
        return;
    }
    if (i == counts.line_count) {
        counts.line_count++;
        counts.lines[i].kind = kind;
        snprintf(counts.lines[i].text, sizeof counts.lines[i].text, "%s", line);
    }
    counts.lines[i].count++;
}

static bool is_getting_nowhere(const read_facts *facts)
{
    return facts->size <= SMALL && facts->allocations == last.allocations &&
           facts->launches - last.launches < LAUNCHES_OF_A_LOOP;
}

/** Count; true if the guard ends the loop with this read. */
static bool count(const read_facts *facts)
{
    const uint64_t guard = standin_settings()->read_guard;
    counts.reads++;
    counts.bytes += facts->size;
    counts.small += facts->size <= SMALL ? 1 : 0;
    counts.questions += facts->size == 1 ? 1 : 0;
    in_row = is_getting_nowhere(facts) ? in_row + 1 : 0;
    last = *facts;
    if (guard == 0 || in_row / (facts->size == 1 ? 1 : PATIENCE) < guard) {
        return false;
    }
    in_row = 0;
    counts.is_stopped = true;
    return true;
}

static bool has_any(const char *kernel, const char *const *parts)
{
    for (; *parts != NULL; parts++) {
        if (strstr(kernel, *parts) != NULL) {
            return true;
        }
    }
    return false;
}

/** How many different values there are: of unique() and of coalescing, at least one. */
static bool is_distinct_count(const char *kernel)
{
    static const char *const parts[] = {"DeviceSelectSweep", "3rle6encode", "UniqueByKey", NULL};
    return kernel != NULL && has_any(kernel, parts);
}

/**
 * Selected elements are counted by kernels of CUB and Thrust; lengths are most often the greatest
 * of some integers. Everything else is taken for a value.
 */
static read_kind kind_of(uint64_t size, const char *kernel)
{
    static const char *const parts[] = {
        "3cub",        "6thrust", "MaxNanFunctorIlE", "MaxNanFunctorIiE", "MinMaxOpsIl",
        "MinMaxOpsIi", NULL};
    if (size == 1) {
        return READ_BOOLEAN;
    }
    return kernel != NULL && has_any(kernel, parts) ? READ_SIZE : READ_VALUE;
}

/** What is not zero though nothing is known: booleans by rule, numbers that are never zero. */
static void answer(void *to, const read_facts *facts, const char *kernel, uint64_t question)
{
    if (facts->size == 1 ? answer_choose(&standin_settings()->answers, kernel, question)
                         : facts->size <= SMALL && is_distinct_count(kernel)) {
        memset(to, 1, 1); /* little-endian: one, in integers of any size */
    }
}

static void remember_line(const read_facts *facts, const char *kernel, char *line)
{
    python_line(line, READ_LINE_SIZE);
    if (line[0] != '\0') {
        pthread_mutex_lock(&lock);
        remember(line, kind_of(facts->size, kernel));
        pthread_mutex_unlock(&lock);
    }
}

cuda_status read_note(void *to, const read_facts *facts)
{
    char line[READ_LINE_SIZE] = "";
    pthread_mutex_lock(&lock);
    const bool is_stopped = count(facts);
    const uint64_t small = counts.small;
    const uint64_t question = counts.questions;
    pthread_mutex_unlock(&lock);
    const char *const kernel = facts->size <= SMALL ? module_function_name(facts->kernel) : NULL;
    answer(to, facts, kernel, question);
    if (is_stopped || (facts->size <= SMALL && small <= LINES_ASKED_MAX)) {
        remember_line(facts, kernel, line);
    }
    if (!is_stopped) {
        return CUDA_OK;
    }
    fprintf(stderr,
            "allot: %" PRIu64 " small reads from the device in a row without an allocation%s%s: "
            "the program waits for a value that a dry run does not compute.\n"
            "allot: --booleans %s=flip:N answers every N-th of its questions with true, --set "
            "guard:N raises the guard (0: none); or limit the loop in the script\n",
            standin_settings()->read_guard * (facts->size == 1 ? 1 : PATIENCE),
            line[0] != '\0' ? " at " : "", line, line[0] != '\0' ? line : "LINE");
    return CUDA_LAUNCH_FAILURE;
}

const read_counts *read_counts_get(void)
{
    return &counts;
}
