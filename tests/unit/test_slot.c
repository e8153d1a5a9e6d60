/* SPDX-License-Identifier: MIT */
/* Handles by kind, generation and place. */
#include "core/slot.h"

#include "support/alloc_fault.h"
#include "support/check.h"

static void handles_lead_to_their_objects(void)
{
    alloti_slots slots = {0};
    int objects[100];
    uint64_t handles[100];
    for (size_t i = 0; i < 100; i++) {
        handles[i] = alloti_slots_add(&slots, 'e', &objects[i]);
    }
    for (size_t i = 0; i < 100; i++) {
        CHECK(alloti_slots_get(&slots, 'e', handles[i]) == &objects[i]);
        CHECK_EQ(handles[i] >> 56, 'e');
    }
    alloti_slots_fini(&slots);
}

static void wrong_handles_lead_to_nothing(void)
{
    alloti_slots slots = {0};
    int object = 0;
    CHECK(alloti_slots_get(&slots, 'e', 0) == NULL);
    const uint64_t handle = alloti_slots_add(&slots, 'e', &object);
    CHECK(alloti_slots_get(&slots, 's', handle) == NULL);
    CHECK(alloti_slots_get(&slots, 'e', handle + 1) == NULL);
    CHECK(alloti_slots_get(&slots, 'e', 0) == NULL);
    CHECK(alloti_slots_get(&slots, 'e', UINT64_MAX) == NULL);
    alloti_slots_fini(&slots);
}

static void a_handle_is_over_when_its_place_is_used_again(void)
{
    alloti_slots slots = {0};
    int objects[2];
    const uint64_t first = alloti_slots_add(&slots, 'e', &objects[0]);
    alloti_slots_remove(&slots, first);
    CHECK(alloti_slots_get(&slots, 'e', first) == NULL);
    const uint64_t second = alloti_slots_add(&slots, 'e', &objects[1]);
    CHECK_EQ(slots.count, 1);
    CHECK(second != first);
    CHECK(alloti_slots_get(&slots, 'e', first) == NULL);
    CHECK(alloti_slots_get(&slots, 'e', second) == &objects[1]);
    alloti_slots_fini(&slots);
}

static void without_memory_nothing_is_entered(void)
{
    alloti_slots slots = {0};
    int object = 0;
    alloc_fault_arm(1);
    CHECK_EQ(alloti_slots_add(&slots, 'e', &object), 0);
    CHECK(alloc_fault_disarm());
    CHECK_EQ(slots.count, 0);
    CHECK(alloti_slots_add(&slots, 'e', &object) != 0);
    alloti_slots_fini(&slots);
}

static const check_test TESTS[] = {
    {"handles_lead_to_their_objects", handles_lead_to_their_objects},
    {"wrong_handles_lead_to_nothing", wrong_handles_lead_to_nothing},
    {"a_handle_is_over_when_its_place_is_used_again",
     a_handle_is_over_when_its_place_is_used_again},
    {"without_memory_nothing_is_entered", without_memory_nothing_is_entered},
};

CHECK_MAIN(TESTS)
