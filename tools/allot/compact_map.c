/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <allot/trace.h>

#include "compaction.h"

static void add_span(compact_map *map, uint64_t begin, uint64_t end)
{
    if (map->span_count != 0 && map->spans[map->span_count - 1].end == begin) {
        map->spans[map->span_count - 1].end = end;
    } else {
        map->spans[map->span_count++] = (allot_html_span){begin, end};
    }
}

static void draw(compact_map *map, const allot_trace *trace)
{
    uint32_t segment_count = 0;
    uint32_t block_count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &segment_count);
    const allot_block *const blocks = allot_trace_blocks(trace, &block_count);
    for (uint32_t i = 0; i < segment_count; i++) {
        const allot_segment *const segment = &segments[i];
        map->segments[map->segment_count++] = map->size;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const allot_block *const block = &blocks[segment->block_first + b];
            const uint64_t begin = map->size + (block->address - segment->address);
            if (block->state != ALLOT_BLOCK_INACTIVE) {
                add_span(map, begin, begin + block->size);
            }
        }
        map->size += segment->total_size;
    }
}

allot_status compact_map_init(compact_map *map, allot_heap *heap)
{
    allot_trace *trace = NULL;
    uint32_t segment_count = 0;
    uint32_t block_count = 0;
    *map = (compact_map){0};
    const allot_status status = allot_heap_get_trace(heap, &trace);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    (void)allot_trace_segments(trace, &segment_count);
    (void)allot_trace_blocks(trace, &block_count);
    map->segments = calloc((size_t)segment_count + 1, sizeof *map->segments);
    map->spans = calloc((size_t)block_count + 1, sizeof *map->spans);
    const bool has_room = map->segments != NULL && map->spans != NULL;
    if (has_room) {
        draw(map, trace);
    } else {
        compact_map_fini(map);
    }
    allot_trace_destroy(trace);
    return has_room ? ALLOT_STATUS_OK : ALLOT_STATUS_HOST_MEMORY;
}

void compact_map_fini(compact_map *map)
{
    free(map->segments);
    free(map->spans);
    *map = (compact_map){0};
}

double compact_map_share(const compact_map *map, uint64_t begin, uint64_t end)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < map->span_count; i++) {
        const allot_html_span *const span = &map->spans[i];
        const uint64_t from = span->begin > begin ? span->begin : begin;
        const uint64_t to = span->end < end ? span->end : end;
        used += to > from ? to - from : 0;
    }
    return end > begin ? (double)used / (double)(end - begin) : 0;
}
