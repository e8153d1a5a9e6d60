/* SPDX-License-Identifier: MIT */
/**
 * The stacks, frames and strings that a page needs, numbered anew in the order in which they are
 * asked for. Stack 0 of a page is "no stack".
 *
 * A page stays small also for a trace with a million different stacks: past FRAME_BUDGET frames a
 * stack keeps its line of code only, and long strings are cut.
 */
#ifndef ALLOTI_REPORT_HTML_NAMES_H
#define ALLOTI_REPORT_HTML_NAMES_H

#include <allot/explain.h>

#include "report/html_pack.h"

/** Things of the trace that the page uses: page number of each, and the list by page number. */
typedef struct alloti_renumbering {
    uint32_t *page; /**< [total]; ALLOT_NONE: not used. */
    uint32_t *list; /**< [count] */
    uint32_t count;
} alloti_renumbering;

typedef struct alloti_names {
    const allot_trace *trace;
    const allot_lines *lines;
    alloti_renumbering stacks;
    alloti_renumbering frames;
    alloti_renumbering strings;
    uint64_t frame_budget;  /**< Frames of stacks that may still be kept. */
    uint32_t *frame_counts; /**< Frames kept of each page stack. [stacks.count] */
    uint8_t *is_user_file;  /**< Per string of the trace: a file with the user's code. */
} alloti_names;

/** Borrows trace and lines. Released with alloti_names_fini(), also after a failure. */
ALLOT_NODISCARD allot_status alloti_names_init(alloti_names *names, const allot_trace *trace,
                                               const allot_lines *lines);
void alloti_names_fini(alloti_names *names);

/** Page number of a stack of the trace, ALLOT_NONE included. */
uint32_t alloti_names_stack(alloti_names *names, uint32_t stack);

/** Write "strings", "frames", "stacks" and "lines" into the open object. */
void alloti_names_write(const alloti_names *names, alloti_json *json, alloti_pack *pack);

#endif /* ALLOTI_REPORT_HTML_NAMES_H */
