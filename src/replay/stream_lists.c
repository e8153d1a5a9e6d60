/* SPDX-License-Identifier: MIT */
#include "replay/stream_lists.h"

#include <stdlib.h>

#include "core/array.h"

void alloti_stream_lists_fini(alloti_stream_lists *lists)
{
    for (uint32_t i = 0; i < lists->count; i++) {
        alloti_span_set_fini(&lists->lists[i].spans);
    }
    free(lists->lists);
    *lists = (alloti_stream_lists){.lists = NULL};
}

allot_status alloti_stream_lists_get(alloti_stream_lists *lists, uint64_t stream,
                                     alloti_span_set **out)
{
    for (uint32_t i = 0; i < lists->count; i++) {
        if (lists->lists[i].stream == stream) {
            *out = &lists->lists[i].spans;
            return ALLOT_STATUS_OK;
        }
    }
    const allot_status status = alloti_array_reserve(
        &lists->lists, &lists->capacity, (uint64_t)lists->count + 1, sizeof *lists->lists);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_stream_list *const list = &lists->lists[lists->count++];
    *list = (alloti_stream_list){.stream = stream, .spans = ALLOTI_SPAN_SET_EMPTY};
    *out = &list->spans;
    return ALLOT_STATUS_OK;
}

void alloti_stream_lists_free(const alloti_stream_lists *lists, uint64_t *bytes, uint64_t *largest)
{
    *bytes = 0;
    *largest = 0;
    for (uint32_t i = 0; i < lists->count; i++) {
        const uint64_t most = alloti_span_set_largest(&lists->lists[i].spans);
        *bytes += lists->lists[i].spans.bytes;
        *largest = most > *largest ? most : *largest;
    }
}
