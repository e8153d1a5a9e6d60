/* SPDX-License-Identifier: MIT */
/* Statistics dumps of the Vulkan and Direct3D 12 memory allocators. */
#include <string.h>

#include "support/check.h"
#include "support/read_text.h"

#define VMA ALLOT_TRACE_FORMAT_VMA_JSON

static const char DUMP[] =
    "{'General': {'API': 'Vulkan', 'list': [1]}, 'Total': {'BlockCount': 3},"
    "'MemoryInfo': {"
    "'Heap 0': {'Flags': [], 'Size': 99, 'Budget': {'UsageBytes': 1},"
    " 'MemoryPools': {'Type 1': {'Flags': ['HOST_VISIBLE']}}},"
    "'Heap 1': {'Flags': ['DEVICE_LOCAL'], 'MemoryPools': {'Type 0': {}, 'Type 2': {}}}},"
    "'DefaultPools': {'Type 0': {'PreferredBlockSize': 1, 'Blocks': {'7': {'MapRefCount': 0,"
    " 'TotalBytes': 1000, 'UnusedBytes': 300, 'Suballocations': ["
    "  {'Offset': 0, 'Type': 'BUFFER', 'Size': 700, 'Usage': 3, 'Name': 'mesh'},"
    "  {'Offset': 700, 'Type': 'FREE', 'Size': 300}]}},"
    " 'DedicatedAllocations': [{'Type': 'IMAGE_OPTIMAL', 'Size': 4096}]}},"
    "'CustomPools': {'Type 1': [{'Name': 'ring', 'Blocks': {}},"
    " {'Blocks': {'0': {'TotalBytes': 64, 'Suballocations': []}}}]}}";

static void blocks_become_segments_of_their_heap(void)
{
    allot_trace *const trace = read_json(DUMP, VMA);
    REQUIRE(trace != NULL);
    uint32_t segment_count = 0;
    uint32_t block_count = 0;
    const allot_segment *const s = allot_trace_segments(trace, &segment_count);
    const allot_block *const b = allot_trace_blocks(trace, &block_count);
    REQUIRE(segment_count == 3 && block_count == 3);
    CHECK_EQ(allot_trace_get_device(trace, s[0].device)->memory, ALLOT_MEMORY_DEVICE);
    CHECK_EQ(s[0].total_size, 1000);
    CHECK_EQ(s[0].allocated_size, 700);
    CHECK_EQ(allot_trace_pool(trace, s[0].pool).first, 0);
    CHECK_EQ(allot_trace_pool(trace, s[0].pool).second, 1); /* the second type of the file */
    CHECK_STR(allot_trace_string(trace, b[0].metadata, NULL), "BUFFER mesh");
    CHECK_EQ(b[0].state, ALLOT_BLOCK_ALLOCATED);
    CHECK_EQ(b[1].state, ALLOT_BLOCK_INACTIVE);
    CHECK_EQ(b[1].address - b[0].address, 700);
    CHECK_EQ(s[1].total_size, 4096);
    CHECK_EQ(s[1].allocated_size, 4096);
    CHECK_STR(allot_trace_string(trace, b[2].metadata, NULL), "IMAGE_OPTIMAL");
    CHECK_EQ(allot_trace_get_device(trace, s[2].device)->memory, ALLOT_MEMORY_CPU);
    CHECK_EQ(allot_trace_pool(trace, s[2].pool).first, 2); /* the second custom pool */
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENTS));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    allot_trace_destroy(trace);
}

static void direct3d_names_its_heaps_otherwise(void)
{
    allot_trace *const trace = read_json(
        "{'General': {'API': 'Direct3D 12'}, 'Total': {}, 'MemoryInfo': {"
        "'L0': {'Budget': {}, 'MemoryPools': {'DEFAULT': {}}},"
        "'L1': {'Budget': {}, 'MemoryPools': {'UPLOAD': {}}}},"
        "'DefaultPools': {'DEFAULT': {'Blocks': {'0': {'TotalBytes': 10, 'Suballocations': []}}},"
        "'UPLOAD': {'Blocks': {'0': {'TotalBytes': 20, 'Suballocations': []}}}}}",
        VMA);
    REQUIRE(trace != NULL);
    uint32_t count = 0;
    const allot_segment *const s = allot_trace_segments(trace, &count);
    REQUIRE(count == 2);
    CHECK_EQ(allot_trace_get_device(trace, s[0].device)->memory, ALLOT_MEMORY_DEVICE);
    CHECK_EQ(s[0].total_size, 10);
    CHECK_EQ(allot_trace_get_device(trace, s[1].device)->memory, ALLOT_MEMORY_CPU);
    allot_trace_destroy(trace);
}

static void errors_name_the_byte(void)
{
    check_refused_json("{'Total': {}, 'MemoryInfo': {}}", VMA,
                       "byte 31: the dump lists no block; make it with a detailed map");
    check_refused_json("{'DefaultPools': {'T': {'Blocks': {'0': {'TotalBytes': -1}}}}}", VMA,
                       "\"TotalBytes\" must be a whole number");
    check_refused_json("{'DefaultPools': {'T': {'Blocks': {'0': {'TotalBytes': 10,"
                       "'Suballocations': [{'Offset': 8, 'Type': 'BUFFER', 'Size': 3}]}}}}}",
                       VMA, "offset 8, size 3, does not fit into it (10 bytes)");
    check_refused_json(
        "{'DefaultPools': {'T': {'Blocks': {'0': {'TotalBytes': 10,"
        "'Suballocations': [{'Offset': 0, 'Size': 5}, {'Offset': 4, 'Size': 1}]}}}}}",
        VMA, "allocation 1 of the block, offset 4");
    check_refused_json("{'DefaultPools': ", VMA, "the file ends inside the JSON text");
}

/* The dump's own totals: 35 blocks on the host's heap, 34 on the GPU's, 132 allocations. */
static void the_sample_agrees_with_its_own_totals(void)
{
    const char *const path = check_data("snapshots/v1_vma_dump.json");
    if (path == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    uint32_t segment_count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &segment_count);
    uint64_t held[3] = {0};
    uint64_t used[3] = {0};
    uint32_t counts[3] = {0};
    for (uint32_t i = 0; i < segment_count; i++) {
        const allot_memory_kind memory = allot_trace_get_device(trace, segments[i].device)->memory;
        held[memory] += segments[i].total_size;
        used[memory] += segments[i].allocated_size;
        counts[memory]++;
    }
    CHECK_EQ(counts[ALLOT_MEMORY_CPU], 35);
    CHECK_EQ(held[ALLOT_MEMORY_CPU], 117473280);
    CHECK_EQ(used[ALLOT_MEMORY_CPU], 33619968);
    CHECK_EQ(counts[ALLOT_MEMORY_DEVICE], 34);
    CHECK_EQ(held[ALLOT_MEMORY_DEVICE], 83918848);
    CHECK_EQ(used[ALLOT_MEMORY_DEVICE], 39781532);
    uint32_t block_count = 0;
    const allot_block *const blocks = allot_trace_blocks(trace, &block_count);
    uint32_t allocated = 0;
    for (uint32_t i = 0; i < block_count; i++) {
        allocated += blocks[i].state == ALLOT_BLOCK_ALLOCATED;
    }
    CHECK_EQ(allocated, 132);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"blocks_become_segments_of_their_heap", blocks_become_segments_of_their_heap},
    {"direct3d_names_its_heaps_otherwise", direct3d_names_its_heaps_otherwise},
    {"errors_name_the_byte", errors_name_the_byte},
    {"the_sample_agrees_with_its_own_totals", the_sample_agrees_with_its_own_totals},
};
CHECK_MAIN(TESTS)
