/* SPDX-License-Identifier: MIT */
/**
 * The file around the data: the page's template with its style, its script and their hashes, and
 * one base64 text of a zlib stream that holds the JSON and the columns. As base64 it can hold
 * nothing that a browser takes for markup, whatever the names in a trace are.
 */
#ifndef ALLOTI_REPORT_HTML_PAGE_H
#define ALLOTI_REPORT_HTML_PAGE_H

#include "report/html_pack.h"

/** A page being made: write to `json` and `pack`, then finish. */
typedef struct alloti_html_page {
    alloti_pack text; /**< The JSON so far. */
    allot_sink text_sink;
    alloti_json json;
    alloti_pack pack;
    const char *title; /**< Borrowed. */
} alloti_html_page;

/** Begin; alloti_html_page_finish() must follow. The page must not move in memory. */
void alloti_html_page_begin(alloti_html_page *page, const char *verb, const char *title);

/** Write the file if `status` and all so far is well; releases the page in any case. */
ALLOT_NODISCARD allot_status alloti_html_page_finish(alloti_html_page *page, allot_status status,
                                                     const allot_sink *sink);

#endif /* ALLOTI_REPORT_HTML_PAGE_H */
