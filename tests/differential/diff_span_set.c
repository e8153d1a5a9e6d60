/* SPDX-License-Identifier: MIT */
/* The set of free ranges against an unordered list that is searched from end to end. */
#include "replay/span_set.h"
#include "support/check.h"

enum { SLOW_MAX = 512, STEPS = 4000, GRID = 1024, SEGMENT_SIZE = 64 };

typedef struct slow_set {
    alloti_span spans[SLOW_MAX];
    size_t count;
} slow_set;

static bool slow_overlaps(const slow_set *slow, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < slow->count; i++) {
        const alloti_span *const s = &slow->spans[i];
        if (address < s->address + s->size && s->address < address + size) {
            return true;
        }
    }
    return false;
}

static void slow_remove_at(slow_set *slow, size_t index)
{
    slow->spans[index] = slow->spans[--slow->count];
}

static void slow_merge(slow_set *slow, alloti_span span)
{
    for (size_t i = 0; i < slow->count;) {
        const alloti_span s = slow->spans[i];
        const bool touches =
            s.address + s.size == span.address || span.address + span.size == s.address;
        if (s.segment != span.segment || !touches) {
            i++;
            continue;
        }
        span.address = s.address < span.address ? s.address : span.address;
        span.size += s.size;
        slow_remove_at(slow, i);
        i = 0;
    }
    slow->spans[slow->count++] = span;
}

static const alloti_span *slow_fit(const slow_set *slow, uint64_t size, bool best)
{
    const alloti_span *found = NULL;
    for (size_t i = 0; i < slow->count; i++) {
        const alloti_span *const s = &slow->spans[i];
        if (s->size < size) {
            continue;
        }
        const bool smaller = found != NULL && best && s->size != found->size
                                 ? s->size < found->size
                                 : found == NULL || s->address < found->address;
        found = smaller ? s : found;
    }
    return found;
}

static const alloti_span *slow_near(const slow_set *slow, uint64_t address, bool below)
{
    const alloti_span *found = NULL;
    for (size_t i = 0; i < slow->count; i++) {
        const alloti_span *const s = &slow->spans[i];
        if (below ? s->address > address : s->address < address) {
            continue;
        }
        if (found == NULL || (below ? s->address > found->address : s->address < found->address)) {
            found = s;
        }
    }
    return found;
}

static bool same(const alloti_span *a, const alloti_span *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return a->address == b->address && a->size == b->size && a->segment == b->segment;
}

static void compare(const alloti_span_set *set, const slow_set *slow, uint64_t *random)
{
    REQUIRE(alloti_span_set_check(set));
    CHECK_EQ(set->count, slow->count);
    const uint64_t size = check_random_range(random, 1, SEGMENT_SIZE + 4);
    const uint64_t address = check_random_range(random, 0, GRID + 4);
    CHECK(same(alloti_span_set_best_fit(set, size), slow_fit(slow, size, true)));
    CHECK(same(alloti_span_set_first_fit(set, size), slow_fit(slow, size, false)));
    CHECK(same(alloti_span_set_floor(set, address), slow_near(slow, address, true)));
    CHECK(same(alloti_span_set_ceiling(set, address), slow_near(slow, address, false)));
    uint64_t largest = 0;
    for (size_t i = 0; i < slow->count; i++) {
        largest = slow->spans[i].size > largest ? slow->spans[i].size : largest;
    }
    CHECK_EQ(alloti_span_set_largest(set), largest);
}

static void agrees_with_a_list_after_every_step(void)
{
    uint64_t random = check_seed();
    alloti_span_set set = ALLOTI_SPAN_SET_EMPTY;
    slow_set slow = {.count = 0};
    for (int step = 0; step < STEPS; step++) {
        const uint64_t address = check_random_range(&random, 0, GRID - 1);
        const uint32_t segment = (uint32_t)(address / SEGMENT_SIZE);
        const uint64_t room = (uint64_t)(segment + 1) * SEGMENT_SIZE - address;
        const uint64_t size = check_random_range(&random, 1, room < 9 ? room : 9);
        const bool adds = check_random_range(&random, 0, 99) < 60;
        if (adds && !slow_overlaps(&slow, address, size)) {
            const alloti_span span = {.address = address, .size = size, .segment = segment};
            REQUIRE_OK(alloti_span_set_merge(&set, span));
            slow_merge(&slow, span);
        } else if (!adds && slow.count > 0) {
            const size_t victim = (size_t)check_random_range(&random, 0, slow.count - 1);
            alloti_span_set_remove(&set, slow.spans[victim].address);
            slow_remove_at(&slow, victim);
        }
        compare(&set, &slow, &random);
    }
    alloti_span_set_fini(&set);
}

static void touching_spans_of_two_segments_stay_apart(void)
{
    alloti_span_set set = ALLOTI_SPAN_SET_EMPTY;
    REQUIRE_OK(alloti_span_set_merge(&set, (alloti_span){0, 8, 1}));
    REQUIRE_OK(alloti_span_set_merge(&set, (alloti_span){8, 8, 2}));
    CHECK_EQ(set.count, 2);
    CHECK(alloti_span_set_best_fit(&set, 9) == NULL);
    alloti_span_set_fini(&set);
}

static const check_test TESTS[] = {
    {"agrees_with_a_list_after_every_step", agrees_with_a_list_after_every_step},
    {"touching_spans_of_two_segments_stay_apart", touching_spans_of_two_segments_stay_apart},
};
CHECK_MAIN(TESTS)
