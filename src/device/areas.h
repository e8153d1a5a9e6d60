/* SPDX-License-Identifier: MIT */
/**
 * Ranges of addresses that do not overlap, found by an address: what a device handed out, what is
 * mapped where. Not thread-safe: guarded by the owner's lock.
 */
#ifndef ALLOTI_DEVICE_AREAS_H
#define ALLOTI_DEVICE_AREAS_H

#include "core/status.h"
#include "core/tree.h"

typedef struct device_area {
    uint64_t address;
    uint64_t size;  /**< Bytes, above 0. */
    uint64_t value; /**< The owner's. */
    uint32_t kind;  /**< The owner's. */
    uint32_t next_free;
} device_area;

typedef struct device_areas {
    device_area *items;
    alloti_tree_node *nodes;
    uint64_t items_capacity;
    uint64_t nodes_capacity;
    uint32_t count; /**< Places ever used; the tree counts the areas. */
    uint32_t first_free;
    alloti_tree tree; /**< By address. */
} device_areas;

void alloti_areas_init(device_areas *areas);
void alloti_areas_fini(device_areas *areas);

/** Make room, so that the next alloti_areas_add() succeeds. */
ALLOT_NODISCARD allot_status alloti_areas_reserve(device_areas *areas);

/** Add an area that overlaps none; ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_areas_add(device_areas *areas, const device_area *area);

/** The area that an address lies in, NULL if none. Borrowed: valid until areas are added. */
const device_area *alloti_areas_find(const device_areas *areas, uint64_t address);

/** The area that begins at an address, NULL if none does. */
const device_area *alloti_areas_at(const device_areas *areas, uint64_t address);

/** Take out an area that alloti_areas_find() or alloti_areas_at() gave. */
void alloti_areas_remove(device_areas *areas, const device_area *area);

/**
 * Take out an area but keep its place: it is put back, which cannot fail, or the place is given up.
 * For areas that a driver is asked to free: the driver may hand the addresses to another thread
 * before it returns, or it may refuse.
 */
uint32_t alloti_areas_lift(device_areas *areas, const device_area *area);
void alloti_areas_put_back(device_areas *areas, uint32_t place);
void alloti_areas_give_up(device_areas *areas, uint32_t place);

/** Take out the first area; false if there is none. */
bool alloti_areas_pop(device_areas *areas, device_area *out);

/** The first area, and the one after another, by address; NULL for none. */
const device_area *alloti_areas_first(const device_areas *areas);
const device_area *alloti_areas_next(const device_areas *areas, const device_area *area);

/** Whether any byte of a range lies in an area. */
bool alloti_areas_overlap(const device_areas *areas, uint64_t address, uint64_t size);

/** Whether every byte of a range lies in an area, in one or in several side by side. */
bool alloti_areas_cover(const device_areas *areas, uint64_t address, uint64_t size);

#endif /* ALLOTI_DEVICE_AREAS_H */
