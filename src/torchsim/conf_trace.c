/* SPDX-License-Identifier: MIT */
/** Settings and release of PyTorch as a trace shows them. */
#include "torchsim/conf.h"

#include "core/status.h"

#include <stdio.h>

static const allot_setting *find_number(const allot_trace *trace, const char *key)
{
    const allot_setting *setting = allot_trace_find_setting(trace, key);
    const bool ok = setting != NULL &&
                    (setting->type == ALLOT_SETTING_BOOL || setting->type == ALLOT_SETTING_INT ||
                     setting->type == ALLOT_SETTING_FLOAT);
    return ok ? setting : NULL;
}

static double number_of(const allot_setting *setting)
{
    return setting->type == ALLOT_SETTING_FLOAT ? setting->number : (double)setting->integer;
}

static void take_bool(const allot_trace *trace, const char *key, bool *field)
{
    const allot_setting *setting = find_number(trace, key);
    if (setting != NULL) {
        *field = number_of(setting) != 0;
    }
}

/** Sizes are recorded in bytes; -1 stands for no limit. */
static void take_size(const allot_trace *trace, const char *key, uint64_t *field)
{
    const allot_setting *setting = find_number(trace, key);
    if (setting != NULL && setting->type != ALLOT_SETTING_FLOAT) {
        *field = setting->integer < 0 ? ALLOT_TORCH_UNLIMITED : (uint64_t)setting->integer;
    }
}

static void take_divisions(const allot_trace *trace, uint32_t *divisions)
{
    for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
        char key[48];
        (void)snprintf(key, sizeof(key), "roundup_power2_divisions.%lu", 1ul << i);
        const allot_setting *setting = find_number(trace, key);
        const bool fits = setting != NULL && setting->type == ALLOT_SETTING_INT &&
                          setting->integer >= 0 && setting->integer <= UINT32_MAX &&
                          (setting->integer & (setting->integer - 1)) == 0;
        if (fits) {
            divisions[i] = (uint32_t)setting->integer;
        }
    }
}

static void take_values(const allot_trace *trace, allot_torch_conf *conf)
{
    take_size(trace, "max_split_size", &conf->max_split_size);
    const allot_setting *threshold = find_number(trace, "garbage_collection_threshold");
    if (threshold != NULL && number_of(threshold) >= 0 && number_of(threshold) < 1) {
        conf->garbage_collection_threshold = number_of(threshold);
    }
    take_bool(trace, "expandable_segments", &conf->expandable_segments);
    take_bool(trace, "release_lock_on_cudamalloc", &conf->release_lock_on_cudamalloc);
    take_bool(trace, "graph_capture_record_stream_reuse", &conf->graph_capture_record_stream_reuse);
    take_bool(trace, "pinned_use_cuda_host_register", &conf->pinned_use_cuda_host_register);
    take_size(trace, "max_round_threshold", &conf->pinned_max_round_threshold);
    take_size(trace, "max_cached_size", &conf->pinned_max_cached_size);
    take_divisions(trace, conf->roundup_power2_divisions);
}

static void note_differences(const allot_torch_conf *text, const allot_torch_conf *values,
                             allot_torch_notes *notes)
{
    char written[ALLOT_TORCH_CONF_TEXT_MAX];
    char recorded[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(text, written);
    allot_torch_conf_format(values, recorded);
    for (size_t i = 0; written[i] == recorded[i]; i++) {
        if (written[i] == '\0') {
            return;
        }
    }
    alloti_conf_note(
        notes, ALLOT_TORCH_NOTE_DIFFERS, ALLOT_NONE,
        "the settings in force (\"%.60s\") are not those of the recorded string (\"%.60s\")",
        recorded, written);
}

/* Whether a string of settings can say these values: PyTorch was never set to others. */
static bool can_be_said(const allot_torch_conf *values)
{
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf again;
    allot_torch_conf_init(&again);
    allot_torch_conf_format(values, text);
    return allot_torch_conf_parse(text, &again, NULL) == ALLOT_STATUS_OK;
}

allot_status allot_torch_conf_from_trace(const allot_trace *trace, allot_torch_conf *conf,
                                         allot_torch_notes *notes)
{
    allot_torch_conf text;
    allot_torch_conf_init(&text);
    allot_torch_notes unheard = {.count = 0};
    const allot_setting *string = allot_trace_find_setting(trace, "PYTORCH_CUDA_ALLOC_CONF");
    if (string == NULL) {
        string = allot_trace_find_setting(trace, "PYTORCH_ALLOC_CONF");
    }
    if (string != NULL && string->type == ALLOT_SETTING_STRING) {
        const char *words = allot_trace_string(trace, string->string, NULL);
        if (allot_torch_conf_parse_for(words, allot_torch_version_of(trace), &text,
                                       notes != NULL ? notes : &unheard) != ALLOT_STATUS_OK) {
            return alloti_fail_prefix(ALLOT_STATUS_FORMAT, "recorded settings: ");
        }
    }
    *conf = text;
    take_values(trace, conf);
    if (!can_be_said(conf)) {
        alloti_conf_note(notes, ALLOT_TORCH_NOTE_IGNORED, ALLOT_NONE,
                         "the recorded values of the settings are none that PyTorch takes");
        *conf = text;
    }
    if (string != NULL) {
        note_differences(&text, conf, notes);
    }
    return ALLOT_STATUS_OK;
}

/** What the events of a trace show: names of pools, metadata, compile context, times. */
static uint32_t version_of_events(const allot_trace *trace)
{
    uint32_t version = ALLOT_TORCH_VERSION_OLDEST;
    for (uint32_t device = 0; device < allot_trace_device_count(trace); device++) {
        allot_events events;
        allot_trace_get_events(trace, device, &events);
        uint32_t seen = ALLOT_TORCH_VERSION_OLDEST;
        if (events.count > 0 && events.pool[0] != ALLOT_NONE) {
            seen = 212;
        } else if (events.metadata != NULL) {
            seen = 210;
        } else if (events.context != NULL) {
            seen = 207;
        } else if (events.count > 0 && events.time_ns[0] != ALLOT_TIME_NONE) {
            seen = 202;
        }
        version = seen > version ? seen : version;
    }
    return version;
}

uint32_t allot_torch_version_of(const allot_trace *trace)
{
    uint32_t version = version_of_events(trace);
    uint32_t count = 0;
    allot_trace_settings(trace, &count);
    if (count > 0 && version < 203) {
        version = 203;
    }
    if (allot_trace_find_setting(trace, "graph_capture_record_stream_reuse") != NULL &&
        version < 209) {
        version = 209;
    }
    if (allot_trace_find_setting(trace, "max_cached_size") != NULL) {
        version = ALLOT_TORCH_VERSION_NEWEST;
    }
    return version;
}
