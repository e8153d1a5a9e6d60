/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "measure/clock.h"
#include "measure/load.h"

/* A thread keeps this many blocks; between two looks at the clock it makes so many pairs. */
enum { LIVE = 64, PAIRS = 256, SIZE_LOG2_MIN = 10, SIZE_LOG2_MAX = 16 };

typedef struct worker {
    allot_heap *heap;
    allot_stream stream;
    uint64_t random;
    uint64_t pairs;
    allot_status status;
    const atomic_bool *ends;
    allot_handle live[LIVE];
} worker;

/** Free a block and get another one of a power of two, as repeated steps of training ask for. */
static allot_status replace(worker *w, allot_handle *place)
{
    const unsigned log2 =
        SIZE_LOG2_MIN + (unsigned)workload_below(&w->random, SIZE_LOG2_MAX - SIZE_LOG2_MIN + 1);
    const allot_request request = {
        .struct_size = sizeof request, .size = UINT64_C(1) << log2, .stream = w->stream};
    const allot_handle old = *place;
    *place = (allot_handle){0};
    const allot_status status = old.value == 0 ? ALLOT_STATUS_OK : allot_heap_free(w->heap, old);
    return status == ALLOT_STATUS_OK ? allot_heap_alloc(w->heap, &request, place) : status;
}

static void *work(void *context)
{
    worker *const w = context;
    while (w->status == ALLOT_STATUS_OK && !atomic_load_explicit(w->ends, memory_order_relaxed)) {
        for (int i = 0; i < PAIRS && w->status == ALLOT_STATUS_OK; i++) {
            w->status = replace(w, &w->live[workload_below(&w->random, LIVE)]);
        }
        w->pairs += PAIRS;
    }
    for (int i = 0; i < LIVE && w->status == ALLOT_STATUS_OK; i++) {
        w->status = w->live[i].value == 0 ? w->status : allot_heap_free(w->heap, w->live[i]);
    }
    return NULL;
}

static void sleep_ms(uint64_t time_ms)
{
    const struct timespec time = {.tv_sec = (time_t)(time_ms / 1000),
                                  .tv_nsec = (long)(time_ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

allot_status load_threads(allot_heap *heap, const allot_stream *streams, uint32_t thread_count,
                          uint64_t time_ms, double *per_s)
{
    worker workers[LOAD_THREADS_MAX] = {0};
    pthread_t threads[LOAD_THREADS_MAX];
    atomic_bool ends = false;
    uint32_t started = 0;
    const double begin = measure_wall_ns();
    for (; started < thread_count && started < LOAD_THREADS_MAX; started++) {
        workers[started] =
            (worker){.heap = heap, .stream = streams[started], .random = started, .ends = &ends};
        if (pthread_create(&threads[started], NULL, work, &workers[started]) != 0) {
            break;
        }
    }
    sleep_ms(time_ms);
    atomic_store(&ends, true);
    uint64_t pairs = 0;
    allot_status status = started == thread_count ? ALLOT_STATUS_OK : ALLOT_STATUS_HOST_MEMORY;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        pairs += workers[i].pairs;
        status = status == ALLOT_STATUS_OK ? workers[i].status : status;
    }
    *per_s = (double)pairs / (measure_wall_ns() - begin) * 1e9;
    return status;
}
