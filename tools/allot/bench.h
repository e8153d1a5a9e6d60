/* SPDX-License-Identifier: MIT */
/** What allot bench measures, and the two ways in which it says it. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"

enum {
    BENCH_STRATEGIES = ALLOT_SPACE_STRATEGY_ADAPTIVE + 1,
    BENCH_WORKLOADS = 3, /**< W1, W3 and W4 of bench/space. */
    BENCH_THREADS = 3,   /**< 1, 2 and 4. */
};

/** One strategy. */
typedef struct bench_strategy {
    double place_ns[BENCH_WORKLOADS]; /**< Per operation, without memory. */
    uint64_t refused[BENCH_WORKLOADS];
    double heap_ns;    /**< Per operation of W4 at a heap over the device. */
    double heap_ratio; /**< Peak reserved over peak allocated. */
} bench_strategy;

/** Bytes moved in a second by one way; 0: the device cannot, or has no bytes. */
typedef struct bench_rates {
    double fill;
    double copy;
    double copy_granule; /**< In pieces of 2 MiB. */
    double move_granule; /**< The same, by moving pages where the device can. */
    double map_ns;       /**< Mapping and unmapping a granule; 0 without virtual memory. */
} bench_rates;

/** Compaction. */
typedef struct bench_compaction {
    uint64_t plan_blocks; /**< Live in a fragmented heap, */
    uint64_t plan_ns;     /**< and what planning takes for it. */
    double move; /**< Bytes in a second by the moves of a plan; 0: the device has no cost. */
} bench_compaction;

typedef struct bench_results {
    const char *device; /**< As given. */
    allot_device_info info;
    bool is_quick;
    bench_strategy strategies[BENCH_STRATEGIES];
    bench_rates rates;
    bench_compaction compaction;
    double pairs_per_s[BENCH_THREADS]; /**< Allocation and release, all threads together. */
} bench_results;

/** Names of the workloads, and the numbers of threads. */
extern const char *const BENCH_WORKLOAD_NAMES[BENCH_WORKLOADS];
extern const uint32_t BENCH_THREAD_COUNTS[BENCH_THREADS];

/** Measure on an open device. */
ALLOT_NODISCARD allot_status bench_run(allot_device *device, bench_results *out);

/** The part of compaction. */
ALLOT_NODISCARD allot_status bench_run_compaction(allot_device *device, bench_compaction *out);

void bench_print_text(const bench_results *results);

/** CLI_FAILED where memory is short. */
cli_exit bench_print_json(const bench_results *results);

#endif /* CLI_BENCH_H */
