/* SPDX-License-Identifier: MIT */
/*
 * Eight threads at one heap: every call, on streams of their own and shared ones, on blocks that
 * are handed from thread to thread, in pools that come and go, while blocks are moved under them by
 * plans, by steps and by a thread in the background. A block in a slot belongs to nobody,
 * one taken out of it to the thread that took it; a contested handle belongs to all at once, and
 * exactly one of those that free it succeeds.
 *
 * Time-boxed: ALLOT_STRESS_MS milliseconds for each heap, 600 if it is not set.
 */
#include <allot/compactor.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

enum {
    THREADS = 8,
    STREAMS = 6, /**< [0] is the default stream. */
    SHARED_STREAMS = 2,
    POOLS = 3,
    SLOTS = 256,
    CONTESTED = 2,
    BLOCKS_SEEN_MAX = 4096,
    PATTERN_MAX = 512,
    TIME_MS = 600,
};

typedef struct held_block {
    allot_handle handle;
    allot_devptr ptr; /**< Of pointers; 0 for handles. */
    uint64_t size;    /**< 0: there is none. */
    uint32_t stream;
    uint32_t flags;
    uint8_t pattern;
} held_block;

typedef struct slot {
    pthread_mutex_t mutex;
    held_block block;
} slot;

typedef struct arena {
    allot_device *device;
    allot_heap *heap;
    allot_compactor *compactor; /**< NULL: blocks are not moved. */
    allot_device_info info;
    uint64_t end_ns;
    allot_stream streams[STREAMS];
    _Atomic uint64_t pools[POOLS]; /**< Handles; 0: none. */
    slot slots[SLOTS];
    _Atomic uint64_t contested[CONTESTED]; /**< Handles; 0: none. */
    _Atomic uint64_t contested_made;
    _Atomic uint64_t contested_freed;
    _Atomic uint64_t moved; /**< Blocks, by plans and steps. */
    _Atomic uint64_t steps;
} arena;

typedef struct worker {
    arena *arena;
    uint64_t random;
    uint32_t number;
    allot_block_info *seen; /**< [BLOCKS_SEEN_MAX] What a walk found. */
    uint32_t seen_count;
} worker;

static uint64_t draw(worker *w, uint64_t low, uint64_t high)
{
    return check_random_range(&w->random, low, high);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool is_no_room(allot_status status)
{
    return status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_DEVICE_MEMORY ||
           status == ALLOT_STATUS_BUDGET;
}

/* ---- bytes ---- */

static uint64_t pattern_size(const held_block *block)
{
    return block->size < PATTERN_MAX ? block->size : PATTERN_MAX;
}

static void write_pattern(arena *a, const held_block *block, allot_devptr at)
{
    if (a->info.has_bytes) {
        CHECK_OK(allot_device_fill(a->device, a->streams[block->stream], at, block->pattern,
                                   pattern_size(block)));
    }
}

static void check_pattern(arena *a, const held_block *block, allot_devptr at)
{
    uint8_t bytes[PATTERN_MAX];
    if (!a->info.has_bytes) {
        return;
    }
    const uint64_t size = pattern_size(block);
    CHECK_OK(allot_device_read(a->device, a->streams[block->stream], bytes, at, size));
    CHECK_OK(allot_device_stream_synchronize(a->device, a->streams[block->stream]));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < size; i++) {
        wrong += bytes[i] != block->pattern;
    }
    CHECK_EQ(wrong, 0);
}

/** Address of a block, pinned if it is a handle; false if it was dropped. */
static bool pin(arena *a, const held_block *block, allot_devptr *out)
{
    if (block->ptr.address != 0) {
        *out = block->ptr;
        return true;
    }
    const allot_status status = allot_heap_pin(a->heap, block->handle, out);
    if (status == ALLOT_STATUS_NOT_FOUND && block->flags != 0) {
        return false;
    }
    return CHECK_OK(status);
}

static void unpin(arena *a, const held_block *block)
{
    if (block->ptr.address == 0) {
        CHECK_OK(allot_heap_unpin(a->heap, block->handle));
    }
}

/* ---- slots ---- */

static held_block swap_slot(worker *w, held_block block)
{
    slot *const s = &w->arena->slots[draw(w, 0, SLOTS - 1)];
    pthread_mutex_lock(&s->mutex);
    const held_block old = s->block;
    s->block = block;
    pthread_mutex_unlock(&s->mutex);
    return old;
}

static held_block take(worker *w)
{
    return swap_slot(w, (held_block){0});
}

static void free_block(arena *a, const held_block *block)
{
    allot_devptr at = {0};
    if (pin(a, block, &at)) {
        check_pattern(a, block, at);
        unpin(a, block);
    }
    CHECK_OK(block->ptr.address != 0 ? allot_heap_free_pointer(a->heap, block->ptr)
                                     : allot_heap_free(a->heap, block->handle));
}

/** Put a block into any slot; what was there is freed. */
static void put(worker *w, held_block block)
{
    const held_block old = swap_slot(w, block);
    if (old.size != 0) {
        free_block(w->arena, &old);
    }
}

/* ---- steps ---- */

/** Few sizes often, so that fronts are hit, and any size sometimes. */
static uint64_t draw_size(worker *w)
{
    return draw(w, 0, 3) != 0 ? UINT64_C(1024) << draw(w, 0, 3)
                              : draw(w, 1, UINT64_C(1) << draw(w, 0, 19));
}

static uint32_t draw_stream(worker *w)
{
    const uint32_t own = SHARED_STREAMS + w->number % (STREAMS - SHARED_STREAMS);
    return draw(w, 0, 1) == 0 ? own : (uint32_t)draw(w, 0, STREAMS - 1);
}

static void step_alloc(worker *w)
{
    arena *const a = w->arena;
    const bool is_pointer = draw(w, 0, 2) == 0;
    held_block block = {.size = draw_size(w),
                        .stream = draw_stream(w),
                        .pattern = (uint8_t)draw(w, 1, 255),
                        .flags = is_pointer || draw(w, 0, 3) != 0 ? 0 : (uint32_t)draw(w, 1, 2)};
    const uint64_t pool = draw(w, 0, 2) == 0 ? a->pools[draw(w, 0, POOLS - 1)] : 0;
    const allot_request request = {.struct_size = sizeof request,
                                   .size = block.size,
                                   .stream = a->streams[block.stream],
                                   .pool = {pool},
                                   .flags = block.flags,
                                   .owner = w->number,
                                   .align = draw(w, 0, 7) == 0 ? UINT64_C(1) << draw(w, 0, 16) : 0};
    const allot_status status = is_pointer ? allot_heap_alloc_pointer(a->heap, &request, &block.ptr)
                                           : allot_heap_alloc(a->heap, &request, &block.handle);
    if (status == ALLOT_STATUS_INVALID && pool != 0) {
        return; /* the pool was destroyed meanwhile */
    }
    if (status != ALLOT_STATUS_OK) {
        CHECK(is_no_room(status));
        return;
    }
    allot_devptr at = {0};
    if (pin(a, &block, &at)) {
        CHECK(request.align == 0 || at.address % request.align == 0);
        write_pattern(a, &block, at);
        unpin(a, &block);
    }
    put(w, block);
}

/** A pinned block keeps its place and its bytes, whatever others do. */
static void hold_still(worker *w, const held_block *block)
{
    arena *const a = w->arena;
    allot_devptr first = {0};
    allot_devptr second = {0};
    if (!pin(a, block, &first)) {
        return;
    }
    sched_yield();
    check_pattern(a, block, first);
    if (CHECK(pin(a, block, &second))) {
        CHECK_EQ(first.address, second.address);
        unpin(a, block);
    }
    if (block->ptr.address == 0) {
        allot_block_info info = {0};
        CHECK_OK(allot_heap_get_block(a->heap, block->handle, &info));
        CHECK_EQ(info.ptr.address, first.address);
        CHECK_EQ(info.size_requested, block->size);
        CHECK_EQ(info.pin_count, 1);
        CHECK_EQ(allot_heap_free(a->heap, block->handle), ALLOT_STATUS_BUSY);
    }
    unpin(a, block);
}

static void use(worker *w, const held_block *block)
{
    const allot_stream stream = w->arena->streams[draw(w, 0, STREAMS - 1)];
    CHECK_OK(block->ptr.address != 0 ? allot_heap_use_pointer(w->arena->heap, block->ptr, stream)
                                     : allot_heap_use(w->arena->heap, block->handle, stream));
}

static void resize(worker *w, held_block *block)
{
    arena *const a = w->arena;
    const uint64_t size = draw_size(w);
    if (block->ptr.address != 0) {
        return;
    }
    const allot_status status = allot_heap_resize(a->heap, block->handle, size);
    if (status != ALLOT_STATUS_OK) {
        CHECK(is_no_room(status) || (status == ALLOT_STATUS_NOT_FOUND && block->flags != 0));
        return;
    }
    const uint64_t old = block->size;
    allot_devptr at = {0};
    block->size = size < old ? size : old;
    if (pin(a, block, &at)) {
        check_pattern(a, block, at);
        block->size = size;
        write_pattern(a, block, at);
        unpin(a, block);
    }
    block->size = size;
}

static void step_block(worker *w)
{
    held_block block = take(w);
    if (block.size == 0) {
        step_alloc(w);
        return;
    }
    switch (draw(w, 0, 7)) {
    case 0:
        use(w, &block);
        break;
    case 1:
    case 2:
        resize(w, &block);
        break;
    case 3:
    case 4:
        hold_still(w, &block);
        break;
    default:
        free_block(w->arena, &block);
        return;
    }
    put(w, block);
}

/** All at once at one handle: whatever they ask, one free succeeds, and nothing else breaks. */
static void step_contested(worker *w)
{
    arena *const a = w->arena;
    _Atomic uint64_t *const place = &a->contested[draw(w, 0, CONTESTED - 1)];
    uint64_t value = *place;
    allot_handle handle = {value};
    if (value == 0) {
        const allot_request request = {.struct_size = sizeof request,
                                       .size = 4096,
                                       .flags = (uint32_t)draw(w, 0, 2),
                                       .stream = a->streams[draw_stream(w)]};
        if (allot_heap_alloc(a->heap, &request, &handle) != ALLOT_STATUS_OK) {
            return;
        }
        if (!atomic_compare_exchange_strong(place, &value, handle.value)) {
            CHECK_OK(allot_heap_free(a->heap, handle));
            return;
        }
        atomic_fetch_add(&a->contested_made, 1);
        return;
    }
    allot_devptr at = {0};
    allot_block_info info = {0};
    allot_status status = ALLOT_STATUS_OK;
    switch (draw(w, 0, 5)) {
    case 0:
        status = allot_heap_pin(a->heap, handle, &at);
        if (status == ALLOT_STATUS_OK) {
            CHECK_OK(allot_heap_unpin(a->heap, handle));
        }
        break;
    case 1:
        status = allot_heap_use(a->heap, handle, a->streams[draw(w, 0, STREAMS - 1)]);
        break;
    case 2:
        status = allot_heap_resize(a->heap, handle, draw(w, 1, 9000));
        break;
    case 3:
        status = allot_heap_get_block(a->heap, handle, &info);
        break;
    default:
        status = allot_heap_free(a->heap, handle);
        if (status == ALLOT_STATUS_OK) {
            atomic_fetch_add(&a->contested_freed, 1);
            atomic_store(place, 0);
        }
        break;
    }
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_INVALID ||
          status == ALLOT_STATUS_BUSY || status == ALLOT_STATUS_NOT_FOUND || is_no_room(status));
}

static void step_pool(worker *w)
{
    arena *const a = w->arena;
    _Atomic uint64_t *const place = &a->pools[draw(w, 0, POOLS - 1)];
    const allot_heap_pool_options options = {
        .struct_size = sizeof options,
        .strategy = (allot_space_strategy)draw(w, 0, ALLOT_SPACE_STRATEGY_ADAPTIVE),
        .limit = draw(w, 0, 1) == 0 ? 0 : UINT64_C(8) << 20,
        .is_shared_on_oom = draw(w, 0, 1) == 0};
    uint64_t value = *place;
    if (value == 0) {
        allot_heap_pool pool = {0};
        if (CHECK_OK(allot_heap_pool_create(a->heap, &options, &pool)) &&
            !atomic_compare_exchange_strong(place, &value, pool.value)) {
            const allot_status status = allot_heap_pool_destroy(a->heap, pool);
            CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BUSY);
        }
        return;
    }
    const allot_status status = allot_heap_pool_destroy(a->heap, (allot_heap_pool){value});
    if (status == ALLOT_STATUS_OK) {
        atomic_store(place, 0);
    }
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BUSY ||
          status == ALLOT_STATUS_INVALID);
}

/** A stream that comes and goes while others work. Its block outlives it. */
static void step_stream(worker *w)
{
    arena *const a = w->arena;
    allot_stream stream = {0};
    allot_handle handle = {0};
    if (!CHECK_OK(allot_device_stream_create(a->device, &stream))) {
        return;
    }
    const allot_request request = {
        .struct_size = sizeof request, .size = draw_size(w), .stream = stream};
    const allot_status status = allot_heap_alloc(a->heap, &request, &handle);
    CHECK_OK(allot_heap_end_stream(a->heap, stream));
    CHECK_OK(allot_device_stream_destroy(a->device, stream));
    if (status == ALLOT_STATUS_OK) {
        CHECK_OK(allot_heap_free(a->heap, handle));
    } else {
        CHECK(is_no_room(status));
    }
}

/* ---- looking ---- */

static bool see(void *context, const allot_block_info *block)
{
    worker *const w = context;
    if (block->size_requested != 0 && block->ptr.address != 0) {
        w->seen[w->seen_count++] = *block;
    }
    return w->seen_count < BLOCKS_SEEN_MAX;
}

static int by_address(const void *a, const void *b)
{
    const allot_block_info *const x = a;
    const allot_block_info *const y = b;
    return (x->ptr.address > y->ptr.address) - (x->ptr.address < y->ptr.address);
}

/** No two blocks overlap at any moment. */
static void step_walk(worker *w)
{
    w->seen_count = 0;
    CHECK_OK(allot_heap_walk(w->arena->heap, see, w));
    qsort(w->seen, w->seen_count, sizeof *w->seen, by_address);
    uint64_t overlaps = 0;
    for (uint32_t i = 1; i < w->seen_count; i++) {
        overlaps +=
            w->seen[i - 1].ptr.address + w->seen[i - 1].size_requested > w->seen[i].ptr.address;
    }
    CHECK_EQ(overlaps, 0);
}

static void step_other(worker *w)
{
    allot_heap *const heap = w->arena->heap;
    allot_heap_stats stats;
    allot_heap_failure failure;
    allot_status status = ALLOT_STATUS_OK;
    switch (draw(w, 0, 8)) {
    case 0:
        CHECK_OK(allot_heap_collect(heap));
        break;
    case 1:
        CHECK_OK(allot_heap_trim(heap, draw(w, 0, UINT64_C(32) << 20), NULL));
        break;
    case 2:
        status = allot_heap_set_limit(heap, draw(w, 8, 64) << 20);
        CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BUDGET);
        CHECK_OK(allot_heap_set_limit_soft(heap, draw(w, 0, 16) << 20));
        break;
    case 3:
        CHECK_OK(allot_heap_get_stats(heap, &stats));
        CHECK(stats.reserved_bytes.current <= stats.reserved_bytes.peak);
        break;
    case 4:
        status = allot_heap_get_stream_stats(heap, w->arena->streams[0], &stats);
        CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_NOT_FOUND);
        CHECK_OK(allot_heap_reset_peaks(heap));
        break;
    case 5:
        CHECK_OK(allot_heap_get_failure(heap, &failure));
        break;
    case 6:
        step_walk(w);
        break;
    case 7:
        step_stream(w);
        break;
    default:
        CHECK_OK(allot_heap_check(heap));
        break;
    }
}

/* ---- compacting ---- */

static bool refuse_some(void *context, const allot_compact_move *move)
{
    worker *const w = context;
    return move->size % 5 != w->number % 5;
}

static void run_plan(worker *w)
{
    arena *const a = w->arena;
    const allot_compact_plan_options goal = {.struct_size = sizeof goal,
                                             .bytes_max = draw(w, 0, 1) << draw(w, 12, 24)};
    const allot_compact_run_options how = {
        .struct_size = sizeof how, .before = refuse_some, .context = w};
    allot_compact_plan *plan = NULL;
    allot_compact_report report;
    if (!CHECK_OK(allot_compact_plan_create(a->heap, &goal, &plan))) {
        return;
    }
    CHECK_OK(allot_compact_plan_check(plan));
    sched_yield();
    CHECK_OK(allot_compact_plan_run(a->heap, plan, &how, &report));
    CHECK_EQ(report.moved + report.skipped, allot_compact_plan_count(plan));
    atomic_fetch_add(&a->moved, report.moved);
    allot_compact_plan_destroy(plan);
}

static void make_room(worker *w)
{
    arena *const a = w->arena;
    const allot_request request = {.struct_size = sizeof request,
                                   .size = draw(w, 1, UINT64_C(1) << 20),
                                   .stream = a->streams[draw_stream(w)]};
    const allot_status status = allot_compact_make_room(a->heap, &request, NULL);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_FRAGMENTED);
}

static void make_step(worker *w)
{
    arena *const a = w->arena;
    const allot_compactor_task_options task = {.struct_size = sizeof task,
                                               .priority = (int32_t)draw(w, 0, 3)};
    const allot_compactor_budget budget = {
        .struct_size = sizeof budget, .time_ns = draw(w, 0, 3) * 50000, .moves = 50};
    allot_compactor_step_report report;
    uint64_t id = 0;
    CHECK_OK(allot_compactor_add(a->compactor, &task, &id));
    const allot_status status = allot_compactor_step(a->compactor, &budget, &report);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BUSY);
    atomic_fetch_add(&a->moved, report.moved);
    if (draw(w, 0, 1) == 0) {
        const allot_status cancelled = allot_compactor_cancel(a->compactor, id);
        CHECK(cancelled == ALLOT_STATUS_OK || cancelled == ALLOT_STATUS_NOT_FOUND);
    }
}

static void step_compact(worker *w)
{
    switch (draw(w, 0, 3)) {
    case 0:
        run_plan(w);
        break;
    case 1:
        make_room(w);
        break;
    case 2:
        make_step(w);
        break;
    default:
        CHECK_OK(allot_compactor_poll(w->arena->compactor, NULL));
        break;
    }
}

static void *work(void *context)
{
    worker *const w = context;
    uint64_t steps = 0;
    while (now_ns() < w->arena->end_ns) {
        const uint64_t kind = draw(w, 0, 99);
        if (kind < 30) {
            step_alloc(w);
        } else if (kind < 80) {
            step_block(w);
        } else if (kind < 94) {
            step_contested(w);
        } else if (kind < 97) {
            step_pool(w);
        } else if (w->arena->compactor != NULL && kind == 97) {
            step_compact(w);
        } else {
            step_other(w);
        }
        steps++;
    }
    atomic_fetch_add(&w->arena->steps, steps);
    return NULL;
}

/* ---- heaps ---- */

static bool begin(arena *a, const char *device, const allot_heap_options *options)
{
    const char *const text = getenv("ALLOT_STRESS_MS");
    const uint64_t time_ms = text == NULL ? TIME_MS : strtoull(text, NULL, 10);
    memset(a, 0, sizeof *a);
    if (!CHECK_OK(allot_device_open(device, &a->device))) {
        return false;
    }
    allot_device_get_info(a->device, &a->info);
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(a->device, &a->streams[i]));
    }
    for (int i = 0; i < SLOTS; i++) {
        CHECK_EQ(pthread_mutex_init(&a->slots[i].mutex, NULL), 0);
    }
    a->end_ns = now_ns() + time_ms * UINT64_C(1000000);
    return CHECK_OK(allot_heap_create(a->device, options, &a->heap));
}

/** What is left is freed, and nothing is left then. */
static void end(arena *a)
{
    for (int i = 0; i < SLOTS; i++) {
        if (a->slots[i].block.size != 0) {
            free_block(a, &a->slots[i].block);
        }
        pthread_mutex_destroy(&a->slots[i].mutex);
    }
    for (int i = 0; i < CONTESTED; i++) {
        if (a->contested[i] != 0) {
            CHECK_OK(allot_heap_free(a->heap, (allot_handle){a->contested[i]}));
            a->contested_freed++;
        }
    }
    if (a->compactor != NULL) {
        CHECK(a->moved != 0);
        allot_compactor_destroy(a->compactor);
    }
    CHECK_EQ(a->contested_freed, a->contested_made);
    CHECK(a->contested_made != 0);
    CHECK_OK(allot_heap_check(a->heap));
    for (int i = 0; i < POOLS; i++) {
        if (a->pools[i] != 0) {
            CHECK_OK(allot_heap_pool_destroy(a->heap, (allot_heap_pool){a->pools[i]}));
        }
    }
    CHECK_OK(allot_heap_check(a->heap));
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_synchronize(a->device, a->streams[i]));
    }
    CHECK_OK(allot_heap_trim(a->heap, 0, NULL));
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(a->heap, &stats));
    CHECK_EQ(stats.allocation.current, 0);
    CHECK_EQ(stats.active_bytes.current, 0);
    CHECK_EQ(stats.reserved_bytes.current, 0);
    for (int i = 0; i < STREAMS; i++) {
        if (allot_heap_get_stream_stats(a->heap, a->streams[i], &stats) == ALLOT_STATUS_OK) {
            CHECK_EQ(stats.allocated_bytes.current, 0);
            CHECK_EQ(stats.reserved_bytes.current, 0);
            CHECK_EQ(stats.inactive_split_bytes.current, 0);
        }
    }
    allot_heap_destroy(a->heap);
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(a->device, a->streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(a->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(a->device);
}

static void attach_compactor(arena *a)
{
    const allot_compactor_policy policy = {
        .struct_size = sizeof policy, .fragmentation_high = 0.2, .pause_ns = 1000000};
    const allot_compactor_thread_options thread = {
        .struct_size = sizeof thread, .idle_ns = 10000, .step_ns = 100000};
    CHECK_OK(allot_compact_attach(a->heap, NULL));
    CHECK_OK(allot_compactor_create(a->heap, NULL, &a->compactor));
    CHECK_OK(allot_compactor_set_policy(a->compactor, &policy));
    CHECK_OK(allot_compactor_start(a->compactor, &thread));
}

static void run(const char *device, allot_heap_options options, bool compacts)
{
    static arena a;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    options.struct_size = sizeof options;
    options.segment_size = UINT64_C(2) << 20;
    options.reserve_size = UINT64_C(256) << 20;
    if (!begin(&a, device, &options)) {
        return;
    }
    if (compacts) {
        attach_compactor(&a);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.arena = &a,
                              .number = i,
                              .random = check_seed() + i,
                              .seen = calloc(BLOCKS_SEEN_MAX, sizeof *workers[i].seen)};
        REQUIRE(workers[i].seen != NULL);
        REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        free(workers[i].seen);
    }
    CHECK(a.steps != 0);
    end(&a);
}

#define SIMULATED "simulated,memory:96MiB"
#define HOST "host,memory:96MiB"

static void simulated_segments_stand_threads(void)
{
    run(SIMULATED, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS}, false);
}

static void simulated_segments_with_fronts_stand_threads(void)
{
    run(SIMULATED, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS, .front_size = 1 << 18},
        false);
}

static void simulated_virtual_memory_stands_threads(void)
{
    run(SIMULATED,
        (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL,
                             .strategy = ALLOT_SPACE_STRATEGY_TLSF},
        false);
}

static void simulated_virtual_memory_with_fronts_stands_threads(void)
{
    run(SIMULATED, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL, .front_size = 1 << 18},
        false);
}

static void host_segments_keep_bytes_of_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS}, false);
}

static void host_segments_with_fronts_keep_bytes_of_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS, .front_size = 1 << 18}, false);
}

static void host_virtual_memory_keeps_bytes_of_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL}, false);
}

static void host_virtual_memory_with_fronts_keeps_bytes_of_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL, .front_size = 1 << 18}, false);
}

static void debug_heaps_stand_threads(void)
{
    run(HOST, (allot_heap_options){.is_debug = true}, false);
}

static void host_segments_are_compacted_under_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS}, true);
}

static void host_segments_with_fronts_are_compacted_under_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS, .front_size = 1 << 18}, true);
}

static void adaptive_segments_are_compacted_under_threads(void)
{
    run(HOST,
        (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS,
                             .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE,
                             .front_size = 1 << 18},
        true);
}

static void host_virtual_memory_is_compacted_under_threads(void)
{
    run(HOST, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL}, true);
}

static void simulated_segments_are_compacted_under_threads(void)
{
    run(SIMULATED,
        (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS,
                             .strategy = ALLOT_SPACE_STRATEGY_TLSF},
        true);
}

static const check_test tests[] = {
    {"simulated_segments_stand_threads", simulated_segments_stand_threads},
    {"simulated_segments_with_fronts_stand_threads", simulated_segments_with_fronts_stand_threads},
    {"simulated_virtual_memory_stands_threads", simulated_virtual_memory_stands_threads},
    {"simulated_virtual_memory_with_fronts_stands_threads",
     simulated_virtual_memory_with_fronts_stands_threads},
    {"host_segments_keep_bytes_of_threads", host_segments_keep_bytes_of_threads},
    {"host_segments_with_fronts_keep_bytes_of_threads",
     host_segments_with_fronts_keep_bytes_of_threads},
    {"host_virtual_memory_keeps_bytes_of_threads", host_virtual_memory_keeps_bytes_of_threads},
    {"host_virtual_memory_with_fronts_keeps_bytes_of_threads",
     host_virtual_memory_with_fronts_keeps_bytes_of_threads},
    {"debug_heaps_stand_threads", debug_heaps_stand_threads},
    {"host_segments_are_compacted_under_threads", host_segments_are_compacted_under_threads},
    {"host_segments_with_fronts_are_compacted_under_threads",
     host_segments_with_fronts_are_compacted_under_threads},
    {"adaptive_segments_are_compacted_under_threads",
     adaptive_segments_are_compacted_under_threads},
    {"host_virtual_memory_is_compacted_under_threads",
     host_virtual_memory_is_compacted_under_threads},
    {"simulated_segments_are_compacted_under_threads",
     simulated_segments_are_compacted_under_threads},
};

CHECK_MAIN(tests)
