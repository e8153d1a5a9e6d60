/* SPDX-License-Identifier: MIT */
/** Parts that several reports have: measures, totals of a moment, shares, events in words. */
#ifndef ALLOTI_REPORT_PARTS_H
#define ALLOTI_REPORT_PARTS_H

#include "report/json.h"
#include "report/text.h"

/** Room for a text of alloti_event_text(). */
typedef struct alloti_event_text {
    char text[96];
} alloti_event_text;

/** An event for people: "event 27107 (+4.63 s)", "the start", "the end (event 53,935)". */
alloti_event_text alloti_event_words(const allot_history *history, uint32_t event);

/** First line of a report: file, device, `rest`; two where one would be too long. */
void alloti_text_subject(alloti_text *text, const allot_history *history, const char *name,
                         const char *rest);

/** Name of a memory kind: "device", "pinned", "cpu". */
const char *alloti_memory_name(allot_memory_kind memory);

/** Field "file" and "device" of a document about one device. */
void alloti_json_subject(alloti_json *json, const allot_history *history, const char *name);

/** Object of the four measures at an event and their peaks. */
void alloti_json_measures(alloti_json *json, const char *key, const allot_history *history);

/** Table of the four measures: at the end and at their peaks. */
void alloti_text_measures(alloti_text *text, const allot_history *history);

/** Object of the totals of a moment. */
void alloti_json_totals(alloti_json *json, const char *key, const allot_moment_totals *totals);

/** Share of the reserved bytes that is free. */
double alloti_free_share(const allot_moment_totals *totals);

/** Whether so much is free that it is worth saying how broken up it is. */
bool alloti_fragmentation_matters(const allot_moment_totals *totals);

/** Lines about the totals of a moment. */
void alloti_text_totals(alloti_text *text, const allot_moment_totals *totals);

/** Array of sums by stream or pool. */
void alloti_json_shares(alloti_json *json, const char *key, const allot_history *history,
                        const allot_share *shares, uint32_t count, bool is_pool);

/** Name of a stream ("default stream", "stream 0x...") or pool, by index; in a static-size text. */
alloti_event_text alloti_stream_words(const allot_trace *trace, uint32_t stream);
alloti_event_text alloti_pool_words(const allot_trace *trace, uint32_t pool);

#endif /* ALLOTI_REPORT_PARTS_H */
