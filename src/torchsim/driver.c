/* SPDX-License-Identifier: MIT */
/** The built-in driver: addresses go up in steps of 2 MiB and never come back; bytes are limited.
 */
#include "core/size_math.h"
#include "torchsim/sim.h"

static const uint64_t FIRST_ADDRESS = 0x7f0000000000ull;
static const uint64_t STEP = 2ull << 20;

static allot_status take_addresses(sim_builtin *driver, uint64_t size, uint64_t *address)
{
    uint64_t bytes = 0;
    uint64_t end = 0;
    if (!alloti_align_up(size, STEP, &bytes) || !alloti_add(driver->next, bytes, &end)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    *address = driver->next;
    driver->next = end;
    return ALLOT_STATUS_OK;
}

static bool take_bytes(sim_builtin *driver, uint64_t size)
{
    if (size > driver->limit - driver->used) {
        return false;
    }
    driver->used += size;
    return true;
}

static allot_status segment_alloc(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)stream;
    sim_builtin *driver = context;
    if (!take_bytes(driver, size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const allot_status status = take_addresses(driver, size, address);
    if (status != ALLOT_STATUS_OK) {
        driver->used -= size;
    }
    return status;
}

static void give_back(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    ((sim_builtin *)context)->used -= size;
}

static allot_status reserve(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)stream;
    return take_addresses(context, size, address);
}

static void unreserve(void *context, uint64_t address, uint64_t size)
{
    (void)context, (void)address, (void)size;
}

static allot_status map(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    return take_bytes(context, size) ? ALLOT_STATUS_OK : ALLOT_STATUS_DEVICE_MEMORY;
}

static uint64_t free_bytes(void *context)
{
    const sim_builtin *driver = context;
    return driver->limit - driver->used;
}

void alloti_sim_builtin_init(allot_torchsim *sim)
{
    sim->is_builtin = true;
    sim->builtin.next = FIRST_ADDRESS;
    sim->builtin.limit = sim->limit;
    sim->driver = (allot_torch_driver){
        .struct_size = sizeof(allot_torch_driver),
        .context = &sim->builtin,
        .segment_alloc = segment_alloc,
        .segment_free = give_back,
        .reserve = reserve,
        .unreserve = unreserve,
        .map = map,
        .unmap = give_back,
        .free_bytes = free_bytes,
    };
}
