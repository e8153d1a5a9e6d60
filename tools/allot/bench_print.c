/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <yajl/yajl_gen.h>

#include "bench.h"
#include "dryrun_put.h"

/* ---- text ---- */

static void print_strategies(const bench_results *results)
{
    printf("%-11s", "strategy");
    for (int i = 0; i < BENCH_WORKLOADS; i++) {
        printf("  %4s ns  refused", BENCH_WORKLOAD_NAMES[i]);
    }
    printf("  heap ns  reserved/live\n");
    for (unsigned i = 0; i < BENCH_STRATEGIES; i++) {
        const bench_strategy *const row = &results->strategies[i];
        printf("%-11s", allot_space_strategy_name((allot_space_strategy)i));
        for (int j = 0; j < BENCH_WORKLOADS; j++) {
            printf("  %7.1f  %7" PRIu64, row->place_ns[j], row->refused[j]);
        }
        printf("  %7.1f  %13.3f\n", row->heap_ns, row->heap_ratio);
    }
}

static void print_rate(const char *what, double bytes_per_s)
{
    char text[ALLOT_SIZE_TEXT_MAX];
    if (bytes_per_s > 0) {
        printf("%-22s %s/s\n", what, allot_size_format((uint64_t)bytes_per_s, text));
    }
}

void bench_print_text(const bench_results *results)
{
    const bench_rates *const rates = &results->rates;
    printf("device %s: %s\n\n", results->device, results->info.name);
    print_strategies(results);
    printf(
        "\nns: CPU time of a request or a release, without memory; heap: of W4 at a heap over the "
        "device\n\n");
    print_rate("fill", rates->fill);
    print_rate("copy", rates->copy);
    print_rate("copy, 2 MiB pieces", rates->copy_granule);
    print_rate("move, 2 MiB pieces", rates->move_granule);
    if (rates->map_ns > 0) {
        printf("%-22s %.0f ns\n", "map, unmap a granule", rates->map_ns);
    }
    print_rate("compaction, moves", results->compaction.move);
    printf("%-22s %.2f ms for %" PRIu64 " blocks\n", "compaction, planning",
           (double)results->compaction.plan_ns / 1e6, results->compaction.plan_blocks);
    for (int i = 0; i < BENCH_THREADS; i++) {
        printf("%" PRIu32 " thread%-14s %.2f million allocations and releases/s\n",
               BENCH_THREAD_COUNTS[i], BENCH_THREAD_COUNTS[i] == 1 ? "" : "s",
               results->pairs_per_s[i] / 1e6);
    }
}

/* ---- JSON ---- */

static void put_double(yajl_gen json, const char *key, double value)
{
    dryrun_put_key(json, key);
    yajl_gen_double(json, value);
}

static void put_strategies(yajl_gen json, const bench_results *results)
{
    dryrun_put_key(json, "strategies");
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < BENCH_STRATEGIES; i++) {
        const bench_strategy *const row = &results->strategies[i];
        yajl_gen_map_open(json);
        dryrun_put_text(json, "strategy", allot_space_strategy_name((allot_space_strategy)i));
        dryrun_put_key(json, "workloads");
        yajl_gen_array_open(json);
        for (int j = 0; j < BENCH_WORKLOADS; j++) {
            yajl_gen_map_open(json);
            dryrun_put_text(json, "workload", BENCH_WORKLOAD_NAMES[j]);
            put_double(json, "ns", row->place_ns[j]);
            dryrun_put_number(json, "refused", row->refused[j]);
            yajl_gen_map_close(json);
        }
        yajl_gen_array_close(json);
        put_double(json, "heap_ns", row->heap_ns);
        put_double(json, "heap_reserved_ratio", row->heap_ratio);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_rates(yajl_gen json, const bench_rates *rates)
{
    dryrun_put_key(json, "rates");
    yajl_gen_map_open(json);
    put_double(json, "fill_bytes_per_s", rates->fill);
    put_double(json, "copy_bytes_per_s", rates->copy);
    put_double(json, "copy_2mib_bytes_per_s", rates->copy_granule);
    put_double(json, "move_2mib_bytes_per_s", rates->move_granule);
    put_double(json, "map_unmap_ns", rates->map_ns);
    yajl_gen_map_close(json);
}

static void put_compaction(yajl_gen json, const bench_compaction *compaction)
{
    dryrun_put_key(json, "compaction");
    yajl_gen_map_open(json);
    put_double(json, "move_bytes_per_s", compaction->move);
    dryrun_put_number(json, "plan_blocks", compaction->plan_blocks);
    dryrun_put_number(json, "plan_ns", compaction->plan_ns);
    yajl_gen_map_close(json);
}

static void put_threads(yajl_gen json, const bench_results *results)
{
    dryrun_put_key(json, "threads");
    yajl_gen_array_open(json);
    for (int i = 0; i < BENCH_THREADS; i++) {
        yajl_gen_map_open(json);
        dryrun_put_number(json, "thread_count", BENCH_THREAD_COUNTS[i]);
        put_double(json, "pairs_per_s", results->pairs_per_s[i]);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

cli_exit bench_print_json(const bench_results *results)
{
    yajl_gen json = dryrun_put_open("allot.bench/1", true);
    if (json == NULL) {
        return CLI_FAILED;
    }
    dryrun_put_text(json, "device", results->device);
    dryrun_put_text(json, "name", results->info.name);
    dryrun_put_bool(json, "is_quick", results->is_quick);
    put_strategies(json, results);
    put_rates(json, &results->rates);
    put_compaction(json, &results->compaction);
    put_threads(json, results);
    dryrun_put_close(json);
    return CLI_OK;
}
