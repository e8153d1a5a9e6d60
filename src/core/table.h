/* SPDX-License-Identifier: MIT */
/**
 * Growable arrays that are read at random: as alloti_array_reserve(), but each begins at a cache
 * line, so that records of 32 or 64 bytes never straddle two, and large ones ask the system for
 * huge pages, because at a few hundred thousand records half of what a random read costs is finding
 * its page. Where there are none they are ordinary memory.
 *
 * Growing copies. Not for arrays that are written once from end to end: those grow cheaper, and
 * without being there twice, through realloc().
 */
#ifndef ALLOTI_CORE_TABLE_H
#define ALLOTI_CORE_TABLE_H

#include "core/status.h"

/**
 * Make room for `need` items of `item_size` bytes in the table at *data (a pointer to the owner's
 * pointer; free() releases it). *capacity counts items. ALLOT_STATUS_HOST_MEMORY on failure, with
 * nothing changed.
 */
ALLOT_NODISCARD allot_status alloti_table_reserve(void *data, uint64_t *capacity, uint64_t need,
                                                  size_t item_size);

#endif /* ALLOTI_CORE_TABLE_H */
