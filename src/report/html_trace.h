/* SPDX-License-Identifier: MIT */
/** One history in a page: an element of the array "traces". docs/html.md lists the fields. */
#ifndef ALLOTI_REPORT_HTML_TRACE_H
#define ALLOTI_REPORT_HTML_TRACE_H

#include <allot/html.h>

#include "report/html_page.h"

/** What to write; all borrowed. */
typedef struct alloti_html_trace {
    const allot_history *history;
    const allot_lines *lines;
    const allot_categories *categories;
    const char *name;
    uint64_t limit;
    uint32_t block_max;
    uint32_t event; /**< The moment chosen first. */
} alloti_html_trace;

/** The state after an event as a point; ALLOT_NONE is point 0. */
static inline uint32_t alloti_html_point(uint32_t event)
{
    return event == ALLOT_NONE ? 0 : event + 1;
}

/** Write the element. */
ALLOT_NODISCARD allot_status alloti_html_trace_write(const alloti_html_trace *what,
                                                     alloti_html_page *page);

#endif /* ALLOTI_REPORT_HTML_TRACE_H */
