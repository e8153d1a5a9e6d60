/* SPDX-License-Identifier: MIT */
/* A table over ranks. */
#include <inttypes.h>
#include <string.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"

/* Length of the folders that all names begin with. */
static size_t common_folder(const allot_ranks *ranks)
{
    const char *const first = ranks->items[0].name;
    size_t length = strlen(first);
    for (uint32_t i = 1; i < ranks->count; i++) {
        const char *const name = ranks->items[i].name;
        size_t same = 0;
        while (same < length && name[same] == first[same]) {
            same++;
        }
        length = same;
    }
    while (length != 0 && first[length - 1] != '/') {
        length--;
    }
    return length;
}

static const char *mark_of(const allot_rank *rank)
{
    return rank->is_allocated_outlier && rank->is_reserved_outlier ? "both"
           : rank->is_allocated_outlier                            ? "allocated"
           : rank->is_reserved_outlier                             ? "reserved"
                                                                   : "";
}

static void write_text(alloti_text *text, const allot_ranks *ranks)
{
    static const alloti_column COLUMNS[] = {
        {"#", ALLOTI_COLUMN_RIGHT},         {"allocated", ALLOTI_COLUMN_RIGHT},
        {"reserved", ALLOTI_COLUMN_RIGHT},  {"free", ALLOTI_COLUMN_RIGHT},
        {"segments", ALLOTI_COLUMN_RIGHT},  {"oom", ALLOTI_COLUMN_RIGHT},
        {"stands out", ALLOTI_COLUMN_LEFT}, {"file", ALLOTI_COLUMN_FLEX}};
    const size_t folder = common_folder(ranks);
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < ranks->count; i++) {
        const allot_rank *const rank = &ranks->items[i];
        alloti_table_cell(&table, "%" PRIu32, i);
        alloti_table_cell(&table, "%s", alloti_size(rank->peak[ALLOT_MEASURE_ALLOCATED].size).text);
        alloti_table_cell(&table, "%s", alloti_size(rank->peak[ALLOT_MEASURE_RESERVED].size).text);
        alloti_table_cell(&table, "%s", alloti_size(rank->free_at_peak).text);
        alloti_table_cell(&table, "%" PRIu64, rank->segment_count);
        alloti_table_cell(&table, "%" PRIu64, rank->oom_count);
        alloti_table_cell(&table, "%s", mark_of(rank));
        alloti_table_cell(&table, "%s", rank->name + folder);
    }
    alloti_text_style(text, ALLOTI_STYLE_HEADING,
                      "peaks of each rank, and what of its peak reserved was free\n");
    alloti_table_write(&table, text);
    alloti_text_printf(text, "\n  median of the peaks: allocated %s (deviation %s), ",
                       alloti_size(ranks->median_peak).text, alloti_size(ranks->deviation).text);
    alloti_text_printf(text, "reserved %s (%s)\n  %s %s out\n",
                       alloti_size(ranks->median_reserved).text,
                       alloti_size(ranks->deviation_reserved).text,
                       alloti_count(ranks->outlier_count, "rank").text,
                       ranks->outlier_count == 1 ? "stands" : "stand");
}

static allot_status write_json(const allot_sink *sink, const allot_ranks *ranks)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.ranks/1");
    alloti_json_put_u64(&json, "median_peak", ranks->median_peak);
    alloti_json_put_u64(&json, "deviation", ranks->deviation);
    alloti_json_put_u64(&json, "median_reserved", ranks->median_reserved);
    alloti_json_put_u64(&json, "deviation_reserved", ranks->deviation_reserved);
    alloti_json_put_u64(&json, "outlier_count", ranks->outlier_count);
    alloti_json_array_begin(&json, "ranks");
    for (uint32_t i = 0; i < ranks->count; i++) {
        const allot_rank *const rank = &ranks->items[i];
        alloti_json_object_begin(&json, NULL);
        alloti_json_put_string(&json, "file", rank->name);
        for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
            alloti_json_object_begin(&json, allot_measure_name((allot_measure)m));
            alloti_json_put_u64(&json, "peak", rank->peak[m].size);
            alloti_json_put_index(&json, "peak_event", rank->peak[m].event);
            alloti_json_object_end(&json);
        }
        alloti_json_put_u64(&json, "reserved_end", rank->reserved_end);
        alloti_json_put_u64(&json, "free_at_peak", rank->free_at_peak);
        alloti_json_put_double(&json, "fragmentation", rank->fragmentation);
        alloti_json_put_u64(&json, "segment_count", rank->segment_count);
        alloti_json_put_u64(&json, "oom_count", rank->oom_count);
        alloti_json_put_bool(&json, "is_allocated_outlier", rank->is_allocated_outlier);
        alloti_json_put_bool(&json, "is_reserved_outlier", rank->is_reserved_outlier);
        alloti_json_put_bool(&json, "is_outlier", rank->is_outlier);
        alloti_json_object_end(&json);
    }
    alloti_json_array_end(&json);
    return alloti_json_end(&json);
}

allot_status allot_report_ranks(const allot_ranks *ranks, const allot_report_options *given,
                                const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (options.format == ALLOT_REPORT_JSON) {
        return write_json(sink, ranks);
    }
    alloti_text text = alloti_text_begin(sink, &options);
    write_text(&text, ranks);
    return text.status;
}
