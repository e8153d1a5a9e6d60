/* SPDX-License-Identifier: MIT */
/**
 * Sequences of requests to measure placement and compaction with, made from seeds: the same on
 * every machine, which workload_check() shows. A failed request leaves its slot empty; its release
 * is then skipped.
 */
#ifndef MEASURE_WORKLOADS_H
#define MEASURE_WORKLOADS_H

#include <stdint.h>

enum { WORKLOAD_GRANULE = 256 };

/** A request for a slot, or its release. */
typedef struct workload_op {
    uint32_t slot;
    uint32_t units; /**< Of 256 bytes; 0: release. */
} workload_op;

typedef struct workload {
    const char *name;
    uint64_t capacity; /**< Bytes of the region that it is for; 0: not said. */
    workload_op *ops;  /**< [count] */
    uint64_t count;
    uint64_t alloc_count;
    uint64_t peak; /**< Most bytes live at once. */
    uint32_t slot_count;
} workload;

enum { WORKLOAD_COUNT = 4 };

/**
 * Workload W1 to W4 (number 1 to 4): churn of 512 B to 64 MiB between 70 and 90 % of 16 GiB; a
 * thousand live; many small ones in 4 GiB; training of 48 layers. Exits if memory is short.
 */
void workload_init(workload *w, unsigned number);
void workload_fini(workload *w);

/** Requests and releases at random: until `low_percent` of the capacity are live, then `steps` in
 * which what is live goes up and down between the two marks. */
typedef struct workload_churn {
    uint64_t seed;
    uint64_t capacity;
    unsigned octave_low; /**< As for workload_units(). */
    unsigned octave_high;
    unsigned low_percent;
    unsigned high_percent;
    uint64_t steps;
} workload_churn;

/** A workload by such a rule. Exits if memory is short. */
void workload_init_churn(workload *w, const char *name, const workload_churn *rule);

/** Fingerprint of the operations; workload_expected(number) says what it has to be. */
uint64_t workload_check(const workload *w);
uint64_t workload_expected(unsigned number);

/** The generator of the workloads: splitmix64 (Steele, Lea, Flood, 2014). */
uint64_t workload_random(uint64_t *state);

/** A number from 0 to n - 1. */
uint64_t workload_below(uint64_t *state, uint64_t n);

/** Bytes, log-uniform by octave from 2^low to 2^high, in whole units; returned as units. */
uint32_t workload_units(uint64_t *state, unsigned low, unsigned high);

#endif /* MEASURE_WORKLOADS_H */
