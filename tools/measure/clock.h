/* SPDX-License-Identifier: MIT */
/** Clocks for measurements, and the middle of what they gave. */
#ifndef MEASURE_CLOCK_H
#define MEASURE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/** CPU time of the process, and time on the wall, in nanoseconds. */
double measure_cpu_ns(void);
double measure_wall_ns(void);

/** Ticks of the fastest clock there is, for single calls, and how long one takes. */
uint64_t measure_ticks(void);
double measure_ns_per_tick(void);

/** Median of `values`, which are sorted. */
double measure_median(double *values, size_t count);

/** Sort, then the value that one in `n` is above. */
void measure_sort(uint32_t *values, size_t count);
uint32_t measure_rank(const uint32_t *sorted, size_t count, size_t n);

#endif /* MEASURE_CLOCK_H */
