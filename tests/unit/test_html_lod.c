/* SPDX-License-Identifier: MIT */
/* Buckets and bands against a timeline that is counted point by point. */
#include "report/html_lod.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

enum { BLOCKS = 700, POINTS = 1500, GROUPS = 40 };

/** Random blocks by ascending start, some never freed. */
typedef struct sample {
    uint32_t start[BLOCKS];
    uint32_t end[BLOCKS];
    uint64_t size[BLOCKS];
    uint32_t by_end[BLOCKS];
    uint32_t group[BLOCKS];
    alloti_lod_blocks blocks;
} sample;

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sample_init(sample *self, uint64_t *random)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        self->start[i] = (uint32_t)check_random_range(random, 0, POINTS - 1);
    }
    qsort(self->start, BLOCKS, sizeof self->start[0], compare_u32);
    for (unsigned i = 0; i < BLOCKS; i++) {
        self->end[i] = (uint32_t)check_random_range(random, self->start[i] + 1, POINTS);
        self->size[i] = check_random_range(random, 1, 16) << check_random_range(random, 9, 30);
        self->group[i] = (uint32_t)check_random_range(random, 0, GROUPS - 1);
    }
    self->blocks = (alloti_lod_blocks){.count = BLOCKS,
                                       .point_count = POINTS,
                                       .start = self->start,
                                       .end = self->end,
                                       .size = self->size,
                                       .by_end = self->by_end};
}

/** Bytes at a point of one group, or of all with ALLOT_NONE, by looking at every block. */
static uint64_t live_at(const sample *self, uint32_t point, uint32_t group)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        const bool is_live = self->start[i] <= point && point < self->end[i];
        sum += is_live && (group == ALLOT_NONE || self->group[i] == group) ? self->size[i] : 0;
    }
    return sum;
}

static void buckets_keep_the_highest_state_and_the_lowest_value(void)
{
    uint64_t random = check_seed();
    static sample self;
    sample_init(&self, &random);
    REQUIRE_OK(alloti_lod_sort_ends(&self.blocks));
    for (unsigned i = 1; i < BLOCKS; i++) {
        REQUIRE(self.end[self.by_end[i - 1]] <= self.end[self.by_end[i]]);
    }
    static const uint32_t BUCKETS[] = {1, 7, 64, 1024, POINTS, 100000};
    for (unsigned n = 0; n < sizeof BUCKETS / sizeof BUCKETS[0]; n++) {
        alloti_lod lod = {0};
        REQUIRE_OK(alloti_lod_init(&self.blocks, BUCKETS[n], &lod));
        CHECK_EQ(lod.bucket_count, BUCKETS[n] < POINTS ? BUCKETS[n] : POINTS);
        for (uint64_t b = 0, p = 0; b < lod.bucket_count; b++) {
            uint64_t high = 0;
            uint64_t low = UINT64_MAX;
            uint64_t at = p;
            for (; p < POINTS && p * lod.bucket_count / POINTS == b; p++) {
                const uint64_t live = live_at(&self, (uint32_t)p, ALLOT_NONE);
                at = live > high || at == p ? p : at;
                high = live > high ? live : high;
                low = live < low ? live : low;
            }
            CHECK_EQ(lod.total[b], high);
            CHECK_EQ(lod.low[b], low);
            CHECK_EQ(lod.at[b], at);
        }
        alloti_lod_fini(&lod);
    }
}

static void bands_are_the_largest_groups_and_exact(void)
{
    uint64_t random = check_seed() + 1;
    static sample self;
    sample_init(&self, &random);
    REQUIRE_OK(alloti_lod_sort_ends(&self.blocks));
    uint64_t peak[GROUPS] = {0};
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t p = 0; p < POINTS; p++) {
            const uint64_t live = live_at(&self, p, g);
            peak[g] = live > peak[g] ? live : peak[g];
        }
    }
    alloti_lod lod = {0};
    alloti_lod_bands bands = {0};
    REQUIRE_OK(alloti_lod_init(&self.blocks, 50, &lod));
    REQUIRE_OK(alloti_lod_bands_init(&self.blocks, &lod, self.group, GROUPS, 11, &bands));
    REQUIRE(bands.count == 11);
    bool is_band[GROUPS] = {false};
    for (uint32_t k = 0; k < bands.count; k++) {
        is_band[bands.groups[k]] = true;
        CHECK(k == 0 || peak[bands.groups[k - 1]] >= peak[bands.groups[k]]);
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        CHECK(is_band[g] || peak[g] <= peak[bands.groups[10]]);
    }
    for (uint32_t b = 0; b < lod.bucket_count; b++) {
        uint64_t rest = lod.total[b];
        for (uint32_t k = 0; k < bands.count; k++) {
            const uint64_t size = bands.sizes[k * lod.bucket_count + b];
            CHECK_EQ(size, live_at(&self, lod.at[b], bands.groups[k]));
            rest -= size;
        }
        uint64_t others = 0;
        for (uint32_t g = 0; g < GROUPS; g++) {
            others += is_band[g] ? 0 : live_at(&self, lod.at[b], g);
        }
        CHECK_EQ(rest, others);
    }
    alloti_lod_bands_fini(&bands);
    alloti_lod_fini(&lod);
}

static void kept_and_dropped_blocks_add_up(void)
{
    uint64_t random = check_seed() + 2;
    static sample self;
    sample_init(&self, &random);
    REQUIRE_OK(alloti_lod_sort_ends(&self.blocks));
    static uint8_t keep[BLOCKS];
    uint64_t kept = 0;
    uint64_t largest = 0;
    REQUIRE_OK(alloti_lod_choose(&self.blocks, 100, keep, &kept, &largest));
    uint64_t count = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        count += keep[i];
        CHECK(keep[i] != 0 ? self.size[i] >= largest : self.size[i] <= largest);
    }
    CHECK_EQ(count, 100);
    CHECK_EQ(kept, 100);
    alloti_lod lod = {0};
    REQUIRE_OK(alloti_lod_init(&self.blocks, 33, &lod));
    uint64_t dropped[33] = {0};
    alloti_lod_sum_dropped(&self.blocks, &lod, keep, dropped);
    for (uint32_t b = 0; b < lod.bucket_count; b++) {
        uint64_t sum = dropped[b];
        for (unsigned i = 0; i < BLOCKS; i++) {
            const bool is_live = self.start[i] <= lod.at[b] && lod.at[b] < self.end[i];
            sum += is_live && keep[i] != 0 ? self.size[i] : 0;
        }
        CHECK_EQ(sum, lod.total[b]);
    }
    alloti_lod_fini(&lod);
    REQUIRE_OK(alloti_lod_choose(&self.blocks, BLOCKS, keep, &kept, &largest));
    CHECK_EQ(kept, BLOCKS);
    CHECK_EQ(largest, 0);
}

static void a_trace_without_blocks_has_one_empty_bucket(void)
{
    alloti_lod_blocks blocks = {.point_count = 1};
    alloti_lod lod = {0};
    alloti_lod_bands bands = {0};
    REQUIRE_OK(alloti_lod_sort_ends(&blocks));
    REQUIRE_OK(alloti_lod_init(&blocks, 4096, &lod));
    CHECK_EQ(lod.bucket_count, 1);
    CHECK_EQ(lod.total[0], 0);
    REQUIRE_OK(alloti_lod_bands_init(&blocks, &lod, NULL, 0, 11, &bands));
    CHECK_EQ(bands.count, 0);
    alloti_lod_bands_fini(&bands);
    alloti_lod_fini(&lod);
}

static const check_test TESTS[] = {
    {"buckets_keep_the_highest_state_and_the_lowest_value",
     buckets_keep_the_highest_state_and_the_lowest_value},
    {"bands_are_the_largest_groups_and_exact", bands_are_the_largest_groups_and_exact},
    {"kept_and_dropped_blocks_add_up", kept_and_dropped_blocks_add_up},
    {"a_trace_without_blocks_has_one_empty_bucket", a_trace_without_blocks_has_one_empty_bucket},
};
CHECK_MAIN(TESTS)
