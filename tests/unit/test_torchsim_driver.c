/* SPDX-License-Identifier: MIT */
/* Drivers and host memory that fail at the n-th call, for every n: the allocator stays whole. */
#include "torchsim/sim.h"

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/torch_program.h"

#include <stdlib.h>

#define MIB (1ull << 20)

/** A driver that counts what it gives and fails once, at call `fail_at`. */
typedef struct faulty {
    uint64_t next;
    bool descends; /**< Each segment lies below the one before. */
    uint64_t held;
    uint64_t ranges; /**< Bytes of addresses reserved. */
    uint64_t calls;
    uint64_t fail_at; /**< 0: never. */
    allot_status failure;
} faulty;

static allot_status count_call(faulty *driver)
{
    return ++driver->calls == driver->fail_at ? driver->failure : ALLOT_STATUS_OK;
}

static allot_status segment_alloc(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)stream;
    faulty *driver = context;
    const allot_status status = count_call(driver);
    if (status == ALLOT_STATUS_OK) {
        driver->next -= driver->descends ? size : 0;
        *address = driver->next;
        driver->next += driver->descends ? 0 : size;
        driver->held += size;
    }
    return status;
}

static void give_back(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    ((faulty *)context)->held -= size;
}

static allot_status reserve(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)stream;
    faulty *driver = context;
    const allot_status status = count_call(driver);
    if (status == ALLOT_STATUS_OK) {
        *address = driver->next;
        driver->next += size;
        driver->ranges += size;
    }
    return status;
}

static void unreserve(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    ((faulty *)context)->ranges -= size;
}

static allot_status map(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    faulty *driver = context;
    const allot_status status = count_call(driver);
    driver->held += status == ALLOT_STATUS_OK ? size : 0;
    return status;
}

static uint64_t free_bytes(void *context)
{
    (void)context;
    return 0;
}

static allot_torch_driver table(faulty *driver)
{
    return (allot_torch_driver){.struct_size = sizeof(allot_torch_driver),
                                .context = driver,
                                .segment_alloc = segment_alloc,
                                .segment_free = give_back,
                                .reserve = reserve,
                                .unreserve = unreserve,
                                .map = map,
                                .unmap = give_back,
                                .free_bytes = free_bytes};
}

static bool add_expandable(void *context, const allot_torch_block *block)
{
    *(uint64_t *)context += block->is_expandable ? block->size : 0;
    return true;
}

/** Bytes of addresses that the allocator's ranges cover. */
static uint64_t ranges_of(const allot_torchsim *sim)
{
    uint64_t bytes = 0;
    allot_torchsim_walk(sim, add_expandable, &bytes);
    return bytes;
}

enum { STEP_COUNT = 60 };

/** A fixed program; what fails is left out. Returns the number of requests that failed. */
static int run(allot_torchsim *sim, const faulty *driver, bool *was_passed_on)
{
    uint64_t state = 4;
    uint32_t live[STEP_COUNT];
    uint64_t count = 0;
    int failed = 0;
    for (int i = 0; i < STEP_COUNT; i++) {
        if (count > 0 && check_random_range(&state, 0, 2) == 0) {
            CHECK_OK(allot_torchsim_free(sim, live[--count]));
        } else if (check_random_range(&state, 0, 9) == 0) {
            CHECK_OK(allot_torchsim_empty_cache(sim));
        } else {
            const uint64_t size = torch_program_size(&state, 60 * MIB);
            const allot_status status =
                allot_torchsim_alloc(sim, size, 0, ALLOT_NONE, &live[count]);
            count += status == ALLOT_STATUS_OK;
            failed += status != ALLOT_STATUS_OK;
            *was_passed_on = *was_passed_on || status == ALLOT_STATUS_BACKEND;
        }
        if (!CHECK(alloti_torchsim_check(sim)) ||
            !CHECK_EQ(allot_torchsim_get_stats(sim)->reserved.now, driver->held) ||
            !CHECK_EQ(ranges_of(sim), driver->ranges)) {
            break;
        }
    }
    while (count > 0) {
        CHECK_OK(allot_torchsim_free(sim, live[--count]));
    }
    CHECK_OK(allot_torchsim_empty_cache(sim));
    CHECK_EQ(driver->held, 0);
    CHECK_EQ(ranges_of(sim), driver->ranges);
    return failed;
}

/** Fail call 1, 2, 3 ... until the program runs without reaching the failure. */
static void fail_each(bool expandable, allot_status failure)
{
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    conf.expandable_segments = expandable;
    for (uint64_t at = 1;; at++) {
        faulty driver = {.next = 0x10000000, .fail_at = at, .failure = failure};
        const allot_torch_driver ops = table(&driver);
        const allot_torchsim_options options = {
            .struct_size = sizeof(options), .conf = &conf, .driver = &ops, .limit = 4096 * MIB};
        allot_torchsim *sim = NULL;
        REQUIRE_OK(allot_torchsim_create(&options, &sim));
        bool was_passed_on = false;
        const int failed = run(sim, &driver, &was_passed_on);
        allot_torchsim_destroy(sim);
        if (driver.calls < at) {
            CHECK(at > 5);
            return;
        }
        /* One refusal is made good by the retry; any other failure reaches the caller. */
        CHECK_EQ(failed, failure == ALLOT_STATUS_DEVICE_MEMORY ? 0 : 1);
        CHECK_EQ(was_passed_on, failure == ALLOT_STATUS_BACKEND);
    }
}

static void a_refused_segment_is_asked_for_again(void)
{
    fail_each(false, ALLOT_STATUS_DEVICE_MEMORY);
}

static void a_refused_page_or_range_is_asked_for_again(void)
{
    fail_each(true, ALLOT_STATUS_DEVICE_MEMORY);
}

static void another_failure_of_the_driver_reaches_the_caller(void)
{
    fail_each(false, ALLOT_STATUS_BACKEND);
    fail_each(true, ALLOT_STATUS_BACKEND);
}

/** Everything that takes host memory, in one go. */
static allot_status use_host_memory(void *context)
{
    const bool expandable = *(const bool *)context;
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    conf.expandable_segments = expandable;
    const allot_torchsim_options options = {
        .struct_size = sizeof(options), .conf = &conf, .limit = 2048 * MIB};
    allot_torchsim *sim = NULL;
    allot_torchsim *copy = NULL;
    allot_status status = allot_torchsim_create(&options, &sim);
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_pool_create(sim, NULL, NULL);
    }
    uint64_t state = 3;
    uint32_t block = ALLOT_NONE;
    for (int i = 0; status == ALLOT_STATUS_OK && i < 100; i++) {
        const uint64_t size = torch_program_size(&state, 20 * MIB);
        status = allot_torchsim_alloc(sim, size, (uint64_t)(i % 2), ALLOT_NONE, &block);
        if (status == ALLOT_STATUS_OK && i % 3 == 0) {
            status = allot_torchsim_free(sim, block);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_empty_cache(sim);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_clone(sim, &copy);
    }
    allot_torchsim_destroy(copy);
    allot_torchsim_destroy(sim);
    return status;
}

static void every_lack_of_host_memory_is_reported(void)
{
    bool expandable = false;
    CHECK(alloc_fault_each(use_host_memory, &expandable) > 10);
    expandable = true;
    CHECK(alloc_fault_each(use_host_memory, &expandable) > 10);
}

static uint64_t address_of(const allot_torchsim *sim, uint32_t block)
{
    allot_torch_block content = {.address = 0};
    CHECK_OK(allot_torchsim_get_block(sim, block, &content));
    return content.address;
}

/** Take a block, give it back; its address. */
static uint64_t use(allot_torchsim *sim, uint64_t size)
{
    uint32_t block = ALLOT_NONE;
    CHECK_OK(allot_torchsim_alloc(sim, size, 0, ALLOT_NONE, &block));
    const uint64_t address = address_of(sim, block);
    CHECK_OK(allot_torchsim_free(sim, block));
    return address;
}

/** Which of two equal segments is taken, and which after the first was split and merged. */
static void check_equal_segments(uint32_t version, uint64_t expected, uint64_t expected_after_split)
{
    faulty driver = {.next = 1ull << 40, .descends = true};
    const allot_torch_driver calls = table(&driver);
    const allot_torchsim_options options = {
        .struct_size = sizeof(options), .driver = &calls, .version = version};
    allot_torchsim *sim = NULL;
    uint32_t blocks[2];
    REQUIRE_OK(allot_torchsim_create(&options, &sim));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(allot_torchsim_alloc(sim, 30 * MIB, 0, ALLOT_NONE, &blocks[i]));
    }
    const uint64_t addresses[] = {address_of(sim, blocks[0]), address_of(sim, blocks[1])};
    CHECK_OK(allot_torchsim_free(sim, blocks[1]));
    CHECK_OK(allot_torchsim_free(sim, blocks[0]));
    CHECK_EQ(use(sim, 30 * MIB), addresses[expected]);
    CHECK_EQ(use(sim, 20 * MIB), addresses[expected]);
    CHECK_EQ(use(sim, 30 * MIB), addresses[expected_after_split]);
    CHECK(alloti_torchsim_check(sim));
    allot_torchsim_destroy(sim);
}

/** The first segment taken is the older one and lies higher. */
static void equal_sizes_go_by_address_or_age(void)
{
    check_equal_segments(211, 1, 1);
    check_equal_segments(212, 0, 1);
    check_equal_segments(213, 0, 0);
}

static const check_test TESTS[] = {
    {"equal_sizes_go_by_address_or_age", equal_sizes_go_by_address_or_age},
    {"a_refused_segment_is_asked_for_again", a_refused_segment_is_asked_for_again},
    {"a_refused_page_or_range_is_asked_for_again", a_refused_page_or_range_is_asked_for_again},
    {"another_failure_of_the_driver_reaches_the_caller",
     another_failure_of_the_driver_reaches_the_caller},
    {"every_lack_of_host_memory_is_reported", every_lack_of_host_memory_is_reported},
};
CHECK_MAIN(TESTS)
