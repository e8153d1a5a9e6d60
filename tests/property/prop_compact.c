/* SPDX-License-Identifier: MIT */
/*
 * Random programs at heaps that are compacted: every kind of placement, both modes, several
 * streams, pools, pins, pointers and alignments. All bytes of all blocks are compared after each
 * compaction; what was foretold has to be what came about.
 */
#include <allot/compactor.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum { BLOCKS = 64, STREAMS = 2, POOLS = 2, STEPS = 500, SIZE_MAX_BLOCK = 1 << 20 };

typedef struct held_block {
    allot_handle handle;
    allot_devptr fixed; /**< Where it has to stay; 0: it may move. */
    bool is_pointer;
    uint64_t size;
    uint64_t seed;
    uint64_t align;
    uint32_t stream;
} held_block;

typedef struct program {
    allot_device *device;
    allot_heap *heap;
    allot_stream streams[STREAMS];
    allot_heap_pool pools[POOLS];
    allot_compactor *compactor;
    allot_compact_plan *kept; /**< Run long after it was made; NULL: none. */
    held_block blocks[BLOCKS];
    uint32_t count;
    uint64_t random;
    uint64_t moved; /**< Bytes, by plans. */
} program;

static uint64_t draw(program *p, uint64_t low, uint64_t high)
{
    return check_random_range(&p->random, low, high);
}

/* ---- bytes ---- */

static void make_bytes(const held_block *block, uint8_t *out)
{
    uint64_t state = block->seed;
    for (uint64_t i = 0; i < block->size; i += 8) {
        const uint64_t word = state += UINT64_C(0x9E3779B97F4A7C15);
        memcpy(out + i, &word, block->size - i < 8 ? block->size - i : 8);
    }
}

static void write_bytes(program *p, const held_block *block, allot_devptr at)
{
    static uint8_t bytes[SIZE_MAX_BLOCK];
    make_bytes(block, bytes);
    CHECK_OK(allot_device_write(p->device, p->streams[block->stream], at, bytes, block->size));
    CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[block->stream]));
}

static void check_bytes(program *p, const held_block *block, allot_devptr at)
{
    static uint8_t bytes[SIZE_MAX_BLOCK];
    static uint8_t wanted[SIZE_MAX_BLOCK];
    make_bytes(block, wanted);
    CHECK_OK(allot_device_read(p->device, p->streams[block->stream], bytes, at, block->size));
    CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[block->stream]));
    CHECK_EQ(memcmp(bytes, wanted, block->size), 0);
    CHECK(block->align == 0 || at.address % block->align == 0);
    CHECK(block->fixed.address == 0 || block->fixed.address == at.address);
}

static bool pin(program *p, const held_block *block, allot_devptr *out)
{
    if (block->is_pointer) {
        *out = block->fixed;
        return true;
    }
    return CHECK_OK(allot_heap_pin(p->heap, block->handle, out));
}

static void unpin(program *p, const held_block *block)
{
    if (!block->is_pointer) {
        CHECK_OK(allot_heap_unpin(p->heap, block->handle));
    }
}

static void check_all(program *p)
{
    CHECK_OK(allot_heap_check(p->heap));
    for (uint32_t i = 0; i < p->count; i++) {
        allot_devptr at = {0};
        if (pin(p, &p->blocks[i], &at)) {
            check_bytes(p, &p->blocks[i], at);
            unpin(p, &p->blocks[i]);
        }
    }
}

/* ---- what programs do ---- */

static uint64_t draw_size(program *p)
{
    return draw(p, 1, UINT64_C(1) << draw(p, 8, 20));
}

static allot_request draw_request(program *p, uint32_t *stream)
{
    *stream = (uint32_t)draw(p, 0, STREAMS - 1);
    return (allot_request){.struct_size = sizeof(allot_request),
                           .size = draw_size(p),
                           .align = draw(p, 0, 5) == 0 ? UINT64_C(1) << draw(p, 9, 21) : 0,
                           .stream = p->streams[*stream],
                           .pool = p->pools[draw(p, 0, 5) == 0],
                           .tag = (uint32_t)draw(p, 0, 3)};
}

static void step_alloc(program *p)
{
    held_block block = {.seed = draw(p, 1, UINT64_MAX - 1), .is_pointer = draw(p, 0, 15) == 0};
    const allot_request request = draw_request(p, &block.stream);
    block.size = request.size;
    block.align = request.align;
    const allot_status status = block.is_pointer
                                    ? allot_heap_alloc_pointer(p->heap, &request, &block.fixed)
                                    : allot_heap_alloc(p->heap, &request, &block.handle);
    if (status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_BUDGET ||
        status == ALLOT_STATUS_DEVICE_MEMORY) {
        return;
    }
    allot_devptr at = {0};
    if (CHECK_OK(status) && pin(p, &block, &at)) {
        write_bytes(p, &block, at);
        unpin(p, &block);
        p->blocks[p->count++] = block;
    }
}

static void step_free(program *p, uint32_t i)
{
    held_block *const block = &p->blocks[i];
    if (block->is_pointer) {
        CHECK_OK(allot_heap_free_pointer(p->heap, block->fixed));
    } else {
        if (block->fixed.address != 0) {
            CHECK_OK(allot_heap_unpin(p->heap, block->handle));
        }
        CHECK_OK(allot_heap_free(p->heap, block->handle));
    }
    *block = p->blocks[--p->count];
}

/** Pin a block for long, or let it go. */
static void step_pin(program *p, held_block *block)
{
    if (block->is_pointer) {
        return;
    }
    if (block->fixed.address != 0) {
        CHECK_OK(allot_heap_unpin(p->heap, block->handle));
        block->fixed.address = 0;
    } else if (draw(p, 0, 2) == 0) {
        CHECK_OK(allot_heap_pin(p->heap, block->handle, &block->fixed));
    }
}

static void step_resize(program *p, held_block *block)
{
    const uint64_t size = draw_size(p);
    if (block->is_pointer || allot_heap_resize(p->heap, block->handle, size) != ALLOT_STATUS_OK) {
        return;
    }
    allot_devptr at = {0};
    if (pin(p, block, &at)) {
        held_block front = *block;
        front.size = size < block->size ? size : block->size;
        check_bytes(p, &front, at);
        block->size = size;
        write_bytes(p, block, at);
        unpin(p, block);
    }
}

/* ---- compactions ---- */

static void make_quiet(program *p)
{
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[i]));
    }
    CHECK_OK(allot_heap_collect(p->heap));
}

static bool add_block(void *context, const allot_block_info *block)
{
    uint64_t *const sum = context;
    uint64_t state = block->handle.value ^ (block->ptr.address << 1) ^ (block->size << 40);
    *sum += check_random(&state);
    return true;
}

/** Of all blocks and where they are. */
static uint64_t sum_blocks(program *p)
{
    uint64_t sum = 0;
    CHECK_OK(allot_heap_walk(p->heap, add_block, &sum));
    return sum;
}

static allot_compact_forecast look(program *p)
{
    allot_compact_forecast forecast = {0};
    CHECK_OK(allot_compact_estimate(p->heap, NULL, &forecast));
    return forecast;
}

static void check_forecast(const allot_compact_forecast *f, const allot_compact_forecast *seen)
{
    CHECK_EQ(seen->size_free, f->size_free);
    CHECK_EQ(seen->largest_before, f->largest_after);
    CHECK_EQ(seen->segments_before, f->segments_after);
    CHECK_EQ(seen->releasable_before, f->releasable_after);
}

static void check_budgets(const allot_compact_plan_options *options,
                          const allot_compact_forecast *f)
{
    CHECK(options->bytes_max == 0 || f->bytes <= options->bytes_max);
    CHECK(options->moves_max == 0 || f->moves <= options->moves_max);
}

/** A plan, foretold and run while nothing else happens. */
static void run_plan(program *p, const allot_compact_plan_options *options,
                     allot_compact_plan *plan)
{
    allot_compact_forecast f = {0};
    allot_compact_report report = {0};
    allot_compact_plan_get_forecast(plan, &f);
    check_budgets(options, &f);
    CHECK_EQ(f.moves, allot_compact_plan_count(plan));
    CHECK_OK(allot_compact_plan_check(plan));
    CHECK_OK(allot_compact_plan_run(p->heap, plan, NULL, &report));
    CHECK_EQ(report.skipped, 0);
    CHECK_EQ(report.moved, f.moves);
    CHECK_EQ(report.bytes, f.bytes);
    p->moved += report.bytes;
    const allot_compact_forecast seen = look(p);
    check_forecast(&f, &seen);
    /* Everything is elsewhere by now, or where it was when there was nothing to move. */
    CHECK_OK(allot_compact_plan_run(p->heap, plan, NULL, &report));
    CHECK_EQ(report.moved, 0);
}

static void draw_budgets(program *p, allot_compact_plan_options *options)
{
    options->bytes_max = draw(p, 0, 1) == 0 ? 0 : draw(p, 1, 4 * MIB);
    options->moves_max = draw(p, 0, 1) == 0 ? 0 : draw(p, 1, 10);
}

static void step_full(program *p)
{
    allot_compact_plan_options options = {.struct_size = sizeof options};
    draw_budgets(p, &options);
    make_quiet(p);
    const uint64_t before = sum_blocks(p);
    allot_compact_forecast estimate = {0};
    allot_compact_plan *plan = NULL;
    CHECK_OK(allot_compact_estimate(p->heap, &options, &estimate));
    if (!CHECK_OK(allot_compact_plan_create(p->heap, &options, &plan))) {
        return;
    }
    CHECK_EQ(sum_blocks(p), before);
    CHECK(estimate.segments_after <= estimate.segments_before);
    CHECK(estimate.releasable_after >= estimate.releasable_before);
    CHECK(estimate.releasable_after > estimate.releasable_before ||
          estimate.largest_after >= estimate.largest_before);
    allot_compact_forecast f = {0};
    allot_compact_plan_get_forecast(plan, &f);
    CHECK_EQ(f.bytes, estimate.bytes);
    CHECK_EQ(f.moves, estimate.moves);
    CHECK_EQ(f.largest_after, estimate.largest_after);
    run_plan(p, &options, plan);
    allot_compact_plan_destroy(plan);
}

/** After room was made the request fits without a move more, and without memory more. */
static void check_fits(program *p, const allot_request *request)
{
    const allot_compact_plan_options options = {
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = request};
    allot_compact_forecast f = {0};
    if (CHECK_OK(allot_compact_estimate(p->heap, &options, &f))) {
        CHECK_EQ(f.bytes, 0);
    }
    uint64_t moved = 1;
    CHECK_OK(allot_compact_make_room(p->heap, request, &moved));
    CHECK_EQ(moved, 0);
}

static void step_room(program *p)
{
    uint32_t stream = 0;
    allot_request request = draw_request(p, &stream);
    request.size *= draw(p, 1, 4);
    allot_compact_plan_options options = {
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    draw_budgets(p, &options);
    make_quiet(p);
    const uint64_t before = sum_blocks(p);
    allot_compact_plan *plan = NULL;
    const allot_status status = allot_compact_plan_create(p->heap, &options, &plan);
    CHECK_EQ(sum_blocks(p), before);
    if (status != ALLOT_STATUS_FRAGMENTED && CHECK_OK(status)) {
        run_plan(p, &options, plan);
        check_fits(p, &request);
    }
    allot_compact_plan_destroy(plan);
}

static void step_room_at_once(program *p)
{
    uint32_t stream = 0;
    const allot_request request = draw_request(p, &stream);
    uint64_t moved = 0;
    make_quiet(p);
    const allot_status status = allot_compact_make_room(p->heap, &request, &moved);
    if (status != ALLOT_STATUS_FRAGMENTED && CHECK_OK(status)) {
        check_fits(p, &request);
    }
    p->moved += moved;
}

/** Run the plan that was kept, or keep one. */
static void step_kept(program *p)
{
    if (p->kept == NULL) {
        CHECK_OK(allot_compact_plan_create(p->heap, NULL, &p->kept));
        return;
    }
    allot_compact_report report = {0};
    CHECK_OK(allot_compact_plan_check(p->kept));
    CHECK_OK(allot_compact_plan_run(p->heap, p->kept, NULL, &report));
    CHECK_EQ(report.moved + report.skipped, allot_compact_plan_count(p->kept));
    p->moved += report.bytes;
    allot_compact_plan_destroy(p->kept);
    p->kept = NULL;
}

static void step_compactor(program *p)
{
    const allot_compactor_task_options task = {.struct_size = sizeof task};
    const allot_compactor_budget budget = {.struct_size = sizeof budget,
                                           .moves = draw(p, 1, 8),
                                           .time_ns = draw(p, 0, 1) == 0 ? 0 : 1};
    allot_compactor_step_report report = {0};
    uint64_t id = 0;
    CHECK_OK(allot_compactor_add(p->compactor, &task, &id));
    CHECK_OK(allot_compactor_step(p->compactor, &budget, &report));
    CHECK(report.moved <= budget.moves);
    if (draw(p, 0, 2) == 0) {
        CHECK_OK(allot_compactor_cancel(p->compactor, id));
    }
    p->moved += report.bytes;
}

static void step_compact(program *p)
{
    static void (*const WAYS[])(program * p) = {step_full, step_room, step_room_at_once, step_kept,
                                                step_compactor};
    const uint32_t way = (uint32_t)draw(p, 0, sizeof WAYS / sizeof WAYS[0] - 1);
    WAYS[way](p);
    check_all(p);
}

static void step(program *p)
{
    const uint64_t kind = draw(p, 0, 99);
    if (kind < 20) {
        step_compact(p);
    } else if (p->count == 0 || (kind < 60 && p->count < BLOCKS)) {
        step_alloc(p);
    } else if (kind < 85) {
        step_free(p, (uint32_t)draw(p, 0, p->count - 1));
    } else if (kind < 90) {
        step_pin(p, &p->blocks[draw(p, 0, p->count - 1)]);
    } else if (kind < 95) {
        step_resize(p, &p->blocks[draw(p, 0, p->count - 1)]);
    } else if (kind < 97) {
        CHECK_OK(allot_heap_trim(p->heap, draw(p, 0, 16 * MIB), NULL));
    } else {
        const held_block *const block = &p->blocks[draw(p, 0, p->count - 1)];
        if (!block->is_pointer) {
            CHECK_OK(allot_heap_use(p->heap, block->handle, p->streams[draw(p, 0, 1)]));
        }
    }
}

/* ---- programs ---- */

static bool begin(program *p, const char *device, const allot_heap_options *options)
{
    const allot_heap_pool_options pool = {.struct_size = sizeof pool,
                                          .strategy = options->strategy,
                                          .limit = 8 * MIB,
                                          .is_shared_on_oom = true};
    *p = (program){.random = check_seed() * 16 + (uint64_t)options->strategy};
    if (!CHECK_OK(allot_device_open(device, &p->device))) {
        return false;
    }
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(p->device, &p->streams[i]));
    }
    return CHECK_OK(allot_heap_create(p->device, options, &p->heap)) &&
           CHECK_OK(allot_heap_pool_create(p->heap, &pool, &p->pools[1])) &&
           CHECK_OK(allot_compactor_create(p->heap, NULL, &p->compactor));
}

static void end(program *p)
{
    check_all(p);
    while (p->count != 0) {
        step_free(p, p->count - 1);
    }
    CHECK_OK(allot_heap_check(p->heap));
    allot_compactor_destroy(p->compactor);
    allot_heap_destroy(p->heap);
    allot_compact_plan_destroy(p->kept); /* outlives its heap */
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(p->device, p->streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(p->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(p->device);
}

/** Bytes moved by a program with one kind of placement. */
static uint64_t run(const char *device, const allot_heap_options *options)
{
    static program p;
    if (!begin(&p, device, options)) {
        return 0;
    }
    CHECK_OK(allot_compact_attach(p.heap, NULL));
    for (int i = 0; i < STEPS && check_failures() == 0; i++) {
        step(&p);
    }
    end(&p);
    return p.moved;
}

static void run_all(const char *device, allot_heap_options options)
{
    uint64_t moved = 0;
    options.struct_size = sizeof options;
    options.segment_size = 2 * MIB;
    options.reserve_size = 64 * MIB;
    options.limit = 24 * MIB;
    for (int i = 0; i <= ALLOT_SPACE_STRATEGY_ADAPTIVE; i++) {
        options.strategy = (allot_space_strategy)i;
        moved += run(device, &options);
    }
    CHECK(moved > 0);
}

static void segments_end_as_foretold(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
}

static void virtual_memory_ends_as_foretold(void)
{
    run_all("host,memory:96MiB,granule:64KiB",
            (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
}

static void soft_limits_end_as_foretold(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS,
                                                      .limit_soft = 8 * MIB,
                                                      .scrub = ALLOT_HEAP_SCRUB_REUSE});
}

static void debug_heaps_end_as_foretold(void)
{
    run_all("host,memory:96MiB,granule:64KiB", (allot_heap_options){.is_debug = true});
}

static const check_test TESTS[] = {
    {"segments_end_as_foretold", segments_end_as_foretold},
    {"virtual_memory_ends_as_foretold", virtual_memory_ends_as_foretold},
    {"soft_limits_end_as_foretold", soft_limits_end_as_foretold},
    {"debug_heaps_end_as_foretold", debug_heaps_end_as_foretold},
};
CHECK_MAIN(TESTS)
