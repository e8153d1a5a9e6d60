/* SPDX-License-Identifier: MIT */
/*
 * Random programs against heaps: every kind of placement, both modes, several streams and pools,
 * with the bytes of each block checked where the device has bytes, and all invariants after each
 * step. With "--device TEXT" shorter programs on that device.
 */
#include <allot/compact.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

enum {
    BLOCKS = 200,
    STREAMS = 3,
    STEPS = 3000,
    STEPS_GIVEN = 500,
    CHECK_EVERY = 7,
    PATTERN_MAX = 4096
};

/** Device of the command line; NULL: none. */
static const char *given_device;

typedef struct held_block {
    allot_handle handle;
    allot_devptr ptr; /**< Of pointers; 0 for handles. */
    uint64_t size;
    uint8_t pattern;
    uint32_t stream;
    uint32_t flags;
} held_block;

typedef struct program {
    allot_device *device;
    allot_heap *heap;
    allot_device_info info;
    allot_stream streams[STREAMS]; /**< [0] is the default stream. */
    allot_heap_pool pools[2];
    held_block blocks[BLOCKS];
    uint32_t count;
    uint64_t random;
} program;

static uint64_t draw(program *p, uint64_t low, uint64_t high)
{
    return check_random_range(&p->random, low, high);
}

/* ---- bytes ---- */

static uint64_t pattern_size(const held_block *block)
{
    return block->size < PATTERN_MAX ? block->size : PATTERN_MAX;
}

static void write_pattern(program *p, const held_block *block, allot_devptr at)
{
    if (p->info.has_bytes) {
        CHECK_OK(allot_device_fill(p->device, p->streams[block->stream], at, block->pattern,
                                   pattern_size(block)));
    }
}

static void check_pattern(program *p, const held_block *block, allot_devptr at)
{
    static uint8_t bytes[PATTERN_MAX];
    if (!p->info.has_bytes) {
        return;
    }
    const uint64_t size = pattern_size(block);
    CHECK_OK(allot_device_read(p->device, p->streams[block->stream], bytes, at, size));
    CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[block->stream]));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < size; i++) {
        wrong += bytes[i] != block->pattern;
    }
    CHECK_EQ(wrong, 0);
}

/** Address of a block, pinned if it is a handle; false if it was dropped. */
static bool pin(program *p, const held_block *block, allot_devptr *out)
{
    if (block->ptr.address != 0) {
        *out = block->ptr;
        return true;
    }
    const allot_status status = allot_heap_pin(p->heap, block->handle, out);
    if (status == ALLOT_STATUS_NOT_FOUND && block->flags != 0) {
        return false;
    }
    CHECK_OK(status);
    return status == ALLOT_STATUS_OK;
}

static void unpin(program *p, const held_block *block)
{
    if (block->ptr.address == 0) {
        CHECK_OK(allot_heap_unpin(p->heap, block->handle));
    }
}

/* ---- steps ---- */

static uint64_t draw_size(program *p)
{
    const uint64_t bits = draw(p, 0, 21);
    return draw(p, 1, UINT64_C(1) << bits);
}

static void step_alloc(program *p)
{
    held_block block = {.pattern = (uint8_t)draw(p, 1, 255),
                        .stream = (uint32_t)draw(p, 0, STREAMS - 1)};
    const bool is_pointer = draw(p, 0, 1) == 0;
    block.size = draw_size(p);
    block.flags = is_pointer ? 0 : (uint32_t)draw(p, 0, 2);
    const allot_request request = {.struct_size = sizeof request,
                                   .size = block.size,
                                   .align = draw(p, 0, 3) == 0 ? UINT64_C(1) << draw(p, 0, 22) : 0,
                                   .stream = p->streams[block.stream],
                                   .pool = p->pools[draw(p, 0, 1)],
                                   .flags = block.flags,
                                   .priority = (int32_t)draw(p, 0, 3),
                                   .owner = (uint32_t)draw(p, 0, 2),
                                   .tag = (uint32_t)draw(p, 0, 4)};
    const allot_status status = is_pointer ? allot_heap_alloc_pointer(p->heap, &request, &block.ptr)
                                           : allot_heap_alloc(p->heap, &request, &block.handle);
    if (status != ALLOT_STATUS_OK) {
        if (status != ALLOT_STATUS_FRAGMENTED && status != ALLOT_STATUS_DEVICE_MEMORY &&
            status != ALLOT_STATUS_BUDGET) {
            CHECK_OK(status);
        }
        return;
    }
    allot_devptr at = {0};
    if (CHECK(pin(p, &block, &at))) {
        CHECK(request.align == 0 || at.address % request.align == 0);
        write_pattern(p, &block, at);
        unpin(p, &block);
    }
    p->blocks[p->count++] = block;
}

static void forget(program *p, uint32_t i)
{
    p->blocks[i] = p->blocks[--p->count];
}

static void step_free(program *p)
{
    const uint32_t i = (uint32_t)draw(p, 0, p->count - 1);
    const held_block block = p->blocks[i];
    allot_devptr at = {0};
    if (pin(p, &block, &at)) {
        check_pattern(p, &block, at);
        if (block.ptr.address == 0) {
            CHECK_EQ(allot_heap_free(p->heap, block.handle), ALLOT_STATUS_BUSY);
        }
        unpin(p, &block);
    }
    if (block.ptr.address != 0) {
        CHECK_OK(allot_heap_free_pointer(p->heap, block.ptr));
    } else {
        CHECK_OK(allot_heap_free(p->heap, block.handle));
        CHECK_EQ(allot_heap_free(p->heap, block.handle), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_heap_pin(p->heap, block.handle, &at), ALLOT_STATUS_INVALID);
    }
    forget(p, i);
}

static void step_use(program *p)
{
    const held_block *const block = &p->blocks[draw(p, 0, p->count - 1)];
    const allot_stream stream = p->streams[draw(p, 0, STREAMS - 1)];
    if (block->ptr.address != 0) {
        CHECK_OK(allot_heap_use_pointer(p->heap, block->ptr, stream));
    } else {
        CHECK_OK(allot_heap_use(p->heap, block->handle, stream));
    }
}

static void step_resize(program *p)
{
    held_block *const block = &p->blocks[draw(p, 0, p->count - 1)];
    const uint64_t size = draw_size(p);
    if (block->ptr.address != 0) {
        return;
    }
    const allot_status status = allot_heap_resize(p->heap, block->handle, size);
    allot_devptr at = {0};
    if (status == ALLOT_STATUS_OK) {
        const uint64_t old = block->size;
        block->size = size < old ? size : old;
        if (pin(p, block, &at)) {
            check_pattern(p, block, at);
            block->size = size;
            write_pattern(p, block, at);
            unpin(p, block);
        }
        block->size = size;
    } else if (status == ALLOT_STATUS_NOT_FOUND) {
        CHECK(block->flags != 0);
    } else if (pin(p, block, &at)) {
        check_pattern(p, block, at);
        unpin(p, block);
    }
}

static void step_other(program *p)
{
    uint64_t released = 0;
    switch (draw(p, 0, 3)) {
    case 0:
        CHECK_OK(allot_heap_collect(p->heap));
        break;
    case 1:
        CHECK_OK(allot_heap_trim(p->heap, draw(p, 0, UINT64_C(64) << 20), &released));
        break;
    case 2:
        (void)(allot_heap_set_limit(p->heap, draw(p, 24, 200) << 20) == ALLOT_STATUS_OK);
        break;
    default:
        CHECK_OK(allot_device_stream_synchronize(p->device, p->streams[draw(p, 0, STREAMS - 1)]));
        break;
    }
}

static void step(program *p)
{
    const uint64_t kind = draw(p, 0, 99);
    if (p->count == 0 || (kind < 45 && p->count < BLOCKS)) {
        step_alloc(p);
    } else if (kind < 85) {
        step_free(p);
    } else if (kind < 90) {
        step_use(p);
    } else if (kind < 97) {
        step_resize(p);
    } else {
        step_other(p);
    }
}

/* ---- programs ---- */

static bool begin(program *p, const char *device, const allot_heap_options *options)
{
    const allot_heap_pool_options pool = {.struct_size = sizeof pool,
                                          .strategy = ALLOT_SPACE_STRATEGY_TLSF,
                                          .limit = UINT64_C(64) << 20,
                                          .is_shared_on_oom = true};
    *p = (program){.random = check_seed() + (uint64_t)options->strategy};
    if (!CHECK_OK(allot_device_open(device, &p->device))) {
        return false;
    }
    allot_device_get_info(p->device, &p->info);
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(p->device, &p->streams[i]));
    }
    return CHECK_OK(allot_heap_create(p->device, options, &p->heap)) &&
           CHECK_OK(allot_heap_pool_create(p->heap, &pool, &p->pools[1]));
}

static void end(program *p)
{
    while (p->count != 0) {
        step_free(p);
    }
    CHECK_OK(allot_heap_check(p->heap));
    CHECK_OK(allot_heap_pool_destroy(p->heap, p->pools[1]));
    allot_heap_destroy(p->heap);
    for (int i = 1; i < STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(p->device, p->streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(p->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(p->device);
}

static void run(const char *device, const allot_heap_options *options, bool compacts)
{
    static program p;
    if (!begin(&p, device, options)) {
        return;
    }
    if (compacts) {
        CHECK_OK(allot_compact_attach(p.heap, NULL));
    }
    const int steps = given_device == NULL ? STEPS : STEPS_GIVEN;
    for (int i = 0; i < steps; i++) {
        step(&p);
        if (i % CHECK_EVERY == 0 && !CHECK_OK(allot_heap_check(p.heap))) {
            break;
        }
    }
    end(&p);
}

static void run_all(const char *device, allot_heap_options options)
{
    options.struct_size = sizeof options;
    options.segment_size = UINT64_C(4) << 20;
    options.reserve_size = UINT64_C(256) << 20;
    for (int i = 0; i <= ALLOT_SPACE_STRATEGY_ADAPTIVE; i++) {
        options.strategy = (allot_space_strategy)i;
        run(device, &options, options.limit != 0);
    }
}

static void simulated_segments_keep_all_invariants(void)
{
    run_all("simulated,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
}

static void simulated_virtual_memory_keeps_all_invariants(void)
{
    run_all("simulated,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
}

static void fronts_keep_all_invariants(void)
{
    run_all("simulated,memory:96MiB", (allot_heap_options){.front_size = 1 << 20});
}

static void soft_limits_keep_all_invariants(void)
{
    run_all("simulated,memory:96MiB", (allot_heap_options){.limit_soft = 16 << 20});
}

static void host_segments_keep_all_bytes(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
}

static void host_virtual_memory_keeps_all_bytes(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
}

static void heaps_that_compact_keep_all_bytes(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.limit = 24 << 20});
}

static void debug_heaps_keep_all_bytes(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.is_debug = true});
}

static void scrubbing_heaps_keep_all_bytes(void)
{
    run_all("host,memory:96MiB", (allot_heap_options){.scrub = ALLOT_HEAP_SCRUB_REUSE});
}

static const check_test tests[] = {
    {"simulated_segments_keep_all_invariants", simulated_segments_keep_all_invariants},
    {"simulated_virtual_memory_keeps_all_invariants",
     simulated_virtual_memory_keeps_all_invariants},
    {"fronts_keep_all_invariants", fronts_keep_all_invariants},
    {"soft_limits_keep_all_invariants", soft_limits_keep_all_invariants},
    {"host_segments_keep_all_bytes", host_segments_keep_all_bytes},
    {"host_virtual_memory_keeps_all_bytes", host_virtual_memory_keeps_all_bytes},
    {"heaps_that_compact_keep_all_bytes", heaps_that_compact_keep_all_bytes},
    {"debug_heaps_keep_all_bytes", debug_heaps_keep_all_bytes},
    {"scrubbing_heaps_keep_all_bytes", scrubbing_heaps_keep_all_bytes},
};

static void segments_of_the_device_keep_all_bytes(void)
{
    run_all(given_device, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
}

static void virtual_memory_of_the_device_keeps_all_bytes(void)
{
    run_all(given_device, (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
}

static void compaction_on_the_device_keeps_all_bytes(void)
{
    run_all(given_device, (allot_heap_options){.limit = 24 << 20});
}

static const check_test given_tests[] = {
    {"segments_of_the_device_keep_all_bytes", segments_of_the_device_keep_all_bytes},
    {"virtual_memory_of_the_device_keeps_all_bytes", virtual_memory_of_the_device_keeps_all_bytes},
    {"compaction_on_the_device_keeps_all_bytes", compaction_on_the_device_keeps_all_bytes},
};

int main(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "--device") != 0) {
        return check_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    }
    given_device = argv[2];
    allot_device *device = NULL;
    if (allot_device_open(given_device, &device) != ALLOT_STATUS_OK) {
        printf("  skipped: %s\n", allot_error_detail());
        return 77;
    }
    allot_device_destroy(device);
    argv[2] = argv[0];
    return check_main(argc - 2, argv + 2, given_tests, sizeof given_tests / sizeof given_tests[0]);
}
