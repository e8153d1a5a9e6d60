/* SPDX-License-Identifier: MIT */
/* Threads that call at once, and the child of a fork(). */
#include "device/conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB (UINT64_C(1) << 10)

enum { THREADS = 4, ROUNDS = 40 };

typedef struct worker {
    const subject *s;
    unsigned number;
} worker;

static void run_threads(const subject *s, void *(*run)(void *))
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){s, i};
        CHECK_EQ(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static void *allocate_and_copy(void *context)
{
    const worker *const me = context;
    allot_device *const device = me->s->device;
    const allot_stream stream = must_create_stream(device);
    uint64_t state = check_seed() + me->number;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint64_t size = check_random_range(&state, 1, 256 * KIB);
        const uint8_t value = (uint8_t)(me->number * ROUNDS + i);
        const allot_devptr from = must_alloc(device, size);
        const allot_devptr to = must_alloc(device, size);
        CHECK_OK(allot_device_fill(device, stream, from, value, size));
        CHECK_OK(allot_device_copy(device, stream, to, from, size));
        const allot_event event = must_record(device, stream);
        CHECK(holds_value(me->s, stream, to, value, size));
        CHECK_OK(allot_device_event_synchronize(device, event));
        must_destroy_event(device, event);
        must_free(device, from, size);
        must_free(device, to, size);
    }
    must_destroy_stream(device, stream);
    return NULL;
}

void threads_call_at_once(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    run_threads(&s, allocate_and_copy);
    subject_end(&s);
}

static void *map_and_fill(void *context)
{
    const worker *const me = context;
    allot_device *const device = me->s->device;
    const uint64_t granule = me->s->info.granule;
    const allot_devptr range = must_reserve(device, 2 * granule);
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        const allot_devptr at = offset_by(range, i % 2 * granule);
        const allot_memory memory = must_create_memory(device, granule);
        CHECK_OK(allot_device_map(device, at, memory, granule));
        CHECK_OK(allot_device_fill(device, DEFAULT_STREAM, at, (uint8_t)me->number, granule));
        CHECK(holds_value(me->s, DEFAULT_STREAM, at, (uint8_t)me->number, granule));
        CHECK_OK(allot_device_unmap(device, at, granule));
        CHECK_OK(allot_device_memory_release(device, memory, granule));
    }
    CHECK_OK(allot_device_unreserve(device, range, 2 * granule));
    return NULL;
}

void threads_map_at_once(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    if (s.info.granule == 0) {
        check_skip("the device has no virtual memory");
    } else {
        run_threads(&s, map_and_fill);
    }
    subject_end(&s);
}

/** What several threads try to give back at the same moment, and how many succeeded. */
typedef struct contest {
    const subject *s;
    allot_devptr ptr; /**< KIB of plain memory. */
    allot_devptr range;
    allot_memory memory;
    pthread_barrier_t barrier;
    atomic_uint freed;
    atomic_uint unmapped;
    atomic_uint released;
    atomic_uint unreserved;
} contest;

/** Start together; a call that fails says that there is no such thing. */
static void note_try(contest *c, allot_status (*call)(contest *c), atomic_uint *count)
{
    (void)pthread_barrier_wait(&c->barrier);
    const allot_status status = call(c);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_INVALID);
    *count += status == ALLOT_STATUS_OK;
}

static allot_status try_free(contest *c)
{
    return allot_device_free(c->s->device, c->ptr, KIB);
}

static allot_status try_unmap(contest *c)
{
    return allot_device_unmap(c->s->device, c->range, c->s->info.granule);
}

static allot_status try_release(contest *c)
{
    return allot_device_memory_release(c->s->device, c->memory, c->s->info.granule);
}

static allot_status try_unreserve(contest *c)
{
    return allot_device_unreserve(c->s->device, c->range, c->s->info.granule);
}

static void *give_back(void *context)
{
    contest *const c = context;
    note_try(c, try_free, &c->freed);
    if (c->s->info.granule != 0) {
        note_try(c, try_unmap, &c->unmapped);
        note_try(c, try_release, &c->released);
        note_try(c, try_unreserve, &c->unreserved);
    }
    return NULL;
}

static void run_contest(const subject *s)
{
    pthread_t threads[THREADS];
    const bool is_virtual = s->info.granule != 0;
    contest c = {.s = s, .ptr = must_alloc(s->device, KIB)};
    if (is_virtual) {
        c.range = must_reserve(s->device, s->info.granule);
        c.memory = must_create_memory(s->device, s->info.granule);
        CHECK_OK(allot_device_map(s->device, c.range, c.memory, s->info.granule));
    }
    CHECK_EQ(pthread_barrier_init(&c.barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, give_back, &c), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(c.freed, 1);
    CHECK_EQ(c.unmapped, is_virtual);
    CHECK_EQ(c.released, is_virtual);
    CHECK_EQ(c.unreserved, is_virtual);
    CHECK_EQ(pthread_barrier_destroy(&c.barrier), 0);
}

void of_threads_that_give_back_the_same_one_does(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        run_contest(&s);
    }
    subject_end(&s);
}

/** What the child sees; 0 if all is as promised. */
static int child(const subject *s, allot_devptr ptr, allot_event event)
{
    allot_devptr other = {5};
    allot_stream stream = {5};
    const bool is_told =
        allot_device_alloc(s->device, KIB, &other) == ALLOT_STATUS_FORKED &&
        allot_device_free(s->device, ptr, KIB) == ALLOT_STATUS_FORKED &&
        allot_device_fill(s->device, DEFAULT_STREAM, ptr, 1, KIB) == ALLOT_STATUS_FORKED &&
        allot_device_event_query(s->device, event) == ALLOT_STATUS_FORKED &&
        allot_device_stream_create(s->device, &stream) == ALLOT_STATUS_FORKED &&
        allot_device_clock_ns(s->device) == 0;
    allot_device_destroy(s->device);
    allot_device_destroy(s->inner);
    return is_told && other.address == 5 && stream.value == 5 ? 0 : 1;
}

void a_forked_child_is_told(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, KIB);
    const allot_event event = must_record(s.device, DEFAULT_STREAM);
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(child(&s, ptr, event));
    }
    int ended = -1;
    CHECK_EQ(waitpid(pid, &ended, 0), pid);
    CHECK(WIFEXITED(ended));
    CHECK_EQ(WEXITSTATUS(ended), 0);
    CHECK_OK(allot_device_event_synchronize(s.device, event));
    write_pattern(&s, DEFAULT_STREAM, ptr, 6, KIB);
    CHECK(holds_pattern(&s, DEFAULT_STREAM, ptr, 6, KIB));
    must_destroy_event(s.device, event);
    must_free(s.device, ptr, KIB);
    subject_end(&s);
}
