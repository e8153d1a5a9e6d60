/* SPDX-License-Identifier: MIT */
/**
 * The device "host": memory of this machine.
 *
 * Everything is private anonymous memory: one mapping for each plain allocation, one for each range
 * of reserved addresses, whatever is mapped in it. A memory of the virtual memory group is not a
 * kernel object but a claim on the quota and a note of where its bytes lie:
 *
 *     FRESH   nowhere yet: it has no bytes
 *     MAPPED  at its address
 *     LEFT    unmapped, still at the address it was mapped at
 *     PARKED  in the parking place, as something else was mapped there
 *
 * So unmapping costs nothing, and mapping elsewhere moves pages once. Granules of reserved
 * addresses where no memory lies hold no pages.
 *
 *     host.c           opening, closing, what is known of the device
 *     host_regions.c   mappings by address, plain memory, the quota
 *     host_virtual.c   reserve, create, map, unmap
 *     host_parking.c   the parking place
 *     host_queue.c     streams, events, bytes
 *     host_move.c      moving pages
 *     host_machine.c   what this machine lets us do, measured
 */
#ifndef ALLOTI_DEVICE_HOST_H
#define ALLOTI_DEVICE_HOST_H

#include "core/slot.h"
#include "device/areas.h"
#include "device/host_machine.h"
#include "device/host_move.h"
#include "device/host_pages.h"

/** First bytes of the handles that are given out. */
enum {
    HOST_KIND_STREAM = 1,
    HOST_KIND_EVENT,
    HOST_KIND_MEMORY,
};

typedef enum host_place {
    HOST_PLACE_FRESH,
    HOST_PLACE_MAPPED,
    HOST_PLACE_LEFT,
    HOST_PLACE_PARKED,
} host_place;

typedef struct host_memory {
    host_place place;
    uint64_t size;
    uint64_t address; /**< MAPPED, LEFT: where it begins. */
    uint32_t *slots;  /**< [size / granule] PARKED: where in the parking place; else NULL. */
} host_memory;

/** A mapping: an allocation, or reserved addresses. */
typedef struct host_region {
    uint64_t begin;
    uint64_t size;         /**< As asked for. */
    uint64_t span;         /**< Whole pages. */
    host_memory **owners;  /**< [size / granule] What lies there, NULL: nothing; no array: an
                              allocation. */
    uint32_t mapped_count; /**< Memories mapped and left in it. */
    uint32_t left_count;
    uint32_t cut_count; /**< Mappings of the kernel that mremap() may have added. */
} host_region;

/** Room for memories that had to make way, a granule a slot. */
typedef struct host_parking {
    uint64_t begin;      /**< 0: not mapped yet. */
    uint32_t slot_count; /**< Slots that were ever in use. */
    uint32_t slot_max;   /**< As many as the quota has. */
    uint32_t *free;      /**< [free_count] Slots below slot_count that are not in use. */
    uint64_t free_count;
    uint64_t free_capacity; /**< At least slot_count: giving a slot back cannot fail. */
    uint32_t cut_count;     /**< As of a region. */
} host_parking;

typedef struct host_device {
    const host_machine *machine;
    uint64_t quota;
    uint64_t granule;
    uint64_t page_move_min;
    bool is_huge;
    bool is_guarded;
    host_mover mover;

    pthread_mutex_t lock;  /**< Guards all below; taken before the mover's. */
    uint64_t size_used;    /**< Of the quota. */
    device_areas regions;  /**< The value of an area is the address of its host_region. */
    alloti_slots memories; /**< Of host_memory. */
    host_parking parking;
    uint32_t cut_count; /**< Of all regions. */
    alloti_slots streams;
    alloti_slots events;
} host_device;

/* The functions below want `lock` held, but for the operations, which take it. */

/** A claim on the quota; ALLOT_STATUS_DEVICE_MEMORY with the figures. */
ALLOT_NODISCARD allot_status alloti_host_claim(host_device *device, uint64_t size);

/** Map a region and enter it. Where the kernel refuses: ALLOT_STATUS_DEVICE_MEMORY of allocations,
 * ALLOT_STATUS_HOST_MEMORY of reserved addresses. */
ALLOT_NODISCARD allot_status alloti_host_region_add(host_device *device,
                                                    const host_mapping *mapping, uint64_t size,
                                                    uint64_t *address);

/** Unmap a region and forget it; ALLOT_STATUS_BACKEND, and it is still there. */
ALLOT_NODISCARD allot_status alloti_host_region_remove(host_device *device, host_region *region);

/** The region that has all of a range; NULL. */
host_region *alloti_host_region_find(const host_device *device, uint64_t address, uint64_t size);

/** Whether mremap() may cut a mapping up once more; then counted in *cut_count too. The other ways
 * always may. */
bool alloti_host_cut(host_device *device, uint32_t *cut_count);

void alloti_host_regions_fini(host_device *device);

/** Bring a memory's bytes from `address`, which is open, to the parking place. Nothing has changed
 * after ALLOT_STATUS_HOST_MEMORY; on success it is PARKED. */
ALLOT_NODISCARD allot_status alloti_host_park(host_device *device, host_memory *memory);
/** Bring the bytes of a parked memory to an open address; its place is the caller's to set. */
void alloti_host_unpark(host_device *device, host_memory *memory, uint64_t address,
                        uint32_t *cut_count);
/** Give up the bytes of a parked memory. */
void alloti_host_parking_drop(host_device *device, host_memory *memory);
void alloti_host_parking_fini(host_device *device);

/** Move pages between places of the device that do not overlap; `src` has none afterwards. The cuts
 * are of the mapping at `dst`. */
void alloti_host_transfer(host_device *device, uint64_t dst, uint64_t src, uint64_t size,
                          uint32_t *cut_count);

/* Operations; `self` is the host_device. Contracts: <allot/device_backend.h>. */
allot_status alloti_host_alloc(void *self, uint64_t size, uint64_t *address);
allot_status alloti_host_free(void *self, uint64_t address, uint64_t size);
allot_status alloti_host_memory_info(void *self, uint64_t *size_free, uint64_t *size_total);
allot_status alloti_host_reserve(void *self, uint64_t size, uint64_t *address);
allot_status alloti_host_unreserve(void *self, uint64_t address, uint64_t size);
allot_status alloti_host_memory_create(void *self, uint64_t size, uint64_t *memory);
allot_status alloti_host_memory_release(void *self, uint64_t memory, uint64_t size);
allot_status alloti_host_map(void *self, uint64_t address, uint64_t memory, uint64_t size);
allot_status alloti_host_unmap(void *self, uint64_t address, uint64_t size);
allot_status alloti_host_stream_create(void *self, uint64_t *stream);
allot_status alloti_host_stream_destroy(void *self, uint64_t stream);
allot_status alloti_host_stream_wait(void *self, uint64_t stream, uint64_t event);
allot_status alloti_host_stream_synchronize(void *self, uint64_t stream);
allot_status alloti_host_event_create(void *self, uint64_t *event);
allot_status alloti_host_event_destroy(void *self, uint64_t event);
allot_status alloti_host_event_record(void *self, uint64_t event, uint64_t stream);
allot_status alloti_host_event_query(void *self, uint64_t event);
allot_status alloti_host_event_synchronize(void *self, uint64_t event);
allot_status alloti_host_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                              uint64_t size);
allot_status alloti_host_move_op(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                 uint64_t size);
allot_status alloti_host_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                              uint64_t size);
allot_status alloti_host_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                               uint64_t size);
allot_status alloti_host_read(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size);

#endif /* ALLOTI_DEVICE_HOST_H */
