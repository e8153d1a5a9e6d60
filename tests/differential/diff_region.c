/* SPDX-License-Identifier: MIT */
/* Regions of plain allocations against a table of granules that is searched from end to end. */
#include "standin/region.h"

#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB(n) ((uint64_t)(n) << 20)

enum { SLOW_GRANULES = 8192, SLOW_REGIONS = 512, LIVE_MAX = 300, STEPS = 6000, UNIT = 16 };

/* Granules are counted downwards from the end of the space: 1 is the highest. */
typedef struct slow_region {
    uint32_t low; /**< Number of its lowest granule. */
    uint32_t count;
} slow_region;

typedef struct slow_set {
    slow_region regions[SLOW_REGIONS]; /**< In the order of making. */
    uint32_t region_count;
    bool is_mapped[SLOW_GRANULES + 1];
    bool is_used[SLOW_GRANULES + 1];
} slow_set;

/** The lowest place in a region, 0 if it has no room. */
static uint32_t slow_place(const slow_set *slow, slow_region at, uint32_t count)
{
    uint32_t run = 0;
    for (uint32_t g = at.low; g > at.low - at.count; g--) {
        run = slow->is_used[g] ? 0 : run + 1;
        if (run == count) {
            return g + count - 1;
        }
    }
    return 0;
}

static slow_region slow_map(slow_set *slow, uint32_t count)
{
    uint32_t gap = 0;
    for (uint32_t g = 1; g <= SLOW_GRANULES; g++) {
        gap = slow->is_mapped[g] ? 0 : gap + 1;
        if (gap == count + UNIT) {
            const uint32_t top = g - gap; /* mapped, or the end of the space */
            const uint32_t low = (top + count + UNIT - 1) / UNIT * UNIT;
            memset(slow->is_mapped + low - count + 1, true, count);
            return slow->regions[slow->region_count++] = (slow_region){low, count};
        }
    }
    CHECK(false);
    return (slow_region){0};
}

static uint32_t slow_take(slow_set *slow, uint32_t count)
{
    uint32_t place = 0;
    for (uint32_t i = slow->region_count; i-- > 0 && place == 0;) {
        place = slow_place(slow, slow->regions[i], count);
    }
    if (place == 0) {
        place = slow_map(slow, (count + UNIT - 1) / UNIT * UNIT).low;
    }
    memset(slow->is_used + place - count + 1, true, count);
    return place;
}

static void slow_give(slow_set *slow, uint32_t place, uint32_t count)
{
    memset(slow->is_used + place - count + 1, false, count);
    for (uint32_t i = 0; i < slow->region_count; i++) {
        const slow_region at = slow->regions[i];
        if (slow_place(slow, at, at.count) != 0) {
            memset(slow->is_mapped + at.low - at.count + 1, false, at.count);
            slow->region_count--;
            memmove(slow->regions + i, slow->regions + i + 1,
                    (slow->region_count - i) * sizeof *slow->regions);
            return;
        }
    }
}

static void random_programs_lie_where_the_slow_table_says(void)
{
    static slow_set slow;
    memset(&slow, 0, sizeof slow);
    address_space space;
    REQUIRE_OK(address_space_init(&space, false, false));
    const uint64_t end = space.end - space.end % MIB(32);
    CHECK(end == space.end || address_take_at(&space, end, space.end - end));
    region_set set = {0};
    struct {
        uint64_t address;
        uint32_t place;
        uint32_t count;
    } live[LIVE_MAX];
    uint32_t live_count = 0;
    uint64_t random = check_seed();
    for (int step = 0; step < STEPS; step++) {
        const bool is_full = live_count == LIVE_MAX;
        if (!is_full && (live_count == 0 || check_random_range(&random, 0, 99) < 55)) {
            const bool is_large = check_random_range(&random, 0, 3) == 0;
            const uint32_t count = (uint32_t)check_random_range(&random, 1, is_large ? 40 : 11);
            uint64_t address = 0;
            REQUIRE_OK(region_take(&set, &space, count * STANDIN_GRANULE, &address));
            const uint32_t place = slow_take(&slow, count);
            CHECK_EQ((end - address) / STANDIN_GRANULE, place);
            live[live_count].address = address;
            live[live_count].place = place;
            live[live_count++].count = count;
        } else {
            const uint64_t i = check_random_range(&random, 0, live_count - 1);
            CHECK_OK(region_give(&set, &space, live[i].address, live[i].count * STANDIN_GRANULE));
            slow_give(&slow, live[i].place, live[i].count);
            live[i] = live[--live_count];
        }
        CHECK_EQ(set.place_count, slow.region_count);
        CHECK(region_set_check(&set) && address_space_check(&space));
    }
    while (live_count > 0) {
        live_count--;
        CHECK_OK(region_give(&set, &space, live[live_count].address,
                             live[live_count].count * STANDIN_GRANULE));
    }
    CHECK_EQ(set.place_count, 0);
    CHECK_EQ(space.free_count, 1);
    region_set_fini(&set);
    address_space_fini(&space);
}

static void addresses_fall_and_small_ones_fill_the_newest_rest(void)
{
    address_space space;
    REQUIRE_OK(address_space_init(&space, false, false));
    region_set set = {0};
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t small = 0;
    uint64_t rest = 0;
    REQUIRE_OK(region_take(&set, &space, MIB(172), &first));
    REQUIRE_OK(region_take(&set, &space, MIB(172), &second));
    CHECK_EQ(first - second, MIB(192));
    REQUIRE_OK(region_take(&set, &space, MIB(2), &small));
    CHECK_EQ(small, second + MIB(172));
    REQUIRE_OK(region_take(&set, &space, MIB(20), &rest)); /* 18 MiB are left in the second */
    CHECK_EQ(rest, first + MIB(172));
    region_set_fini(&set);
    address_space_fini(&space);
}

static allot_status take_and_give(void *context)
{
    address_space *const space = context;
    region_set set = {0};
    uint64_t addresses[200];
    uint32_t count = 0;
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && count < 200) {
        status = region_take(&set, space, MIB(20 + 2 * (count % 3)), &addresses[count]);
        count += status == ALLOT_STATUS_OK;
        CHECK(region_set_check(&set) && address_space_check(space));
    }
    for (uint32_t first = 0; first < 2; first++) { /* every second one, so that gaps do not join */
        for (uint32_t i = first; i < count; i += 2) {
            const allot_status given =
                region_give(&set, space, addresses[i], MIB(20 + 2 * (i % 3)));
            status = status == ALLOT_STATUS_OK ? given : status;
            CHECK(region_set_check(&set) && address_space_check(space));
        }
    }
    const uint64_t left = set.place_count;
    region_set_fini(&set);
    return left > 0 && status == ALLOT_STATUS_OK ? ALLOT_STATUS_HOST_MEMORY : status;
}

static void each_failure_of_host_memory_leaves_the_rest_right(void)
{
    address_space space;
    REQUIRE_OK(address_space_init(&space, false, false));
    (void)alloc_fault_each(take_and_give, &space);
    address_space_fini(&space);
}

static const check_test TESTS[] = {
    {"random_programs_lie_where_the_slow_table_says",
     random_programs_lie_where_the_slow_table_says},
    {"addresses_fall_and_small_ones_fill_the_newest_rest",
     addresses_fall_and_small_ones_fill_the_newest_rest},
    {"each_failure_of_host_memory_leaves_the_rest_right",
     each_failure_of_host_memory_leaves_the_rest_right},
};
CHECK_MAIN(TESTS)
