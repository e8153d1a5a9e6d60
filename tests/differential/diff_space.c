/* SPDX-License-Identifier: MIT */
/*
 * Placement against a list of ranges that is walked from end to end: for first fit, best fit and
 * buddies the model says the offset; for the others it says whether the place was free, aligned and
 * large enough, and for TLSF also whether a refusal was right. All invariants after every step.
 */
#include <allot/space.h>
#include <stdlib.h>
#include <string.h>

#include "core/size_math.h"
#include "support/check.h"

enum { GRANULE = 256, RANGES_MAX = 4096, STEPS = 20000, WIDE_LOG2 = 24 };

typedef struct slow_range {
    uint64_t offset, size;
    uint32_t id; /**< ALLOT_NONE: free. */
} slow_range;

typedef struct slow_space {
    slow_range ranges[RANGES_MAX]; /**< By offset, without gaps. */
    size_t count;
    allot_space_strategy strategy;
} slow_space;

static bool is_free(const slow_range *range)
{
    return range->id == ALLOT_NONE;
}

static void slow_insert(slow_space *slow, size_t at, slow_range range)
{
    memmove(slow->ranges + at + 1, slow->ranges + at, (slow->count - at) * sizeof range);
    slow->ranges[at] = range;
    slow->count++;
}

static void slow_erase(slow_space *slow, size_t at)
{
    slow->count--;
    memmove(slow->ranges + at, slow->ranges + at + 1, (slow->count - at) * sizeof slow->ranges[0]);
}

static bool fits(const slow_range *range, uint64_t size, uint64_t align, uint64_t *offset)
{
    *offset = (range->offset + align - 1) / align * align;
    return is_free(range) && *offset + size <= range->offset + range->size;
}

/** Where the strategy has to place a request; SIZE_MAX for nowhere. */
static size_t slow_find(const slow_space *slow, uint64_t size, uint64_t align, uint64_t *offset)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < slow->count; i++) {
        uint64_t at = 0;
        if (!fits(&slow->ranges[i], size, align, &at)) {
            continue;
        }
        const bool is_better =
            found == SIZE_MAX || (slow->strategy == ALLOT_SPACE_STRATEGY_BEST_FIT &&
                                  slow->ranges[i].size < slow->ranges[found].size);
        if (is_better) {
            found = i;
            *offset = at;
        }
    }
    return found;
}

static size_t slow_holding(const slow_space *slow, uint64_t offset)
{
    size_t at = 0;
    while (slow->ranges[at].offset + slow->ranges[at].size <= offset) {
        at++;
    }
    return at;
}

static size_t slow_of(const slow_space *slow, uint32_t id)
{
    size_t at = 0;
    while (slow->ranges[at].id != id) {
        at++;
    }
    return at;
}

/** Make [offset, offset + size) of a free range used. */
static void slow_take(slow_space *slow, size_t at, uint64_t offset, uint64_t size, uint32_t id)
{
    const slow_range whole = slow->ranges[at];
    const uint64_t end = whole.offset + whole.size;
    slow->ranges[at] = (slow_range){offset, size, id};
    if (offset + size < end) {
        slow_insert(slow, at + 1, (slow_range){offset + size, end - offset - size, ALLOT_NONE});
    }
    if (whole.offset < offset) {
        slow_insert(slow, at, (slow_range){whole.offset, offset - whole.offset, ALLOT_NONE});
    }
}

static void slow_merge(slow_space *slow)
{
    for (size_t i = 1; i < slow->count;) {
        if (is_free(&slow->ranges[i - 1]) && is_free(&slow->ranges[i])) {
            slow->ranges[i - 1].size += slow->ranges[i].size;
            slow_erase(slow, i);
        } else {
            i++;
        }
    }
}

/* ---- driving both ---- */

typedef struct pair {
    allot_space *space;
    slow_space *slow;
    uint64_t random;
    uint64_t capacity;
    unsigned scale_log2; /**< Of all sizes. */
    bool is_small;       /**< A few granules each, so that there are many ranges. */
    uint32_t ids[RANGES_MAX];
    size_t id_count;
} pair;

static bool is_exact(const pair *p)
{
    return p->slow->strategy == ALLOT_SPACE_STRATEGY_FIRST_FIT ||
           p->slow->strategy == ALLOT_SPACE_STRATEGY_BEST_FIT;
}

static bool never_gives_up(const pair *p)
{
    return is_exact(p) || p->slow->strategy == ALLOT_SPACE_STRATEGY_TLSF ||
           p->slow->strategy == ALLOT_SPACE_STRATEGY_ADAPTIVE;
}

/** Used ranges of both are the same; free bytes too, however the strategy cuts them. */
static void compare(const pair *p)
{
    allot_range range;
    size_t at = 0;
    REQUIRE_OK(allot_space_check(p->space));
    for (uint32_t walk = ALLOT_NONE; allot_space_next(p->space, &walk, &range);) {
        if (range.is_free) {
            continue;
        }
        while (at < p->slow->count && is_free(&p->slow->ranges[at])) {
            at++;
        }
        REQUIRE(at < p->slow->count);
        CHECK_EQ(range.offset, p->slow->ranges[at].offset);
        CHECK_EQ(range.size, p->slow->ranges[at].size);
        CHECK_EQ(range.id, p->slow->ranges[at].id);
        at++;
    }
    while (at < p->slow->count && is_free(&p->slow->ranges[at])) {
        at++;
    }
    CHECK_EQ(at, p->slow->count);
}

static uint64_t random_bytes(pair *p)
{
    if (p->is_small) {
        return check_random_range(&p->random, 1, (uint64_t)8 * GRANULE);
    }
    switch (check_random_range(&p->random, 0, 9)) {
    case 0:
        return check_random_range(&p->random, 1, 3);
    case 1:
        return GRANULE * check_random_range(&p->random, 1, 4);
    case 2:
        return (p->capacity >> p->scale_log2) / check_random_range(&p->random, 1, 8);
    default:
        return check_random_range(&p->random, 1,
                                  UINT64_C(1) << check_random_range(&p->random, 9, 16));
    }
}

static uint64_t random_size(pair *p)
{
    return random_bytes(p) << p->scale_log2;
}

static uint64_t random_align(pair *p)
{
    return check_random_range(&p->random, 0, 3) != 0
               ? 0
               : UINT64_C(1) << (check_random_range(&p->random, 0, 15) + p->scale_log2);
}

static uint64_t rounded(const pair *p, uint64_t size)
{
    const uint64_t granules = (size + GRANULE - 1) / GRANULE;
    if (p->slow->strategy != ALLOT_SPACE_STRATEGY_BUDDY) {
        return granules * GRANULE;
    }
    uint64_t power = GRANULE;
    while (power < size) {
        power *= 2;
    }
    return power;
}

static void step_alloc(pair *p)
{
    const uint64_t size = random_size(p);
    const uint64_t asked = random_align(p);
    const uint64_t align = asked < GRANULE ? GRANULE : asked;
    const uint32_t tag = (uint32_t)check_random_range(&p->random, 0, 3);
    if (size == 0 || p->slow->count + 3 > RANGES_MAX) {
        return;
    }
    uint64_t offset = 0;
    const size_t expected = slow_find(p->slow, rounded(p, size), align, &offset);
    allot_range range = {.id = 77};
    const allot_status status = allot_space_alloc(p->space, size, asked, tag, &range);
    if (status != ALLOT_STATUS_OK) {
        CHECK(status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_DEVICE_MEMORY);
        CHECK(expected == SIZE_MAX || !never_gives_up(p));
        CHECK_EQ(range.id, 77);
        return;
    }
    REQUIRE(expected != SIZE_MAX);
    CHECK(!range.is_free && range.offset % align == 0);
    CHECK_EQ(range.size, rounded(p, size));
    if (is_exact(p)) {
        CHECK_EQ(range.offset, offset);
    }
    const size_t at = slow_holding(p->slow, range.offset);
    uint64_t where = 0;
    REQUIRE(is_free(&p->slow->ranges[at]));
    slow_range rest = p->slow->ranges[at];
    rest.size -= range.offset - rest.offset;
    rest.offset = range.offset;
    REQUIRE(fits(&rest, range.size, 1, &where));
    slow_take(p->slow, at, range.offset, range.size, range.id);
    p->ids[p->id_count++] = range.id;
}

static void step_free(pair *p)
{
    if (p->id_count == 0) {
        return;
    }
    const size_t pick = check_random_range(&p->random, 0, p->id_count - 1);
    const uint32_t id = p->ids[pick];
    p->ids[pick] = p->ids[--p->id_count];
    CHECK_OK(allot_space_free(p->space, id));
    CHECK_EQ(allot_space_free(p->space, id), ALLOT_STATUS_INVALID);
    p->slow->ranges[slow_of(p->slow, id)].id = ALLOT_NONE;
    slow_merge(p->slow);
}

static void step_resize(pair *p)
{
    if (p->id_count == 0 || p->slow->count + 3 > RANGES_MAX) {
        return;
    }
    const uint32_t id = p->ids[check_random_range(&p->random, 0, p->id_count - 1)];
    const uint64_t size = random_size(p);
    const uint64_t want = size == 0 ? 0 : rounded(p, size);
    slow_space *const slow = p->slow;
    const size_t at = slow_of(slow, id);
    const uint64_t have = slow->ranges[at].size;
    const bool has_next = at + 1 < slow->count && is_free(&slow->ranges[at + 1]);
    const uint64_t room = have + (has_next ? slow->ranges[at + 1].size : 0);
    const allot_status status = allot_space_resize(p->space, id, size);
    if (size == 0) {
        CHECK_EQ(status, ALLOT_STATUS_INVALID);
        return;
    }
    if (status != ALLOT_STATUS_OK) {
        CHECK_EQ(status, ALLOT_STATUS_FRAGMENTED);
        CHECK(want > room || !(is_exact(p) || slow->strategy == ALLOT_SPACE_STRATEGY_TLSF));
        return;
    }
    REQUIRE(want <= room);
    const uint64_t offset = slow->ranges[at].offset;
    slow->ranges[at].size = room;
    slow->ranges[at].id = ALLOT_NONE;
    if (has_next) {
        slow_erase(slow, at + 1);
    }
    slow_take(slow, at, offset, want, id);
    slow_merge(slow);
}

static void step_capacity(pair *p)
{
    slow_space *const slow = p->slow;
    const uint64_t wanted = check_random_range(&p->random, 0, UINT64_C(1) << 22) << p->scale_log2;
    const uint64_t capacity = wanted / GRANULE * GRANULE;
    const slow_range *const last = slow->count == 0 ? NULL : &slow->ranges[slow->count - 1];
    const uint64_t used_end = last == NULL ? 0 : is_free(last) ? last->offset : p->capacity;
    const allot_status status = allot_space_set_capacity(p->space, wanted);
    if (status != ALLOT_STATUS_OK) {
        CHECK_EQ(status, ALLOT_STATUS_BUSY);
        CHECK(capacity < used_end);
        return;
    }
    REQUIRE(capacity >= used_end);
    if (capacity < p->capacity) {
        slow->ranges[slow->count - 1].size -= p->capacity - capacity;
        slow->count -= slow->ranges[slow->count - 1].size == 0 ? 1 : 0;
    } else if (capacity > p->capacity) {
        slow_insert(slow, slow->count,
                    (slow_range){p->capacity, capacity - p->capacity, ALLOT_NONE});
        slow_merge(slow);
    }
    p->capacity = capacity;
}

typedef struct scene {
    uint64_t capacity;
    unsigned scale_log2;
    bool is_small;
} scene;

static void run(allot_space_strategy strategy, scene s, uint64_t seed)
{
    const uint64_t capacity = s.capacity;
    const unsigned scale_log2 = s.scale_log2;
    const uint64_t unit = UINT64_C(1) << scale_log2;
    const allot_space_options options = {.struct_size = sizeof options,
                                         .strategy = strategy,
                                         .tier_sizes = {2048 * unit, 8192 * unit, 32768 * unit},
                                         .chunk_factor = 8};
    pair *const p = calloc(1, sizeof *p);
    slow_space *const slow = calloc(1, sizeof *slow);
    REQUIRE(p != NULL && slow != NULL);
    p->slow = slow;
    slow->strategy = strategy;
    p->random = seed;
    p->scale_log2 = scale_log2;
    p->is_small = s.is_small;
    p->capacity = capacity / GRANULE * GRANULE;
    REQUIRE_OK(allot_space_create(capacity, &options, &p->space));
    if (p->capacity != 0) {
        slow_insert(slow, 0, (slow_range){0, p->capacity, ALLOT_NONE});
    }
    bool is_filling = true;
    for (int i = 0; i < STEPS; i++) {
        if (i % 500 == 0) {
            is_filling = check_random_range(&p->random, 0, 1) != 0;
        }
        const uint64_t pick = check_random_range(&p->random, 0, 99);
        if (pick == 0) {
            step_capacity(p);
        } else if (pick < 8) {
            step_resize(p);
        } else if (pick < (is_filling ? 65 : 40)) {
            step_alloc(p);
        } else {
            step_free(p);
        }
        compare(p);
    }
    while (p->id_count != 0) {
        step_free(p);
    }
    compare(p);
    allot_space_stats stats;
    allot_space_get_stats(p->space, &stats);
    CHECK_EQ(stats.size_used, 0);
    CHECK_EQ(stats.used_count, 0);
    CHECK_EQ(stats.size_free, p->capacity);
    if (strategy != ALLOT_SPACE_STRATEGY_BUDDY) {
        CHECK_EQ(stats.size_free_largest, p->capacity);
    }
    allot_space_destroy(p->space);
    free(slow);
    free(p);
}

static void run_all(allot_space_strategy strategy)
{
    static const scene scenes[] = {
        {.capacity = 0},
        {.capacity = 1},
        {.capacity = 256},
        {.capacity = 1000000},
        {.capacity = UINT64_C(1) << 20},
        {.capacity = 3 << 19},
        /* Trees of several levels. */
        {.capacity = 2048 * GRANULE, .is_small = true},
        /* More than 2^32 granules, and sizes of more. */
        {.capacity = 0, .scale_log2 = WIDE_LOG2},
        {.capacity = UINT64_C(1) << (20 + WIDE_LOG2), .scale_log2 = WIDE_LOG2},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        run(strategy, scenes[i], check_seed() + i);
    }
}

static void first_fit_takes_the_lowest(void)
{
    run_all(ALLOT_SPACE_STRATEGY_FIRST_FIT);
}

static void best_fit_takes_the_smallest(void)
{
    run_all(ALLOT_SPACE_STRATEGY_BEST_FIT);
}

static void buddies_are_powers_of_two(void)
{
    run_all(ALLOT_SPACE_STRATEGY_BUDDY);
}

static void tlsf_finds_what_there_is(void)
{
    run_all(ALLOT_SPACE_STRATEGY_TLSF);
}

static void tiers_give_their_chunks_back(void)
{
    run_all(ALLOT_SPACE_STRATEGY_TIERED);
}

static void adaptive_finds_what_there_is(void)
{
    run_all(ALLOT_SPACE_STRATEGY_ADAPTIVE);
}

static const check_test TESTS[] = {
    {"first_fit_takes_the_lowest", first_fit_takes_the_lowest},
    {"best_fit_takes_the_smallest", best_fit_takes_the_smallest},
    {"buddies_are_powers_of_two", buddies_are_powers_of_two},
    {"tlsf_finds_what_there_is", tlsf_finds_what_there_is},
    {"tiers_give_their_chunks_back", tiers_give_their_chunks_back},
    {"adaptive_finds_what_there_is", adaptive_finds_what_there_is},
};

CHECK_MAIN(TESTS)
