/* SPDX-License-Identifier: MIT */
/** Defaults, the table of keys, and writing settings as a string. */
#include "torchsim/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(allot_torch_conf, name)
#define HUGE_MIB 17592186044415.0 /* 2^44 - 1: as bytes it still fits in 64 bits. */

const conf_key ALLOTI_CONF_KEYS[] = {
    {"backend", CONF_BACKEND, FIELD(backend), 0, 0, false, NULL},
    {"expandable_segments", CONF_BOOL, FIELD(expandable_segments), 0, 1, false, NULL},
    {"max_split_size_mb", CONF_MEBIBYTES, FIELD(max_split_size), 1, HUGE_MIB, false, NULL},
    {"max_non_split_rounding_mb", CONF_MEBIBYTES, FIELD(max_non_split_rounding), 1, HUGE_MIB, false,
     NULL},
    {"large_segment_size_mb", CONF_MEBIBYTES, FIELD(large_segment_size), 11, HUGE_MIB, false, NULL},
    {"garbage_collection_threshold", CONF_SHARE, FIELD(garbage_collection_threshold), 0, 1, true,
     NULL},
    {"roundup_power2_divisions", CONF_ROUNDUP, FIELD(roundup_power2_divisions), 0, 0, false, NULL},
    {"per_process_memory_fraction", CONF_SHARE, FIELD(per_process_memory_fraction), 0, 1, false,
     NULL},
    {"expandable_segments_reserve", CONF_RESERVE, 0, 0, 0, false, NULL},
    {"expandable_segments_reserve_by_class", CONF_BY_CLASS, 0, 0, 0, false, NULL},
    {"graph_capture_record_stream_reuse", CONF_BOOL, FIELD(graph_capture_record_stream_reuse), 0, 1,
     false, NULL},
    {"release_lock_on_cudamalloc", CONF_BOOL, FIELD(release_lock_on_cudamalloc), 0, 1, false,
     "release_lock_on_hipmalloc"},
    {"throw_on_cudamalloc_oom", CONF_BOOL, FIELD(throw_on_cudamalloc_oom), 0, 1, false, NULL},
    {"pinned_use_cuda_host_register", CONF_BOOL, FIELD(pinned_use_cuda_host_register), 0, 1, false,
     "pinned_use_hip_host_register"},
    {"pinned_num_register_threads", CONF_COUNT, FIELD(pinned_num_register_threads), 1, 128, false,
     NULL},
    {"pinned_use_background_threads", CONF_BOOL, FIELD(pinned_use_background_threads), 0, 1, false,
     NULL},
    {"pinned_free_catch_all", CONF_BOOL, FIELD(pinned_free_catch_all), 0, 1, false, NULL},
    {"pinned_reserve_segment_size_mb", CONF_MEBIBYTES, FIELD(pinned_reserve_segment_size), 1,
     HUGE_MIB, false, NULL},
    {"pinned_max_round_threshold_mb", CONF_MEBIBYTES, FIELD(pinned_max_round_threshold), 1,
     HUGE_MIB, false, "pinned_max_round_size_mb"},
    {"pinned_max_cached_size_mb", CONF_MEBIBYTES, FIELD(pinned_max_cached_size), 1, HUGE_MIB, false,
     NULL},
};

const size_t ALLOTI_CONF_KEY_COUNT = sizeof(ALLOTI_CONF_KEYS) / sizeof(ALLOTI_CONF_KEYS[0]);

void allot_torch_conf_init(allot_torch_conf *conf)
{
    *conf = (allot_torch_conf){
        .struct_size = sizeof(*conf),
        .backend = ALLOT_TORCH_BACKEND_NATIVE,
        .pinned_num_register_threads = 1,
        .pinned_max_round_threshold = ALLOT_TORCH_UNLIMITED,
        .pinned_max_cached_size = ALLOT_TORCH_UNLIMITED,
        .max_split_size = ALLOT_TORCH_UNLIMITED,
        .max_non_split_rounding = CONF_LARGE_BUFFER,
        .large_segment_size = CONF_LARGE_BUFFER,
        .per_process_memory_fraction = 1,
    };
}

const char *allot_torch_note_kind_name(allot_torch_note_kind kind)
{
    switch (kind) {
#define NOTE_CASE(name, value, code)                                                               \
    case ALLOT_TORCH_NOTE_##name:                                                                  \
        return code;
        ALLOT_TORCH_NOTE_LIST(NOTE_CASE)
#undef NOTE_CASE
    }
    return "unknown";
}

void alloti_conf_note(allot_torch_notes *notes, allot_torch_note_kind kind, uint32_t position,
                      const char *format, ...)
{
    if (notes == NULL) {
        return;
    }
    if (notes->count >= ALLOT_TORCH_NOTES_MAX) {
        notes->dropped++;
        return;
    }
    allot_torch_note *note = &notes->items[notes->count++];
    note->kind = kind;
    note->position = position;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(note->text, sizeof(note->text), format, arguments);
    va_end(arguments);
}

/** A string that grows; what does not fit is cut. */
typedef struct text {
    char *buffer;
    size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void append(text *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(out->buffer + out->used, ALLOT_TORCH_CONF_TEXT_MAX - out->used,
                               format, arguments);
    va_end(arguments);
    if (size > 0 && out->used + (size_t)size < ALLOT_TORCH_CONF_TEXT_MAX) {
        out->used += (size_t)size;
    }
}

/** The shortest decimal number that reads back as `value`. */
static void append_number(text *out, double value)
{
    char number[32];
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(number, sizeof(number), "%.*g", digits, value);
        if (strtod(number, NULL) == value) {
            break;
        }
    }
    append(out, "%s", number);
}

/** Index from which all intervals have the last one's value. */
static uint32_t tail_of(const uint32_t *divisions)
{
    uint32_t tail = ALLOT_TORCH_INTERVALS - 1;
    while (tail > 0 && divisions[tail - 1] == divisions[ALLOT_TORCH_INTERVALS - 1]) {
        tail--;
    }
    return tail;
}

/** "4", or "[256:1,512:2,>:8]": the first boundary also stands for all below it. */
static void append_roundup(text *out, const uint32_t *divisions)
{
    const uint32_t tail = tail_of(divisions);
    if (tail == 0 && divisions[0] != 0) {
        append(out, "%u", (unsigned)divisions[0]);
        return;
    }
    uint32_t at = 0;
    while (at + 1 < tail && divisions[at + 1] == divisions[0]) {
        at++;
    }
    append(out, "[");
    for (; at < tail; at++) {
        append(out, "%lu:%u,", 1ul << at, (unsigned)divisions[at]);
    }
    append(out, ">:%u]", (unsigned)divisions[tail]);
}

/** Whether a field has its default value. */
static bool is_default(const conf_key *key, const allot_torch_conf *conf,
                       const allot_torch_conf *defaults)
{
    static const size_t SIZES[] = {
        [CONF_BOOL] = sizeof(bool),
        [CONF_MEBIBYTES] = sizeof(uint64_t),
        [CONF_SHARE] = sizeof(double),
        [CONF_COUNT] = sizeof(uint32_t),
        [CONF_BACKEND] = sizeof(allot_torch_backend),
        [CONF_ROUNDUP] = sizeof(conf->roundup_power2_divisions),
        [CONF_RESERVE] = 0,
        [CONF_BY_CLASS] = 0,
    };
    if (key->type == CONF_RESERVE) {
        return !(conf->expandable_reserve_share > 0) && conf->expandable_reserve_size == 0;
    }
    return memcmp((const char *)conf + key->offset, (const char *)defaults + key->offset,
                  SIZES[key->type]) == 0;
}

static void append_value(text *out, const conf_key *key, const allot_torch_conf *conf)
{
    const void *field = (const char *)conf + key->offset;
    switch (key->type) {
    case CONF_BOOL:
        append(out, "%s", *(const bool *)field ? "True" : "False");
        break;
    case CONF_MEBIBYTES:
        append(out, "%llu", (unsigned long long)(*(const uint64_t *)field / CONF_MIB));
        break;
    case CONF_SHARE:
        append_number(out, *(const double *)field);
        break;
    case CONF_COUNT:
        append(out, "%u", (unsigned)*(const uint32_t *)field);
        break;
    case CONF_BACKEND:
        append(out, "%s",
               conf->backend == ALLOT_TORCH_BACKEND_ASYNC ? "cudaMallocAsync" : "native");
        break;
    case CONF_ROUNDUP:
        append_roundup(out, conf->roundup_power2_divisions);
        break;
    case CONF_RESERVE:
        if (conf->expandable_reserve_size != 0) {
            append_number(out, (double)conf->expandable_reserve_size / (double)(1ull << 30));
            append(out, "G");
        } else {
            append_number(out, conf->expandable_reserve_share);
        }
        break;
    case CONF_BY_CLASS:
        break;
    }
}

const char *allot_torch_conf_format(const allot_torch_conf *conf, char *buffer)
{
    allot_torch_conf defaults;
    allot_torch_conf_init(&defaults);
    defaults.max_non_split_rounding = conf->large_segment_size;
    text out = {.buffer = buffer, .used = 0};
    buffer[0] = '\0';
    for (size_t i = 0; i < ALLOTI_CONF_KEY_COUNT; i++) {
        if (!is_default(&ALLOTI_CONF_KEYS[i], conf, &defaults)) {
            append(&out, "%s%s:", out.used > 0 ? "," : "", ALLOTI_CONF_KEYS[i].name);
            append_value(&out, &ALLOTI_CONF_KEYS[i], conf);
        }
    }
    return buffer;
}
