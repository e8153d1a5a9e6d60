/* SPDX-License-Identifier: MIT */
/* Host memory that runs out at any allocation: the heap is as before, and works on. */
#include "scene.h"
#include "support/alloc_fault.h"
#include "support/check.h"

static void arm(scene *s, const scene_fault *fault, uint64_t nth)
{
    (void)s, (void)fault;
    alloc_fault_arm(nth);
}

static bool disarm(scene *s, const scene_fault *fault)
{
    (void)s, (void)fault;
    return alloc_fault_disarm();
}

static const scene_fault HOST_MEMORY = {.arm = arm, .disarm = disarm};

static void fail_in(const char *device, allot_heap_options options)
{
    const scene_setting setting = {.device = device, .options = options};
    CHECK(scene_fail_each_step(&setting, &HOST_MEMORY) > 50);
}

static void without_host_memory_segments_stay_as_they_were(void)
{
    fail_in("simulated,memory:64MiB,granule:256KiB",
            (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
}

static void without_host_memory_granules_stay_as_they_were(void)
{
    fail_in("simulated,memory:64MiB,granule:256KiB",
            (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
}

static void without_host_memory_every_placement_stays_as_it_was(void)
{
    for (int i = 0; i <= ALLOT_SPACE_STRATEGY_ADAPTIVE; i++) {
        fail_in("simulated,memory:64MiB,granule:256KiB",
                (allot_heap_options){.strategy = (allot_space_strategy)i, .front_size = 1 * MIB});
    }
}

static void without_host_memory_bytes_are_kept(void)
{
    fail_in("host,memory:64MiB,granule:256KiB",
            (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS, .scrub = ALLOT_HEAP_SCRUB_FREE});
}

static allot_status make(void *context)
{
    allot_heap *heap = NULL;
    const allot_heap_options options = {.struct_size = sizeof options};
    const allot_status status = allot_heap_create(context, &options, &heap);
    allot_heap_destroy(heap);
    return status;
}

static void making_a_heap_without_host_memory_leaves_nothing(void)
{
    allot_device *device = NULL;
    REQUIRE_OK(allot_device_open("null,memory:64MiB", &device));
    CHECK(alloc_fault_each(make, device) > 1);
    allot_device_destroy(device);
}

static const check_test tests[] = {
    {"without_host_memory_segments_stay_as_they_were",
     without_host_memory_segments_stay_as_they_were},
    {"without_host_memory_granules_stay_as_they_were",
     without_host_memory_granules_stay_as_they_were},
    {"without_host_memory_every_placement_stays_as_it_was",
     without_host_memory_every_placement_stays_as_it_was},
    {"without_host_memory_bytes_are_kept", without_host_memory_bytes_are_kept},
    {"making_a_heap_without_host_memory_leaves_nothing",
     making_a_heap_without_host_memory_leaves_nothing},
};

CHECK_MAIN(tests)
