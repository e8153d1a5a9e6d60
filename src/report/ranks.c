/* SPDX-License-Identifier: MIT */
/* A table over ranks. */
#include <inttypes.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"

static void write_text(alloti_text *text, const allot_ranks *ranks)
{
    static const alloti_column COLUMNS[] = {{"rank", ALLOTI_COLUMN_RIGHT},
                                            {"peak allocated", ALLOTI_COLUMN_RIGHT},
                                            {"peak reserved", ALLOTI_COLUMN_RIGHT},
                                            {"free then", ALLOTI_COLUMN_RIGHT},
                                            {"fragm.", ALLOTI_COLUMN_RIGHT},
                                            {"segments", ALLOTI_COLUMN_RIGHT},
                                            {"oom", ALLOTI_COLUMN_RIGHT},
                                            {"", ALLOTI_COLUMN_LEFT},
                                            {"file", ALLOTI_COLUMN_FLEX}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < ranks->count; i++) {
        const allot_rank *const rank = &ranks->items[i];
        alloti_table_cell(&table, "%" PRIu32, i);
        alloti_table_cell(&table, "%s", alloti_size(rank->peak[ALLOT_MEASURE_ALLOCATED].size).text);
        alloti_table_cell(&table, "%s", alloti_size(rank->peak[ALLOT_MEASURE_RESERVED].size).text);
        alloti_table_cell(&table, "%s", alloti_size(rank->free_at_peak).text);
        alloti_table_cell(&table, "%.0f %%", 100 * rank->fragmentation);
        alloti_table_cell(&table, "%" PRIu64, rank->segment_count);
        alloti_table_cell(&table, "%" PRIu64, rank->oom_count);
        alloti_table_cell(&table, "%s", rank->is_outlier ? "<- stands out" : "");
        alloti_table_cell(&table, "%s", rank->name);
    }
    alloti_table_write(&table, text);
    alloti_text_printf(text,
                       "\n  median of the peaks %s, median deviation %s, %" PRIu32 " rank%s out\n",
                       alloti_size(ranks->median_peak).text, alloti_size(ranks->deviation).text,
                       ranks->outlier_count, ranks->outlier_count == 1 ? " stands" : "s stand");
}

static allot_status write_json(const allot_sink *sink, const allot_ranks *ranks)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.ranks/1");
    alloti_json_put_u64(&json, "median_peak", ranks->median_peak);
    alloti_json_put_u64(&json, "deviation", ranks->deviation);
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
