/* SPDX-License-Identifier: MIT */
/** Values over time in a page: steps of a measure, and the times of events. */
#ifndef ALLOTI_REPORT_HTML_SERIES_H
#define ALLOTI_REPORT_HTML_SERIES_H

#include <allot/trace.h>

#include "report/html_page.h"

/**
 * Write the points at which a value changes as {"point", "bytes"}: the value after each of `count`
 * events, and the one before. Past some thousand changes, a stretch keeps its highest and its last.
 */
void alloti_html_write_steps(alloti_html_page *page, const char *key, uint64_t initial,
                             const uint64_t *values, uint64_t count);

/** Write "time": when events happened, at regular events; nothing if the trace does not know. */
void alloti_html_write_times(alloti_html_page *page, const allot_trace *trace, uint32_t device);

#endif /* ALLOTI_REPORT_HTML_SERIES_H */
