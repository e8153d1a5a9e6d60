/* SPDX-License-Identifier: MIT */
/** What an explanation is made of, for explain.c and oom.c. */
#ifndef ALLOTI_REPORT_EXPLAIN_H
#define ALLOTI_REPORT_EXPLAIN_H

#include "report/json.h"
#include "report/text.h"

typedef struct alloti_explained {
    const allot_history *history;
    const char *name; /**< Of the file; may be NULL. */
    allot_group_by by;
    allot_lines *lines;
    allot_categories *categories;
    allot_moment *moment;
    allot_moment_totals totals;
    allot_groups groups; /**< By `by`. */
    allot_groups by_category;
    const allot_oom *oom; /**< NULL unless the event is one. */
} alloti_explained;

void alloti_oom_text(alloti_text *text, const alloti_explained *e);
/** Field "oom". */
void alloti_oom_json(alloti_json *json, const alloti_explained *e);

#endif /* ALLOTI_REPORT_EXPLAIN_H */
