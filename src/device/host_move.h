/* SPDX-License-Identifier: MIT */
/**
 * Bringing bytes elsewhere by moving the pages that hold them: the kernel rewrites page tables
 * instead of copying.
 *
 * Three ways. UFFDIO_MOVE (Linux 6.8) moves pages between mappings and leaves the mappings alone;
 * mremap() moves a mapping and so cuts others up, which is bounded by the caller; copying always
 * works and is what the other two fall back to, piece by piece, when the kernel refuses (pages
 * shared with a forked child, pinned by a driver, locked by something else for a moment).
 *
 * Both ends must be private anonymous memory that is readable and writable and that the mover
 * adopted; the caller knows that they are.
 */
#ifndef ALLOTI_DEVICE_HOST_MOVE_H
#define ALLOTI_DEVICE_HOST_MOVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/status.h"

/** Ways to move pages, the preferred last. X(name, spelling in settings, name for people) */
#define HOST_WAY_LIST(X)                                                                           \
    X(COPY, "copy", "copying")                                                                     \
    X(MREMAP, "mremap", "mremap")                                                                  \
    X(UFFD, "uffd", "UFFDIO_MOVE")

typedef enum host_way {
#define HOST_WAY_ENUM(name, spelling, text) HOST_WAY_##name,
    HOST_WAY_LIST(HOST_WAY_ENUM)
#undef HOST_WAY_ENUM
        HOST_WAY_COUNT
} host_way;

typedef struct host_mover {
    host_way way;
    bool is_huge_cheap; /**< Aligned huge pages are moved whole, which costs less than copying. */
    int uffd;           /**< Of HOST_WAY_UFFD; else -1. */
    uint64_t page;
    uint64_t page_min;            /**< Bytes of pages in a row from which on they are moved. */
    pthread_mutex_t scratch_lock; /**< Guards `scratch`; taken last. */
    /** Room of a huge page for what lay at a destination; empty between moves. */
    uint64_t scratch;
    /* Relaxed: they guard nothing. */
    _Atomic uint64_t size_moved;  /**< Bytes that went without copying. */
    _Atomic uint64_t size_copied; /**< Bytes of whole pages that had to be copied after all. */
} host_mover;

/** Spelling of a way in settings, and its name for people. */
const char *alloti_host_way_spelling(host_way way);
const char *alloti_host_way_text(host_way way);

/**
 * Prepare one way, with page_min 0.
 *
 * @return ALLOT_STATUS_UNSUPPORTED with the reason where the kernel does not let this process;
 *         ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_NODISCARD allot_status alloti_host_mover_init(host_mover *mover, host_way way);
void alloti_host_mover_fini(host_mover *mover, bool is_forked);

/** Tell the mover of a mapping. What it cannot adopt it will copy. */
void alloti_host_mover_adopt(const host_mover *mover, uint64_t address, uint64_t size);

/**
 * Bring bytes from `src` to `dst`, which do not overlap; at `src` any bytes stay behind. Memory
 * behind `dst` goes to `src` where that is cheap, so that neither has to be filled anew.
 */
void alloti_host_move(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size);

/** As `move` for whole pages of any number, leaving no memory at `src`. `dst` need not be empty. */
void alloti_host_relocate(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size);

#endif /* ALLOTI_DEVICE_HOST_MOVE_H */
