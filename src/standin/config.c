/* SPDX-License-Identifier: MIT */
#include "standin/config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/number_text.h"
#include "core/status.h"
#include "standin/abi.h"
#include "standin/device.h"

enum { CUDA_STATUS_MAX = 999 };

typedef struct setting {
    const char *key;
    allot_status (*set)(standin_config *config, const char *value);
} setting;

static allot_status wrong(const char *key, const char *value, const char *expected)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "ALLOT_STANDIN: %s:%s: expected %s", key, value,
                       expected);
}

static allot_status number(const char *key, const char *value, uint64_t low, uint64_t high,
                           uint64_t *out)
{
    uint64_t parsed = 0;
    if (!alloti_number_u64(value, strlen(value), &parsed) || parsed < low || parsed > high) {
        return wrong(key, value, "a number in range");
    }
    *out = parsed;
    return ALLOT_STATUS_OK;
}

static allot_status number_unsigned(const char *key, const char *value, uint64_t low, uint64_t high,
                                    unsigned *out)
{
    uint64_t parsed = 0;
    const allot_status status = number(key, value, low, high, &parsed);
    if (status == ALLOT_STATUS_OK) {
        *out = (unsigned)parsed;
    }
    return status;
}

/** Position of `value` in the texts of a choice, which ends with NULL. */
static allot_status choice(const char *key, const char *value, const char *const *texts,
                           unsigned *out)
{
    for (unsigned i = 0; texts[i] != NULL; i++) {
        if (strcmp(texts[i], value) == 0) {
            *out = i;
            return ALLOT_STATUS_OK;
        }
    }
    return wrong(key, value, texts[0]);
}

static allot_status set_gpu(standin_config *config, const char *value)
{
    return allot_gpu_find(value, &config->gpu);
}

static allot_status set_profile(standin_config *config, const char *value)
{
    return allot_gpu_read(value, &config->gpu);
}

static allot_status set_limit(standin_config *config, const char *value)
{
    return allot_size_parse(value, &config->limit);
}

static allot_status set_context(standin_config *config, const char *value)
{
    const allot_status status =
        allot_size_parse(value, &config->workspaces.size[ALLOT_WORKSPACE_context]);
    config->workspaces.is_set[ALLOT_WORKSPACE_context] = true;
    return status;
}

static allot_status set_workspace(standin_config *config, const char *value)
{
    return allot_workspaces_parse(value, &config->workspaces);
}

static allot_status set_devices(standin_config *config, const char *value)
{
    return number_unsigned("devices", value, 0, STANDIN_DEVICES_MAX, &config->installed_count);
}

static allot_status set_events(standin_config *config, const char *value)
{
    static const char *const texts[] = {"instant", "sync", "lag", NULL};
    unsigned chosen = 0;
    const allot_status status = choice("events", value, texts, &chosen);
    if (status == ALLOT_STATUS_OK) {
        config->events = (standin_events)chosen;
    }
    return status;
}

static allot_status set_lag(standin_config *config, const char *value)
{
    return number("lag", value, 0, UINT32_MAX, &config->lag);
}

static allot_status set_addresses(standin_config *config, const char *value)
{
    static const char *const texts[] = {"linux", "reuse", "upward", NULL};
    unsigned chosen = 0;
    const allot_status status = choice("addresses", value, texts, &chosen);
    if (status == ALLOT_STATUS_OK) {
        config->addresses = (standin_addresses)chosen;
    }
    return status;
}

static allot_status set_bytes(standin_config *config, const char *value)
{
    static const char *const texts[] = {"none", "real", NULL};
    unsigned chosen = 0;
    const allot_status status = choice("bytes", value, texts, &chosen);
    if (status == ALLOT_STATUS_OK) {
        config->has_bytes = chosen == 1;
    }
    return status;
}

static allot_status set_delay(standin_config *config, const char *value)
{
    return number("delay", value, 0, UINT64_MAX, &config->delay);
}

static allot_status set_fail(standin_config *config, const char *value)
{
    return number("fail", value, 0, UINT64_MAX, &config->fail_at);
}

static allot_status set_error(standin_config *config, const char *value)
{
    return number_unsigned("error", value, 1, CUDA_STATUS_MAX, &config->fail_status);
}

static allot_status set_strict(standin_config *config, const char *value)
{
    unsigned chosen = 0;
    const allot_status status = number_unsigned("strict", value, 0, 1, &chosen);
    config->is_strict = chosen == 1;
    return status;
}

static allot_status set_guard(standin_config *config, const char *value)
{
    return number("guard", value, 0, UINT64_MAX, &config->read_guard);
}

static allot_status set_booleans(standin_config *config, const char *value)
{
    return answer_add_rule(&config->answers, value);
}

static allot_status set_ranks(standin_config *config, const char *value)
{
    static const char *const texts[] = {"real", "alone", NULL};
    unsigned chosen = 0;
    const allot_status status = choice("ranks", value, texts, &chosen);
    if (status == ALLOT_STATUS_OK) {
        config->is_alone = chosen == 1;
    }
    return status;
}

static allot_status set_wait(standin_config *config, const char *value)
{
    return number("wait", value, 0, UINT32_MAX, &config->wait);
}

static allot_status set_cuda(standin_config *config, const char *value)
{
    return number_unsigned("cuda", value, 12, 13, &config->cuda_major);
}

static allot_status set_cudnn(standin_config *config, const char *value)
{
    return number_unsigned("cudnn", value, 1, INT32_MAX, &config->cudnn_version);
}

static allot_status set_nccl(standin_config *config, const char *value)
{
    return number_unsigned("nccl", value, 1, INT32_MAX, &config->nccl_version);
}

static allot_status set_cublas(standin_config *config, const char *value)
{
    return number_unsigned("cublas", value, 1, INT32_MAX, &config->cublas_version);
}

static allot_status path(const char *key, const char *value, char *out)
{
    if (strlen(value) >= STANDIN_PATH_MAX) {
        return wrong(key, value, "a shorter path");
    }
    memcpy(out, value, strlen(value) + 1);
    return ALLOT_STATUS_OK;
}

static allot_status set_report(standin_config *config, const char *value)
{
    return path("report", value, config->report);
}

static allot_status set_oracle(standin_config *config, const char *value)
{
    return path("oracle", value, config->oracle);
}

static allot_status set_oracle_wait(standin_config *config, const char *value)
{
    return number_unsigned("oracle_wait", value, 1, 3600, &config->oracle_wait_s);
}

static const setting SETTINGS[] = {
    {"gpu", set_gpu},         {"profile", set_profile},
    {"limit", set_limit},     {"context", set_context},
    {"devices", set_devices}, {"events", set_events},
    {"lag", set_lag},         {"addresses", set_addresses},
    {"bytes", set_bytes},     {"strict", set_strict},
    {"guard", set_guard},     {"booleans", set_booleans},
    {"cuda", set_cuda},       {"cudnn", set_cudnn},
    {"nccl", set_nccl},       {"cublas", set_cublas},
    {"report", set_report},   {"ranks", set_ranks},
    {"wait", set_wait},       {"workspace", set_workspace},
    {"oracle", set_oracle},   {"oracle_wait", set_oracle_wait},
    {"delay", set_delay},     {"fail", set_fail},
    {"error", set_error},
};

static allot_status apply(standin_config *config, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        if (strcmp(SETTINGS[i].key, key) == 0) {
            return SETTINGS[i].set(config, value);
        }
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "ALLOT_STANDIN: unknown key \"%s\"", key);
}

static allot_status parse_list(char *list, standin_config *config)
{
    char *rest = list;
    char *item = NULL;
    while ((item = strtok_r(rest, ",", &rest)) != NULL) {
        char *const colon = strchr(item, ':');
        if (colon == NULL) {
            return alloti_fail(ALLOT_STATUS_INVALID, "ALLOT_STANDIN: \"%s\": expected key:value",
                               item);
        }
        *colon = '\0';
        const allot_status status = apply(config, item, colon + 1);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** The installed device whose UUID begins so, if that is one. */
static bool find_uuid(const standin_config *config, const char *text, size_t length, unsigned *out)
{
    unsigned found = 0;
    for (unsigned i = 0; i < config->installed_count; i++) {
        char uuid[64];
        allot_standin_uuid_text(i, uuid, sizeof uuid);
        if (strncasecmp(uuid, text, length) == 0) {
            *out = i;
            found++;
        }
    }
    return found == 1;
}

/** One item of the list, which ends before `length`. */
static bool find_device(const standin_config *config, const char *text, size_t length,
                        unsigned *out)
{
    static const char prefix[] = "GPU-";
    if (length >= strlen(prefix) && strncmp(text, prefix, strlen(prefix)) == 0) {
        return find_uuid(config, text, length, out);
    }
    const unsigned long number = length == 0 || *text < '0' || *text > '9'
                                     ? config->installed_count
                                     : strtoul(text, NULL, 10);
    *out = (unsigned)number;
    return number < config->installed_count;
}

/** All, or those of a list of numbers and UUIDs up to the first that is not there, as in CUDA. */
static void see_devices(standin_config *config, const char *list)
{
    config->device_count = 0;
    for (unsigned i = 0; list == NULL && i < config->installed_count; i++) {
        config->visible[config->device_count++] = i;
    }
    while (list != NULL && config->device_count < STANDIN_DEVICES_MAX) {
        const size_t length = strcspn(list, ",");
        unsigned device = 0;
        if (!find_device(config, list, length, &device)) {
            break;
        }
        config->visible[config->device_count++] = device;
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
}

/** What remains open after reading depends on the profile. */
static void complete(standin_config *config)
{
    see_devices(config, getenv("CUDA_VISIBLE_DEVICES"));
    config->is_whole = config->limit == 0;
    if (config->workspaces.is_set[ALLOT_WORKSPACE_context]) {
        config->context = config->workspaces.size[ALLOT_WORKSPACE_context];
    } else {
        const unsigned major =
            config->cuda_major != 0 ? config->cuda_major : device_runtime_major();
        config->context = config->is_whole ? allot_gpu_context(&config->gpu, major) : 0;
    }
    if (config->is_whole) {
        config->limit = config->gpu.memory_total;
    }
    if (config->has_bytes) {
        config->events = STANDIN_EVENTS_REAL;
    }
}

allot_status standin_config_parse(const char *text, standin_config *out)
{
    standin_config config = {.installed_count = 1,
                             .workspaces.struct_size = sizeof(allot_workspaces),
                             .lag = 1000,
                             .read_guard = 100000,
                             .wait = 600,
                             .oracle_wait_s = 120,
                             .fail_status = CUDA_OUT_OF_MEMORY,
                             .cudnn_version = 92600,
                             .nccl_version = 23007,
                             .cublas_version = 130401};
    allot_status status = allot_gpu_find("a100-80", &config.gpu);
    char *const list = strdup(text == NULL ? "" : text);
    if (list == NULL) {
        return alloti_fail_memory(0);
    }
    if (status == ALLOT_STATUS_OK) {
        status = parse_list(list, &config);
    }
    free(list);
    if (status == ALLOT_STATUS_OK) {
        complete(&config);
        *out = config;
    }
    return status;
}
