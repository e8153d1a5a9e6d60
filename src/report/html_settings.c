/* SPDX-License-Identifier: MIT */
/* The settings that a trace recorded, as a table of its page. */
#include <stdio.h>
#include <string.h>

#include "report/html_write.h"
#include "trace/torch_origin.h"

/* Whether a setting of PyTorch's is what nobody set: off, without limit or empty. */
static bool is_default(const allot_trace *trace, const allot_setting *setting)
{
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        return setting->integer == 0;
    case ALLOT_SETTING_INT:
        return setting->integer == 0 || setting->integer == -1 ||
               (setting->integer == 1 && strcmp(allot_trace_string(trace, setting->key, NULL),
                                                "pinned_num_register_threads") == 0);
    case ALLOT_SETTING_FLOAT:
        return !(setting->number > 0) && !(setting->number < 0);
    case ALLOT_SETTING_STRING:
        return allot_trace_string(trace, setting->string, NULL)[0] == '\0';
    default:
        return true;
    }
}

static void put_setting(const allot_trace *trace, const allot_setting *setting, alloti_json *json)
{
    char number[32];
    const bool is_hidden = alloti_trace_is_torch(trace) && is_default(trace, setting);
    alloti_html_row_begin(json, is_hidden ? "default" : NULL);
    alloti_json_put_string(json, NULL, allot_trace_string(trace, setting->key, NULL));
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        alloti_json_put_string(json, NULL, setting->integer != 0 ? "True" : "False");
        break;
    case ALLOT_SETTING_INT:
        snprintf(number, sizeof number, "%lld", (long long)setting->integer);
        alloti_json_put_string(json, NULL, number);
        break;
    case ALLOT_SETTING_FLOAT:
        snprintf(number, sizeof number, "%g", setting->number);
        alloti_json_put_string(json, NULL, number);
        break;
    case ALLOT_SETTING_STRING:
        alloti_json_put_string(json, NULL, allot_trace_string(trace, setting->string, NULL));
        break;
    case ALLOT_SETTING_NONE:
    default:
        alloti_json_put_string(json, NULL, "None");
    }
    alloti_html_row_end(json);
}

void alloti_html_settings_write(const allot_trace *trace, alloti_json *json)
{
    static const alloti_html_column COLUMNS[] = {{"Setting", "code"}, {"Recorded", "code"}};
    uint32_t count = 0;
    const allot_setting *const settings = allot_trace_settings(trace, &count);
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", "Allocator settings");
    alloti_html_rows_begin(json, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < count; i++) {
        put_setting(trace, &settings[i], json);
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}
