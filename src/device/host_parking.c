/* SPDX-License-Identifier: MIT */
/*
 * The parking place: reserved addresses as large as the quota, cut into slots of a granule. All
 * memories together are no larger than the quota, so there is always a slot; it takes addresses
 * only, and only once something had to make way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_text.h"
#include "device/host.h"
#include "device/host_pages.h"

static uint64_t slot_address(const host_device *device, uint32_t slot)
{
    return device->parking.begin + slot * device->granule;
}

static uint64_t slots_of(const host_device *device, const host_memory *memory)
{
    return memory->size / device->granule;
}

/** Map the parking place unless it is. */
static allot_status open_place(host_device *device)
{
    host_parking *const parking = &device->parking;
    if (parking->begin != 0) {
        return ALLOT_STATUS_OK;
    }
    const host_mapping mapping = {.size = parking->slot_max * device->granule,
                                  .align = device->granule > HOST_HUGE_PAGE ? device->granule
                                                                            : HOST_HUGE_PAGE,
                                  .is_huge = device->is_huge && device->granule >= HOST_HUGE_PAGE,
                                  .is_reserved = true};
    parking->begin = alloti_host_pages_map(&mapping);
    if (parking->begin == 0) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY,
                           "host: mmap of %s to put unmapped memory aside: %s",
                           alloti_size(mapping.size).text, strerror(errno));
    }
    alloti_host_mover_adopt(&device->mover, parking->begin, mapping.size);
    return ALLOT_STATUS_OK;
}

/** Slots for a memory. */
static allot_status take_slots(host_device *device, uint32_t *slots, uint64_t count)
{
    host_parking *const parking = &device->parking;
    const uint64_t fresh = count > parking->free_count ? count - parking->free_count : 0;
    const allot_status status =
        alloti_array_reserve(&parking->free, &parking->free_capacity, parking->slot_count + fresh,
                             sizeof *parking->free);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        slots[i] =
            parking->free_count != 0 ? parking->free[--parking->free_count] : parking->slot_count++;
    }
    return ALLOT_STATUS_OK;
}

/** The slots of a memory, which hold no pages, are free again. */
static void give_slots(host_device *device, host_memory *memory)
{
    host_parking *const parking = &device->parking;
    for (uint64_t i = slots_of(device, memory); i > 0; i--) {
        parking->free[parking->free_count++] = memory->slots[i - 1];
    }
    free(memory->slots);
    memory->slots = NULL;
}

allot_status alloti_host_park(host_device *device, host_memory *memory)
{
    allot_status status = open_place(device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t count = slots_of(device, memory);
    uint32_t *const slots = alloti_alloc_array(count, sizeof *slots);
    if (slots == NULL) {
        return alloti_fail_memory(count * sizeof *slots);
    }
    status = take_slots(device, slots, count);
    if (status != ALLOT_STATUS_OK) {
        free(slots);
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        alloti_host_transfer(device, slot_address(device, slots[i]),
                             memory->address + i * device->granule, device->granule,
                             &device->parking.cut_count);
    }
    memory->slots = slots;
    memory->place = HOST_PLACE_PARKED;
    return ALLOT_STATUS_OK;
}

void alloti_host_unpark(host_device *device, host_memory *memory, uint64_t address,
                        uint32_t *cut_count)
{
    for (uint64_t i = 0; i < slots_of(device, memory); i++) {
        alloti_host_transfer(device, address + i * device->granule,
                             slot_address(device, memory->slots[i]), device->granule, cut_count);
    }
    give_slots(device, memory);
}

void alloti_host_parking_drop(host_device *device, host_memory *memory)
{
    for (uint64_t i = 0; i < slots_of(device, memory); i++) {
        alloti_host_pages_discard(slot_address(device, memory->slots[i]), device->granule);
    }
    give_slots(device, memory);
}

void alloti_host_parking_fini(host_device *device)
{
    host_parking *const parking = &device->parking;
    if (parking->begin != 0) {
        (void)alloti_host_pages_unmap(parking->begin, parking->slot_max * device->granule);
    }
    free(parking->free);
}
