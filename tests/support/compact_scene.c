/* SPDX-License-Identifier: MIT */
#include "support/compact_scene.h"

#include <string.h>

#include "support/check.h"

enum { PATTERN = 512 };

static const allot_stream default_stream = {0};

static void fill(scene *s, const held *b)
{
    allot_devptr at = {0};
    CHECK_OK(allot_heap_pin(s->heap, b->handle, &at));
    CHECK_OK(allot_device_fill(s->device, default_stream, at, b->pattern, b->size));
    CHECK_OK(allot_heap_unpin(s->heap, b->handle));
}

void scene_check_bytes(scene *s, const held *b)
{
    uint8_t bytes[2][PATTERN];
    const uint64_t size = b->size < PATTERN ? b->size : PATTERN;
    allot_devptr at = {0};
    CHECK_OK(allot_heap_pin(s->heap, b->handle, &at));
    const allot_devptr end = {at.address + b->size - size};
    CHECK_OK(allot_device_read(s->device, default_stream, bytes[0], at, size));
    CHECK_OK(allot_device_read(s->device, default_stream, bytes[1], end, size));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < size; i++) {
        wrong += bytes[0][i] != b->pattern || bytes[1][i] != b->pattern;
    }
    CHECK_EQ(wrong, 0);
    CHECK_OK(allot_heap_unpin(s->heap, b->handle));
}

bool scene_get(scene *s, uint64_t size)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    held b = {.size = size, .pattern = (uint8_t)(s->count + 1)};
    if (s->count == BLOCKS_MAX ||
        allot_heap_alloc(s->heap, &request, &b.handle) != ALLOT_STATUS_OK) {
        return false;
    }
    fill(s, &b);
    s->blocks[s->count++] = b;
    return true;
}

void scene_drop(scene *s, uint32_t index)
{
    CHECK_OK(allot_heap_free(s->heap, s->blocks[index].handle));
    s->blocks[index] = s->blocks[--s->count];
}

bool scene_open(scene *s, const allot_heap_options *options)
{
    const allot_failing_options none = {.struct_size = sizeof none};
    memset(s, 0, sizeof *s);
    s->random = check_seed();
    return CHECK_OK(allot_device_open("host,memory:64MiB", &s->device)) &&
           CHECK_OK(allot_device_open_failing(s->device, &none, &s->failing)) &&
           CHECK_OK(allot_heap_create(s->failing, options, &s->heap));
}

allot_heap_options scene_segments(void)
{
    return (allot_heap_options){.struct_size = sizeof(allot_heap_options),
                                .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                .segment_size = SEGMENT,
                                .limit = 6 * SEGMENT};
}

void scene_close(scene *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        scene_check_bytes(s, &s->blocks[i]);
        CHECK_OK(allot_heap_free(s->heap, s->blocks[i].handle));
    }
    CHECK_OK(allot_heap_check(s->heap));
    allot_heap_destroy(s->heap);
    allot_device_counts counts;
    allot_device_get_counts(s->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(s->failing);
    allot_device_destroy(s->device);
}

bool scene_open_quarters(scene *s)
{
    const allot_heap_options options = scene_segments();
    if (!scene_open(s, &options)) {
        return false;
    }
    for (int i = 0; i < 64; i++) {
        CHECK(scene_get(s, 256 * KIB));
    }
    for (uint32_t i = 64; i-- > 0;) {
        if (i % 4 != 0) {
            scene_drop(s, i);
        }
    }
    return true;
}
