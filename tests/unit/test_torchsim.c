/* SPDX-License-Identifier: MIT */
/* The allocator's rules, one by one. */
#include "torchsim/sim.h"

#include "support/check.h"

#include <string.h>

#define MIB (1ull << 20)
#define BASE 0x7f0000000000ull

static allot_torchsim *make(const char *settings, uint64_t limit, double fraction, uint32_t version)
{
    allot_torch_conf conf;
    allot_torchsim *sim = NULL;
    if (CHECK_OK(allot_torch_conf_parse(settings, &conf, NULL))) {
        const allot_torchsim_options options = {.struct_size = sizeof(options),
                                                .conf = &conf,
                                                .limit = limit,
                                                .fraction = fraction,
                                                .version = version};
        CHECK_OK(allot_torchsim_create(&options, &sim));
    }
    return sim;
}

/** Allocate on stream 0 of the default pool; the block's name. */
static uint32_t take(allot_torchsim *sim, uint64_t size)
{
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_alloc(sim, size, 0, ALLOT_NONE, &block));
    CHECK(alloti_torchsim_check(sim));
    return block;
}

static void give(allot_torchsim *sim, uint32_t block)
{
    CHECK_OK(allot_torchsim_free(sim, block));
    CHECK(alloti_torchsim_check(sim));
}

static uint64_t address_of(const allot_torchsim *sim, uint32_t block)
{
    allot_torch_block content = {.address = 0};
    CHECK_OK(allot_torchsim_get_block(sim, block, &content));
    return content.address - BASE;
}

static uint64_t size_of(const allot_torchsim *sim, uint32_t block)
{
    allot_torch_block content = {.size = 0};
    CHECK_OK(allot_torchsim_get_block(sim, block, &content));
    return content.size;
}

static uint64_t reserved(const allot_torchsim *sim)
{
    return allot_torchsim_get_stats(sim)->reserved.now;
}

static void requests_are_rounded_to_512_bytes(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    CHECK_EQ(alloti_sim_round_size(sim, 1), 512);
    CHECK_EQ(alloti_sim_round_size(sim, 512), 512);
    CHECK_EQ(alloti_sim_round_size(sim, 513), 1024);
    CHECK_EQ(alloti_sim_round_size(sim, 3 * MIB + 1), 3 * MIB + 512);
    allot_torchsim_destroy(sim);
}

static void divisions_round_to_steps_between_powers_of_two(void)
{
    allot_torchsim *sim = make("roundup_power2_divisions:4", 0, 0, 0);
    CHECK_EQ(alloti_sim_round_size(sim, 2048), 2048);
    CHECK_EQ(alloti_sim_round_size(sim, 1200), 1536);
    CHECK_EQ(alloti_sim_round_size(sim, 1200 * 1024), 1280 * 1024);
    CHECK_EQ(alloti_sim_round_size(sim, 5 * MIB), 5 * MIB);
    CHECK_EQ(alloti_sim_round_size(sim, 5 * MIB + 1), 6 * MIB);
    allot_torchsim_destroy(sim);
    sim = make("roundup_power2_divisions:[2:2,4:1,>:8]", 0, 0, 0);
    CHECK_EQ(alloti_sim_round_size(sim, MIB + 1), MIB + MIB / 2);
    CHECK_EQ(alloti_sim_round_size(sim, 2 * MIB + 1), 3 * MIB);
    CHECK_EQ(alloti_sim_round_size(sim, 4 * MIB + 1), 4 * MIB + 512);
    CHECK_EQ(alloti_sim_round_size(sim, 8 * MIB + 1), 9 * MIB);
    CHECK_EQ(alloti_sim_round_size(sim, (64ull << 30) + 1), 72ull << 30);
    allot_torchsim_destroy(sim);
}

static void segments_are_of_2_or_20_mib_or_as_large_as_the_request(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    take(sim, 1);
    CHECK_EQ(reserved(sim), 2 * MIB);
    take(sim, MIB + 1);
    CHECK_EQ(reserved(sim), 22 * MIB);
    take(sim, 29 * MIB);
    CHECK_EQ(reserved(sim), 52 * MIB);
    allot_torchsim_destroy(sim);
    sim = make("large_segment_size_mb:12", 0, 0, 0);
    take(sim, 5 * MIB);
    CHECK_EQ(reserved(sim), 12 * MIB);
    allot_torchsim_destroy(sim);
}

static void a_rest_is_split_off_if_it_is_large_enough(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    CHECK_EQ(size_of(sim, take(sim, 19 * MIB)), 20 * MIB); /* The rest is 1 MiB: kept. */
    CHECK_EQ(size_of(sim, take(sim, 9 * MIB)), 9 * MIB);
    CHECK_EQ(size_of(sim, take(sim, 700)), 1024);
    CHECK_EQ(allot_torchsim_get_stats(sim)->inactive_split.now, 11 * MIB + 2 * MIB - 1024);
    allot_torchsim_destroy(sim);
}

static void the_smallest_block_that_fits_is_taken_then_the_lowest(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    const uint32_t large = take(sim, 40 * MIB);
    const uint32_t first = take(sim, 20 * MIB);
    const uint32_t second = take(sim, 20 * MIB);
    give(sim, large);
    give(sim, second);
    give(sim, first);
    CHECK_EQ(address_of(sim, take(sim, 20 * MIB)), 40 * MIB);
    CHECK_EQ(address_of(sim, take(sim, 20 * MIB)), 60 * MIB);
    CHECK_EQ(address_of(sim, take(sim, 20 * MIB)), 0);
    allot_torchsim_destroy(sim);
}

static void streams_do_not_share_cached_blocks(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    give(sim, take(sim, 30 * MIB));
    uint32_t block = 0;
    CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 5, ALLOT_NONE, &block));
    CHECK_EQ(address_of(sim, block), 30 * MIB);
    allot_torchsim_destroy(sim);
}

static void a_free_merges_with_both_neighbours(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    const uint32_t a = take(sim, 4 * MIB);
    const uint32_t b = take(sim, 4 * MIB);
    const uint32_t c = take(sim, 4 * MIB);
    give(sim, a);
    give(sim, c);
    CHECK_EQ(alloti_torchsim_largest_free(sim), 12 * MIB);
    give(sim, b);
    CHECK_EQ(alloti_torchsim_largest_free(sim), 20 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->inactive_split.now, 0);
    allot_torchsim_destroy(sim);
}

static void max_split_keeps_large_blocks_whole(void)
{
    allot_torchsim *sim = make("max_split_size_mb:30", 0, 0, 0);
    const uint32_t large = take(sim, 60 * MIB);
    give(sim, large);
    CHECK_EQ(address_of(sim, take(sim, 15 * MIB)), 60 * MIB); /* Not out of the large block. */
    CHECK_EQ(address_of(sim, take(sim, 39 * MIB)), 76 * MIB); /* 21 MiB too large for it. */
    const uint32_t fits = take(sim, 41 * MIB);
    CHECK_EQ(address_of(sim, fits), 0);
    CHECK_EQ(size_of(sim, fits), 60 * MIB);
    allot_torchsim_destroy(sim);
}

static void a_miss_releases_oversize_blocks_before_everything(void)
{
    allot_torchsim *sim = make("max_split_size_mb:30", 200 * MIB, 0, 0);
    const uint32_t a = take(sim, 40 * MIB);
    const uint32_t b = take(sim, 60 * MIB);
    const uint32_t c = take(sim, 20 * MIB);
    give(sim, a);
    give(sim, b);
    give(sim, c);
    take(sim, 85 * MIB); /* 80 MiB are left; 60 are released, which is enough. */
    CHECK_EQ(allot_torchsim_get_stats(sim)->retry_count, 0);
    CHECK_EQ(allot_torchsim_get_stats(sim)->driver_free_count, 2);
    CHECK_EQ(reserved(sim), 20 * MIB + 86 * MIB);
    allot_torchsim_destroy(sim);
}

static void the_last_resort_is_to_release_every_unsplit_block(void)
{
    allot_torchsim *sim = make("", 100 * MIB, 0, 0);
    const uint32_t a = take(sim, 40 * MIB);
    const uint32_t b = take(sim, 40 * MIB);
    const uint32_t c = take(sim, 4 * MIB);
    give(sim, a);
    give(sim, b);
    take(sim, 60 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->retry_count, 1);
    CHECK_EQ(reserved(sim), 80 * MIB);
    give(sim, c);
    allot_torchsim_destroy(sim);
}

static void an_out_of_memory_says_whether_bytes_or_ranges_are_missing(void)
{
    allot_torchsim *sim = make("", 100 * MIB, 0, 0);
    uint32_t blocks[5];
    for (int i = 0; i < 5; i++) {
        blocks[i] = take(sim, 9 * MIB);
    }
    uint32_t none = 0;
    CHECK_EQ(allot_torchsim_alloc(sim, 101 * MIB, 0, ALLOT_NONE, &none),
             ALLOT_STATUS_DEVICE_MEMORY);
    for (int i = 0; i < 5; i += 2) {
        give(sim, blocks[i]);
    }
    const allot_status status = allot_torchsim_alloc(sim, 62 * MIB, 0, ALLOT_NONE, &none);
    CHECK_EQ(status, ALLOT_STATUS_FRAGMENTED);
    CHECK_CONTAINS(allot_error_detail(), "asked 62.0 MiB");
    CHECK_EQ(allot_torchsim_get_stats(sim)->oom_count, 2);
    CHECK(alloti_torchsim_check(sim));
    allot_torchsim_destroy(sim);
}

static void a_fraction_limits_below_the_device(void)
{
    allot_torchsim *sim = make("", 100 * MIB, 0.5, 0);
    take(sim, 40 * MIB);
    uint32_t none = 0;
    CHECK_EQ(allot_torchsim_alloc(sim, 12 * MIB, 0, ALLOT_NONE, &none), ALLOT_STATUS_DEVICE_MEMORY);
    take(sim, 10 * MIB);
    allot_torchsim_destroy(sim);
    sim = make("per_process_memory_fraction:0.2", 100 * MIB, 0, 0);
    CHECK_EQ(allot_torchsim_alloc(sim, 22 * MIB, 0, ALLOT_NONE, &none), ALLOT_STATUS_DEVICE_MEMORY);
    allot_torchsim_destroy(sim);
}

/** Blocks that collection frees when 110 of 200 MiB are held and half is allowed. */
static void check_collection(uint32_t version, double fraction, uint64_t expected)
{
    allot_torchsim *sim = make("garbage_collection_threshold:0.5", 200 * MIB, fraction, version);
    give(sim, take(sim, 40 * MIB));
    take(sim, 70 * MIB);
    const uint64_t before = allot_torchsim_get_stats(sim)->driver_free_count;
    take(sim, 60 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->driver_free_count - before, expected);
    allot_torchsim_destroy(sim);
}

static void garbage_collection_needs_a_fraction(void)
{
    allot_torchsim *sim = make("garbage_collection_threshold:0.5", 200 * MIB, 0, 0);
    give(sim, take(sim, 120 * MIB));
    take(sim, 2 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->driver_free_count, 0);
    allot_torchsim_destroy(sim);
    sim = make("garbage_collection_threshold:0.5", 200 * MIB, 0.99, 0);
    give(sim, take(sim, 120 * MIB));
    take(sim, 130 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->driver_free_count, 1);
    CHECK_EQ(allot_torchsim_get_stats(sim)->retry_count, 0);
    allot_torchsim_destroy(sim);
}

static void a_fraction_of_one_is_a_limit_until_2_9(void)
{
    check_collection(209, 1, 1);
    check_collection(210, 1, 0);
}

static void a_block_used_elsewhere_waits(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    const uint32_t block = take(sim, 30 * MIB);
    CHECK_OK(allot_torchsim_record_stream(sim, block, 0)); /* Its own stream: nothing. */
    CHECK_OK(allot_torchsim_record_stream(sim, block, 9));
    give(sim, block);
    CHECK_EQ(allot_torchsim_get_stats(sim)->allocated.now, 0);
    CHECK_EQ(allot_torchsim_get_stats(sim)->active.now, 30 * MIB);
    CHECK_EQ(address_of(sim, take(sim, 30 * MIB)), 0); /* Done at the next allocation. */
    allot_torchsim_destroy(sim);
}

static void completion_on_call_waits_for_the_call(void)
{
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .completion = ALLOT_TORCH_COMPLETE_ON_CALL};
    allot_torchsim *sim = NULL;
    REQUIRE_OK(allot_torchsim_create(&options, &sim));
    const uint32_t block = take(sim, 30 * MIB);
    CHECK_OK(allot_torchsim_record_stream(sim, block, 9));
    CHECK_EQ(allot_torchsim_complete(sim, block), ALLOT_STATUS_INVALID);
    give(sim, block);
    const uint32_t other = take(sim, 30 * MIB);
    CHECK_EQ(address_of(sim, other), 30 * MIB);
    CHECK_OK(allot_torchsim_complete(sim, block));
    CHECK_EQ(address_of(sim, take(sim, 30 * MIB)), 0);
    CHECK(alloti_torchsim_check(sim));
    allot_torchsim_destroy(sim);
}

static void check_capture(uint32_t version)
{
    allot_torchsim *sim = make("", 0, 0, version);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .is_graph = true};
    uint32_t pool = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    const uint32_t before = take(sim, 30 * MIB);
    CHECK_OK(allot_torchsim_record_stream(sim, before, 9));
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    give(sim, before);
    uint32_t captured = ALLOT_NONE;
    CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 0, pool, &captured));
    CHECK_EQ(address_of(sim, captured), 30 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->active.now, 60 * MIB);
    const uint32_t inside = take(sim, 12 * MIB);
    CHECK_OK(allot_torchsim_record_stream(sim, inside, 9));
    give(sim, inside);
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    CHECK_EQ(address_of(sim, take(sim, 30 * MIB)), 0);
    CHECK_EQ(address_of(sim, take(sim, 12 * MIB)), 60 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->active.now,
             allot_torchsim_get_stats(sim)->allocated.now);
    allot_torchsim_destroy(sim);
}

static void in_a_capture_shared_blocks_wait_until_its_end(void)
{
    check_capture(211);
    check_capture(0);
}

/** Freed in a capture, a shared block is found by a request outside of it, or is not. */
static void check_beside_capture(uint32_t version, bool is_graph, uint64_t expected_address)
{
    allot_torchsim *sim = make("", 0, 0, version);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .is_graph = is_graph};
    uint32_t pool = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    const uint32_t block = take(sim, 30 * MIB);
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    CHECK_OK(allot_torchsim_record_stream(sim, block, 9));
    give(sim, block);
    CHECK_EQ(address_of(sim, take(sim, 30 * MIB)), expected_address);
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    allot_torchsim_destroy(sim);
}

static void beside_a_capture_shared_blocks_wait_up_to_2_12(void)
{
    check_beside_capture(212, true, 30 * MIB);
    check_beside_capture(212, false, 30 * MIB);
    check_beside_capture(213, true, 0);
    check_beside_capture(213, false, 0);
}

/** Whether a request to a private pool makes the default one give its cache back. */
static void check_pressure(uint32_t version, bool is_graph, allot_status expected)
{
    allot_torchsim *sim = make("", 100 * MIB, 0, version);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .is_graph = is_graph};
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    give(sim, take(sim, 60 * MIB));
    CHECK_EQ(allot_torchsim_alloc(sim, 60 * MIB, 0, pool, &block), expected);
    allot_torchsim_destroy(sim);
}

static void a_request_to_a_mempool_releases_the_cache_from_2_14_on(void)
{
    check_pressure(211, false, ALLOT_STATUS_FRAGMENTED);
    check_pressure(215, false, ALLOT_STATUS_OK);
    check_pressure(211, true, ALLOT_STATUS_FRAGMENTED);
    check_pressure(215, true, ALLOT_STATUS_FRAGMENTED);
}

static void a_dropped_pool_gives_only_its_own_segments_back(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    uint32_t shared = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, NULL, &pool));
    give(sim, take(sim, 30 * MIB));
    CHECK_OK(allot_torchsim_alloc(sim, 40 * MIB, 0, pool, &block));
    CHECK_OK(allot_torchsim_alloc(sim, 50 * MIB, 0, pool, &shared));
    CHECK_OK(allot_torchsim_record_stream(sim, shared, 9));
    give(sim, block);
    give(sim, shared);
    CHECK_OK(allot_torchsim_pool_empty_cache(sim, pool));
    CHECK_EQ(reserved(sim), 120 * MIB);
    CHECK_OK(allot_torchsim_pool_release(sim, pool));
    CHECK_OK(allot_torchsim_pool_empty_cache(sim, pool));
    CHECK(alloti_torchsim_check(sim));
    CHECK_EQ(reserved(sim), 30 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->sync_count, 1);
    CHECK_EQ(allot_torchsim_pool_empty_cache(sim, 7), ALLOT_STATUS_INVALID);
    allot_torchsim_destroy(sim);
}

static void check_release_in_mempool(uint32_t version, uint64_t expected)
{
    allot_torchsim *sim = make("", 0, 0, version);
    uint32_t other = ALLOT_NONE;
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, NULL, &other));
    CHECK_OK(allot_torchsim_pool_create(sim, NULL, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 40 * MIB, 0, other, &block));
    give(sim, block);
    CHECK_OK(allot_torchsim_pool_release(sim, other));
    give(sim, take(sim, 30 * MIB));
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(reserved(sim), expected);
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    allot_torchsim_destroy(sim);
}

static void a_release_inside_use_mem_pool_depends_on_the_release(void)
{
    check_release_in_mempool(206, 70 * MIB);
    check_release_in_mempool(211, 30 * MIB);
    check_release_in_mempool(215, 0);
}

/** Nothing is released, no out-of-memory counted: the request would have passed otherwise. */
static void throwing_early_fails_with_the_cache_full(void)
{
    allot_torchsim *sim = make("throw_on_cudamalloc_oom:True", 100 * MIB, 0, 0);
    uint32_t block = ALLOT_NONE;
    give(sim, take(sim, 60 * MIB));
    CHECK_EQ(allot_torchsim_alloc(sim, 70 * MIB, 0, ALLOT_NONE, &block),
             ALLOT_STATUS_DEVICE_MEMORY);
    const allot_torch_stats *stats = allot_torchsim_get_stats(sim);
    CHECK_EQ(stats->reserved.now, 60 * MIB);
    CHECK_EQ(stats->rejection_count, 1);
    CHECK_EQ(stats->oom_count, 0);
    CHECK_EQ(stats->retry_count, 0);
    take(sim, 40 * MIB);
    allot_torchsim_destroy(sim);
}

/** A fraction set by a call refuses first, and then the cache is released as ever. */
static void a_fraction_refuses_before_throwing_early(void)
{
    allot_torchsim *sim = make("throw_on_cudamalloc_oom:True", 100 * MIB, 0.8, 0);
    give(sim, take(sim, 60 * MIB));
    take(sim, 70 * MIB);
    CHECK_EQ(allot_torchsim_get_stats(sim)->retry_count, 1);
    CHECK_EQ(allot_torchsim_get_stats(sim)->rejection_count, 0);
    allot_torchsim_destroy(sim);
}

static void a_private_pool_keeps_its_segments_until_released(void)
{
    allot_torchsim *sim = make("", 100 * MIB, 0, 0);
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, NULL, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 60 * MIB, 0, pool, &block));
    give(sim, block);
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(reserved(sim), 60 * MIB);
    CHECK_EQ(allot_torchsim_alloc(sim, 60 * MIB, 0, ALLOT_NONE, &block), ALLOT_STATUS_FRAGMENTED);
    CHECK_OK(allot_torchsim_pool_release(sim, pool));
    take(sim, 60 * MIB);
    CHECK_EQ(allot_torchsim_alloc(sim, 1, 0, pool, &block), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_pool_release(sim, pool), ALLOT_STATUS_INVALID);
    allot_torchsim_destroy(sim);
}

/** A pool that offers itself serves the default pool when the driver refuses. */
static void check_offered_pool(uint32_t version, uint64_t expected_reserved)
{
    allot_torchsim *sim = make("", 90 * MIB, 0, version);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .use_on_oom = true};
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 50 * MIB, 0, pool, &block));
    give(sim, block);
    give(sim, take(sim, 30 * MIB));
    block = take(sim, 50 * MIB);
    CHECK_EQ(address_of(sim, block), 0);
    CHECK_EQ(reserved(sim), expected_reserved);
    allot_torchsim_destroy(sim);
}

static void an_offered_pool_is_used_before_or_after_the_releases(void)
{
    check_offered_pool(0, 80 * MIB);
    check_offered_pool(211, 80 * MIB);
    check_offered_pool(210, 50 * MIB);
}

static void a_pool_may_forbid_splits(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .no_split = true};
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 100, 0, pool, &block));
    CHECK_EQ(size_of(sim, block), 2 * MIB);
    allot_torchsim_destroy(sim);
}

static void a_pool_with_an_allocator_is_never_expandable(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 0, 0, 0);
    const allot_torch_pool_options options = {.struct_size = sizeof(options),
                                              .has_allocator = true};
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 0, pool, &block));
    CHECK_EQ(allot_torchsim_get_stats(sim)->range_map_count, 0);
    CHECK_EQ(allot_torchsim_get_stats(sim)->segment_count.now, 1);
    allot_torchsim_destroy(sim);
}

static void expandable_ranges_grow_by_pages(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    const uint32_t a = take(sim, 30 * MIB);
    CHECK_EQ(reserved(sim), 40 * MIB);
    const uint32_t b = take(sim, 30 * MIB);
    CHECK_EQ(reserved(sim), 60 * MIB);
    CHECK_EQ(address_of(sim, b), 30 * MIB);
    take(sim, 100);
    CHECK_EQ(reserved(sim), 62 * MIB);
    /* The small range lies behind the large one: 9/8 of 1 GiB in pages of 20 MiB. */
    CHECK_EQ(address_of(sim, take(sim, 100)), 1160 * MIB + 512);
    give(sim, a);
    give(sim, b);
    allot_torchsim_destroy(sim);
}

static void a_release_unmaps_whole_pages_and_gives_empty_ranges_back(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    const uint32_t a = take(sim, 30 * MIB);
    const uint32_t b = take(sim, 30 * MIB);
    give(sim, a);
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK(alloti_torchsim_check(sim));
    CHECK_EQ(reserved(sim), 40 * MIB); /* The page that b shares stays. */
    CHECK_EQ(address_of(sim, take(sim, 25 * MIB)), 0);
    give(sim, b);
    CHECK_EQ(allot_torchsim_get_stats(sim)->page_unmap_count, 1);
    allot_torchsim_destroy(sim);
    sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    give(sim, take(sim, 30 * MIB));
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(reserved(sim), 0);
    CHECK_EQ(address_of(sim, take(sim, 30 * MIB)), 1160 * MIB);
    allot_torchsim_destroy(sim);
}

static void blocks_that_cannot_grow_are_preferred(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    const uint32_t hole = take(sim, 38 * MIB);
    const uint32_t wall = take(sim, 10 * MIB);
    const uint32_t end = take(sim, 30 * MIB);
    give(sim, end);
    give(sim, hole);
    /* 32 MiB are free at the end, 38 in the hole: the end counts as 1 GiB. */
    CHECK_EQ(address_of(sim, take(sim, 25 * MIB)), 0);
    give(sim, wall);
    allot_torchsim_destroy(sim);
}

static void a_reserve_setting_bounds_a_single_request(void)
{
    allot_torchsim *sim =
        make("expandable_segments:True,expandable_segments_reserve:0.1", 1000 * MIB, 0, 0);
    uint32_t block = 0;
    CHECK_EQ(allot_torchsim_alloc(sim, 200 * MIB, 0, ALLOT_NONE, &block), ALLOT_STATUS_FRAGMENTED);
    take(sim, 90 * MIB);
    take(sim, 90 * MIB); /* A second range. */
    CHECK_EQ(reserved(sim), 200 * MIB);
    allot_torchsim_destroy(sim);
}

/** Both attempts to serve the request reserve a range of 100 MiB in vain. */
static void a_range_too_small_is_reserved_and_given_back(void)
{
    allot_torchsim *sim =
        make("expandable_segments:True,expandable_segments_reserve:0.1", 1000 * MIB, 0, 0);
    uint32_t block = 0;
    CHECK_EQ(allot_torchsim_alloc(sim, 200 * MIB, 0, ALLOT_NONE, &block), ALLOT_STATUS_FRAGMENTED);
    CHECK_EQ(address_of(sim, take(sim, 90 * MIB)), 200 * MIB);
    CHECK_EQ(address_of(sim, take(sim, 90 * MIB)), 300 * MIB);
    allot_torchsim_destroy(sim);
}

/** Pools numbered from 1 that offer themselves; requests are served by them in an order. [count] */
static void check_offered_order(uint64_t count, const uint64_t *order)
{
    allot_torchsim *sim = make("", 40 * MIB * count, 0, 0);
    uint32_t blocks[8];
    for (uint64_t i = 0; i < count; i++) {
        const allot_torch_pool_options options = {
            .struct_size = sizeof(options), .use_on_oom = true, .number = i + 1};
        uint32_t pool = ALLOT_NONE;
        CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
        CHECK_OK(allot_torchsim_alloc(sim, 40 * MIB, 0, pool, &blocks[i]));
    }
    for (uint64_t i = 0; i < count; i++) {
        give(sim, blocks[i]);
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(address_of(sim, take(sim, 40 * MIB)), 40 * MIB * (order[i] - 1));
    }
    allot_torchsim_destroy(sim);
}

static void offered_pools_come_in_the_order_of_a_hash_table(void)
{
    check_offered_order(2, (uint64_t[]){2, 1});
    check_offered_order(5, (uint64_t[]){5, 2, 4, 1, 3});
}

static void a_dropped_pool_offers_nothing(void)
{
    allot_torchsim *sim = make("", 90 * MIB, 0, 0);
    const allot_torch_pool_options options = {.struct_size = sizeof(options), .use_on_oom = true};
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    uint32_t rest = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, &options, &pool));
    CHECK_OK(allot_torchsim_alloc(sim, 60 * MIB, 0, pool, &block));
    give(sim, block);
    CHECK_OK(allot_torchsim_alloc(sim, 10 * MIB, 0, pool, &rest));
    CHECK_OK(allot_torchsim_pool_release(sim, pool));
    CHECK_EQ(allot_torchsim_alloc(sim, 40 * MIB, 0, ALLOT_NONE, &block), ALLOT_STATUS_FRAGMENTED);
    allot_torchsim_destroy(sim);
}

static void whole_blocks_may_exceed_a_request_by_a_segment(void)
{
    allot_torchsim *sim = make("max_split_size_mb:512,large_segment_size_mb:100", 0, 0, 0);
    give(sim, take(sim, 622 * MIB));
    const uint32_t block = take(sim, 522 * MIB);
    CHECK_EQ(address_of(sim, block), 622 * MIB);
    CHECK_EQ(address_of(sim, take(sim, 523 * MIB)), 0);
    allot_torchsim_destroy(sim);
}

static void peaks_begin_again_where_they_are_reset(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    const uint32_t block = take(sim, 30 * MIB);
    take(sim, 10 * MIB);
    give(sim, block);
    allot_torchsim_reset_peaks(sim);
    const allot_torch_stats *stats = allot_torchsim_get_stats(sim);
    CHECK_EQ(stats->allocated.peak, 10 * MIB);
    CHECK_EQ(stats->reserved.peak, 40 * MIB);
    take(sim, 5 * MIB);
    CHECK_EQ(stats->allocated.peak, 15 * MIB);
    allot_torchsim_destroy(sim);
}

static void mistakes_are_refused(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    uint32_t block = 77;
    CHECK_EQ(allot_torchsim_alloc(sim, 0, 0, ALLOT_NONE, &block), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_alloc(sim, UINT64_MAX, 0, ALLOT_NONE, &block), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_alloc(sim, 1, 0, 0, &block), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_free(sim, 5), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_record_stream(sim, 5, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_pool_begin(sim, 0), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_torchsim_pool_end(sim, 0), ALLOT_STATUS_INVALID);
    CHECK_EQ(block, 77);
    block = take(sim, 1);
    give(sim, block);
    CHECK_EQ(allot_torchsim_free(sim, block), ALLOT_STATUS_INVALID);
    allot_torch_block content;
    CHECK_EQ(allot_torchsim_get_block(sim, block, &content), ALLOT_STATUS_INVALID);
    allot_torchsim_destroy(sim);
    allot_torchsim_destroy(NULL);
}

static void options_are_checked(void)
{
    allot_torchsim *sim = NULL;
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    allot_torchsim_options options = {.struct_size = sizeof(options), .fraction = 0.5};
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_INVALID);
    options.limit = MIB;
    options.fraction = 1.5;
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_INVALID);
    options.fraction = 0;
    options.version = 199;
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_INVALID);
    options.version = 0;
    const allot_torch_driver half = {.struct_size = sizeof(half)};
    options.driver = &half;
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_INVALID);
    options.driver = NULL;
    conf.backend = ALLOT_TORCH_BACKEND_ASYNC;
    options.conf = &conf;
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_UNSUPPORTED);
    CHECK(sim == NULL);
}

static void a_copy_goes_its_own_way(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    const uint32_t block = take(sim, 30 * MIB);
    allot_torchsim *copy = NULL;
    REQUIRE_OK(allot_torchsim_clone(sim, &copy));
    give(copy, block);
    take(copy, 100 * MIB);
    CHECK_EQ(reserved(sim), 40 * MIB);
    CHECK_EQ(reserved(copy), 100 * MIB);
    CHECK(alloti_torchsim_check(sim));
    CHECK(alloti_torchsim_check(copy));
    allot_torchsim_destroy(copy);
    give(sim, block);
    allot_torchsim_destroy(sim);
}

/** Sums of a walk. */
typedef struct walked {
    uint64_t mapped;
    uint64_t unmapped;
    uint64_t allocated;
    uint64_t count;
} walked;

static bool add_up(void *context, const allot_torch_block *block)
{
    walked *sum = context;
    sum->count++;
    sum->mapped += block->is_mapped ? block->size : 0;
    sum->unmapped += block->is_mapped ? 0 : block->size;
    sum->allocated += block->state == ALLOT_BLOCK_ALLOCATED ? block->size : 0;
    CHECK_EQ(block->block == ALLOT_NONE, block->state == ALLOT_BLOCK_INACTIVE);
    return sum->count < 3;
}

static void a_walk_sees_every_block_and_can_stop(void)
{
    allot_torchsim *sim = make("expandable_segments:True", 1024 * MIB, 0, 0);
    take(sim, 30 * MIB);
    walked sum = {0};
    allot_torchsim_walk(sim, add_up, &sum);
    CHECK_EQ(sum.count, 3);
    CHECK_EQ(sum.mapped, 40 * MIB);
    CHECK_EQ(sum.unmapped, 1120 * MIB);
    CHECK_EQ(sum.allocated, 30 * MIB);
    take(sim, 100);
    sum = (walked){0};
    allot_torchsim_walk(sim, add_up, &sum);
    CHECK_EQ(sum.count, 3);
    allot_torchsim_destroy(sim);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static void a_refused_segment_leaves_the_built_in_driver_as_it_was(void)
{
    const uint64_t quarter = 1ull << 62;
    allot_torchsim *sim = make("", 0, 0, 0);
    REQUIRE(sim != NULL);
    for (int i = 0; i < 3; i++) {
        take(sim, quarter);
    }
    /* The bytes of the fourth are there, its addresses are not. */
    uint32_t block = ALLOT_NONE;
    CHECK_EQ(allot_torchsim_alloc(sim, quarter - 2 * MIB, 0, ALLOT_NONE, &block),
             ALLOT_STATUS_FRAGMENTED);
    CHECK_EQ(block, ALLOT_NONE);
    CHECK(alloti_torchsim_check(sim));
    allot_torchsim_destroy(sim);
}

static void a_table_of_another_size_is_understood_or_refused(void)
{
    allot_torch_driver driver = {.struct_size = 0};
    const allot_torchsim_options options = {.struct_size = sizeof(options), .driver = &driver};
    allot_torchsim *sim = NULL;
    CHECK_EQ(allot_torchsim_create(&options, &sim), ALLOT_STATUS_INVALID);
    CHECK(strstr(allot_error_detail(), "struct_size") != NULL);
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    conf.struct_size = 0;
    const allot_torchsim_options other = {.struct_size = sizeof(other), .conf = &conf};
    CHECK_EQ(allot_torchsim_create(&other, &sim), ALLOT_STATUS_INVALID);
    CHECK(sim == NULL);
}

static uint64_t active(const allot_torchsim *sim)
{
    return allot_torchsim_get_stats(sim)->active.now;
}

/** Whether a block freed in a capture, used beside it, is free when the capture has ended. */
static bool is_free_at_end(const char *settings, uint32_t version)
{
    allot_torch_conf conf;
    CHECK_OK(allot_torch_conf_parse(settings, &conf, NULL));
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .conf = &conf,
                                            .version = version,
                                            .completion = ALLOT_TORCH_COMPLETE_ON_CALL};
    allot_torchsim *sim = NULL;
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    const allot_torch_pool_options graph = {.struct_size = sizeof(graph), .is_graph = true};
    CHECK_OK(allot_torchsim_create(&options, &sim));
    CHECK_OK(allot_torchsim_pool_create(sim, &graph, &pool));
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 0, pool, &block));
    CHECK_OK(allot_torchsim_record_stream(sim, block, 9));
    give(sim, block);
    CHECK_EQ(allot_torchsim_get_stats(sim)->active.now, 30 * MIB);
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    CHECK(alloti_torchsim_check(sim));
    const bool is_free = allot_torchsim_get_stats(sim)->active.now == 0;
    allot_torchsim_destroy(sim);
    return is_free;
}

static void the_end_of_a_capture_frees_where_streams_are_reused(void)
{
    CHECK(is_free_at_end("graph_capture_record_stream_reuse:True", 0));
    CHECK(is_free_at_end("graph_capture_record_stream_reuse:True", 212));
    CHECK(!is_free_at_end("graph_capture_record_stream_reuse:True", 211));
    CHECK(!is_free_at_end("", 0));
}

static void only_uses_from_before_a_capture_are_waited_for_after_it(void)
{
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .completion = ALLOT_TORCH_COMPLETE_ON_CALL};
    const allot_torch_pool_options graph = {.struct_size = sizeof(graph), .is_graph = true};
    allot_torchsim *sim = NULL;
    uint32_t pool = ALLOT_NONE;
    REQUIRE(CHECK_OK(allot_torchsim_create(&options, &sim)));
    CHECK_OK(allot_torchsim_pool_create(sim, &graph, &pool));
    const uint32_t before = take(sim, 1 * MIB);
    const uint32_t inside = take(sim, 2 * MIB);
    CHECK_OK(allot_torchsim_record_stream(sim, before, 1));
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    CHECK_OK(allot_torchsim_record_stream(sim, inside, 1));
    give(sim, before);
    give(sim, inside);
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    CHECK_EQ(active(sim), 3 * MIB);
    take(sim, 4 * MIB);
    CHECK_EQ(active(sim), (1 + 4) * MIB);
    CHECK_OK(allot_torchsim_complete(sim, before));
    CHECK_EQ(active(sim), 4 * MIB);
    CHECK(alloti_torchsim_check(sim));
    allot_torchsim_destroy(sim);
}

static void each_begin_of_a_pool_is_a_use_to_give_up(void)
{
    allot_torchsim *sim = make("", 0, 0, 0);
    REQUIRE(sim != NULL);
    uint32_t pool = ALLOT_NONE;
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_pool_create(sim, NULL, &pool));
    CHECK_OK(allot_torchsim_pool_begin(sim, pool));
    CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 0, pool, &block));
    CHECK_OK(allot_torchsim_pool_end(sim, pool));
    give(sim, block);
    CHECK_OK(allot_torchsim_pool_release(sim, pool));
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(reserved(sim), 30 * MIB);
    CHECK_OK(allot_torchsim_pool_release(sim, pool));
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(reserved(sim), 0);
    CHECK_EQ(allot_torchsim_pool_release(sim, pool), ALLOT_STATUS_INVALID);
    allot_torchsim_destroy(sim);
}

static const check_test TESTS[] = {
    TEST(requests_are_rounded_to_512_bytes),
    TEST(divisions_round_to_steps_between_powers_of_two),
    TEST(segments_are_of_2_or_20_mib_or_as_large_as_the_request),
    TEST(a_rest_is_split_off_if_it_is_large_enough),
    TEST(the_smallest_block_that_fits_is_taken_then_the_lowest),
    TEST(streams_do_not_share_cached_blocks),
    TEST(a_free_merges_with_both_neighbours),
    TEST(max_split_keeps_large_blocks_whole),
    TEST(a_miss_releases_oversize_blocks_before_everything),
    TEST(the_last_resort_is_to_release_every_unsplit_block),
    TEST(an_out_of_memory_says_whether_bytes_or_ranges_are_missing),
    TEST(a_fraction_limits_below_the_device),
    TEST(the_end_of_a_capture_frees_where_streams_are_reused),
    TEST(only_uses_from_before_a_capture_are_waited_for_after_it),
    TEST(each_begin_of_a_pool_is_a_use_to_give_up),
    TEST(a_refused_segment_leaves_the_built_in_driver_as_it_was),
    TEST(a_table_of_another_size_is_understood_or_refused),
    TEST(garbage_collection_needs_a_fraction),
    TEST(a_fraction_of_one_is_a_limit_until_2_9),
    TEST(a_block_used_elsewhere_waits),
    TEST(completion_on_call_waits_for_the_call),
    TEST(in_a_capture_shared_blocks_wait_until_its_end),
    TEST(beside_a_capture_shared_blocks_wait_up_to_2_12),
    TEST(a_request_to_a_mempool_releases_the_cache_from_2_14_on),
    TEST(a_dropped_pool_gives_only_its_own_segments_back),
    TEST(a_release_inside_use_mem_pool_depends_on_the_release),
    TEST(throwing_early_fails_with_the_cache_full),
    TEST(a_fraction_refuses_before_throwing_early),
    TEST(a_private_pool_keeps_its_segments_until_released),
    TEST(an_offered_pool_is_used_before_or_after_the_releases),
    TEST(a_pool_may_forbid_splits),
    TEST(a_pool_with_an_allocator_is_never_expandable),
    TEST(expandable_ranges_grow_by_pages),
    TEST(a_release_unmaps_whole_pages_and_gives_empty_ranges_back),
    TEST(blocks_that_cannot_grow_are_preferred),
    TEST(a_reserve_setting_bounds_a_single_request),
    TEST(a_range_too_small_is_reserved_and_given_back),
    TEST(offered_pools_come_in_the_order_of_a_hash_table),
    TEST(a_dropped_pool_offers_nothing),
    TEST(whole_blocks_may_exceed_a_request_by_a_segment),
    TEST(peaks_begin_again_where_they_are_reset),
    TEST(mistakes_are_refused),
    TEST(options_are_checked),
    TEST(a_copy_goes_its_own_way),
    TEST(a_walk_sees_every_block_and_can_stop),
};
CHECK_MAIN(TESTS)
