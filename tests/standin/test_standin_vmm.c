/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };
static const standin_properties ON_DEVICE = {.type = 1, .handle_types = 1, .location = {1, 0}};
static const standin_access READ_WRITE = {.location = {1, 0}, .flags = 3};

static void load(void)
{
    standin_load("limit:64MiB,devices:2");
}

static uint64_t reserve(size_t size)
{
    uint64_t address = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&address, size, 0, 0, 0), 0);
    return address;
}

static uint64_t create(size_t size)
{
    uint64_t handle = 0;
    CHECK_EQ(cuda.cuMemCreate(&handle, size, &ON_DEVICE, 0), 0);
    return handle;
}

static void reserving_costs_no_memory(void)
{
    load();
    const size_t before = standin_used();
    const uint64_t address = reserve(STANDIN_MIB(1024));
    CHECK_EQ(address % STANDIN_MIB(2), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(1022)), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(1024)), 0);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(1024)), INVALID_VALUE);
}

static void sizes_must_be_whole_granules(void)
{
    load();
    uint64_t out = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&out, STANDIN_MIB(1), 0, 0, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemAddressReserve(&out, 0, 0, 0, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemCreate(&out, STANDIN_MIB(3), &ON_DEVICE, 0), INVALID_VALUE);
    const standin_properties elsewhere = {.type = 1, .location = {1, 7}};
    CHECK_EQ(cuda.cuMemCreate(&out, STANDIN_MIB(2), &elsewhere, 0), INVALID_VALUE);
}

static void a_wish_for_an_address_is_granted_if_it_is_free(void)
{
    load();
    const uint64_t a = reserve(STANDIN_MIB(8));
    uint64_t b = 0;
    CHECK_EQ(cuda.cuMemAddressFree(a, STANDIN_MIB(8)), 0);
    CHECK_EQ(cuda.cuMemAddressReserve(&b, STANDIN_MIB(4), 0, a + STANDIN_MIB(4), 0), 0);
    CHECK_EQ(b, a + STANDIN_MIB(4));
    uint64_t c = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&c, STANDIN_MIB(4), 0, b, 0), 0);
    CHECK(c != b);
    CHECK_EQ(cuda.cuMemAddressFree(b, STANDIN_MIB(4)), 0);
    CHECK_EQ(cuda.cuMemAddressFree(c, STANDIN_MIB(4)), 0);
}

static void alignment_is_kept(void)
{
    load();
    uint64_t a = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&a, STANDIN_MIB(2), STANDIN_MIB(512), 0, 0), 0);
    CHECK_EQ(a % STANDIN_MIB(512), 0);
    CHECK_EQ(cuda.cuMemAddressFree(a, STANDIN_MIB(2)), 0);
}

static void physical_memory_counts_against_the_limit(void)
{
    load();
    const size_t before = standin_used();
    const uint64_t handle = create(STANDIN_MIB(40));
    uint64_t more = 0;
    CHECK_EQ(standin_used() - before, STANDIN_MIB(40));
    CHECK_EQ(cuda.cuMemCreate(&more, STANDIN_MIB(40), &ON_DEVICE, 0), OUT_OF_MEMORY);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), INVALID_VALUE);
    CHECK_EQ(standin_used(), before);
}

static void memory_lives_until_it_is_released_and_unmapped(void)
{
    load();
    const size_t before = standin_used();
    const uint64_t address = reserve(STANDIN_MIB(8));
    const uint64_t handle = create(STANDIN_MIB(4));
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(4), 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemMap(address + STANDIN_MIB(4), STANDIN_MIB(4), 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(4));
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(4)), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(4));
    CHECK_EQ(cuda.cuMemUnmap(address + STANDIN_MIB(4), STANDIN_MIB(4)), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(8)), 0);
}

static void wrong_mappings_are_refused(void)
{
    load();
    const uint64_t address = reserve(STANDIN_MIB(8));
    const uint64_t handle = create(STANDIN_MIB(4));
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(6), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(4), STANDIN_MIB(2), handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(address + STANDIN_MIB(6), STANDIN_MIB(4), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(address + 4096, STANDIN_MIB(2), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(2), 0, 12345, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(0x1000, STANDIN_MIB(2), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(4), 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemMap(address + STANDIN_MIB(2), STANDIN_MIB(2), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(2)), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(6)), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(8)), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemSetAccess(address, STANDIN_MIB(8), &READ_WRITE, 1), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemSetAccess(address, STANDIN_MIB(4), &READ_WRITE, 1), 0);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(4)), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(4), 0, handle, 0), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(8)), 0);
}

static void a_mapping_gives_its_handle_back(void)
{
    load();
    const size_t before = standin_used();
    const uint64_t address = reserve(STANDIN_MIB(2));
    const uint64_t handle = create(STANDIN_MIB(2));
    uint64_t again = 0;
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(2), 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address), 0);
    CHECK_EQ(again, handle);
    standin_properties properties = {0};
    CHECK_EQ(cuda.cuMemGetAllocationPropertiesFromHandle(&properties, again), 0);
    CHECK_EQ(properties.location.id, 0);
    CHECK_EQ(properties.handle_types, 1);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(2)), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(2));
    CHECK_EQ(cuda.cuMemRelease(again), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(2)), 0);
}

static void a_handle_passes_through_a_file(void)
{
    load();
    const size_t before = standin_used();
    const uint64_t handle = create(STANDIN_MIB(2));
    int file = -1;
    uint64_t imported = 0;
    REQUIRE(cuda.cuMemExportToShareableHandle(&file, handle, 1, 0) == 0);
    CHECK_EQ(cuda.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, 1), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(2));
    const uint64_t address = reserve(STANDIN_MIB(2));
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(2), 0, imported, 0), 0);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(2)), 0);
    CHECK_EQ(cuda.cuMemRelease(imported), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(2)), 0);
    close(file);
    CHECK_EQ(cuda.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)-1, 1),
             INVALID_VALUE);
}

static const check_test TESTS[] = {
    {"reserving_costs_no_memory", reserving_costs_no_memory},
    {"sizes_must_be_whole_granules", sizes_must_be_whole_granules},
    {"a_wish_for_an_address_is_granted_if_it_is_free",
     a_wish_for_an_address_is_granted_if_it_is_free},
    {"alignment_is_kept", alignment_is_kept},
    {"physical_memory_counts_against_the_limit", physical_memory_counts_against_the_limit},
    {"memory_lives_until_it_is_released_and_unmapped",
     memory_lives_until_it_is_released_and_unmapped},
    {"wrong_mappings_are_refused", wrong_mappings_are_refused},
    {"a_mapping_gives_its_handle_back", a_mapping_gives_its_handle_back},
    {"a_handle_passes_through_a_file", a_handle_passes_through_a_file},
};
CHECK_MAIN(TESTS)
