/* SPDX-License-Identifier: MIT */
/**
 * What both forms of Umpire's replay log (JSON lines and the older CSV) say, applied to a builder.
 *
 * A memory resource or allocator is known by its reference, the value of a pointer. Each allocator
 * becomes a pool (n, 0), n from 1, whose name is the setting "allocator.n"; its memory is that of
 * the resource it stands on: HOST and FILE are host memory, PINNED is pinned, everything else is a
 * device ("DEVICE::2" is device 2).
 */
#ifndef ALLOTI_TRACE_UMPIRE_H
#define ALLOTI_TRACE_UMPIRE_H

#include "trace/builder.h"
#include "trace/lines.h"

typedef struct alloti_umpire alloti_umpire;

/** A resource or allocator `name` was made. `parent` is the name of what it stands on; string ids,
 * ALLOT_NONE where there is none. */
ALLOT_NODISCARD allot_status alloti_umpire_make(alloti_umpire *umpire, uint64_t reference,
                                                uint32_t name, uint32_t parent);

/** `size` bytes were handed out at `address`. */
ALLOT_NODISCARD allot_status alloti_umpire_allocate(alloti_umpire *umpire, uint64_t reference,
                                                    uint64_t address, uint64_t size,
                                                    int64_t time_ns);

/** The block at `address` was given back; its size is the one it was allocated with, else 0. */
ALLOT_NODISCARD allot_status alloti_umpire_deallocate(alloti_umpire *umpire, uint64_t reference,
                                                      uint64_t address, int64_t time_ns);

/** One line of the log. */
typedef allot_status (*alloti_umpire_line_fn)(const alloti_lines *lines, alloti_builder *builder,
                                              alloti_umpire *umpire);

/** Read a log line by line; what a reader's `read` does. */
ALLOT_NODISCARD allot_status alloti_umpire_read(alloti_source *source,
                                                const alloti_progress *progress,
                                                alloti_builder *builder,
                                                alloti_umpire_line_fn read_line);

#endif /* ALLOTI_TRACE_UMPIRE_H */
