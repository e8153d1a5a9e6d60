/* SPDX-License-Identifier: MIT */
/*
 * bench_heap [--quick] [--json FILE]: what a heap costs, and what it holds for what is asked of it.
 * Over the null device, which costs nothing, but for the device's calls and time, which are those
 * of the simulated one. CPU time of the process, medians; the rows of threads are wall time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"
#include "measure/load.h"

#define MIB (UINT64_C(1) << 20)
#define NULL_DEVICE "null,memory:64GiB"
#define SIMULATED_DEVICE "simulated,memory:64GiB"

enum { RUNS = 3, STRATEGIES = ALLOT_SPACE_STRATEGY_ADAPTIVE + 1, SAMPLES = 200000 };

static FILE *json;
static bool is_quick;
static const char *separator = "";

static void must(allot_status status, const char *what)
{
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "bench_heap: %s: %s\n", what, allot_error_detail());
        exit(1);
    }
}

/** A row of the JSON document: kind, name, and what follows as members. */
static void begin_row(const char *kind)
{
    if (json != NULL) {
        fprintf(json, "%s\n{\"kind\": \"%s\"", separator, kind);
        separator = ",";
    }
}

static void put_number(const char *key, double value)
{
    if (json != NULL) {
        fprintf(json, ", \"%s\": %.6g", key, value);
    }
}

static void put_text(const char *key, const char *value)
{
    if (json != NULL) {
        fprintf(json, ", \"%s\": \"%s\"", key, value);
    }
}

static void end_row(void)
{
    if (json != NULL) {
        fputs("}", json);
    }
}

/* ---- heaps ---- */

typedef struct fixture {
    allot_device *device;
    allot_heap *heap;
} fixture;

static fixture make(const char *device, allot_heap_options options)
{
    fixture f = {0};
    options.struct_size = sizeof options;
    must(allot_device_open(device, &f.device), device);
    must(allot_heap_create(f.device, &options, &f.heap), "heap");
    return f;
}

static void unmake(fixture *f)
{
    allot_heap_destroy(f->heap);
    allot_device_destroy(f->device);
}

static allot_handle get(const fixture *f, uint64_t size)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    allot_handle handle = {0};
    must(allot_heap_alloc(f->heap, &request, &handle), "alloc");
    return handle;
}

static const char *mode_name(allot_heap_mode mode)
{
    return mode == ALLOT_HEAP_MODE_SEGMENTS ? "segments" : "virtual";
}

/* ---- workloads ---- */

typedef struct outcome {
    double ns;
    double ratio; /**< Most reserved, of most allocated. */
    uint64_t refused;
    uint64_t device_calls;
    double device_ms;
} outcome;

/** One run; what the heap held and asked of the device is noted. */
static double play(const char *device, const allot_heap_options *options, const load_part *part,
                   allot_handle *handles, outcome *out)
{
    fixture f = make(device, *options);
    memset(handles, 0, part->w->slot_count * sizeof *handles);
    out->refused = 0;
    const uint64_t clock = allot_device_clock_ns(f.device);
    const double begin = measure_cpu_ns();
    must(load_heap(f.heap, (allot_stream){0}, part, handles, &out->refused), part->w->name);
    const double ns = (measure_cpu_ns() - begin) / (double)part->op_count;
    allot_heap_stats stats;
    allot_device_counts counts;
    must(allot_heap_get_stats(f.heap, &stats), "stats");
    allot_device_get_counts(f.device, &counts);
    out->ratio = (double)stats.reserved_bytes.peak / (double)stats.allocated_bytes.peak;
    out->device_ms = (double)(allot_device_clock_ns(f.device) - clock) / 1e6;
    out->device_calls = 0;
    for (int i = 0; i < ALLOT_DEVICE_CALL_COUNT; i++) {
        out->device_calls += counts.calls[i];
    }
    must(load_heap_end(f.heap, part, handles), "free");
    unmake(&f);
    return ns;
}

static outcome measure_workload(const allot_heap_options *options, const load_part *part,
                                allot_handle *handles)
{
    outcome out = {0};
    double ns[RUNS];
    const size_t runs = is_quick ? 1 : RUNS;
    (void)play(SIMULATED_DEVICE, options, part, handles, &out);
    for (size_t i = 0; i < runs; i++) {
        outcome unused = {0};
        ns[i] = play(NULL_DEVICE, options, part, handles, &unused);
    }
    out.ns = measure_median(ns, runs);
    return out;
}

static void bench_workload(const workload *w, allot_heap_mode mode, allot_handle *handles)
{
    const load_part part = {.w = w, .op_count = is_quick && w->count > 50000 ? 50000 : w->count};
    for (int s = 0; s < STRATEGIES; s++) {
        const allot_heap_options options = {.mode = mode, .strategy = (allot_space_strategy)s};
        const char *const name = allot_space_strategy_name((allot_space_strategy)s);
        const outcome out = measure_workload(&options, &part, handles);
        printf("%-3s %-9s %-10s %8.1f %10.4f %8" PRIu64 " %10" PRIu64 " %11.1f\n", w->name,
               mode_name(mode), name, out.ns, out.ratio, out.refused, out.device_calls,
               out.device_ms);
        fflush(stdout);
        begin_row("workload");
        put_text("workload", w->name);
        put_text("mode", mode_name(mode));
        put_text("strategy", name);
        put_number("ns_per_op", out.ns);
        put_number("reserved_of_allocated", out.ratio);
        put_number("refused", (double)out.refused);
        put_number("device_calls", (double)out.device_calls);
        put_number("device_ms", out.device_ms);
        end_row();
    }
}

static void bench_workloads(void)
{
    printf("%-3s %-9s %-10s %8s %10s %8s %10s %11s\n", "", "mode", "strategy", "ns/op", "held/used",
           "refused", "dev. calls", "dev. ms");
    for (unsigned i = 1; i <= WORKLOAD_COUNT; i++) {
        workload w;
        workload_init(&w, i);
        allot_handle *const handles = calloc(w.slot_count, sizeof *handles);
        if (handles == NULL) {
            must(ALLOT_STATUS_HOST_MEMORY, "handles");
        }
        bench_workload(&w, ALLOT_HEAP_MODE_SEGMENTS, handles);
        bench_workload(&w, ALLOT_HEAP_MODE_VIRTUAL, handles);
        free(handles);
        workload_fini(&w);
    }
}

/* ---- single calls ---- */

static double scale;
static uint64_t clock_floor;

/** What reading the clock takes at least. */
static void measure_floor(void)
{
    scale = measure_ns_per_tick();
    clock_floor = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        const uint64_t begin = measure_ticks();
        const uint64_t took = measure_ticks() - begin;
        clock_floor = took < clock_floor ? took : clock_floor;
    }
}

static uint32_t ticks_since(uint64_t begin)
{
    const uint64_t took = measure_ticks() - begin;
    return took > clock_floor ? (uint32_t)(took - clock_floor) : 0;
}

static void print_latency(const char *name, uint32_t *samples, size_t count)
{
    measure_sort(samples, count);
    const double p50 = scale * measure_rank(samples, count, 2);
    const double p99 = scale * measure_rank(samples, count, 100);
    const double p999 = scale * measure_rank(samples, count, 1000);
    printf("%-34s %8.0f %8.0f %8.0f\n", name, p50, p99, p999);
    begin_row("latency");
    put_text("name", name);
    put_number("p50_ns", p50);
    put_number("p99_ns", p99);
    put_number("p999_ns", p999);
    end_row();
}

/** A pair of an allocation and a free among `live` blocks. */
static void bench_pair(const char *name, uint64_t front_size, uint32_t *samples, size_t count)
{
    enum { LIVE = 1000 };
    allot_handle live[LIVE];
    fixture f = make(NULL_DEVICE, (allot_heap_options){.front_size = front_size});
    uint64_t random = 1;
    for (int i = 0; i < LIVE; i++) {
        live[i] = get(&f, (uint64_t)workload_units(&random, 9, 20) * WORKLOAD_GRANULE);
    }
    must(allot_heap_free(f.heap, get(&f, 4096)), "free");
    for (size_t i = 0; i < count; i++) {
        const uint64_t begin = measure_ticks();
        must(allot_heap_free(f.heap, get(&f, 4096)), "free");
        samples[i] = ticks_since(begin);
    }
    for (int i = 0; i < LIVE; i++) {
        must(allot_heap_free(f.heap, live[i]), "free");
    }
    print_latency(name, samples, count);
    unmake(&f);
}

/** Requests of which each needs more from the device. */
static void bench_growth(allot_heap_mode mode, uint32_t *samples)
{
    enum { COUNT = 500 };
    char name[64];
    allot_handle handles[COUNT];
    fixture f = make(NULL_DEVICE, (allot_heap_options){.mode = mode});
    for (int i = 0; i < COUNT; i++) {
        const uint64_t begin = measure_ticks();
        handles[i] = get(&f, 64 * MIB);
        samples[i] = ticks_since(begin);
    }
    for (int i = 0; i < COUNT; i++) {
        must(allot_heap_free(f.heap, handles[i]), "free");
    }
    snprintf(name, sizeof name, "growth by 64 MiB, %s", mode_name(mode));
    print_latency(name, samples, COUNT);
    unmake(&f);
}

static void bench_latency(void)
{
    const size_t count = is_quick ? SAMPLES / 20 : SAMPLES;
    uint32_t *const samples = malloc(SAMPLES * sizeof *samples);
    if (samples == NULL) {
        must(ALLOT_STATUS_HOST_MEMORY, "samples");
        return;
    }
    printf("\n%-34s %8s %8s %8s\n", "single calls, ns", "p50", "p99", "p99.9");
    bench_pair("alloc and free, in the front", 16 * MIB, samples, count);
    bench_pair("alloc and free, in the space", 0, samples, count);
    bench_growth(ALLOT_HEAP_MODE_SEGMENTS, samples);
    bench_growth(ALLOT_HEAP_MODE_VIRTUAL, samples);
    free(samples);
}

/* ---- pins, trimming ---- */

static void print_cost(const char *name, double ns, double goal)
{
    printf("%-34s %8.1f ns", name, ns);
    if (goal > 0) {
        printf("  (goal %.0f: %s)", goal, ns <= goal ? "met" : "missed");
    }
    putchar('\n');
    begin_row("cost");
    put_text("name", name);
    put_number("ns", ns);
    end_row();
}

static void bench_pin(void)
{
    enum { COUNT = 2000000 };
    fixture f = make(NULL_DEVICE, (allot_heap_options){0});
    const allot_handle handle = get(&f, 4096);
    allot_devptr at = {0};
    double ns[RUNS];
    for (int run = 0; run < RUNS; run++) {
        const double begin = measure_cpu_ns();
        for (int i = 0; i < COUNT; i++) {
            must(allot_heap_pin(f.heap, handle, &at), "pin");
            must(allot_heap_unpin(f.heap, handle), "unpin");
        }
        ns[run] = (measure_cpu_ns() - begin) / COUNT;
    }
    print_cost("pin and unpin", measure_median(ns, RUNS), 10);
    must(allot_heap_free(f.heap, handle), "free");
    unmake(&f);
}

static void bench_trim(allot_heap_mode mode)
{
    enum { COUNT = 200, COLLECTS = 100 };
    char name[64];
    fixture f = make(NULL_DEVICE, (allot_heap_options){.mode = mode});
    const allot_handle stays = get(&f, 4096);
    double trim = 0;
    double collect = 0;
    for (int i = 0; i < COUNT; i++) {
        must(allot_heap_free(f.heap, get(&f, 64 * MIB)), "free");
        double begin = measure_cpu_ns();
        for (int j = 0; j < COLLECTS; j++) {
            must(allot_heap_collect(f.heap), "collect");
        }
        collect += (measure_cpu_ns() - begin) / COLLECTS;
        begin = measure_cpu_ns();
        must(allot_heap_trim(f.heap, 0, NULL), "trim");
        trim += measure_cpu_ns() - begin;
    }
    snprintf(name, sizeof name, "trim of 64 MiB, %s", mode_name(mode));
    print_cost(name, trim / COUNT, 0);
    snprintf(name, sizeof name, "collect, nothing pending, %s", mode_name(mode));
    print_cost(name, collect / COUNT, 0);
    must(allot_heap_free(f.heap, stays), "free");
    unmake(&f);
}

/* ---- threads ---- */

static double bench_thread_count(uint32_t threads, bool is_shared, uint64_t front_size)
{
    fixture f = make(NULL_DEVICE, (allot_heap_options){.front_size = front_size});
    allot_stream streams[LOAD_THREADS_MAX] = {{0}};
    double per_s = 0;
    for (uint32_t i = 0; i < threads && !is_shared; i++) {
        must(allot_device_stream_create(f.device, &streams[i]), "stream");
    }
    must(load_threads(f.heap, streams, threads, is_quick ? 50 : 500, &per_s), "threads");
    allot_heap_destroy(f.heap);
    for (uint32_t i = 0; i < threads && !is_shared; i++) {
        must(allot_device_stream_destroy(f.device, streams[i]), "stream");
    }
    allot_device_destroy(f.device);
    return per_s;
}

static void bench_threads(void)
{
    static const struct {
        const char *name;
        bool is_shared;
        uint64_t front_size;
    } kinds[] = {{"own streams, fronts", false, 16 * MIB},
                 {"own streams, no fronts", false, 0},
                 {"one stream, fronts", true, 16 * MIB},
                 {"one stream, no fronts", true, 0}};
    printf("\n%-34s %8s %8s %8s\n", "million pairs per second; threads", "1", "2", "4");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        printf("%-34s", kinds[i].name);
        for (uint32_t threads = 1; threads <= 4; threads *= 2) {
            const double per_s =
                bench_thread_count(threads, kinds[i].is_shared, kinds[i].front_size);
            printf(" %8.2f", per_s / 1e6);
            fflush(stdout);
            begin_row("threads");
            put_text("name", kinds[i].name);
            put_number("threads", threads);
            put_number("pairs_per_s", per_s);
            end_row();
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        is_quick = is_quick || strcmp(argv[i], "--quick") == 0;
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = fopen(argv[i + 1], "w");
        }
    }
    if (json != NULL) {
        fputs("{\"rows\": [", json);
    }
    measure_floor();
    bench_workloads();
    bench_latency();
    putchar('\n');
    bench_pin();
    bench_trim(ALLOT_HEAP_MODE_SEGMENTS);
    bench_trim(ALLOT_HEAP_MODE_VIRTUAL);
    bench_threads();
    if (json != NULL) {
        fputs("]}\n", json);
        if (fclose(json) != 0) {
            perror("bench_heap");
            return 1;
        }
    }
    return 0;
}
