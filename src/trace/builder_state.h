/* SPDX-License-Identifier: MIT */
/** What a builder is made of, for its two files: builder.c and builder_intern.c. */
#ifndef ALLOTI_TRACE_BUILDER_STATE_H
#define ALLOTI_TRACE_BUILDER_STATE_H

#include "trace/builder.h"
#include "trace/intern.h"
#include "trace/trace.h"

struct alloti_builder {
    allot_trace *trace;
    alloti_columns loose;  /**< Events whose device is not known yet. */
    uint32_t loose_traits; /**< What the loose events show. */
    uint64_t loose_total;  /**< Loose events ever added. */
    uint64_t loose_taken;  /**< Rows taken, each at most once. */
    alloti_intern strings;
    alloti_intern frames;
    alloti_intern fx;
    alloti_intern stacks;
    alloti_intern streams;
    alloti_intern pools;
};

/** A table of the trace: items of one size that are named by their number. */
typedef struct alloti_table {
    void *items; /**< Address of the pointer to the items. */
    uint64_t *count;
    uint64_t *capacity;
    size_t item_size;
    const char *what; /**< For messages: "frames". */
} alloti_table;

/** Add an item; *out (NULL allowed) is its number. FORMAT if there are too many; HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_table_append(const alloti_table *table, const void *item,
                                                 uint32_t *out);

#endif /* ALLOTI_TRACE_BUILDER_STATE_H */
