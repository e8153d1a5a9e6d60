/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <string.h>

#include "core/mix.h"
#include "heap/heap.h"
#include "support/check.h"

/* ---- blocks ---- */

static bool address_of(const scene *s, const scene_block *block, allot_devptr *out)
{
    if (block->ptr.address != 0) {
        *out = block->ptr;
        return true;
    }
    const allot_status status = allot_heap_pin(s->heap, block->handle, out);
    if (status == ALLOT_STATUS_NOT_FOUND) {
        CHECK(block->flags != 0);
        return false;
    }
    return CHECK_OK(status) && CHECK_OK(allot_heap_unpin(s->heap, block->handle));
}

static void write_pattern(scene *s, const scene_block *block)
{
    allot_devptr at = {0};
    if (s->info.has_bytes && address_of(s, block, &at)) {
        const allot_stream stream = s->streams[block->stream];
        CHECK_OK(allot_device_fill(s->inner, stream, at, block->pattern, block->size));
        CHECK_OK(allot_device_stream_synchronize(s->inner, stream));
    }
}

static void check_pattern(scene *s, const scene_block *block)
{
    static uint8_t bytes[4 * 1024 * 1024];
    allot_devptr at = {0};
    if (!address_of(s, block, &at) || !s->info.has_bytes) {
        return;
    }
    const allot_stream stream = s->streams[block->stream];
    REQUIRE(block->size <= sizeof bytes);
    CHECK_OK(allot_device_stream_synchronize(s->inner, s->streams[0]));
    CHECK_OK(allot_device_read(s->inner, stream, bytes, at, block->size));
    CHECK_OK(allot_device_stream_synchronize(s->inner, stream));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < block->size; i++) {
        wrong += bytes[i] != block->pattern;
    }
    CHECK_EQ(wrong, 0);
}

/* ---- calls ---- */

static allot_status alloc(scene *s, scene_name name, const allot_request *like, uint32_t stream,
                          bool is_pointer)
{
    allot_request request = *like;
    request.struct_size = sizeof request;
    request.stream = s->streams[stream];
    scene_block block = {.size = request.size,
                         .stream = stream,
                         .flags = request.flags,
                         .pattern = (uint8_t)(0x11 * (name + 1))};
    allot_status status = is_pointer ? allot_heap_alloc_pointer(s->heap, &request, &block.ptr)
                                     : allot_heap_alloc(s->heap, &request, &block.handle);
    if (status == ALLOT_STATUS_OK) {
        s->blocks[name] = block;
        write_pattern(s, &block);
    } else {
        CHECK_EQ(block.handle.value, 0);
        CHECK_EQ(block.ptr.address, 0);
    }
    return status;
}

static bool is_there(const scene *s, scene_name name)
{
    return s->blocks[name].ptr.address != 0 || s->blocks[name].handle.value != 0;
}

static allot_status free_block(scene *s, scene_name name)
{
    scene_block *const block = &s->blocks[name];
    if (!is_there(s, name)) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = block->ptr.address != 0
                                    ? allot_heap_free_pointer(s->heap, block->ptr)
                                    : allot_heap_free(s->heap, block->handle);
    if (status == ALLOT_STATUS_OK) {
        *block = (scene_block){0};
    }
    return status;
}

static allot_status resize(scene *s, scene_name name, uint64_t size)
{
    scene_block *const block = &s->blocks[name];
    if (!is_there(s, name)) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = allot_heap_resize(s->heap, block->handle, size);
    if (status == ALLOT_STATUS_OK) {
        block->size = size < block->size ? size : block->size;
        check_pattern(s, block); /* what fits was kept */
        block->size = size;
        write_pattern(s, block);
    }
    return status;
}

static allot_status use(scene *s, scene_name name, uint32_t stream)
{
    const scene_block *const block = &s->blocks[name];
    if (!is_there(s, name)) {
        return ALLOT_STATUS_OK;
    }
    return block->ptr.address != 0 ? allot_heap_use_pointer(s->heap, block->ptr, s->streams[stream])
                                   : allot_heap_use(s->heap, block->handle, s->streams[stream]);
}

static uint64_t held(const scene *s)
{
    allot_heap_stats stats = {0};
    CHECK_OK(allot_heap_get_stats(s->heap, &stats));
    return stats.reserved_bytes.current;
}

#define STEP(name) static allot_status name(scene *s)

STEP(alloc_first)
{
    return alloc(s, SCENE_A, &(allot_request){.size = 100 * KIB}, 0, false);
}

STEP(alloc_over_granules)
{
    return alloc(s, SCENE_B, &(allot_request){.size = 900 * KIB}, 0, true);
}

STEP(alloc_large)
{
    return alloc(s, SCENE_C, &(allot_request){.size = 1500 * KIB, .align = 256 * KIB}, 0, false);
}

STEP(alloc_on_another_stream)
{
    return alloc(s, SCENE_D, &(allot_request){.size = 300 * KIB, .owner = 1}, 1, false);
}

STEP(alloc_temporary)
{
    return alloc(s, SCENE_E,
                 &(allot_request){.size = 200 * KIB, .flags = ALLOT_BLOCK_TEMPORARY, .owner = 2}, 0,
                 false);
}

STEP(alloc_cached)
{
    return alloc(s, SCENE_F, &(allot_request){.size = 200 * KIB, .flags = ALLOT_BLOCK_CACHED}, 1,
                 false);
}

STEP(create_pool)
{
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .strategy = ALLOT_SPACE_STRATEGY_BEST_FIT,
                                             .limit = 8 * MIB,
                                             .is_shared_on_oom = true};
    return allot_heap_pool_create(s->heap, &options, &s->pool);
}

STEP(alloc_in_pool)
{
    return alloc(s, SCENE_G, &(allot_request){.size = 256 * KIB, .pool = s->pool}, 2, false);
}

STEP(use_on_second_stream)
{
    return use(s, SCENE_A, 1);
}

STEP(use_on_third_stream)
{
    return use(s, SCENE_A, 2);
}

STEP(use_pointer)
{
    return use(s, SCENE_B, 2);
}

STEP(free_used_on_streams)
{
    return free_block(s, SCENE_A);
}

STEP(free_pointer_used_on_stream)
{
    return free_block(s, SCENE_B);
}

STEP(collect)
{
    return allot_heap_collect(s->heap);
}

STEP(synchronize)
{
    allot_status status = ALLOT_STATUS_OK;
    for (int i = 0; i < SCENE_STREAMS && status == ALLOT_STATUS_OK; i++) {
        status = allot_device_stream_synchronize(s->device, s->streams[i]);
    }
    return status;
}

STEP(resize_smaller)
{
    return resize(s, SCENE_C, 700 * KIB);
}

STEP(resize_larger)
{
    return resize(s, SCENE_C, 1300 * KIB);
}

STEP(alloc_in_the_way)
{
    return alloc(s, SCENE_A, &(allot_request){.size = 150 * KIB}, 1, false);
}

STEP(resize_and_move)
{
    return resize(s, SCENE_D, 2500 * KIB);
}

STEP(use_resized)
{
    return use(s, SCENE_D, 0);
}

STEP(resize_used_and_move)
{
    return resize(s, SCENE_D, 3500 * KIB);
}

STEP(limit_to_what_is_held)
{
    return allot_heap_set_limit(s->heap, held(s));
}

STEP(free_for_others)
{
    return free_block(s, SCENE_D);
}

STEP(alloc_shared_with_other_stream)
{
    return alloc(s, SCENE_H, &(allot_request){.size = 2 * MIB}, 2, false);
}

STEP(resize_what_is_elsewhere)
{
    return resize(s, SCENE_H, 2 * MIB + 64 * KIB);
}

STEP(shrink_what_is_elsewhere)
{
    return resize(s, SCENE_H, 1 * MIB);
}

STEP(free_what_is_elsewhere)
{
    return free_block(s, SCENE_H);
}

STEP(alloc_by_dropping)
{
    return alloc(s, SCENE_D, &(allot_request){.size = 3 * MIB + 512 * KIB}, 0, false);
}

STEP(free_dropped)
{
    return free_block(s, SCENE_E);
}

STEP(free_cached)
{
    return free_block(s, SCENE_F);
}

STEP(free_in_pool)
{
    return free_block(s, SCENE_G);
}

STEP(alloc_in_shared_pool)
{
    return alloc(s, SCENE_I, &(allot_request){.size = 200 * KIB}, 0, true);
}

STEP(fail_for_limit)
{
    allot_handle none = {0};
    const allot_request request = {.struct_size = sizeof request, .size = 64 * MIB};
    const allot_status status = allot_heap_alloc(s->heap, &request, &none);
    return status == ALLOT_STATUS_BUDGET ? ALLOT_STATUS_OK : status;
}

STEP(free_in_shared_pool)
{
    return free_block(s, SCENE_I);
}

STEP(raise_limit)
{
    return allot_heap_set_limit_fraction(s->heap, 1);
}

STEP(alloc_with_new_segment)
{
    return alloc(s, SCENE_J, &(allot_request){.size = 3 * MIB}, 1, true);
}

STEP(free_with_new_segment)
{
    return free_block(s, SCENE_J);
}

STEP(trim)
{
    return allot_heap_trim(s->heap, 4 * MIB, NULL);
}

STEP(lower_limit)
{
    const allot_status status = allot_heap_set_limit(s->heap, 5 * MIB);
    return status == ALLOT_STATUS_BUDGET ? ALLOT_STATUS_OK : status;
}

STEP(destroy_pool)
{
    const allot_status status = allot_heap_pool_destroy(s->heap, s->pool);
    s->pool.value = status == ALLOT_STATUS_OK ? 0 : s->pool.value;
    return status;
}

STEP(end_stream)
{
    return allot_heap_end_stream(s->heap, s->streams[1]);
}

STEP(record)
{
    return allot_heap_record(s->heap, 64);
}

STEP(end_recording)
{
    return allot_heap_record(s->heap, 0);
}

STEP(alloc_at_last)
{
    return alloc(s, SCENE_B, &(allot_request){.size = 64 * KIB}, 2, true);
}

STEP(trim_all)
{
    return allot_heap_trim(s->heap, 0, NULL);
}

#undef STEP

const scene_step SCENE_STEPS[] = {
    {"alloc_first", alloc_first, SCENE_AS_BEFORE},
    {"alloc_over_granules", alloc_over_granules, SCENE_AS_BEFORE},
    {"alloc_large", alloc_large, SCENE_AS_BEFORE},
    {"alloc_on_another_stream", alloc_on_another_stream, SCENE_AS_BEFORE},
    {"alloc_temporary", alloc_temporary, SCENE_AS_BEFORE},
    {"alloc_cached", alloc_cached, SCENE_AS_BEFORE},
    {"create_pool", create_pool, SCENE_AS_BEFORE},
    {"alloc_in_pool", alloc_in_pool, SCENE_AS_BEFORE},
    {"use_on_second_stream", use_on_second_stream, SCENE_AS_BEFORE},
    {"use_on_third_stream", use_on_third_stream, SCENE_AS_BEFORE},
    {"use_pointer", use_pointer, SCENE_AS_BEFORE},
    {"free_used_on_streams", free_used_on_streams, SCENE_AS_BEFORE},
    {"free_pointer_used_on_stream", free_pointer_used_on_stream, SCENE_AS_BEFORE},
    {"collect", collect, SCENE_PROGRESS},
    {"resize_smaller", resize_smaller, SCENE_AS_BEFORE},
    {"resize_larger", resize_larger, SCENE_AS_BEFORE},
    {"synchronize", synchronize, SCENE_AS_BEFORE},
    {"collect", collect, SCENE_PROGRESS},
    {"alloc_in_the_way", alloc_in_the_way, SCENE_AS_BEFORE},
    {"resize_and_move", resize_and_move, SCENE_AS_BEFORE},
    {"use_resized", use_resized, SCENE_AS_BEFORE},
    {"resize_used_and_move", resize_used_and_move, SCENE_AS_BEFORE},
    {"limit_to_what_is_held", limit_to_what_is_held, SCENE_AS_BEFORE},
    {"free_for_others", free_for_others, SCENE_AS_BEFORE},
    {"alloc_shared_with_other_stream", alloc_shared_with_other_stream, SCENE_PROGRESS},
    {"resize_what_is_elsewhere", resize_what_is_elsewhere, SCENE_PROGRESS},
    {"shrink_what_is_elsewhere", shrink_what_is_elsewhere, SCENE_PROGRESS},
    {"free_what_is_elsewhere", free_what_is_elsewhere, SCENE_AS_BEFORE},
    {"alloc_by_dropping", alloc_by_dropping, SCENE_PROGRESS},
    {"free_dropped", free_dropped, SCENE_AS_BEFORE},
    {"free_cached", free_cached, SCENE_AS_BEFORE},
    {"free_in_pool", free_in_pool, SCENE_AS_BEFORE},
    {"alloc_in_shared_pool", alloc_in_shared_pool, SCENE_PROGRESS},
    {"fail_for_limit", fail_for_limit, SCENE_PROGRESS},
    {"free_in_shared_pool", free_in_shared_pool, SCENE_AS_BEFORE},
    {"raise_limit", raise_limit, SCENE_AS_BEFORE},
    {"alloc_with_new_segment", alloc_with_new_segment, SCENE_AS_BEFORE},
    {"free_with_new_segment", free_with_new_segment, SCENE_AS_BEFORE},
    {"trim", trim, SCENE_PROGRESS},
    {"lower_limit", lower_limit, SCENE_PROGRESS},
    {"destroy_pool", destroy_pool, SCENE_PROGRESS},
    {"end_stream", end_stream, SCENE_PROGRESS},
    {"raise_limit", raise_limit, SCENE_AS_BEFORE},
    {"record", record, SCENE_AS_BEFORE},
    {"alloc_at_last", alloc_at_last, SCENE_PROGRESS},
    {"end_recording", end_recording, SCENE_AS_BEFORE},
    {"trim_all", trim_all, SCENE_PROGRESS},
};
const size_t SCENE_STEP_COUNT = sizeof SCENE_STEPS / sizeof SCENE_STEPS[0];

/* ---- begin and end ---- */

bool scene_begin(scene *s, const scene_setting *setting)
{
    const allot_failing_options failing = {
        .struct_size = sizeof failing, .event_delay = setting->event_delay, .seed = setting->seed};
    allot_heap_options options = setting->options;
    options.struct_size = sizeof options;
    options.segment_size = 1 * MIB;
    options.reserve_size = 8 * MIB;
    *s = (scene){0};
    if (!CHECK_OK(allot_device_open(setting->device, &s->inner)) ||
        !CHECK_OK(allot_device_open_failing(s->inner, &failing, &s->device))) {
        return false;
    }
    allot_device_get_info(s->device, &s->info);
    for (int i = 1; i < SCENE_STREAMS; i++) {
        CHECK_OK(allot_device_stream_create(s->device, &s->streams[i]));
    }
    return CHECK_OK(allot_heap_create(s->device, &options, &s->heap));
}

void scene_end(scene *s)
{
    allot_heap_destroy(s->heap);
    for (int i = 1; i < SCENE_STREAMS; i++) {
        CHECK_OK(allot_device_stream_destroy(s->device, s->streams[i]));
    }
    allot_device_counts counts;
    allot_device_get_counts(s->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(s->device);
    allot_device_get_counts(s->inner, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(s->inner);
}

/* ---- what is there ---- */

static bool note_block(void *context, const allot_block_info *block)
{
    scene_snapshot *const out = context;
    if (block->is_pending) {
        out->pending_count++;
    } else if (CHECK(out->block_count < SCENE_HELD_MAX)) {
        out->blocks[out->block_count++] = *block;
    }
    return true;
}

/** A sum in which the order of segments does not matter. */
static uint64_t hash_segments(const scene *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->heap->segment_count; i++) {
        const heap_segment *const segment = &s->heap->segments[i];
        if (segment->address == 0) {
            continue;
        }
        uint64_t hash = alloti_mix64(segment->address + segment->size);
        hash = alloti_mix64(hash + segment->held);
        hash = alloti_mix64(hash + segment->arena);
        for (uint64_t j = 0; segment->granules != NULL && j < segment->size / s->info.granule;
             j++) {
            hash = alloti_mix64(hash + (segment->granules[j].memory.value != 0));
        }
        sum += hash;
    }
    return sum;
}

void scene_take(const scene *s, scene_snapshot *out)
{
    *out = (scene_snapshot){0};
    CHECK_OK(allot_heap_walk(s->heap, note_block, out));
    CHECK_OK(allot_heap_get_stats(s->heap, &out->stats));
    out->segments = hash_segments(s);
    out->limit = s->heap->options.limit;
    allot_device_get_counts(s->device, &out->device);
    /* Events that were made are kept for later. */
    out->device.live_count -= s->heap->event_made;
}

static const allot_block_info *find(const scene_snapshot *in, allot_handle handle)
{
    for (uint32_t i = 0; i < in->block_count; i++) {
        if (in->blocks[i].handle.value == handle.value) {
            return &in->blocks[i];
        }
    }
    return NULL;
}

static void compare_blocks(const scene_snapshot *before, const scene_snapshot *after)
{
    CHECK_EQ(after->block_count, before->block_count);
    for (uint32_t i = 0; i < before->block_count; i++) {
        const allot_block_info *const was = &before->blocks[i];
        const allot_block_info *const is = find(after, was->handle);
        if (!CHECK(is != NULL)) {
            continue;
        }
        if (was->flags == 0 || is->size != 0) { /* else it was dropped */
            CHECK_EQ(is->ptr.address, was->ptr.address);
            CHECK_EQ(is->size, was->size);
        }
        CHECK_EQ(is->size_requested, was->size_requested);
        CHECK_EQ(is->pin_count, was->pin_count);
        CHECK_EQ(is->flags, was->flags);
        CHECK_EQ(is->pool.value, was->pool.value);
    }
}

void scene_compare(const scene_snapshot *before, const scene_snapshot *after, scene_leaves leaves)
{
    const allot_heap_stats *const was = &before->stats;
    const allot_heap_stats *const is = &after->stats;
    compare_blocks(before, after);
    CHECK_EQ(after->limit, before->limit);
    if (leaves == SCENE_AS_BEFORE) {
        CHECK_EQ(after->segments, before->segments);
        CHECK_EQ(after->device.size_allocated, before->device.size_allocated);
        CHECK_EQ(after->device.size_created, before->device.size_created);
        CHECK_EQ(after->device.size_reserved, before->device.size_reserved);
        CHECK_EQ(after->device.live_count, before->device.live_count);
        CHECK_EQ(is->reserved_bytes.current, was->reserved_bytes.current);
        CHECK_EQ(is->segment.current, was->segment.current);
    }
    if (leaves != SCENE_PROGRESS) {
        CHECK_EQ(is->allocation.current, was->allocation.current);
        CHECK_EQ(is->allocated_bytes.current, was->allocated_bytes.current);
        CHECK_EQ(is->requested_bytes.current, was->requested_bytes.current);
        /* What waited for streams may have been seen to be done. */
        CHECK(after->pending_count <= before->pending_count);
    }
    CHECK(is->active_bytes.current <= was->active_bytes.current);
    CHECK(is->reserved_bytes.current <= was->reserved_bytes.current);
    CHECK(is->allocated_bytes.current <= was->allocated_bytes.current);
    CHECK(after->device.size_allocated <= before->device.size_allocated);
    CHECK(after->device.size_created <= before->device.size_created);
    CHECK(after->device.size_reserved <= before->device.size_reserved);
    CHECK(after->device.live_count <= before->device.live_count);
}

void scene_verify(scene *s)
{
    CHECK_OK(allot_heap_check(s->heap));
    for (int i = 0; i < SCENE_NAME_COUNT; i++) {
        if (is_there(s, (scene_name)i)) {
            check_pattern(s, &s->blocks[i]);
        }
    }
}
