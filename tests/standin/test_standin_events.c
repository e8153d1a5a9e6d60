/* SPDX-License-Identifier: MIT */
/* Work is finished when the program waits for it: the order of streams, events and callbacks. */
#include <pthread.h>
#include <time.h>

#include "support/check.h"
#include "support/standin.h"

enum { NOT_READY = 600 };

static void load(void)
{
    standin_load("limit:1GiB,events:sync");
}

/** One piece of work. */
static void work(void *on)
{
    static void *place;
    if (place == NULL) {
        cuda.cudaMalloc(&place, 16);
    }
    CHECK_EQ(cuda.cudaMemsetAsync(place, 0, 16, on), 0);
}

static void an_event_is_ready_once_its_stream_was_waited_for(void)
{
    load();
    void *const s = standin_stream();
    void *const e = standin_event();
    CHECK_EQ(cuda.cudaEventQuery(e), 0); /* never recorded */
    work(s);
    CHECK_EQ(cuda.cudaEventRecord(e, s), 0);
    work(s);
    CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY);
    CHECK_EQ(cuda.cudaStreamQuery(s), NOT_READY);
    CHECK_EQ(cuda.cudaEventSynchronize(e), 0);
    CHECK_EQ(cuda.cudaEventQuery(e), 0);
    CHECK_EQ(cuda.cudaStreamQuery(s), NOT_READY);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(cuda.cudaStreamQuery(s), 0);
    CHECK_EQ(cuda.cudaEventDestroy(e), 0);
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0);
}

static void streams_do_not_finish_each_other(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const e = standin_event();
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(e, a), 0);
    work(b);
    CHECK_EQ(cuda.cudaStreamSynchronize(b), 0);
    CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(cuda.cudaEventQuery(e), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
}

static void order_passes_through_chains_of_streams(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const c = standin_stream();
    void *const first = standin_event();
    void *const second = standin_event();
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(first, a), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, first, 0), 0);
    CHECK_EQ(cuda.cudaEventRecord(second, b), 0);
    work(a); /* after the event: not waited for by anyone */
    CHECK_EQ(cuda.cudaStreamWaitEvent(c, second, 0), 0);
    work(c);
    CHECK_EQ(cuda.cudaStreamSynchronize(c), 0);
    CHECK_EQ(cuda.cudaEventQuery(second), 0);
    CHECK_EQ(cuda.cudaEventQuery(first), 0);
    CHECK_EQ(cuda.cudaStreamQuery(a), NOT_READY);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaStreamDestroy(c);
    cuda.cudaEventDestroy(first);
    cuda.cudaEventDestroy(second);
}

static void waiting_copies_the_event_as_it_was(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const e = standin_event();
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(e, a), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, e, 0), 0);
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(e, a), 0); /* recorded anew: b waits for the first */
    work(b);
    CHECK_EQ(cuda.cudaStreamSynchronize(b), 0);
    CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY);
    CHECK_EQ(cuda.cudaStreamSynchronize(a), 0);
    CHECK_EQ(cuda.cudaEventQuery(e), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
}

static void the_default_stream_orders_blocking_streams(void)
{
    load();
    void *blocking = NULL;
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&blocking, 0), 0);
    void *const apart = standin_stream();
    work(blocking);
    work(apart);
    work(NULL);
    CHECK_EQ(cuda.cudaStreamSynchronize(NULL), 0);
    CHECK_EQ(cuda.cudaStreamQuery(blocking), 0);
    CHECK_EQ(cuda.cudaStreamQuery(apart), NOT_READY);
    work(NULL);
    work(blocking);
    CHECK_EQ(cuda.cudaStreamSynchronize(blocking), 0);
    CHECK_EQ(cuda.cudaStreamQuery(NULL), 0);
    cuda.cudaStreamDestroy(blocking);
    cuda.cudaStreamDestroy(apart);
}

static void reading_into_plain_memory_waits_into_pinned_does_not(void)
{
    load();
    void *const s = standin_stream();
    void *device = NULL;
    void *pinned = NULL;
    char plain[16];
    REQUIRE(cuda.cudaMalloc(&device, 16) == 0);
    REQUIRE(cuda.cudaHostAlloc(&pinned, 16, 0) == 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(pinned, device, 16, 2, s), 0);
    CHECK_EQ(cuda.cudaStreamQuery(s), NOT_READY);
    CHECK_EQ(cuda.cudaMemcpyAsync(plain, device, 16, 2, s), 0);
    CHECK_EQ(cuda.cudaStreamQuery(s), 0);
    cuda.cudaFree(device);
    cuda.cudaFreeHost(pinned);
    cuda.cudaStreamDestroy(s);
}

static int called[8];
static int call_count;

static void note(void *number)
{
    called[call_count++ % 8] = (int)(intptr_t)number;
}

static void callbacks_run_in_order_when_their_place_is_reached(void)
{
    load();
    void *const s = standin_stream();
    void *const e = standin_event();
    call_count = 0;
    work(s);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, note, (void *)1), 0);
    CHECK_EQ(cuda.cudaEventRecord(e, s), 0);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, note, (void *)2), 0);
    CHECK_EQ(call_count, 0);
    CHECK_EQ(cuda.cudaEventSynchronize(e), 0);
    CHECK_EQ(call_count, 1);
    CHECK_EQ(called[0], 1);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(call_count, 2);
    CHECK_EQ(called[1], 2);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, note, (void *)3), 0);
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0);
    CHECK_EQ(call_count, 3);
    cuda.cudaEventDestroy(e);
}

static void freed_pool_memory_waits_for_its_stream(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const e = standin_event();
    void *first = NULL;
    void *other = NULL;
    void *again = NULL;
    REQUIRE(cuda.cudaMallocAsync(&first, STANDIN_MIB(4), a) == 0);
    CHECK_EQ(cuda.cudaFreeAsync(first, a), 0);
    REQUIRE(cuda.cudaMallocAsync(&other, STANDIN_MIB(4), b) == 0);
    CHECK(other != first); /* b does not know that a is done with it */
    CHECK_EQ(cuda.cudaEventRecord(e, a), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, e, 0), 0);
    REQUIRE(cuda.cudaMallocAsync(&again, STANDIN_MIB(4), b) == 0);
    CHECK(again == first);
    CHECK_EQ(cuda.cudaFreeAsync(again, b), 0);
    CHECK_EQ(cuda.cudaFreeAsync(other, b), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
}

/** Memory that one stream freed, asked for by another, with the attributes about reuse off and on.
 */
static void attributes_of_a_pool_say_what_is_used_again(void)
{
    load();
    enum { FOLLOW_EVENTS = 1, OPPORTUNISTIC = 2, INTERNAL = 3 };
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const size_t most = STANDIN_MIB(700); /* of 1 GiB: there is no room for two */
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const e = standin_event();
    void *pool = NULL;
    void *first = NULL;
    void *again = NULL;
    int off = 0;
    int on = 1;
    REQUIRE(cuda.cudaMemPoolCreate(&pool, &properties) == 0);
    for (int i = FOLLOW_EVENTS; i <= INTERNAL; i++) {
        CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, i, &off), 0);
    }
    REQUIRE(cuda.cudaMallocFromPoolAsync(&first, most, pool, a) == 0);
    CHECK_EQ(cuda.cudaFreeAsync(first, a), 0);
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&again, most, pool, a), 0); /* its own stream: always */
    CHECK_EQ(cuda.cudaFreeAsync(again, a), 0);
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&again, most, pool, b), 2);
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, INTERNAL, &on), 0);
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&again, most, pool, b), 0);
    CHECK(again == first);
    CHECK_EQ(cuda.cudaStreamSynchronize(b), 0);
    CHECK_EQ(cuda.cudaStreamQuery(a), 0); /* b was made to wait for a */
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, INTERNAL, &off), 0);
    CHECK_EQ(cuda.cudaFreeAsync(again, b), 0);
    CHECK_EQ(cuda.cudaEventRecord(e, b), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(a, e, 0), 0);
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&again, most, pool, a), 2);
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, FOLLOW_EVENTS, &on), 0);
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&again, most, pool, a), 0);
    CHECK_EQ(cuda.cudaFreeAsync(again, a), 0);
    CHECK_EQ(cuda.cudaMemPoolDestroy(pool), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
    cuda.cudaGetLastError();
}

static void wrong_handles_are_refused(void)
{
    load();
    uint64_t nothing[32] = {0};
    float milliseconds = 0;
    CHECK_EQ(cuda.cudaStreamSynchronize(nothing), 400);
    CHECK_EQ(cuda.cudaEventQuery(nothing), 400);
    CHECK_EQ(cuda.cudaEventQuery(NULL), 400);
    CHECK_EQ(cuda.cudaEventRecord(nothing, NULL), 400);
    CHECK_EQ(cuda.cudaEventElapsedTime(&milliseconds, nothing, nothing), 400);
    CHECK_EQ(cuda.cudaStreamDestroy(NULL), 400);
    cuda.cudaGetLastError();
}

/** Nothing but questions until the answer is yes; how often it was asked, at most 2,000 times. */
static int ask_until_ready(int (*ask)(void *), void *what)
{
    int asked = 0;
    while (asked < 2000 && ask(what) == NOT_READY) {
        asked++;
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return asked;
}

static void a_loop_that_only_asks_is_a_wait(void)
{
    load();
    void *const s = standin_stream();
    void *const e = standin_event();
    work(s);
    CHECK_EQ(cuda.cudaEventRecord(e, s), 0);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY); /* often, but between pieces of work */
        work(NULL);
    }
    const int asked = ask_until_ready(cuda.cudaEventQuery, e);
    CHECK(asked > 1 && asked < 2000);
    CHECK_EQ(cuda.cudaEventQuery(e), 0);
    work(s);
    CHECK(ask_until_ready(cuda.cudaStreamQuery, s) < 2000);
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0);
    CHECK_EQ(cuda.cudaEventDestroy(e), 0);
}

static void *watch(void *event_to_watch)
{
    CHECK_EQ(cuda.cudaEventQuery(event_to_watch), 0);
    return NULL;
}

static void a_thread_that_only_watches_sees_work_done(void)
{
    load();
    void *const s = standin_stream();
    void *const e = standin_event();
    pthread_t thread;
    work(s);
    CHECK_EQ(cuda.cudaEventRecord(e, s), 0);
    REQUIRE(pthread_create(&thread, NULL, watch, e) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY); /* and changes nothing by that */
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0);
    CHECK_EQ(cuda.cudaEventDestroy(e), 0);
}

static const check_test TESTS[] = {
    {"an_event_is_ready_once_its_stream_was_waited_for",
     an_event_is_ready_once_its_stream_was_waited_for},
    {"streams_do_not_finish_each_other", streams_do_not_finish_each_other},
    {"order_passes_through_chains_of_streams", order_passes_through_chains_of_streams},
    {"waiting_copies_the_event_as_it_was", waiting_copies_the_event_as_it_was},
    {"the_default_stream_orders_blocking_streams", the_default_stream_orders_blocking_streams},
    {"reading_into_plain_memory_waits_into_pinned_does_not",
     reading_into_plain_memory_waits_into_pinned_does_not},
    {"callbacks_run_in_order_when_their_place_is_reached",
     callbacks_run_in_order_when_their_place_is_reached},
    {"freed_pool_memory_waits_for_its_stream", freed_pool_memory_waits_for_its_stream},
    {"a_loop_that_only_asks_is_a_wait", a_loop_that_only_asks_is_a_wait},
    {"a_thread_that_only_watches_sees_work_done", a_thread_that_only_watches_sees_work_done},
    {"attributes_of_a_pool_say_what_is_used_again", attributes_of_a_pool_say_what_is_used_again},
    {"wrong_handles_are_refused", wrong_handles_are_refused},
};
CHECK_MAIN(TESTS)
