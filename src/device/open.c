/* SPDX-License-Identifier: MIT */
/*
 * The backends by name, and the text that opens a device: "BACKEND[:NUMBER][,key:value...]". Which
 * keys a backend takes stands in ALLOT_DEVICE_KEY_LIST.
 */
#include <stdio.h>
#include <string.h>

#include "core/number_text.h"
#include "core/parameters.h"
#include "device/device.h"

/** Characters of a text that messages about it show: there must be room for what is wrong. */
enum { SHOWN_MAX = 200 };

/** NULL: not part of this build. */
static const device_backend *const BACKENDS[ALLOT_BACKEND_COUNT] = {
    [ALLOT_BACKEND_HOST] = &alloti_backend_host,
    [ALLOT_BACKEND_SIMULATED] = &alloti_backend_simulated,
    [ALLOT_BACKEND_NULL] = &alloti_backend_null,
    [ALLOT_BACKEND_OPENCL] = &alloti_backend_opencl,
    [ALLOT_BACKEND_CUDA] = &alloti_backend_cuda,
};

typedef enum device_key {
#define KEY_ENUM(key, values, backends, text) KEY_##key,
    ALLOT_DEVICE_KEY_LIST(KEY_ENUM)
#undef KEY_ENUM
        KEY_COUNT
} device_key;

/** Spellings of the backends that take each key, separated by ", ". */
static const char *const KEY_BACKENDS[KEY_COUNT] = {
#define KEY_BACKEND(key, values, backends, text) backends,
    ALLOT_DEVICE_KEY_LIST(KEY_BACKEND)
#undef KEY_BACKEND
};

allot_status allot_backend_probe(allot_backend backend, allot_backend_probe_result *out)
{
    allot_backend_probe_result result = {.struct_size = sizeof result};
    const device_backend *const found =
        (unsigned)backend < ALLOT_BACKEND_COUNT ? BACKENDS[backend] : NULL;
    if (found == NULL) {
        snprintf(result.reason, sizeof result.reason, "not part of this build of allot");
        *out = result;
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "%s: %s", allot_backend_name(backend),
                           result.reason);
    }
    const allot_status status = found->probe(&result);
    *out = result;
    return status == ALLOT_STATUS_OK
               ? status
               : alloti_fail(status, "%s: %s", allot_backend_name(backend), result.reason);
}

/** Whether a backend takes a key. */
static bool takes(device_key key, const char *backend)
{
    const char *at = KEY_BACKENDS[key];
    const size_t length = strlen(backend);
    while (true) {
        const size_t n = strcspn(at, ",");
        if (n == length && strncmp(at, backend, n) == 0) {
            return true;
        }
        if (at[n] == '\0') {
            return false;
        }
        at += n + strlen(", ");
    }
}

/** The backend whose spelling is text[0, length). */
static allot_status find_backend(const char *text, size_t length, allot_backend *out)
{
    for (unsigned i = 0; i < ALLOT_BACKEND_COUNT; i++) {
        const char *const name = allot_backend_name((allot_backend)i);
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            *out = (allot_backend)i;
            return ALLOT_STATUS_OK;
        }
    }
#define SPELLING(name, spelling, text) " " spelling
    return alloti_fail(ALLOT_STATUS_INVALID, "character 1: no such backend; there are" //
                       ALLOT_BACKEND_LIST(SPELLING));
#undef SPELLING
}

/** Backend and number; *length is how far they go, up to the comma or the end. */
static allot_status parse_head(const char *text, allot_backend *backend, uint32_t *ordinal,
                               size_t *length)
{
    *length = strcspn(text, ",");
    const char *const colon = memchr(text, ':', *length);
    const size_t name_length = colon == NULL ? *length : (size_t)(colon - text);
    const allot_status status = find_backend(text, name_length, backend);
    if (status != ALLOT_STATUS_OK || colon == NULL) {
        return status;
    }
    uint64_t number = 0;
    if (!alloti_number_u64(colon + 1, *length - name_length - 1, &number) || number > UINT32_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "character %zu: the number of a device is expected", name_length + 2);
    }
    *ordinal = (uint32_t)number;
    return ALLOT_STATUS_OK;
}

static const char *const BOOLS[] = {"false", "true", NULL};
static const char *const MOVES[] = {"auto", "copy", "mremap", "uffd", NULL};

/** Settings from text[begin] on. */
static allot_status parse_keys(const char *text, size_t begin, const char *backend,
                               device_settings *settings)
{
    uint32_t huge = ALLOT_NONE;
    uint32_t guard = 0;
    uint32_t move = ALLOT_NONE;
    const alloti_parameter all[KEY_COUNT] = {
        [KEY_memory] = {"memory", ALLOTI_PARAMETER_SIZE_SET, &settings->memory, NULL},
        [KEY_granule] = {"granule", ALLOTI_PARAMETER_SIZE_SET, &settings->granule, NULL},
        [KEY_gpu] = {"gpu", ALLOTI_PARAMETER_TEXT, settings->gpu, NULL},
        [KEY_huge] = {"huge", ALLOTI_PARAMETER_CHOICE, &huge, BOOLS},
        [KEY_move] = {"move", ALLOTI_PARAMETER_CHOICE, &move, MOVES},
        [KEY_guard] = {"guard", ALLOTI_PARAMETER_CHOICE, &guard, BOOLS},
    };
    alloti_parameter taken[KEY_COUNT];
    uint32_t count = 0;
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (takes((device_key)i, backend)) {
            taken[count++] = all[i];
        }
    }
    const alloti_parameter_syntax syntax = {.separator = ':', .begin = begin};
    const allot_status status = alloti_parameters_read(text, &syntax, taken, count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    settings->has_huge = huge != ALLOT_NONE;
    settings->huge = huge == 1;
    settings->guard = guard == 1;
    if (move != ALLOT_NONE) {
        snprintf(settings->move, sizeof settings->move, "%s", MOVES[move]);
    }
    return ALLOT_STATUS_OK;
}

static allot_status parse(const char *text, allot_backend *backend, device_settings *settings)
{
    size_t length = 0;
    const allot_status status = parse_head(text, backend, &settings->ordinal, &length);
    if (status != ALLOT_STATUS_OK || text[length] == '\0') {
        return status;
    }
    if (text[length + 1] == '\0') {
        return alloti_fail(ALLOT_STATUS_INVALID, "character %zu: nothing follows the comma",
                           length + 1);
    }
    return parse_keys(text, length + 1, allot_backend_name(*backend), settings);
}

/** Put the text that a failure is about before what is wrong with it. */
static allot_status prefix(allot_status status, const char *text)
{
    return alloti_fail_prefix(status, "device \"%.*s%s\": ", SHOWN_MAX, text,
                              strlen(text) > SHOWN_MAX ? "..." : "");
}

allot_status allot_device_open(const char *text, allot_device **out)
{
    if (text == NULL || out == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a device needs a text and a place to go");
    }
    allot_backend backend = ALLOT_BACKEND_COUNT;
    device_settings settings = {0};
    allot_status status = parse(text, &backend, &settings);
    if (status != ALLOT_STATUS_OK) {
        return prefix(status, text);
    }
    allot_backend_probe_result found = {0};
    status = allot_backend_probe(backend, &found);
    if (status == ALLOT_STATUS_OK && settings.ordinal >= found.device_count) {
        status = alloti_fail(ALLOT_STATUS_NOT_FOUND, "%s has %u, counted from 0",
                             allot_backend_name(backend), found.device_count);
        return prefix(status, text);
    }
    return status == ALLOT_STATUS_OK ? BACKENDS[backend]->open(&settings, out) : status;
}
