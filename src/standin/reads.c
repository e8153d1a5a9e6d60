/* SPDX-License-Identifier: MIT */
#include "standin/reads.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "standin/python.h"
#include "standin/state.h"

enum { SMALL = 8 };
static const uint64_t LINES_ASKED_MAX = 4096; /* asking Python costs microseconds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static read_counts counts;
static uint64_t in_row;
static uint64_t last_allocations;

static void remember(const char *line, uint64_t size)
{
    uint32_t i = 0;
    while (i < counts.line_count && strcmp(counts.lines[i].text, line) != 0) {
        i++;
    }
    if (i == READ_LINES_MAX) {
        return;
    }
    if (i == counts.line_count) {
        counts.line_count++;
        snprintf(counts.lines[i].text, sizeof counts.lines[i].text, "%s", line);
    }
    counts.lines[i].count++;
    counts.lines[i].size = size;
}

/** Count; true if the guard ends the loop with this read. */
static bool count(uint64_t size, uint64_t allocations)
{
    const uint64_t guard = standin_settings()->read_guard;
    counts.reads++;
    counts.bytes += size;
    counts.small += size <= SMALL ? 1 : 0;
    if (size != 1 || allocations != last_allocations) {
        in_row = 0;
        last_allocations = allocations;
        return false;
    }
    if (guard == 0 || ++in_row < guard) {
        return false;
    }
    in_row = 0;
    counts.is_stopped = true;
    return true;
}

/** By rule, every so many one-byte reads answer true. */
static void flip(void *to, uint64_t size, uint64_t reads)
{
    const uint64_t every = standin_settings()->flip;
    if (every != 0 && size == 1 && reads % every == 0) {
        memset(to, 1, 1);
    }
}

cuda_status read_note(void *to, uint64_t size, uint64_t allocations)
{
    char line[READ_LINE_SIZE] = "";
    pthread_mutex_lock(&lock);
    const bool is_stopped = count(size, allocations);
    const uint64_t small = counts.small;
    pthread_mutex_unlock(&lock);
    flip(to, size, small);
    if (is_stopped || (size <= SMALL && small <= LINES_ASKED_MAX)) {
        python_line(line, sizeof line);
    }
    if (line[0] != '\0') {
        pthread_mutex_lock(&lock);
        remember(line, size);
        pthread_mutex_unlock(&lock);
    }
    if (!is_stopped) {
        return CUDA_OK;
    }
    fprintf(
        stderr,
        "allot: %" PRIu64 " one-byte reads from the device in a row without an allocation%s%s: "
        "the program waits for a value that a dry run does not compute.\n"
        "allot: answer some of them with true (flip:N), raise the guard (guard:N), or limit the "
        "loop in the script\n",
        standin_settings()->read_guard, line[0] != '\0' ? " at " : "", line);
    return CUDA_LAUNCH_FAILURE;
}

const read_counts *read_counts_get(void)
{
    return &counts;
}
