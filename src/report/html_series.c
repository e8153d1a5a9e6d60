/* SPDX-License-Identifier: MIT */
/* Values over time, thinned out so that peaks stay. */
#include "report/html_series.h"

enum {
    STEP_STRETCHES = 8192, /* stretches of a series; each keeps two values */
    TIME_SAMPLES = 65536,
};

/** Visits the changes that are kept; `column` receives points or values. */
static void put_steps(alloti_pack_column *column, bool is_point, uint64_t initial,
                      const uint64_t *values, uint64_t count)
{
    const uint64_t stretch = count / STEP_STRETCHES + 1;
    uint64_t shown = initial;
    alloti_pack_put(column, is_point ? 0 : initial);
    for (uint64_t from = 0; from < count; from += stretch) {
        const uint64_t to = from + stretch < count ? from + stretch : count;
        uint64_t best = from;
        for (uint64_t i = from + 1; i < to; i++) {
            best = values[i] > values[best] ? i : best;
        }
        const uint64_t kept[] = {best, to - 1};
        for (unsigned k = 0; k < 2; k++) {
            if (values[kept[k]] != shown) {
                shown = values[kept[k]];
                alloti_pack_put(column, is_point ? kept[k] + 1 : shown);
            }
        }
    }
}

void alloti_html_write_steps(alloti_html_page *page, const char *key, uint64_t initial,
                             const uint64_t *values, uint64_t count)
{
    alloti_json_object_begin(&page->json, key);
    for (unsigned c = 0; c < 2; c++) {
        alloti_pack_column column = alloti_pack_begin(&page->pack, true);
        put_steps(&column, c == 0, initial, values, count);
        alloti_pack_end(&column, &page->json, c == 0 ? "point" : "bytes");
    }
    alloti_json_object_end(&page->json);
}

void alloti_html_write_times(alloti_html_page *page, const allot_trace *trace, uint32_t device)
{
    allot_events events;
    allot_trace_get_events(trace, device, &events);
    int64_t first = ALLOT_TIME_NONE;
    for (uint64_t i = 0; i < events.count && first == ALLOT_TIME_NONE; i++) {
        first = events.time_ns[i];
    }
    if (first == ALLOT_TIME_NONE) {
        return;
    }
    const uint64_t every = events.count / TIME_SAMPLES + 1;
    alloti_json_object_begin(&page->json, "time");
    alloti_json_put_u64(&page->json, "every", every);
    alloti_json_put_i64(&page->json, "first_ns", first);
    alloti_pack_column column = alloti_pack_begin(&page->pack, true);
    int64_t latest = first; /* clocks step back and events may lack a time: never go back */
    for (uint64_t i = 0; i < events.count; i++) {
        latest = events.time_ns[i] > latest ? events.time_ns[i] : latest;
        if (i % every == 0) {
            alloti_pack_put(&column, (uint64_t)latest - (uint64_t)first);
        }
    }
    alloti_pack_end(&column, &page->json, "ns");
    alloti_json_object_end(&page->json);
}
