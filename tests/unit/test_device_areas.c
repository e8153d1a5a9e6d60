/* SPDX-License-Identifier: MIT */
/* Ranges of addresses against a table of who has each address. */
#include "device/areas.h"

#include "support/alloc_fault.h"
#include "support/check.h"

enum { ADDRESSES = 200, STEPS = 20000 };

/** owner[i]: begin of the area that address i lies in; 0: none. Address 0 is never used. */
typedef struct model {
    uint64_t owner[ADDRESSES];
} model;

static bool is_free(const model *m, uint64_t address, uint64_t size)
{
    for (uint64_t i = address; i < address + size; i++) {
        if (m->owner[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_full(const model *m, uint64_t address, uint64_t size)
{
    for (uint64_t i = address; i < address + size; i++) {
        if (m->owner[i] == 0) {
            return false;
        }
    }
    return true;
}

static void set_owner(model *m, uint64_t address, uint64_t size, uint64_t owner)
{
    for (uint64_t i = address; i < address + size; i++) {
        m->owner[i] = owner;
    }
}

static void check_walk(const device_areas *areas, const model *m)
{
    uint64_t end = 1;
    const device_area *at = alloti_areas_first(areas);
    for (; at != NULL; at = alloti_areas_next(areas, at)) {
        CHECK(is_free(m, end, at->address - end));
        CHECK_EQ(m->owner[at->address], at->address);
        CHECK_EQ(m->owner[at->address + at->size - 1], at->address);
        end = at->address + at->size;
    }
    CHECK(is_free(m, end, ADDRESSES - end));
}

static void areas_are_found_as_in_a_table(void)
{
    model m = {{0}};
    device_areas areas;
    alloti_areas_init(&areas);
    uint64_t state = check_seed();
    for (int step = 0; step < STEPS; step++) {
        const uint64_t address = check_random_range(&state, 1, ADDRESSES - 1);
        const uint64_t size =
            check_random_range(&state, 1, ADDRESSES - address < 9 ? ADDRESSES - address : 9);
        CHECK_EQ(alloti_areas_overlap(&areas, address, size), !is_free(&m, address, size));
        CHECK_EQ(alloti_areas_cover(&areas, address, size), is_full(&m, address, size));
        const device_area *const found = alloti_areas_find(&areas, address);
        CHECK_EQ(found == NULL ? 0 : found->address, m.owner[address]);
        CHECK_EQ(alloti_areas_at(&areas, address) != NULL, m.owner[address] == address);
        if (is_free(&m, address, size)) {
            const device_area area = {.address = address, .size = size, .value = (uint64_t)step};
            CHECK_OK(alloti_areas_add(&areas, &area));
            set_owner(&m, address, size, address);
        } else if (found != NULL) {
            set_owner(&m, found->address, found->size, 0);
            alloti_areas_remove(&areas, found);
        }
        if (step % 100 == 0) {
            check_walk(&areas, &m);
        }
    }
    alloti_areas_fini(&areas);
}

static void room_that_was_made_is_enough(void)
{
    device_areas areas;
    alloti_areas_init(&areas);
    for (uint64_t i = 1; i < 100; i++) {
        CHECK_OK(alloti_areas_reserve(&areas));
        alloc_fault_arm(1);
        const device_area area = {.address = i, .size = 1};
        CHECK_OK(alloti_areas_add(&areas, &area));
        CHECK(!alloc_fault_disarm());
    }
    alloti_areas_fini(&areas);
}

static allot_status add_some(void *context)
{
    (void)context;
    device_areas areas;
    alloti_areas_init(&areas);
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 1; i < 20 && status == ALLOT_STATUS_OK; i++) {
        const device_area area = {.address = i * 10, .size = 10};
        status = alloti_areas_add(&areas, &area);
        CHECK_EQ(alloti_areas_cover(&areas, 10, i * 10), status == ALLOT_STATUS_OK);
    }
    alloti_areas_fini(&areas);
    return status;
}

static void every_lack_of_host_memory_is_told(void)
{
    CHECK(alloc_fault_each(add_some, NULL) >= 2);
}

static const check_test TESTS[] = {
    {"areas_are_found_as_in_a_table", areas_are_found_as_in_a_table},
    {"room_that_was_made_is_enough", room_that_was_made_is_enough},
    {"every_lack_of_host_memory_is_told", every_lack_of_host_memory_is_told},
};

CHECK_MAIN(TESTS)
