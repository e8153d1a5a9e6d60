/* SPDX-License-Identifier: MIT */
/**
 * The events of one device as they come: columns of equal length that grow together. A column that
 * few files have (category, context, metadata, totals) begins with the first event that has such a
 * value; the events before it have none.
 */
#ifndef ALLOTI_TRACE_COLUMNS_H
#define ALLOTI_TRACE_COLUMNS_H

#include "trace/builder.h"
#include "trace/trace.h"

/** Release all columns; nothing may be added after. */
void alloti_columns_fini(alloti_columns *columns);

/** Add an event. ALLOT_STATUS_FORMAT if there are too many; HOST_MEMORY leaves what was there. */
ALLOT_NODISCARD allot_status alloti_columns_push(alloti_columns *columns,
                                                 const alloti_event *event);

/** Event `i` as it was added. */
alloti_event alloti_columns_get(const alloti_columns *columns, uint64_t i);

#endif /* ALLOTI_TRACE_COLUMNS_H */
