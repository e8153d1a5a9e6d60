/* SPDX-License-Identifier: MIT */
/* Bytes as options and calls of a heap over a device that fails now and then: after each call all
 * invariants hold, and in the end the device has everything back. */
#include <allot/heap.h>

#include <stdlib.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

enum { LIVE_MAX = 64, STREAMS = 4, POOLS = 3, STEPS_MAX = 400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

typedef struct live_block {
    allot_handle handle;
    allot_devptr ptr; /**< 0: a handle. */
    uint32_t pins;
} live_block;

typedef struct program {
    input in;
    allot_device *inner;
    allot_device *device;
    allot_heap *heap;
    allot_stream streams[STREAMS];
    allot_heap_pool pools[POOLS]; /**< [0]: the default pool. */
    live_block live[LIVE_MAX];
    uint32_t live_count;
    uint32_t event_delay;
} program;

static uint8_t next_byte(input *in)
{
    if (in->size == 0) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

/** From 0 bytes to a few MiB, and now and then absurd. */
static uint64_t next_size(input *in)
{
    const uint8_t low = next_byte(in);
    const uint8_t shift = next_byte(in);
    return shift == 255 ? UINT64_MAX - low : (uint64_t)low << (shift % 15);
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void must_be_ok(allot_status status)
{
    must(status == ALLOT_STATUS_OK);
}

static bool press(void *context, allot_heap *heap, uint64_t needed)
{
    program *const p = context;
    (void)needed;
    const uint8_t what = next_byte(&p->in);
    if (what % 3 != 0 || p->live_count == 0) {
        return what % 3 == 1 && p->in.size != 0;
    }
    const live_block *const last = &p->live[p->live_count - 1];
    const allot_status status = last->ptr.address != 0 ? allot_heap_free_pointer(heap, last->ptr)
                                                       : allot_heap_free(heap, last->handle);
    p->live_count -= status == ALLOT_STATUS_OK;
    return status == ALLOT_STATUS_OK;
}

static bool open_heap(program *p)
{
    const uint8_t how = next_byte(&p->in);
    const uint8_t more = next_byte(&p->in);
    const allot_heap_options options = {
        .struct_size = sizeof options,
        .mode = (allot_heap_mode)(how % 3),
        .strategy = (allot_space_strategy)(how / 3 % (ALLOT_SPACE_STRATEGY_ADAPTIVE + 1)),
        .segment_size = 1 * MIB,
        .reserve_size = 4 * MIB,
        .limit_soft = (more & 1) != 0 ? 3 * MIB : 0,
        .limit = (more & 2) != 0 ? 6 * MIB + more : 0,
        .pressure = (more & 4) != 0 ? press : NULL,
        .pressure_context = p,
        .is_debug = (more & 24) == 8,
        .scrub = (more & 24) == 16   ? ALLOT_HEAP_SCRUB_REUSE
                 : (more & 24) == 24 ? ALLOT_HEAP_SCRUB_FREE
                                     : ALLOT_HEAP_SCRUB_NEVER,
        .front_size = (more & 32) != 0 ? 1 * MIB : 0};
    p->event_delay = (more & 64) != 0 ? 5 : 0;
    return allot_heap_create(p->device, &options, &p->heap) == ALLOT_STATUS_OK;
}

static void arm(program *p, uint64_t nth, uint64_t every)
{
    const allot_failing_options options = {.struct_size = sizeof options,
                                           .nth = nth,
                                           .every = every,
                                           .call_mask = UINT64_MAX,
                                           .status = (nth + every) % 3 == 0 ? ALLOT_STATUS_OK
                                                     : (nth + every) % 3 == 1
                                                         ? ALLOT_STATUS_BACKEND
                                                         : ALLOT_STATUS_DEVICE_MEMORY,
                                           .event_delay = p->event_delay,
                                           .seed = nth};
    must_be_ok(allot_failing_arm(p->device, &options));
}

static allot_status alloc(program *p, uint8_t what)
{
    const uint8_t how = next_byte(&p->in);
    const allot_request request = {
        .struct_size = sizeof request,
        .size = next_size(&p->in),
        .align = how % 8 == 7 ? UINT64_C(1) << (how / 8) : 0,
        .stream = p->streams[how % STREAMS],
        .pool = p->pools[what / 8 % POOLS],
        .flags = how / 32 % 4,
        .priority = how % 5 - 2,
        .tag = how % 3,
        .owner = what / 32,
    };
    live_block fresh = {{0}, {0}, 0};
    if (p->live_count == LIVE_MAX) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = what % 2 == 0
                                    ? allot_heap_alloc(p->heap, &request, &fresh.handle)
                                    : allot_heap_alloc_pointer(p->heap, &request, &fresh.ptr);
    must((fresh.handle.value != 0 || fresh.ptr.address != 0) == (status == ALLOT_STATUS_OK));
    if (status == ALLOT_STATUS_OK && p->live_count < LIVE_MAX) {
        p->live[p->live_count++] = fresh;
    } else if (status == ALLOT_STATUS_OK) {
        must(false); /* the callback only frees */
    }
    return status;
}

static allot_status free_one(program *p, live_block *block)
{
    const allot_status status = block->ptr.address != 0
                                    ? allot_heap_free_pointer(p->heap, block->ptr)
                                    : allot_heap_free(p->heap, block->handle);
    must(block->pins == 0 || status != ALLOT_STATUS_OK);
    if (status == ALLOT_STATUS_OK) {
        *block = p->live[--p->live_count];
    }
    return status;
}

static allot_status touch(program *p, live_block *block, uint8_t what)
{
    allot_devptr at = {0};
    allot_handle handle = block->handle;
    if (block->ptr.address != 0) {
        must_be_ok(allot_heap_find(p->heap, block->ptr, &handle));
    }
    switch (what / 8 % 4) {
    case 0: {
        const allot_status status = allot_heap_pin(p->heap, handle, &at);
        block->pins += status == ALLOT_STATUS_OK;
        must(status != ALLOT_STATUS_OK || block->ptr.address == 0 ||
             at.address == block->ptr.address);
        return status;
    }
    case 1:
        if (block->pins == 0) {
            must(allot_heap_unpin(p->heap, handle) == ALLOT_STATUS_INVALID);
            return ALLOT_STATUS_INVALID;
        }
        block->pins--;
        must_be_ok(allot_heap_unpin(p->heap, handle));
        return ALLOT_STATUS_OK;
    case 2:
        return allot_heap_use(p->heap, handle, p->streams[what / 32 % STREAMS]);
    default:
        return allot_heap_resize(p->heap, handle, next_size(&p->in));
    }
}

static allot_status change_pool(program *p, uint8_t what)
{
    allot_heap_pool *const pool = &p->pools[1 + what / 8 % (POOLS - 1)];
    if (pool->value != 0) {
        const allot_status status = allot_heap_pool_destroy(p->heap, *pool);
        pool->value = status == ALLOT_STATUS_OK ? 0 : pool->value;
        return status;
    }
    const allot_heap_pool_options options = {
        .struct_size = sizeof options,
        .strategy = (allot_space_strategy)(what / 16 % (ALLOT_SPACE_STRATEGY_ADAPTIVE + 1)),
        .limit = what % 3 == 0 ? 2 * MIB : 0,
        .is_shared_on_oom = what % 2 == 0};
    return allot_heap_pool_create(p->heap, &options, pool);
}

/** A stream ends, and another one takes its place. */
static allot_status change_stream(program *p, uint8_t what)
{
    allot_stream *const stream = &p->streams[1 + what / 8 % (STREAMS - 1)];
    const allot_status status = allot_heap_end_stream(p->heap, *stream);
    if (status == ALLOT_STATUS_OK) {
        must_be_ok(allot_failing_arm(p->device, NULL));
        must_be_ok(allot_device_stream_destroy(p->device, *stream));
        must_be_ok(allot_device_stream_create(p->device, stream));
        arm(p, 0, 0);
    }
    return status;
}

static allot_status manage(program *p, uint8_t what)
{
    switch (what / 8 % 8) {
    case 0:
        return allot_heap_collect(p->heap);
    case 1:
        return allot_heap_trim(p->heap, next_byte(&p->in) * 64 * KIB, NULL);
    case 2:
        return allot_heap_set_limit(p->heap, next_byte(&p->in) * 64 * KIB);
    case 3:
        return allot_heap_set_limit_soft(p->heap, next_byte(&p->in) * 64 * KIB);
    case 4:
        return allot_simulated_run(p->inner, p->streams[what / 64], 100000);
    case 5:
        return allot_simulated_advance(p->inner, 50000);
    case 6:
        return allot_heap_record(p->heap, next_byte(&p->in));
    default:
        return change_stream(p, next_byte(&p->in));
    }
}

static void step(program *p)
{
    const uint8_t what = next_byte(&p->in);
    live_block *const any = p->live_count == 0 ? NULL : &p->live[what / 8 % p->live_count];
    allot_status status = ALLOT_STATUS_OK;
    switch (what % 8) {
    case 0:
    case 1:
        status = alloc(p, what);
        break;
    case 2:
    case 3:
        status = any == NULL ? status : free_one(p, any);
        break;
    case 4:
        status = any == NULL ? status : touch(p, any, next_byte(&p->in));
        break;
    case 5:
        status = change_pool(p, what);
        break;
    case 6:
        status = manage(p, what);
        break;
    default:
        arm(p, what / 8 % 8, what / 64);
        break;
    }
    /* Any call may fail; none may break anything. */
    (void)status;
    must_be_ok(allot_heap_check(p->heap));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    program p = {.in = {.data = data, .size = size}};
    must_be_ok(allot_device_open("simulated,memory:12MiB,granule:256KiB", &p.inner));
    must_be_ok(allot_device_open_failing(p.inner, NULL, &p.device));
    for (int i = 1; i < STREAMS; i++) {
        must_be_ok(allot_device_stream_create(p.device, &p.streams[i]));
    }
    if (open_heap(&p)) {
        arm(&p, 0, 0);
        for (int i = 0; i < STEPS_MAX && p.in.size != 0; i++) {
            step(&p);
        }
        arm(&p, 0, 0);
        allot_heap_destroy(p.heap);
    }
    for (int i = 1; i < STREAMS; i++) {
        must_be_ok(allot_device_stream_destroy(p.device, p.streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(p.device, &counts);
    must(counts.live_count == 0);
    allot_device_destroy(p.device);
    allot_device_destroy(p.inner);
    return 0;
}
