/* SPDX-License-Identifier: MIT */
/*
 * The detailed statistics of the Vulkan Memory Allocator and of its twin for Direct3D 12
 * (BuildStatsString with a detailed map): what is held now, no events.
 *
 *   {"General": {...},
 *    "MemoryInfo": {HEAP: {"Flags": [...], "MemoryPools": {TYPE: ...}}},
 *    "DefaultPools": {TYPE: POOL}, "CustomPools": {TYPE: [POOL...]}}
 *   POOL: {"Blocks": {ID: {"TotalBytes": N, "Suballocations": [ALLOCATION...]}},
 *          "DedicatedAllocations": [ALLOCATION...]}
 *
 * A heap becomes a device (a GPU's, or host memory if it is not DEVICE_LOCAL), a block of VMA a
 * segment, an allocation a block whose metadata are its type and name. The pool is (0, type) for
 * default pools and (n, type) for the n-th custom pool; types count in the order of the file.
 *
 * The dump tells offsets within a block but not where a block lies: the segments of a heap are laid
 * one after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "trace/json_events.h"
#include "trace/lines.h"
#include "trace/reader.h"

enum { NAME_SIZE = 64, SEGMENT_ALIGN = 2 << 20 };
enum { DEPTH_SECTION = 1, DEPTH_TYPE = 2, DEPTH_POOL = 3 };

/* Vulkan knows at most 32 memory types and 16 heaps. */
enum { TYPES_MAX = 256, HEAPS_MAX = 256 };

typedef struct memory_type {
    char name[NAME_SIZE];
    uint32_t heap;
} memory_type;

typedef struct memory_heap {
    bool is_local;
    uint32_t device;
    uint64_t next_address;
} memory_heap;

typedef enum section { SECTION_OTHER, SECTION_MEMORY, SECTION_DEFAULT, SECTION_CUSTOM } section;

/** An allocation or a free range that is being read. */
typedef struct allocation {
    uint64_t offset;
    uint64_t size;
    char type[NAME_SIZE];
    char name[NAME_SIZE];
} allocation;

typedef struct vma_state {
    alloti_builder *builder;
    memory_type types[TYPES_MAX];
    uint32_t type_count;
    memory_heap heaps[HEAPS_MAX];
    uint32_t heap_count;
    section in;
    uint32_t type;         /**< Of the pool that is being read. */
    uint64_t custom_count; /**< Custom pools so far. */
    bool is_dedicated;     /**< In "DedicatedAllocations", else in "Blocks". */
    uint64_t total_bytes;  /**< Of the VMA block that is being read. */
    allocation now;
    allot_block *blocks; /**< Of the segment that is being read. */
    uint64_t block_count;
    uint64_t block_capacity;
    uint64_t segment_count;
    uint32_t stream;
} vma_state;

static bool is_begin(const alloti_json_token *token)
{
    return token->type == ALLOTI_JSON_OBJECT_BEGIN || token->type == ALLOTI_JSON_ARRAY_BEGIN;
}

/* Longer names are cut; they only serve people. */
static void copy_text(char to[NAME_SIZE], const char *text, size_t length)
{
    const size_t kept = length < NAME_SIZE - 1 ? length : NAME_SIZE - 1;
    memcpy(to, text, kept);
    to[kept] = '\0';
}

static allot_status find_type(vma_state *state, const alloti_json_token *token, uint32_t *out)
{
    char name[NAME_SIZE];
    copy_text(name, token->key, strlen(token->key));
    for (uint32_t i = 0; i < state->type_count; i++) {
        if (strcmp(state->types[i].name, name) == 0) {
            *out = i;
            return ALLOT_STATUS_OK;
        }
    }
    if (state->type_count == TYPES_MAX) {
        return alloti_json_fail(token, "more than %d memory types", TYPES_MAX);
    }
    memory_type *const type = &state->types[state->type_count];
    memcpy(type->name, name, sizeof name);
    type->heap = state->heap_count == 0 ? 0 : state->heap_count - 1;
    *out = state->type_count++;
    return ALLOT_STATUS_OK;
}

/* "MemoryInfo": which heaps there are, and which types belong to them. */
static allot_status take_memory(vma_state *state, alloti_json_parser *json,
                                const alloti_json_token *token)
{
    enum { DEPTH_HEAP = 2, DEPTH_HEAP_FIELD = 3, DEPTH_HEAP_TYPE = 4 };
    uint32_t type = 0;
    if (token->depth == DEPTH_HEAP && token->type == ALLOTI_JSON_OBJECT_BEGIN) {
        if (state->heap_count == HEAPS_MAX) {
            return alloti_json_fail(token, "more than %d heaps", HEAPS_MAX);
        }
        /* Direct3D calls the heap of the GPU L0 and gives no flags. */
        const bool is_local = alloti_json_has_key(token, "L0");
        state->heaps[state->heap_count++] =
            (memory_heap){.is_local = is_local, .device = ALLOT_NONE};
        return ALLOT_STATUS_OK;
    }
    if (token->depth == DEPTH_HEAP_FIELD && is_begin(token) &&
        !alloti_json_has_key(token, "Flags") && !alloti_json_has_key(token, "MemoryPools")) {
        alloti_json_skip(json);
    } else if (token->depth == DEPTH_HEAP_TYPE && alloti_json_is_string(token, "DEVICE_LOCAL") &&
               state->heap_count != 0) {
        state->heaps[state->heap_count - 1].is_local = true;
    } else if (token->depth == DEPTH_HEAP_TYPE && is_begin(token)) {
        alloti_json_skip(json);
        return find_type(state, token, &type);
    }
    return ALLOT_STATUS_OK;
}

static allot_status heap_device(vma_state *state, memory_heap *heap)
{
    if (heap->device != ALLOT_NONE && heap < state->heaps + state->heap_count) {
        return ALLOT_STATUS_OK;
    }
    if (state->heap_count == 0) { /* a dump without MemoryInfo: all types in one heap */
        state->heap_count = 1;
        heap->is_local = true;
    }
    uint32_t index = 0;
    for (const memory_heap *other = state->heaps; other < heap; other++) {
        index += other->is_local == heap->is_local;
    }
    return alloti_builder_device(state->builder,
                                 heap->is_local ? ALLOT_MEMORY_DEVICE : ALLOT_MEMORY_CPU, index,
                                 &heap->device);
}

static allot_status block_metadata(vma_state *state, uint32_t *out)
{
    const allocation *const now = &state->now;
    char text[2 * NAME_SIZE + 2];
    const int length = snprintf(text, sizeof text, "%s%s%s", now->type,
                                now->name[0] != '\0' ? " " : "", now->name);
    return alloti_builder_intern_string(state->builder, text, (size_t)length, out);
}

/* Add the allocation as a block at its offset; the segment's address comes later. */
static allot_status end_allocation(vma_state *state)
{
    const allocation *const now = &state->now;
    const bool is_free = strcmp(now->type, "FREE") == 0;
    allot_block block = {.address = now->offset,
                         .size = now->size,
                         .requested_size = now->size,
                         .stack = ALLOT_NONE,
                         .context = ALLOT_NONE,
                         .metadata = ALLOT_NONE,
                         .state = is_free ? ALLOT_BLOCK_INACTIVE : ALLOT_BLOCK_ALLOCATED};
    allot_status status = is_free ? ALLOT_STATUS_OK : block_metadata(state, &block.metadata);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&state->blocks, &state->block_capacity,
                                      state->block_count + 1, sizeof block);
    }
    if (status == ALLOT_STATUS_OK) {
        state->blocks[state->block_count++] = block;
    }
    return status;
}

/* The blocks must lie one after the other inside the segment; returns the bytes in use. */
static allot_status check_blocks(const vma_state *state, const alloti_json_token *token,
                                 uint64_t *used)
{
    uint64_t end = 0;
    *used = 0;
    for (uint64_t i = 0; i < state->block_count; i++) {
        const allot_block *const block = &state->blocks[i];
        if (block->address < end || block->address > state->total_bytes ||
            block->size > state->total_bytes - block->address) {
            return alloti_json_fail(token,
                                    "allocation %" PRIu64 " of the block, offset %" PRIu64
                                    ", size %" PRIu64 ", does not fit into it (%" PRIu64 " bytes)",
                                    i, block->address, block->size, state->total_bytes);
        }
        end = block->address + block->size;
        *used += block->state == ALLOT_BLOCK_ALLOCATED ? block->size : 0;
    }
    return ALLOT_STATUS_OK;
}

static allot_status lay_segment(memory_heap *heap, uint64_t size, const alloti_json_token *token,
                                uint64_t *address)
{
    uint64_t end = 0;
    if (!alloti_add(heap->next_address, size, &end) || !alloti_align_up(end, SEGMENT_ALIGN, &end)) {
        return alloti_json_fail(token, "the blocks of a heap are above 2^64 bytes together");
    }
    *address = heap->next_address;
    heap->next_address = end;
    return ALLOT_STATUS_OK;
}

/* Hand the segment and its blocks to the builder. */
static allot_status end_segment(vma_state *state, const alloti_json_token *token)
{
    memory_heap *const heap = &state->heaps[state->types[state->type].heap];
    uint64_t used = 0;
    uint64_t address = 0;
    allot_segment segment = {.total_size = state->total_bytes,
                             .stream = state->stream,
                             .stack = ALLOT_NONE,
                             .is_large = true};
    allot_status status = check_blocks(state, token, &used);
    if (status == ALLOT_STATUS_OK) {
        status = heap_device(state, heap);
    }
    if (status == ALLOT_STATUS_OK) {
        status = lay_segment(heap, state->total_bytes, token, &address);
    }
    if (status == ALLOT_STATUS_OK) {
        const uint64_t custom = state->in == SECTION_CUSTOM ? state->custom_count : 0;
        status = alloti_builder_intern_pool(
            state->builder, (allot_pool_id){.first = custom, .second = state->type}, &segment.pool);
    }
    segment.address = address;
    segment.device = heap->device;
    segment.allocated_size = segment.active_size = segment.requested_size = used;
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_segment(state->builder, &segment);
    }
    for (uint64_t i = 0; i < state->block_count && status == ALLOT_STATUS_OK; i++) {
        state->blocks[i].address += address;
        status = alloti_builder_add_block(state->builder, &state->blocks[i]);
    }
    state->block_count = 0;
    state->total_bytes = 0;
    state->segment_count++;
    return status;
}

static allot_status take_allocation_field(vma_state *state, const alloti_json_token *token)
{
    allocation *const now = &state->now;
    if (alloti_json_has_key(token, "Offset")) {
        return alloti_json_u64(token, &now->offset);
    }
    if (alloti_json_has_key(token, "Size")) {
        return alloti_json_u64(token, &now->size);
    }
    if (alloti_json_has_key(token, "Type") && token->type == ALLOTI_JSON_STRING) {
        copy_text(now->type, token->text, token->length);
    } else if (alloti_json_has_key(token, "Name") && token->type == ALLOTI_JSON_STRING) {
        copy_text(now->name, token->text, token->length);
    }
    return ALLOT_STATUS_OK;
}

/* An allocation object at `depth`, begin, fields and end. */
static allot_status take_allocation(vma_state *state, alloti_json_parser *json,
                                    const alloti_json_token *token, unsigned depth)
{
    if (token->depth == depth && token->type == ALLOTI_JSON_OBJECT_BEGIN) {
        state->now = (allocation){.offset = 0};
        return ALLOT_STATUS_OK;
    }
    if (token->depth == depth && token->type == ALLOTI_JSON_OBJECT_END) {
        const allot_status status = end_allocation(state);
        if (status != ALLOT_STATUS_OK || !state->is_dedicated) {
            return status;
        }
        state->total_bytes = state->now.size;
        return end_segment(state, token);
    }
    if (is_begin(token)) {
        alloti_json_skip(json);
        return ALLOT_STATUS_OK;
    }
    return token->depth == depth + 1 ? take_allocation_field(state, token) : ALLOT_STATUS_OK;
}

/* What lies in a pool, whose fields have depth `base`. */
static allot_status take_pool(vma_state *state, alloti_json_parser *json,
                              const alloti_json_token *token, unsigned base)
{
    if (token->depth == base) {
        state->is_dedicated = alloti_json_has_key(token, "DedicatedAllocations");
        if (is_begin(token) && !state->is_dedicated && !alloti_json_has_key(token, "Blocks")) {
            alloti_json_skip(json);
        }
        return ALLOT_STATUS_OK;
    }
    if (state->is_dedicated) {
        return take_allocation(state, json, token, base + 1);
    }
    if (token->depth == base + 1) { /* "Blocks": {ID: ... } */
        return token->type == ALLOTI_JSON_OBJECT_END ? end_segment(state, token) : ALLOT_STATUS_OK;
    }
    if (token->depth > base + 2) {
        return take_allocation(state, json, token, base + 3);
    }
    if (alloti_json_has_key(token, "TotalBytes")) {
        return alloti_json_u64(token, &state->total_bytes);
    }
    if (is_begin(token) && !alloti_json_has_key(token, "Suballocations")) {
        alloti_json_skip(json);
    }
    return ALLOT_STATUS_OK;
}

static allot_status take_section(vma_state *state, alloti_json_parser *json,
                                 const alloti_json_token *token)
{
    state->in = alloti_json_has_key(token, "MemoryInfo")     ? SECTION_MEMORY
                : alloti_json_has_key(token, "DefaultPools") ? SECTION_DEFAULT
                : alloti_json_has_key(token, "CustomPools")  ? SECTION_CUSTOM
                                                             : SECTION_OTHER;
    if (state->in == SECTION_OTHER && is_begin(token)) {
        alloti_json_skip(json);
    }
    return ALLOT_STATUS_OK;
}

static allot_status take(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    vma_state *const state = context;
    if (token->depth < DEPTH_SECTION) {
        return ALLOT_STATUS_OK;
    }
    if (token->depth == DEPTH_SECTION) {
        return take_section(state, json, token);
    }
    if (state->in == SECTION_MEMORY) {
        return take_memory(state, json, token);
    }
    if (token->depth == DEPTH_TYPE) {
        return is_begin(token) ? find_type(state, token, &state->type) : ALLOT_STATUS_OK;
    }
    if (state->in == SECTION_DEFAULT) {
        return take_pool(state, json, token, DEPTH_POOL);
    }
    if (token->depth == DEPTH_POOL) { /* one of a type's custom pools begins or ends */
        state->custom_count += token->type == ALLOTI_JSON_OBJECT_BEGIN;
        return ALLOT_STATUS_OK;
    }
    return take_pool(state, json, token, DEPTH_POOL + 1);
}

static allot_status read_vma(alloti_source *source, const alloti_progress *progress,
                             alloti_builder *builder)
{
    vma_state *const state = calloc(1, sizeof *state);
    if (state == NULL) {
        return alloti_fail_memory(sizeof *state);
    }
    state->builder = builder;
    allot_status status = alloti_builder_intern_stream(builder, 0, &state->stream);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_json_parse(source, progress, take, state);
    }
    if (status == ALLOT_STATUS_OK && state->segment_count == 0) {
        status = alloti_fail(ALLOT_STATUS_FORMAT,
                             "byte %" PRIu64 ": the dump lists no block; make it with a detailed "
                             "map (second argument of vmaBuildStatsString: VK_TRUE)",
                             alloti_source_offset(source));
    }
    free(state->blocks);
    free(state);
    return status;
}

static bool detect(const uint8_t *head, size_t size)
{
    const char *const text = (const char *)head;
    return alloti_text_first(text, size) == '{' && alloti_text_contains(text, size, "\"Total\"") &&
           (alloti_text_contains(text, size, "\"MemoryInfo\"") ||
            alloti_text_contains(text, size, "\"DefaultPools\""));
}

const alloti_reader alloti_reader_vma_json = {
    .format = ALLOT_TRACE_FORMAT_VMA_JSON, .detect = detect, .read = read_vma};
