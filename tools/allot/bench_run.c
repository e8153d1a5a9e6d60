/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bench.h"
#include "measure/clock.h"
#include "measure/load.h"

/* A heap's share of the device's memory, at most: workloads are scaled down to it. */
enum { HEAP_MIB_MAX = 512, COPY_MIB = 64, ROUNDS = 5 };

#define MIB (UINT64_C(1) << 20)
#define PIECE (2 * MIB)

const char *const BENCH_WORKLOAD_NAMES[BENCH_WORKLOADS] = {"W1", "W3", "W4"};
const uint32_t BENCH_THREAD_COUNTS[BENCH_THREADS] = {1, 2, 4};

static const unsigned WORKLOAD_NUMBERS[BENCH_WORKLOADS] = {1, 3, 4};

/** Steps told on a terminal. */
enum { STEPS = BENCH_STRATEGIES * (BENCH_WORKLOADS + 1) + 3 };

static void tell(uint64_t *step)
{
    (void)cli_progress(NULL, "measuring", ++*step, STEPS);
}

/* ---- strategies ---- */

static load_part part_of(const workload *w, bool is_quick)
{
    const uint64_t most = is_quick ? 100000 : UINT64_MAX;
    return (load_part){.w = w, .op_count = w->count < most ? w->count : most};
}

static allot_status place(unsigned strategy, const load_part *part, double *ns, uint64_t *refused)
{
    const allot_space_options options = {.struct_size = sizeof options,
                                         .strategy = (allot_space_strategy)strategy};
    const uint64_t capacity = part->w->capacity == 0 ? UINT64_C(16) << 30 : part->w->capacity;
    uint32_t *const ids = malloc(part->w->slot_count * sizeof *ids);
    allot_space *space = NULL;
    allot_status status =
        ids == NULL ? ALLOT_STATUS_HOST_MEMORY : allot_space_create(capacity, &options, &space);
    if (status == ALLOT_STATUS_OK) {
        const double begin = measure_cpu_ns();
        *refused = load_space(space, part, ids);
        *ns = (measure_cpu_ns() - begin) / (double)part->op_count;
    }
    allot_space_destroy(space);
    free(ids);
    return status;
}

/** By how much sizes are divided so that the workload fits. */
static unsigned shift_for(const workload *w, uint64_t room)
{
    unsigned shift = 0;
    while (w->peak >> shift > room) {
        shift++;
    }
    return shift;
}

static allot_status load(allot_heap *heap, const load_part *part, bench_strategy *out)
{
    uint64_t refused = 0;
    allot_handle *const handles = calloc(part->w->slot_count, sizeof *handles);
    if (handles == NULL) {
        return ALLOT_STATUS_HOST_MEMORY;
    }
    const double begin = measure_cpu_ns();
    allot_status status = load_heap(heap, (allot_stream){0}, part, handles, &refused);
    out->heap_ns = (measure_cpu_ns() - begin) / (double)part->op_count;
    allot_heap_stats stats;
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_get_stats(heap, &stats);
    }
    if (status == ALLOT_STATUS_OK) {
        out->heap_ratio = (double)stats.reserved_bytes.peak / (double)stats.allocated_bytes.peak;
        status = load_heap_end(heap, part, handles);
    }
    free(handles);
    return status;
}

static allot_status run_heap(allot_device *device, unsigned strategy, load_part part,
                             bench_strategy *out)
{
    uint64_t room = 0;
    uint64_t total = 0;
    allot_heap *heap = NULL;
    allot_status status = allot_device_memory_info(device, &room, &total);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    room = room / 4 < HEAP_MIB_MAX * MIB ? room / 4 : HEAP_MIB_MAX * MIB;
    part.shift = shift_for(part.w, room);
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .strategy = (allot_space_strategy)strategy};
    status = allot_heap_create(device, &options, &heap);
    if (status == ALLOT_STATUS_OK) {
        status = load(heap, &part, out);
    }
    allot_heap_destroy(heap);
    return status;
}

static allot_status run_strategies(allot_device *device, bench_results *out, uint64_t *step)
{
    allot_status status = ALLOT_STATUS_OK;
    for (int i = 0; i < BENCH_WORKLOADS && status == ALLOT_STATUS_OK; i++) {
        workload w;
        workload_init(&w, WORKLOAD_NUMBERS[i]);
        const load_part part = part_of(&w, out->is_quick);
        for (unsigned j = 0; j < BENCH_STRATEGIES && status == ALLOT_STATUS_OK; j++) {
            bench_strategy *const strategy = &out->strategies[j];
            tell(step);
            status = place(j, &part, &strategy->place_ns[i], &strategy->refused[i]);
            if (status == ALLOT_STATUS_OK && WORKLOAD_NUMBERS[i] == 4) {
                tell(step);
                status = run_heap(device, j, part, strategy);
            }
        }
        workload_fini(&w);
    }
    return status;
}

/* ---- rates ---- */

/** Two areas of one size. */
typedef struct areas {
    allot_device *device;
    allot_devptr a;
    allot_devptr b;
    uint64_t size;
} areas;

static allot_status do_fill(const areas *x)
{
    return allot_device_fill(x->device, (allot_stream){0}, x->a, 1, x->size);
}

static allot_status do_copy(const areas *x)
{
    return allot_device_copy(x->device, (allot_stream){0}, x->b, x->a, x->size);
}

static allot_status do_pieces(const areas *x, bool moves)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t at = 0; at < x->size && status == ALLOT_STATUS_OK; at += PIECE) {
        const allot_devptr dst = {x->b.address + at};
        const allot_devptr src = {x->a.address + at};
        status = moves ? allot_device_move(x->device, (allot_stream){0}, dst, src, PIECE)
                       : allot_device_copy(x->device, (allot_stream){0}, dst, src, PIECE);
    }
    return status;
}

static allot_status do_copy_pieces(const areas *x)
{
    return do_pieces(x, false);
}

static allot_status do_move_pieces(const areas *x)
{
    return do_pieces(x, true);
}

/** Bytes in a second by the device's clock: the median of a few rounds, after one more. */
static allot_status rate(const areas *x, allot_status (*work)(const areas *x), double *out)
{
    double values[ROUNDS] = {0};
    for (int i = -1; i < ROUNDS; i++) {
        const uint64_t begin = allot_device_clock_ns(x->device);
        allot_status status = work(x);
        if (status == ALLOT_STATUS_OK) {
            status = allot_device_stream_synchronize(x->device, (allot_stream){0});
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        const uint64_t ns = allot_device_clock_ns(x->device) - begin;
        if (i >= 0 && ns != 0) {
            values[i] = (double)x->size * 1e9 / (double)ns;
        }
    }
    *out = measure_median(values, ROUNDS);
    return ALLOT_STATUS_OK;
}

static allot_status run_copies(const areas *x, bench_rates *out)
{
    allot_status status = rate(x, do_fill, &out->fill);
    if (status == ALLOT_STATUS_OK) {
        status = rate(x, do_copy, &out->copy);
    }
    if (status == ALLOT_STATUS_OK) {
        status = rate(x, do_copy_pieces, &out->copy_granule);
    }
    return status == ALLOT_STATUS_OK ? rate(x, do_move_pieces, &out->move_granule) : status;
}

/** Map a granule and unmap it again. */
static allot_status run_maps(allot_device *device, uint64_t granule, double *out)
{
    enum { TIMES = 64 };
    allot_devptr at = {0};
    allot_memory memory = {0};
    allot_status status = allot_device_reserve(device, granule, &at);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_memory_create(device, granule, &memory);
    const uint64_t begin = allot_device_clock_ns(device);
    for (int i = 0; i < TIMES && status == ALLOT_STATUS_OK; i++) {
        status = allot_device_map(device, at, memory, granule);
        if (status == ALLOT_STATUS_OK) {
            status = allot_device_unmap(device, at, granule);
        }
    }
    *out = (double)(allot_device_clock_ns(device) - begin) / TIMES;
    if (memory.value != 0 && status == ALLOT_STATUS_OK) {
        status = allot_device_memory_release(device, memory, granule);
    }
    return status == ALLOT_STATUS_OK ? allot_device_unreserve(device, at, granule) : status;
}

static allot_status run_rates(allot_device *device, bench_results *out)
{
    areas x = {.device = device, .size = COPY_MIB * MIB};
    allot_status status = allot_device_alloc(device, x.size, &x.a);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_alloc(device, x.size, &x.b);
    }
    if (status == ALLOT_STATUS_OK) {
        status = run_copies(&x, &out->rates);
    }
    if (x.b.address != 0 && status == ALLOT_STATUS_OK) {
        status = allot_device_free(device, x.b, x.size);
    }
    if (x.a.address != 0 && status == ALLOT_STATUS_OK) {
        status = allot_device_free(device, x.a, x.size);
    }
    if (status == ALLOT_STATUS_OK && out->info.granule != 0) {
        status = run_maps(device, out->info.granule, &out->rates.map_ns);
    }
    return status;
}

/* ---- threads ---- */

static allot_status run_threads(allot_device *device, uint32_t count, bool is_quick, double *out)
{
    const allot_heap_options options = {.struct_size = sizeof options, .front_size = 4 * MIB};
    allot_stream streams[LOAD_THREADS_MAX] = {{0}};
    allot_heap *heap = NULL;
    allot_status status = allot_heap_create(device, &options, &heap);
    uint32_t made = 0;
    while (made < count && status == ALLOT_STATUS_OK) {
        status = allot_device_stream_create(device, &streams[made]);
        made += status == ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK) {
        status = load_threads(heap, streams, count, is_quick ? 50 : 300, out);
    }
    allot_heap_destroy(heap);
    while (made-- > 0) {
        const allot_status ended = allot_device_stream_destroy(device, streams[made]);
        status = status == ALLOT_STATUS_OK ? ended : status;
    }
    return status;
}

allot_status bench_run(allot_device *device, bench_results *out)
{
    uint64_t step = 0;
    allot_device_get_info(device, &out->info);
    allot_status status = run_strategies(device, out, &step);
    if (status == ALLOT_STATUS_OK) {
        tell(&step);
        status = run_rates(device, out);
    }
    if (status == ALLOT_STATUS_OK) {
        tell(&step);
        status = bench_run_compaction(device, &out->compaction);
    }
    tell(&step);
    for (int i = 0; i < BENCH_THREADS && status == ALLOT_STATUS_OK; i++) {
        status = run_threads(device, BENCH_THREAD_COUNTS[i], out->is_quick, &out->pairs_per_s[i]);
    }
    cli_progress_end();
    return status;
}
