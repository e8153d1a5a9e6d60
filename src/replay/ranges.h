/* SPDX-License-Identifier: MIT */
/**
 * Where the address ranges of expandable segments lie, as far as a recording shows.
 *
 * PyTorch reserves 9/8 of the device for each range, and prefers blocks by how far they may still
 * grow, so the size matters; but no trace says how large the device is. Two ranges cannot overlap,
 * and drivers give them one after the other: the smallest distance between the starts of two ranges
 * is taken for the size.
 */
#ifndef ALLOTI_REPLAY_RANGES_H
#define ALLOTI_REPLAY_RANGES_H

#include "replay/requests.h"

/** Addresses seen in use by requests of one stream, pool and size class, close to each other. */
typedef struct alloti_place {
    uint64_t stream;
    uint32_t pool;
    bool is_large;
    uint64_t first;
    uint64_t end;
} alloti_place;

/** Of which size class the pages of an event are. */
typedef enum alloti_page_class { PAGES_UNKNOWN, PAGES_SMALL, PAGES_LARGE } alloti_page_class;

typedef struct alloti_places {
    uint8_t *classes; /**< [events] alloti_page_class of pages mapped and unmapped, or NULL. */
    alloti_place *items;
    uint64_t count;
    uint64_t capacity;
} alloti_places;

/** Released by alloti_places_fini(). */
ALLOT_NODISCARD allot_status alloti_places_find(const allot_requests *requests, alloti_places *out);
void alloti_places_fini(alloti_places *places);

/** Pages that are mapped or unmapped. */
typedef struct alloti_pages {
    uint64_t stream;
    uint32_t pool;
    uint64_t address;
    uint64_t size;
    uint64_t large_page; /**< Page of ranges for large requests. */
    uint64_t event;      /**< Index of the segment_map or segment_unmap. */
} alloti_pages;

/** Whether pages serve large requests: as what was mapped there before, else as those nearest to
 * them do, else by their size. */
bool alloti_places_is_large(const alloti_places *places, const alloti_pages *pages);

/**
 * Find where the ranges of the initial state begin, and the smallest distance between the starts of
 * two ranges (range_bytes). A range is given back when nothing is mapped in it any more, so the
 * next pages mapped begin a new one.
 */
ALLOT_NODISCARD allot_status alloti_places_survey(allot_requests *requests,
                                                  const alloti_places *places);

#endif /* ALLOTI_REPLAY_RANGES_H */
