/* SPDX-License-Identifier: MIT */
/* Bytes as calls of a heap and of its compaction, over a device that fails now and then; plans are
 * kept over other calls. After each call all invariants hold, and no byte of a block is lost. */
#include <allot/compactor.h>

#include <stdlib.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

enum { LIVE_MAX = 48, STREAMS = 2, PLANS = 3, STEPS_MAX = 200, EDGE = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct live_block {
    allot_handle handle;
    allot_devptr pinned; /**< 0: it is not. */
    uint64_t size;
    uint8_t value;
} live_block;

typedef struct program {
    const uint8_t *data;
    size_t size;
    allot_device *inner;
    allot_device *device;
    allot_heap *heap;
    allot_compactor *compactor;
    allot_stream streams[STREAMS];
    allot_compact_plan *plans[PLANS];
    live_block live[LIVE_MAX];
    uint32_t live_count;
} program;

static uint8_t next_byte(program *p)
{
    if (p->size == 0) {
        return 0;
    }
    p->size--;
    return *p->data++;
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

static void arm(program *p, uint64_t nth)
{
    const allot_failing_options options = {.struct_size = sizeof options,
                                           .nth = nth,
                                           .call_mask = UINT64_MAX,
                                           .status = nth % 2 == 0 ? ALLOT_STATUS_BACKEND
                                                                  : ALLOT_STATUS_DEVICE_MEMORY};
    must_be_ok(allot_failing_arm(p->device, &options));
}

/* ---- bytes ---- */

static uint64_t edge_of(const live_block *block)
{
    return block->size < EDGE ? block->size : EDGE;
}

/** The first and the last bytes. */
static void fill(program *p, const live_block *block)
{
    allot_devptr at = {0};
    const uint64_t edge = edge_of(block);
    must_be_ok(allot_heap_pin(p->heap, block->handle, &at));
    must_be_ok(allot_device_fill(p->inner, p->streams[0], at, block->value, edge));
    at.address += block->size - edge;
    must_be_ok(allot_device_fill(p->inner, p->streams[0], at, block->value, edge));
    must_be_ok(allot_heap_unpin(p->heap, block->handle));
}

static void must_hold(program *p, allot_devptr at, uint8_t value, uint64_t size)
{
    uint8_t bytes[EDGE];
    must_be_ok(allot_device_read(p->inner, p->streams[0], bytes, at, size));
    for (uint64_t i = 0; i < size; i++) {
        must(bytes[i] == value);
    }
}

static void verify(program *p)
{
    arm(p, 0);
    must_be_ok(allot_heap_check(p->heap));
    for (int i = 0; i < STREAMS; i++) {
        must_be_ok(allot_device_stream_synchronize(p->inner, p->streams[i]));
    }
    for (uint32_t i = 0; i < p->live_count; i++) {
        const live_block *const block = &p->live[i];
        allot_devptr at = {0};
        must_be_ok(allot_heap_pin(p->heap, block->handle, &at));
        must(block->pinned.address == 0 || block->pinned.address == at.address);
        must_hold(p, at, block->value, edge_of(block));
        at.address += block->size - edge_of(block);
        must_hold(p, at, block->value, edge_of(block));
        must_be_ok(allot_heap_unpin(p->heap, block->handle));
    }
}

/* ---- calls ---- */

static allot_request next_request(program *p)
{
    const uint8_t how = next_byte(p);
    return (allot_request){.struct_size = sizeof(allot_request),
                           .size = (uint64_t)(next_byte(p) + 1) << (how % 14),
                           .align = how / 64 == 3 ? UINT64_C(1) << (how % 22) : 0,
                           .stream = p->streams[how / 16 % STREAMS],
                           .tag = how % 3};
}

static void alloc(program *p)
{
    const allot_request request = next_request(p);
    live_block fresh = {.size = request.size, .value = (uint8_t)(p->size + 1)};
    if (p->live_count < LIVE_MAX &&
        allot_heap_alloc(p->heap, &request, &fresh.handle) == ALLOT_STATUS_OK) {
        p->live[p->live_count++] = fresh;
        arm(p, 0);
        fill(p, &fresh);
    }
}

static void free_one(program *p, live_block *block)
{
    const allot_status status = allot_heap_free(p->heap, block->handle);
    must(block->pinned.address == 0 || status == ALLOT_STATUS_BUSY);
    if (status == ALLOT_STATUS_OK) {
        *block = p->live[--p->live_count];
    }
}

static void touch(program *p, live_block *block, uint8_t how)
{
    if (how % 3 == 0 && block->pinned.address == 0) {
        must_be_ok(allot_heap_pin(p->heap, block->handle, &block->pinned));
    } else if (how % 3 == 0) {
        must_be_ok(allot_heap_unpin(p->heap, block->handle));
        block->pinned.address = 0;
    } else if (how % 3 == 1) {
        const allot_status status = allot_heap_use(p->heap, block->handle, p->streams[1]);
        must(status != ALLOT_STATUS_INVALID);
    } else {
        const uint64_t size = (uint64_t)(next_byte(p) + 1) << (how % 13);
        if (allot_heap_resize(p->heap, block->handle, size) == ALLOT_STATUS_OK) {
            arm(p, 0);
            block->size = size;
            fill(p, block);
        }
    }
}

static void change_plan(program *p, uint8_t how)
{
    allot_compact_plan **const plan = &p->plans[how % PLANS];
    allot_compact_report report = {0};
    if (*plan == NULL) {
        const allot_request request = next_request(p);
        const allot_compact_plan_options options = {.struct_size = sizeof options,
                                                    .goal = (allot_compact_goal)(how / 4 % 2),
                                                    .request = &request,
                                                    .bytes_max = how / 64 == 1 ? 256 * KIB : 0,
                                                    .moves_max = how / 64 == 2 ? 3 : 0};
        const allot_status status = allot_compact_plan_create(p->heap, &options, plan);
        must((status == ALLOT_STATUS_OK) == (*plan != NULL));
        must(*plan == NULL || allot_compact_plan_check(*plan) == ALLOT_STATUS_OK);
        return;
    }
    const allot_status status = allot_compact_plan_run(p->heap, *plan, NULL, &report);
    must(status != ALLOT_STATUS_OK ||
         report.moved + report.skipped == allot_compact_plan_count(*plan));
    if (how / 4 % 2 == 0) { /* else it is run again later */
        allot_compact_plan_destroy(*plan);
        *plan = NULL;
    }
}

static void compact_now(program *p, uint8_t how)
{
    const allot_request request = next_request(p);
    const allot_compactor_task_options task = {.struct_size = sizeof task,
                                               .goal = (allot_compact_goal)(how / 4 % 2),
                                               .request = &request,
                                               .priority = how % 3};
    const allot_compactor_budget budget = {.struct_size = sizeof budget, .moves = 1 + how % 7};
    uint64_t value = 0;
    if (how % 4 == 0) {
        must(allot_compact_make_room(p->heap, &request, &value) != ALLOT_STATUS_MISMATCH);
    } else if (how % 4 == 1) {
        must(allot_compactor_add(p->compactor, &task, &value) != ALLOT_STATUS_MISMATCH);
    } else if (how % 4 == 2) {
        must(allot_compactor_step(p->compactor, &budget, NULL) != ALLOT_STATUS_MISMATCH);
    } else {
        must(allot_heap_trim(p->heap, how * 16 * KIB, NULL) != ALLOT_STATUS_MISMATCH);
    }
}

static void step(program *p)
{
    const uint8_t what = next_byte(p);
    live_block *const any = p->live_count == 0 ? NULL : &p->live[what / 8 % p->live_count];
    switch (what % 8) {
    case 0:
    case 1:
        alloc(p);
        break;
    case 2:
    case 3:
        if (any != NULL) {
            free_one(p, any);
        }
        break;
    case 4:
        if (any != NULL) {
            touch(p, any, next_byte(p));
        }
        break;
    case 5:
        change_plan(p, next_byte(p));
        break;
    case 6:
        compact_now(p, next_byte(p));
        break;
    default:
        arm(p, what / 8);
        return;
    }
    verify(p);
}

static bool begin(program *p)
{
    const uint8_t how = next_byte(p);
    const allot_heap_options options = {
        .struct_size = sizeof options,
        .mode = (allot_heap_mode)(how % 3),
        .strategy = (allot_space_strategy)(how / 3 % (ALLOT_SPACE_STRATEGY_ADAPTIVE + 1)),
        .segment_size = 256 * KIB,
        .reserve_size = 4 * MIB,
        .limit = how / 128 == 0 ? 0 : 2 * MIB,
        .is_debug = how % 7 == 6,
        .front_size = how % 5 == 4 ? MIB : 0};
    if (allot_heap_create(p->device, &options, &p->heap) != ALLOT_STATUS_OK) {
        return false;
    }
    must_be_ok(allot_compact_attach(p->heap, NULL));
    must_be_ok(allot_compactor_create(p->heap, NULL, &p->compactor));
    return true;
}

static void end(program *p)
{
    arm(p, 0);
    allot_compactor_destroy(p->compactor);
    allot_heap_destroy(p->heap);
    for (int i = 0; i < PLANS; i++) {
        allot_compact_plan_destroy(p->plans[i]); /* may outlive the heap */
    }
    must_be_ok(allot_device_stream_destroy(p->device, p->streams[1]));
    allot_device_counts counts;
    allot_device_get_counts(p->device, &counts);
    must(counts.live_count == 0);
    allot_device_destroy(p->device);
    allot_device_destroy(p->inner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    program p = {.data = data, .size = size};
    must_be_ok(allot_device_open("host,memory:4MiB,granule:64KiB", &p.inner));
    must_be_ok(allot_device_open_failing(p.inner, NULL, &p.device));
    must_be_ok(allot_device_stream_create(p.device, &p.streams[1]));
    if (begin(&p)) {
        for (int i = 0; i < STEPS_MAX && p.size != 0; i++) {
            step(&p);
        }
    }
    end(&p);
    return 0;
}
