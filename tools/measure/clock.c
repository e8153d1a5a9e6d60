/* SPDX-License-Identifier: MIT */
#include "measure/clock.h"

#include <stdlib.h>
#include <time.h>

static double read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double measure_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double measure_wall_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)
uint64_t measure_ticks(void)
{
    __builtin_ia32_lfence();
    const uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
}
#else
uint64_t measure_ticks(void)
{
    return (uint64_t)measure_wall_ns();
}
#endif

double measure_ns_per_tick(void)
{
    const double begin = measure_wall_ns();
    const uint64_t first = measure_ticks();
    double end = begin;
    while (end - begin < 50e6) {
        end = measure_wall_ns();
    }
    return (end - begin) / (double)(measure_ticks() - first);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count == 0 ? 0 : values[count / 2];
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void measure_sort(uint32_t *values, size_t count)
{
    qsort(values, count, sizeof *values, by_number);
}

uint32_t measure_rank(const uint32_t *sorted, size_t count, size_t n)
{
    return sorted[count - count / n - 1];
}
