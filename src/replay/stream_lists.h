/* SPDX-License-Identifier: MIT */
/**
 * Free ranges kept apart by the stream that used them last: one set per stream, in the order in
 * which the streams first appeared. A range of another stream can be used after that stream has
 * been waited for; joining all lists lets ranges merge that touch across streams.
 */
#ifndef ALLOTI_REPLAY_STREAM_LISTS_H
#define ALLOTI_REPLAY_STREAM_LISTS_H

#include "replay/span_set.h"

typedef struct alloti_stream_list {
    uint64_t stream;
    alloti_span_set spans;
} alloti_stream_list;

typedef struct alloti_stream_lists {
    alloti_stream_list *lists;
    uint64_t capacity;
    uint32_t count;
} alloti_stream_lists;

void alloti_stream_lists_fini(alloti_stream_lists *lists);

/** Set of `stream`, made on first use. Borrowed: valid until the next call with a new stream. */
ALLOT_NODISCARD allot_status alloti_stream_lists_get(alloti_stream_lists *lists, uint64_t stream,
                                                     alloti_span_set **out);

/** Free bytes over all lists, and the largest single range. */
void alloti_stream_lists_free(const alloti_stream_lists *lists, uint64_t *bytes, uint64_t *largest);

#endif /* ALLOTI_REPLAY_STREAM_LISTS_H */
