/* SPDX-License-Identifier: MIT */
#include "device/order_program.h"

#include <allot/compact.h>
#include <stdlib.h>

#include "support/check.h"

enum { STREAMS = 4, BLOCKS = 40, PIECE = 512, PIECES = 1 << 14, CHAIN = 4 };

/** A block, and what it should hold from its begin. */
typedef struct order_block {
    allot_handle handle;
    allot_devptr ptr; /**< Of pointers; 0 for handles. */
    uint64_t size;
    uint32_t own; /**< Stream that it was asked for on. */
    uint32_t at;  /**< Stream that uses it now. */
    uint8_t value;
} order_block;

typedef struct program {
    allot_device *device;
    allot_heap *heap;
    allot_stream streams[STREAMS]; /**< [0] is the default stream. */
    order_block blocks[BLOCKS];
    uint32_t count;
    uint64_t random;
    allot_devptr log;
    uint8_t expected[PIECES]; /**< [piece_count] */
    uint32_t piece_count;
} program;

static uint64_t draw(program *p, uint64_t low, uint64_t high)
{
    return check_random_range(&p->random, low, high);
}

/* ---- streams ---- */

static void order_after(program *p, uint32_t first, uint32_t second)
{
    allot_event event = {0};
    CHECK_OK(allot_device_event_create(p->device, &event));
    CHECK_OK(allot_device_event_record(p->device, event, p->streams[first]));
    CHECK_OK(allot_device_stream_wait(p->device, p->streams[second], event));
    CHECK_OK(allot_device_event_destroy(p->device, event));
}

/** From now on another stream uses a block. */
static void hand_to(program *p, order_block *block, uint32_t stream)
{
    if (block->at == stream) {
        return;
    }
    order_after(p, block->at, stream);
    CHECK_OK(block->ptr.address != 0
                 ? allot_heap_use_pointer(p->heap, block->ptr, p->streams[stream])
                 : allot_heap_use(p->heap, block->handle, p->streams[stream]));
    block->at = stream;
}

/* ---- blocks ---- */

static allot_devptr pin(program *p, const order_block *block)
{
    allot_devptr at = block->ptr;
    if (at.address == 0) {
        CHECK_OK(allot_heap_pin(p->heap, block->handle, &at));
    }
    return at;
}

static void unpin(program *p, const order_block *block)
{
    if (block->ptr.address == 0) {
        CHECK_OK(allot_heap_unpin(p->heap, block->handle));
    }
}

static void fill(program *p, order_block *block)
{
    const allot_devptr at = pin(p, block);
    for (uint64_t i = draw(p, 1, CHAIN); i > 0; i--) {
        block->value = (uint8_t)draw(p, 1, 255);
        CHECK_OK(
            allot_device_fill(p->device, p->streams[block->at], at, block->value, block->size));
    }
    unpin(p, block);
}

/** Copy a piece at `offset` of a block to the log. */
static void log_piece(program *p, const order_block *block, allot_devptr at, uint64_t offset)
{
    if (p->piece_count < PIECES) {
        const allot_devptr to = {p->log.address + (uint64_t)p->piece_count * PIECE};
        const allot_devptr from = {at.address + offset};
        CHECK_OK(allot_device_copy(p->device, p->streams[block->at], to, from, PIECE));
        p->expected[p->piece_count++] = block->value;
    }
}

/** Both ends of the first `size` bytes of a block. */
static void log_block(program *p, const order_block *block, uint64_t size)
{
    const allot_devptr at = pin(p, block);
    log_piece(p, block, at, 0);
    log_piece(p, block, at, size - PIECE);
    unpin(p, block);
}

static void free_block(program *p, uint32_t i)
{
    const order_block block = p->blocks[i];
    CHECK_OK(block.ptr.address != 0 ? allot_heap_free_pointer(p->heap, block.ptr)
                                    : allot_heap_free(p->heap, block.handle));
    p->blocks[i] = p->blocks[--p->count];
}

/* ---- steps ---- */

static uint64_t draw_size(program *p)
{
    return UINT64_C(4096) << draw(p, 0, 6);
}

static void step_get(program *p)
{
    order_block block = {.size = draw_size(p), .own = (uint32_t)draw(p, 0, STREAMS - 1)};
    const allot_request request = {.struct_size = sizeof request,
                                   .size = block.size,
                                   .stream = p->streams[block.own],
                                   .owner = (uint32_t)draw(p, 0, 1)};
    const allot_status status = draw(p, 0, 1) == 0
                                    ? allot_heap_alloc(p->heap, &request, &block.handle)
                                    : allot_heap_alloc_pointer(p->heap, &request, &block.ptr);
    if (status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_BUDGET) {
        free_block(p, (uint32_t)draw(p, 0, p->count - 1));
        return;
    }
    if (CHECK_OK(status)) {
        block.at = block.own;
        fill(p, &block);
        p->blocks[p->count++] = block;
    }
}

static void step_resize(program *p, order_block *block)
{
    const uint64_t old = block->size;
    const uint64_t size = draw_size(p);
    if (block->ptr.address != 0) {
        return;
    }
    const allot_status status = allot_heap_resize(p->heap, block->handle, size);
    if (status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_BUDGET) {
        return;
    }
    CHECK_OK(status);
    block->size = size;
    hand_to(p, block, block->own);
    log_block(p, block, size < old ? size : old);
    fill(p, block);
}

/** Copy a block to one of the same size, on a stream that uses both from now on. */
static void step_copy(program *p, order_block *from)
{
    order_block *const to = &p->blocks[draw(p, 0, p->count - 1)];
    if (to == from || to->size != from->size) {
        return;
    }
    hand_to(p, to, from->at);
    const allot_devptr source = pin(p, from);
    const allot_devptr target = pin(p, to);
    CHECK_OK(allot_device_copy(p->device, p->streams[from->at], target, source, from->size));
    unpin(p, from);
    unpin(p, to);
    to->value = from->value;
}

/** A stream ends, and a new one takes its place. */
static void step_end_stream(program *p)
{
    const uint32_t stream = (uint32_t)draw(p, 1, STREAMS - 1);
    CHECK_OK(allot_heap_end_stream(p->heap, p->streams[stream]));
    CHECK_OK(allot_device_stream_destroy(p->device, p->streams[stream]));
    CHECK_OK(allot_device_stream_create(p->device, &p->streams[stream]));
    for (uint32_t i = 0; i < p->count; i++) {
        order_block *const block = &p->blocks[i];
        block->own = block->own == stream ? 0 : block->own;
        block->at = block->at == stream ? block->own : block->at;
    }
}

static void step_other(program *p)
{
    allot_request request = {.struct_size = sizeof request,
                             .size = draw_size(p),
                             .stream = p->streams[draw(p, 0, STREAMS - 1)]};
    allot_status status = ALLOT_STATUS_OK;
    switch (draw(p, 0, 7)) {
    case 0:
        CHECK_OK(allot_heap_trim(p->heap, draw(p, 0, UINT64_C(8) << 20), NULL));
        break;
    case 1:
        step_end_stream(p);
        break;
    case 2:
    case 3:
        status = allot_compact_make_room(p->heap, &request, NULL);
        CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_FRAGMENTED);
        break;
    default:
        CHECK_OK(allot_heap_collect(p->heap));
        break;
    }
}

static void step(program *p)
{
    const uint64_t kind = draw(p, 0, 99);
    if (p->count == 0 || (kind < 35 && p->count < BLOCKS)) {
        step_get(p);
        return;
    }
    const uint32_t i = (uint32_t)draw(p, 0, p->count - 1);
    order_block *const block = &p->blocks[i];
    if (kind < 65) {
        log_block(p, block, block->size);
        free_block(p, i);
    } else if (kind < 75) {
        hand_to(p, block, (uint32_t)draw(p, 0, STREAMS - 1));
        fill(p, block);
    } else if (kind < 82) {
        step_copy(p, block);
    } else if (kind < 92) {
        step_resize(p, block);
    } else if (kind < 97) {
        log_block(p, block, block->size);
    } else {
        step_other(p);
    }
}

/* ---- begin and end ---- */

static bool begin(program *p, allot_device *under, const order_options *options)
{
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(p->device, &p->streams[i]));
    }
    if (!CHECK_OK(allot_device_alloc(p->device, (uint64_t)PIECES * PIECE, &p->log)) ||
        !CHECK_OK(allot_heap_create(under, &options->heap, &p->heap))) {
        return false;
    }
    if (options->compacts) {
        CHECK_OK(allot_compact_attach(p->heap, NULL));
    }
    return true;
}

static uint64_t count_wrong(program *p)
{
    allot_device_info info;
    allot_device_get_info(p->device, &info);
    const uint64_t size = (uint64_t)p->piece_count * PIECE;
    uint8_t *const bytes = malloc((size_t)size + 1);
    uint64_t wrong = 0;
    if (info.has_bytes && CHECK(bytes != NULL)) {
        CHECK_OK(allot_device_read(p->device, p->streams[0], bytes, p->log, size));
        CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[0]));
        for (uint32_t i = 0; i < p->piece_count; i++) {
            bool is_right = true;
            for (size_t j = 0; j < PIECE; j++) {
                is_right = is_right && bytes[(size_t)i * PIECE + j] == p->expected[i];
            }
            wrong += !is_right;
        }
    }
    free(bytes);
    return wrong;
}

uint64_t order_run(allot_device *device, allot_device *under, const order_options *options)
{
    static program p;
    p = (program){.device = device, .random = options->seed};
    if (!begin(&p, under, options)) {
        return 0;
    }
    for (uint32_t i = 0; i < options->steps; i++) {
        step(&p);
    }
    CHECK_OK(allot_heap_check(p.heap));
    while (p.count != 0) {
        log_block(&p, &p.blocks[0], p.blocks[0].size);
        free_block(&p, 0);
    }
    allot_heap_destroy(p.heap);
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_synchronize(device, p.streams[i]));
    }
    const uint64_t wrong = count_wrong(&p);
    CHECK_OK(allot_device_free(device, p.log, (uint64_t)PIECES * PIECE));
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(device, p.streams[i]));
    }
    return wrong;
}
