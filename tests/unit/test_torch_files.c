/* SPDX-License-Identifier: MIT */
/* Recorded snapshots: how many devices, entries, segments and blocks each is known to hold. */
#include <allot/trace.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

typedef struct known {
    const char *path;
    uint32_t device_count;
    uint64_t event_count;
    uint32_t segment_count;
    uint32_t block_count;
    uint64_t reserved_mib;
    uint64_t active_mib;
} known;

static const known SNAPSHOTS[] = {
    {"snapshots/a1_legacy_history_oom.pickle", 1, 1, 176, 463, 11296, 11291},
    {"snapshots/a2_state_only_368seg.pickle", 2, 0, 368, 2530, 5222, 3669},
    {"snapshots/a3_trace_with_snapshot_events.pickle", 1, 5803, 10, 54, 128, 46},
    {"snapshots/a4_segment_free_churn_4dev.pickle", 4, 10327, 136, 204, 17706, 15448},
    {"snapshots/a5_state_16gib_kv.pickle", 1, 1, 259, 868, 16340, 15637},
    {"snapshots/a6_cpp_frames_small.pickle", 1, 5, 2, 79, 22, 6},
    {"snapshots/a7_cpp_frames_segment_free.pickle", 1, 3092, 8, 53, 21166, 1270},
    {"snapshots/a8_complete_history_train.pickle", 1, 11480, 83, 224, 1326, 443},
    {"snapshots/a9_complete_history_small.pickle", 1, 97, 9, 20, 3606, 30},
    {"snapshots/a10_windows_paths_user_metadata.pickle", 1, 5163, 216, 455, 13524, 1313},
    {"snapshots/a11_expandable_forward.pickle", 1, 5112, 2, 297, 13122, 13004},
    {"snapshots/a12_expandable_two_gpus_conf.pickle", 2, 0, 3, 10, 82, 16},
    {"snapshots/a13_list_pool_id_no_free_requested.pickle", 1, 1040, 5, 17, 250, 166},
    {"snapshots/a14_state_tiny.pickle", 1, 0, 12, 116, 104, 86},
    {"snapshots/a15_1423_segments_45gib.pickle", 1, 7600, 1423, 3211, 43612, 43018},
    {"snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle", 4, 596, 8, 32, 0, 384},
};

static uint64_t count_events(const allot_trace *trace)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        allot_events events;
        allot_trace_get_events(trace, i, &events);
        sum += events.count;
    }
    return sum;
}

static allot_trace *read_data(const char *relative)
{
    const char *const path = check_data(relative);
    if (path == NULL) {
        check_skip("the recorded snapshots are not there");
        return NULL;
    }
    allot_trace *trace = NULL;
    CHECK_OK(allot_trace_read(path, NULL, &trace));
    return trace;
}

static void check_known(const known *want)
{
    allot_trace *const trace = read_data(want->path);
    if (trace == NULL) {
        return;
    }
    uint32_t segment_count = 0;
    uint32_t block_count = 0;
    uint64_t reserved = 0;
    uint64_t active = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &segment_count);
    allot_trace_blocks(trace, &block_count);
    for (uint32_t i = 0; i < segment_count; i++) {
        reserved += segments[i].total_size;
        active += segments[i].active_size;
    }
    CHECK_EQ(allot_trace_device_count(trace), want->device_count);
    CHECK_EQ(count_events(trace), want->event_count);
    CHECK_EQ(segment_count, want->segment_count);
    CHECK_EQ(block_count, want->block_count);
    CHECK_EQ(active >> 20, want->active_mib);
    if (want->reserved_mib != 0) {
        CHECK_EQ(reserved >> 20, want->reserved_mib);
    }
    allot_trace_destroy(trace);
}

static void recorded_snapshots_hold_what_is_known_of_them(void)
{
    for (size_t i = 0; i < sizeof SNAPSHOTS / sizeof SNAPSHOTS[0]; i++) {
        check_known(&SNAPSHOTS[i]);
    }
}

/* 40 mappings, 6 unmappings and one failure that asked 5,308,694,528 bytes of 95,682,560. */
static void mappings_and_the_failure_of_an_expandable_run_are_there(void)
{
    allot_trace *const trace =
        read_data("snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle");
    if (trace == NULL) {
        return;
    }
    uint64_t counts[ALLOT_EVENT_KIND_COUNT] = {0};
    allot_events events;
    allot_trace_get_events(trace, allot_trace_main_device(trace), &events);
    for (uint64_t i = 0; i < events.count; i++) {
        counts[events.kind[i]]++;
        if (events.kind[i] == ALLOT_EVENT_OOM) {
            CHECK_EQ(events.size[i], UINT64_C(5308694528));
            CHECK_EQ(events.addr[i], 95682560);
        }
    }
    CHECK_EQ(counts[ALLOT_EVENT_SEGMENT_MAP], 40);
    CHECK_EQ(counts[ALLOT_EVENT_SEGMENT_UNMAP], 6);
    CHECK_EQ(counts[ALLOT_EVENT_OOM], 1);
    allot_trace_destroy(trace);
}

/* Every active block is its request rounded to 512 bytes, or that and an unsplit rest of 1 MiB. */
static void active_blocks_are_their_requests_rounded(void)
{
    for (size_t i = 0; i < sizeof SNAPSHOTS / sizeof SNAPSHOTS[0]; i++) {
        allot_trace *const trace = read_data(SNAPSHOTS[i].path);
        if (trace == NULL) {
            return;
        }
        uint32_t count = 0;
        const allot_block *const blocks = allot_trace_blocks(trace, &count);
        for (uint32_t k = 0; k < count; k++) {
            const uint64_t rounded = (blocks[k].requested_size + 511) / 512 * 512;
            if (blocks[k].state != ALLOT_BLOCK_INACTIVE) {
                REQUIRE(blocks[k].size >= rounded && blocks[k].size - rounded <= 1 << 20);
            }
        }
        allot_trace_destroy(trace);
    }
}

/* One file was not made by PyTorch's allocator: its segments have room behind their blocks. */
static void blocks_fill_their_segments(void)
{
    for (size_t i = 0; i < sizeof SNAPSHOTS / sizeof SNAPSHOTS[0]; i++) {
        if (strstr(SNAPSHOTS[i].path, "a13") != NULL) {
            continue;
        }
        allot_trace *const trace = read_data(SNAPSHOTS[i].path);
        if (trace == NULL) {
            return;
        }
        uint32_t segment_count = 0;
        uint32_t block_count = 0;
        const allot_segment *const segments = allot_trace_segments(trace, &segment_count);
        const allot_block *const blocks = allot_trace_blocks(trace, &block_count);
        for (uint32_t s = 0; s < segment_count; s++) {
            uint64_t address = segments[s].address;
            for (uint32_t k = 0; k < segments[s].block_count; k++) {
                const allot_block *const block = &blocks[segments[s].block_first + k];
                CHECK_EQ(block->address, address);
                address += block->size;
            }
            CHECK_EQ(address, segments[s].address + segments[s].total_size);
        }
        allot_trace_destroy(trace);
    }
}

static const char *const ORACLES[] = {"classic_fraction",
                                      "classic_pools",
                                      "classic_roomy",
                                      "classic_streams_tight",
                                      "classic_tight",
                                      "expandable_maxsplit_gc",
                                      "expandable_pools",
                                      "expandable_roomy",
                                      "expandable_round",
                                      "expandable_streams_tight",
                                      "expandable_tight",
                                      "finetune_11gib_oom",
                                      "finetune_80gib",
                                      "finetune_expandable_11gib",
                                      "gc06",
                                      "gc08_maxsplit",
                                      "maxsplit128_round",
                                      "maxsplit64",
                                      "round4",
                                      "round_list"};

/* Numbers of out-of-memory entries, in the same order. */
static const unsigned OOMS[] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 8, 3, 0, 4, 0, 0};

static void recorded_programs_have_their_out_of_memories(void)
{
    for (size_t i = 0; i < sizeof ORACLES / sizeof ORACLES[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "oracle/%s.pickle.gz", ORACLES[i]);
        allot_trace *const trace = read_data(path);
        if (trace == NULL) {
            return;
        }
        allot_events events;
        allot_trace_get_events(trace, 0, &events);
        unsigned count = 0;
        for (uint64_t k = 0; k < events.count; k++) {
            count += events.kind[k] == ALLOT_EVENT_OOM;
        }
        CHECK_EQ(count, OOMS[i]);
        CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_TIMES));
        CHECK(allot_trace_find_setting(trace, "roundup_power2_divisions.256") != NULL);
        allot_trace_destroy(trace);
    }
}

static const check_test TESTS[] = {
    {"recorded_snapshots_hold_what_is_known_of_them",
     recorded_snapshots_hold_what_is_known_of_them},
    {"mappings_and_the_failure_of_an_expandable_run_are_there",
     mappings_and_the_failure_of_an_expandable_run_are_there},
    {"active_blocks_are_their_requests_rounded", active_blocks_are_their_requests_rounded},
    {"blocks_fill_their_segments", blocks_fill_their_segments},
    {"recorded_programs_have_their_out_of_memories", recorded_programs_have_their_out_of_memories},
};
CHECK_MAIN(TESTS)
