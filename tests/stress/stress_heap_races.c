/* SPDX-License-Identifier: MIT */
/*
 * Two threads at one handle in the same moment, again and again: each pair of calls. Whatever comes
 * first, one free succeeds, the other call is served or refused, and the heap is sound. Time-boxed:
 * on a busy machine each handing over may take long.
 */
#include <allot/heap.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "support/check.h"

enum { ROUNDS = 1500, SPINS = 64, TIME_MS = 120 };

typedef enum action {
    ACTION_FREE,
    ACTION_FREE_POINTER,
    ACTION_USE,
    ACTION_RESIZE,
    ACTION_PIN,
    ACTION_GET,
    ACTION_POOL_DESTROY, /**< Of the pool that the block is in. */
    ACTION_POOL_ALLOC,   /**< A second block in that pool. */
} action;

typedef struct race {
    allot_device *device;
    allot_heap *heap;
    allot_stream other; /**< A stream that is not the block's. */
    action actions[2];
    allot_handle handle;
    allot_devptr ptr;
    allot_heap_pool pool;
    allot_handle second;    /**< Of ACTION_POOL_ALLOC; 0 if it was refused. */
    allot_status status[2]; /**< What the two calls returned. */
    atomic_int round;       /**< What to do; -1: nothing more. */
    atomic_int done;        /**< Rounds that the second thread has done. */
} race;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static allot_status pin_and_unpin(race *r)
{
    allot_devptr at = {0};
    const allot_status status = allot_heap_pin(r->heap, r->handle, &at);
    return status == ALLOT_STATUS_OK ? allot_heap_unpin(r->heap, r->handle) : status;
}

static allot_status act(race *r, action what)
{
    allot_block_info info;
    const allot_request request = {.struct_size = sizeof request, .size = 2048, .pool = r->pool};
    switch (what) {
    case ACTION_FREE:
        return allot_heap_free(r->heap, r->handle);
    case ACTION_FREE_POINTER:
        return allot_heap_free_pointer(r->heap, r->ptr);
    case ACTION_USE:
        return allot_heap_use(r->heap, r->handle, r->other);
    case ACTION_RESIZE:
        return allot_heap_resize(r->heap, r->handle, 4096);
    case ACTION_PIN:
        return pin_and_unpin(r);
    case ACTION_GET:
        return allot_heap_get_block(r->heap, r->handle, &info);
    case ACTION_POOL_DESTROY:
        return allot_heap_pool_destroy(r->heap, r->pool);
    case ACTION_POOL_ALLOC:
        return allot_heap_alloc(r->heap, &request, &r->second);
    }
    return ALLOT_STATUS_INVALID;
}

static void *second(void *context)
{
    race *const r = context;
    for (int round = 1;; round++) {
        int now = atomic_load(&r->round);
        for (int spins = 0; now != round && now != -1; now = atomic_load(&r->round)) {
            if (++spins % SPINS == 0) {
                sched_yield();
            }
        }
        if (now == -1) {
            return NULL;
        }
        r->status[1] = act(r, r->actions[1]);
        atomic_store(&r->done, round);
    }
}

/** One block for the two, freed afterwards if neither did. */
static void run_round(race *r, int round)
{
    const bool is_pointer = r->actions[0] == ACTION_FREE_POINTER;
    const bool has_pool = r->actions[0] == ACTION_POOL_DESTROY;
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    r->pool = (allot_heap_pool){0};
    r->second = (allot_handle){0};
    if (has_pool) {
        CHECK_OK(allot_heap_pool_create(r->heap, &options, &r->pool));
    }
    const allot_request request = {.struct_size = sizeof request, .size = 2048, .pool = r->pool};
    if (is_pointer) {
        CHECK_OK(allot_heap_alloc_pointer(r->heap, &request, &r->ptr));
        CHECK_OK(allot_heap_find(r->heap, r->ptr, &r->handle));
    } else {
        CHECK_OK(allot_heap_alloc(r->heap, &request, &r->handle));
    }
    if (has_pool) {
        CHECK_OK(allot_heap_free(r->heap, r->handle)); /* to the front, from where it may come */
    }
    atomic_store(&r->round, round);
    r->status[0] = act(r, r->actions[0]);
    while (atomic_load(&r->done) != round) {
        sched_yield();
    }
}

/** What is left of a block, and whether one free of it succeeded in all. */
static void end_round(race *r)
{
    const bool is_free[2] = {r->actions[0] <= ACTION_FREE_POINTER,
                             r->actions[1] <= ACTION_FREE_POINTER};
    uint64_t freed = 0;
    for (int i = 0; i < 2; i++) {
        freed += is_free[i] && r->status[i] == ALLOT_STATUS_OK;
        CHECK(r->status[i] == ALLOT_STATUS_OK || r->status[i] == ALLOT_STATUS_INVALID ||
              r->status[i] == ALLOT_STATUS_BUSY);
    }
    if (freed == 0) {
        freed += allot_heap_free(r->heap, r->handle) == ALLOT_STATUS_OK;
    }
    CHECK_EQ(freed, 1);
    CHECK_EQ(allot_heap_free(r->heap, r->handle), ALLOT_STATUS_INVALID);
}

/** Either the pool is gone, or it has the second block. */
static void end_pool_round(race *r)
{
    if (r->status[0] == ALLOT_STATUS_OK) {
        CHECK_EQ(r->status[1], ALLOT_STATUS_INVALID);
        return;
    }
    CHECK_EQ(r->status[0], ALLOT_STATUS_BUSY);
    CHECK_OK(r->status[1]);
    CHECK_OK(allot_heap_free(r->heap, r->second));
    CHECK_OK(allot_heap_pool_destroy(r->heap, r->pool));
}

static void run(action first, action other, uint64_t front_size)
{
    static race r;
    const allot_heap_options options = {.struct_size = sizeof options, .front_size = front_size};
    pthread_t thread;
    r = (race){.actions = {first, other}};
    REQUIRE_OK(allot_device_open("null", &r.device));
    REQUIRE_OK(allot_device_stream_create(r.device, &r.other));
    REQUIRE_OK(allot_heap_create(r.device, &options, &r.heap));
    REQUIRE(pthread_create(&thread, NULL, second, &r) == 0);
    const uint64_t end_ms = now_ms() + TIME_MS;
    for (int round = 1; round <= ROUNDS && now_ms() < end_ms; round++) {
        run_round(&r, round);
        if (first == ACTION_POOL_DESTROY) {
            end_pool_round(&r);
        } else {
            end_round(&r);
        }
    }
    atomic_store(&r.round, -1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(allot_heap_collect(r.heap));
    CHECK_OK(allot_heap_check(r.heap));
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(r.heap, &stats));
    CHECK_EQ(stats.allocation.current, 0);
    CHECK_EQ(stats.active.current, 0);
    allot_heap_destroy(r.heap);
    CHECK_OK(allot_device_stream_destroy(r.device, r.other));
    allot_device_destroy(r.device);
}

static void run_both(action first, action other)
{
    run(first, other, 0);
    run(first, other, 1 << 20);
}

static void one_of_two_frees_succeeds(void)
{
    run_both(ACTION_FREE, ACTION_FREE);
}

static void one_of_two_frees_of_a_pointer_succeeds(void)
{
    run_both(ACTION_FREE_POINTER, ACTION_FREE_POINTER);
}

static void a_free_and_a_use_at_once(void)
{
    run_both(ACTION_FREE, ACTION_USE);
}

static void a_free_and_a_resize_at_once(void)
{
    run_both(ACTION_FREE, ACTION_RESIZE);
}

static void a_free_and_a_pin_at_once(void)
{
    run_both(ACTION_FREE, ACTION_PIN);
}

static void a_free_and_a_look_at_once(void)
{
    run_both(ACTION_FREE, ACTION_GET);
}

static void a_resize_and_a_pin_at_once(void)
{
    run_both(ACTION_RESIZE, ACTION_PIN);
}

static void two_resizes_at_once(void)
{
    run_both(ACTION_RESIZE, ACTION_RESIZE);
}

static void a_pool_is_destroyed_or_has_a_block(void)
{
    run_both(ACTION_POOL_DESTROY, ACTION_POOL_ALLOC);
}

static const check_test tests[] = {
    {"one_of_two_frees_succeeds", one_of_two_frees_succeeds},
    {"one_of_two_frees_of_a_pointer_succeeds", one_of_two_frees_of_a_pointer_succeeds},
    {"a_free_and_a_use_at_once", a_free_and_a_use_at_once},
    {"a_free_and_a_resize_at_once", a_free_and_a_resize_at_once},
    {"a_free_and_a_pin_at_once", a_free_and_a_pin_at_once},
    {"a_free_and_a_look_at_once", a_free_and_a_look_at_once},
    {"a_resize_and_a_pin_at_once", a_resize_and_a_pin_at_once},
    {"two_resizes_at_once", two_resizes_at_once},
    {"a_pool_is_destroyed_or_has_a_block", a_pool_is_destroyed_or_has_a_block},
};

CHECK_MAIN(tests)
