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

static _Thread_local read_purpose purpose;

/** The Python side says what reads on this thread are for, a read_purpose; returns what they were.
 */
__attribute__((visibility("default"))) int allot_standin_reading(int next);

int allot_standin_reading(int next)
{
    const read_purpose before = purpose;
    purpose = (read_purpose)next;
    return (int)before;
}

/** Whether the program decides by a read. */
static bool is_question(const read_facts *facts)
{
    return facts->size == 1 && purpose == READ_FOR_UNKNOWN;
}

static void remember(const char *line, read_kind kind)
{
    if (kind == READ_BOOLEAN) {
        snprintf(counts.last_question, sizeof counts.last_question, "%s", line);
    }
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
    counts.questions += is_question(facts) ? 1 : 0;
    in_row = is_getting_nowhere(facts) ? in_row + 1 : 0;
    last = *facts;
    if (guard == 0 || in_row / (is_question(facts) ? 1 : PATIENCE) < guard) {
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
 * of some integers, and the Python side knows integers. Everything else is taken for a value.
 */
static read_kind kind_of(const read_facts *facts, const char *kernel)
{
    static const char *const parts[] = {
        "3cub",        "6thrust", "MaxNanFunctorIlE", "MaxNanFunctorIiE", "MinMaxOpsIl",
        "MinMaxOpsIi", NULL};
    if (is_question(facts)) {
        return READ_BOOLEAN;
    }
    if (purpose == READ_FOR_FLOAT || purpose == READ_FOR_PRINT) {
        return READ_VALUE;
    }
    if (purpose == READ_FOR_INTEGER) {
        return READ_SIZE;
    }
    return kernel != NULL && has_any(kernel, parts) ? READ_SIZE : READ_VALUE;
}

/** What is not zero though nothing is known: booleans by rule, numbers that are never zero. */
static void answer(void *to, const read_facts *facts, const char *kernel, uint64_t question)
{
    if (is_question(facts) ? answer_choose(&standin_settings()->answers, kernel, question)
                           : facts->size <= SMALL && is_distinct_count(kernel)) {
        memset(to, 1, 1); /* little-endian: one, in integers of any size */
    }
}

static void remember_line(read_kind kind, char *line)
{
    python_line(line, READ_LINE_SIZE);
    if (line[0] != '\0') {
        pthread_mutex_lock(&lock);
        remember(line, kind);
        pthread_mutex_unlock(&lock);
    }
}

static void tell_endless(const read_facts *facts, const char *line)
{
    fprintf(stderr,
            "allot: %" PRIu64 " small reads from the device in a row without an allocation%s%s: "
            "the program waits for a value that a dry run does not compute.\n",
            standin_settings()->read_guard * (is_question(facts) ? 1 : PATIENCE),
            line[0] != '\0' ? " at " : "", line);
    if (is_question(facts)) {
        fprintf(stderr,
                "allot: --booleans %s=flip:N answers every N-th of its questions with true\n",
                line[0] != '\0' ? line : "LINE");
    }
    fprintf(stderr,
            "allot: limit the loop in the script, or raise the guard with --set guard:N (0: "
            "none)\n");
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
    const bool is_told = facts->size <= SMALL || purpose == READ_FOR_INTEGER;
    const read_kind kind = kind_of(facts, kernel);
    if (is_stopped || (is_told && small <= LINES_ASKED_MAX)) {
        remember_line(kind, line);
    }
    if (is_stopped) {
        tell_endless(facts, line);
        return CUDA_LAUNCH_FAILURE;
    }
    if (is_told && kind == READ_SIZE && standin_settings()->is_strict) {
        fprintf(stderr, "allot: strict: an integer that is not known was read%s%s\n",
                line[0] != '\0' ? " at " : "", line);
        return CUDA_NOT_PERMITTED;
    }
    return CUDA_OK;
}

const read_counts *read_counts_get(void)
{
    return &counts;
}
