/* SPDX-License-Identifier: MIT */
/* The pages of `inspect` and `explain`: one history, and sentences about one moment of it. */
#include <stdio.h>
#include <string.h>

#include "core/size_text.h"
#include "report/html_write.h"
#include "report/parts.h"

/** Largest holder of memory at the moment, as a sentence. */
static allot_status put_largest_line(const alloti_html_subject *subject, const allot_moment *moment,
                                     alloti_json *json)
{
    allot_groups groups = {0};
    const allot_status status =
        allot_groups_init(moment, ALLOT_GROUP_LINE, subject->lines, subject->categories, &groups);
    if (status == ALLOT_STATUS_OK && groups.count != 0) {
        const allot_group *const first = &groups.items[0];
        alloti_html_sentence(json, "%s holds most: %s in %s, %.0f %% of what is in use.",
                             allot_lines_text(subject->lines, first->key),
                             alloti_size(first->size).text,
                             alloti_count(first->count, "block").text, 100.0 * first->share);
    }
    allot_groups_fini(&groups);
    return status;
}

static allot_status put_moment(const alloti_html_subject *subject, const allot_moment *moment,
                               alloti_json *json)
{
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    allot_events events;
    allot_trace_get_events(allot_history_trace(subject->history),
                           allot_history_device(subject->history), &events);
    char where[32] = "Before the first event: ";
    if (totals.event != ALLOT_NONE) {
        snprintf(where, sizeof where, "At event %u: ", totals.event);
    } else if (events.count == 0) {
        where[0] = '\0';
    }
    if (totals.segment_count != 0) {
        alloti_html_verdict_begin(json, "info", "%s%s in use, %s reserved", where,
                                  alloti_size(totals.active).text,
                                  alloti_size(totals.reserved).text);
    } else {
        alloti_html_verdict_begin(json, "info", "%s%s in use", where,
                                  alloti_size(totals.active).text);
    }
    const allot_status status = put_largest_line(subject, moment, json);
    if (totals.free_size != 0) {
        alloti_html_sentence(json,
                             "%s are reserved but free, %.1f %% of what is reserved; the largest "
                             "free range has %s.",
                             alloti_size(totals.free_size).text, 100 * alloti_free_share(&totals),
                             alloti_size(totals.free_largest).text);
    }
    alloti_html_verdict_end(json);
    return status;
}

static void put_oom_headline(const allot_oom *oom, alloti_json *json)
{
    const alloti_size_text asked = alloti_size(oom->requested);
    const uint64_t driver = oom->is_capped ? 0 : oom->device_free;
    const alloti_size_text free_in_all = alloti_size(oom->totals.free_size + driver);
    switch (oom->verdict) {
    case ALLOT_OOM_FRAGMENTED:
        alloti_html_verdict_begin(
            json, "bad",
            "Out of memory by fragmentation: %s asked, %s free in all, but no piece that large",
            asked.text, free_in_all.text);
        return;
    case ALLOT_OOM_SEPARATED:
        alloti_html_verdict_begin(
            json, "bad",
            "Out of memory: %s asked; a free range of %s exists, but belongs to another stream, "
            "pool or size class",
            asked.text, alloti_size(oom->other_largest).text);
        return;
    case ALLOT_OOM_OUTSIDE:
        alloti_html_verdict_begin(json, "bad",
                                  "Out of memory: %s asked, and most of the device is held by "
                                  "others than this allocator",
                                  asked.text);
        return;
    case ALLOT_OOM_EXHAUSTED:
    default:
        alloti_html_verdict_begin(json, "bad", "Out of memory: %s asked, %s in use, %s free in all",
                                  asked.text, alloti_size(oom->totals.active).text,
                                  free_in_all.text);
    }
}

/** What keeps free memory apart, and what would have helped. */
static void put_pins(const alloti_html_subject *subject, const allot_oom *oom, alloti_json *json)
{
    if (oom->pin_line_count != 0 && oom->pin_lines[0].kept_size != 0) {
        const allot_pin_line *const pin = &oom->pin_lines[0];
        alloti_html_sentence(json, "%s (%s) from %s keep%s %s of free memory %s.",
                             alloti_count(pin->block_count, "block").text,
                             alloti_size(pin->size).text,
                             allot_lines_text(subject->lines, pin->line),
                             pin->block_count == 1 ? "s" : "", alloti_size(pin->kept_size).text,
                             oom->pin_is_range ? "from merging" : "from going back to the driver");
    }
    alloti_html_sentence(json,
                         "Expandable segments would have had a free range of %s, packing the live "
                         "blocks one of %s.",
                         alloti_size(oom->expandable_largest).text,
                         alloti_size(oom->compacted_largest).text);
}

static allot_status put_oom(const alloti_html_subject *subject, const allot_moment *moment,
                            alloti_json *json)
{
    allot_oom oom = {0};
    allot_status status = allot_oom_init(moment, subject->lines, &oom);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    put_oom_headline(&oom, json);
    alloti_html_sentence(json, "%s reserved, %s in use, %s left with the driver.",
                         alloti_size(oom.totals.reserved).text, alloti_size(oom.totals.active).text,
                         alloti_size(oom.device_free).text);
    if (oom.verdict == ALLOT_OOM_FRAGMENTED) {
        put_pins(subject, &oom, json);
    }
    status = put_largest_line(subject, moment, json);
    alloti_html_verdict_end(json);
    allot_oom_fini(&oom);
    return status;
}

static bool is_oom(const allot_history *history, uint32_t event)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    return event != ALLOT_NONE && event < events.count && events.kind[event] == ALLOT_EVENT_OOM;
}

static allot_status write_verdict(const alloti_html_subject *subject, uint32_t event,
                                  alloti_html_page *page)
{
    allot_moment *moment = NULL;
    allot_status status = allot_history_at(subject->history, event, &moment);
    if (status == ALLOT_STATUS_OK) {
        status = is_oom(subject->history, event) ? put_oom(subject, moment, &page->json)
                                                 : put_moment(subject, moment, &page->json);
    }
    allot_moment_destroy(moment);
    return status;
}

static allot_status write_page(const char *verb, const allot_history *history, uint32_t event,
                               const allot_html_options *given, const allot_sink *sink)
{
    allot_html_options options;
    allot_status status = alloti_html_options_take(given, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_html_page page;
    alloti_html_subject subject;
    alloti_html_page_begin(&page, verb, options.name);
    status = alloti_html_subject_init(&subject, history, &options);
    if (status == ALLOT_STATUS_OK) {
        status = write_verdict(&subject, event, &page);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_html_write_one(&subject, options.limit, event, &options, &page);
        alloti_json_array_begin(&page.json, "tables");
        alloti_html_settings_write(allot_history_trace(history), &page.json);
        alloti_json_array_end(&page.json);
    }
    alloti_html_subject_fini(&subject);
    return alloti_html_page_finish(&page, status, sink);
}

allot_status allot_html_inspect(const allot_history *history, const allot_html_options *options,
                                const allot_sink *sink)
{
    const uint32_t event = allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event;
    return write_page("inspect", history, event, options, sink);
}

allot_status allot_html_explain(const allot_history *history, uint32_t event,
                                const allot_html_options *options, const allot_sink *sink)
{
    return write_page("explain", history, event, options, sink);
}
