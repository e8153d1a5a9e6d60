/* SPDX-License-Identifier: MIT */
/* Profiles as JSON files, through yajl. */
#include <allot/gpu.h>

#include <stdio.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "core/status.h"
#include "standin/json_file.h"

static const char SCHEMA[] = "allot-gpu/1";

static uint64_t *place_of(allot_gpu *gpu, allot_gpu_field field)
{
    switch (field) {
#define PLACE(name, unit, text)                                                                    \
    case ALLOT_GPU_FIELD_##name:                                                                   \
        return &gpu->name;
        ALLOT_GPU_FIELD_LIST(PLACE)
#undef PLACE
    case ALLOT_GPU_FIELD_COUNT:
        break;
    }
    return NULL;
}

static allot_status take_text(yajl_val root, const char *key, char *out, bool is_required)
{
    yajl_val value = alloti_json_member(root, key);
    if (value == NULL && !is_required) {
        return ALLOT_STATUS_OK;
    }
    const char *const text = YAJL_GET_STRING(value);
    if (text == NULL || text[0] == '\0' || strlen(text) >= ALLOT_GPU_NAME_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\": expected a text of up to %d bytes", key,
                           ALLOT_GPU_NAME_MAX - 1);
    }
    memcpy(out, text, strlen(text) + 1);
    return ALLOT_STATUS_OK;
}

/** Where a value comes from: {"kind": ..., "reference": ...}, or nothing. */
static allot_status take_source(yajl_val source, allot_gpu_field field, allot_gpu *out)
{
    const char *const kind = YAJL_GET_STRING(alloti_json_member(source, "kind"));
    const char *const reference = YAJL_GET_STRING(alloti_json_member(source, "reference"));
    unsigned known = kind == NULL ? ALLOT_GPU_SOURCE_FILE : 0;
    while (kind != NULL && known < ALLOT_GPU_SOURCE_COUNT &&
           strcmp(kind, allot_gpu_source_name((allot_gpu_source)known)) != 0) {
        known++;
    }
    if (known == ALLOT_GPU_SOURCE_COUNT ||
        (reference != NULL && strlen(reference) >= ALLOT_GPU_REFERENCE_MAX)) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "\"sources\": \"%s\": expected a known kind and a "
                           "reference of up to %d bytes",
                           allot_gpu_field_name(field), ALLOT_GPU_REFERENCE_MAX - 1);
    }
    out->source[field] = (uint8_t)known;
    snprintf(out->reference[field], sizeof out->reference[field], "%s",
             reference == NULL ? "" : reference);
    return ALLOT_STATUS_OK;
}

static allot_status take_field(yajl_val root, allot_gpu_field field, bool has_base, allot_gpu *out)
{
    const char *const key = allot_gpu_field_name(field);
    yajl_val value = alloti_json_member(root, key);
    if (value == NULL && has_base) {
        return ALLOT_STATUS_OK;
    }
    if (value == NULL) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" is missing and there is no \"like\"", key);
    }
    if (!YAJL_IS_INTEGER(value) || YAJL_GET_INTEGER(value) < 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\": expected a whole number", key);
    }
    *place_of(out, field) = (uint64_t)YAJL_GET_INTEGER(value);
    return take_source(alloti_json_member(alloti_json_member(root, "sources"), key), field, out);
}

/** Numbers that later code divides by or sizes arrays with must be sensible. */
static allot_status check(const allot_gpu *gpu)
{
    if (gpu->memory_total == 0 || gpu->memory_total > UINT64_C(1) << 44 ||
        gpu->memory_context > gpu->memory_total || gpu->memory_context_12 > gpu->memory_total ||
        gpu->compute_major == 0 || gpu->compute_major > 99 || gpu->compute_minor > 9 ||
        gpu->sm_count == 0 || gpu->sm_count > 4096 || gpu->sm_threads == 0 || gpu->sm_blocks == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a value is out of range (memory_total, "
                                                "memory_context, compute_*, sm_*)");
    }
    return ALLOT_STATUS_OK;
}

static allot_status take_all(yajl_val root, allot_gpu *out)
{
    char schema[ALLOT_GPU_NAME_MAX] = "";
    char like[ALLOT_GPU_NAME_MAX] = "";
    allot_gpu gpu = {.struct_size = sizeof gpu};
    allot_status status = take_text(root, "schema", schema, true);
    if (status == ALLOT_STATUS_OK && strcmp(schema, SCHEMA) != 0) {
        status = alloti_fail(ALLOT_STATUS_VERSION, "\"schema\": expected %s", SCHEMA);
    }
    if (status == ALLOT_STATUS_OK) {
        status = take_text(root, "like", like, false);
    }
    if (status == ALLOT_STATUS_OK && like[0] != '\0') {
        status = allot_gpu_find(like, &gpu);
    }
    if (status == ALLOT_STATUS_OK) {
        status = take_text(root, "id", gpu.id, true);
    }
    if (status == ALLOT_STATUS_OK) {
        status = take_text(root, "name", gpu.name, true);
    }
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT && status == ALLOT_STATUS_OK; i++) {
        status = take_field(root, (allot_gpu_field)i, like[0] != '\0', &gpu);
    }
    if (status == ALLOT_STATUS_OK) {
        status = check(&gpu);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = gpu;
    }
    return status;
}

allot_status allot_gpu_read(const char *path, allot_gpu *out)
{
    yajl_val root = NULL;
    allot_status status = alloti_json_read(path, &root);
    if (status == ALLOT_STATUS_OK) {
        status = take_all(root, out);
        yajl_tree_free(root);
    }
    return status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "%s: ", path);
}

static void put_text(yajl_gen json, const char *text)
{
    yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void put_sources(yajl_gen json, const allot_gpu *gpu)
{
    put_text(json, "sources");
    yajl_gen_map_open(json);
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        put_text(json, allot_gpu_field_name((allot_gpu_field)i));
        yajl_gen_map_open(json);
        put_text(json, "kind");
        put_text(json, allot_gpu_source_name((allot_gpu_source)gpu->source[i]));
        if (gpu->reference[i][0] != '\0') {
            put_text(json, "reference");
            put_text(json, gpu->reference[i]);
        }
        yajl_gen_map_close(json);
    }
    yajl_gen_map_close(json);
}

allot_status allot_gpu_write(const allot_gpu *gpu, allot_sink sink)
{
    yajl_gen json = yajl_gen_alloc(NULL);
    if (json == NULL) {
        return alloti_fail_memory(0);
    }
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_map_open(json);
    put_text(json, "schema");
    put_text(json, SCHEMA);
    put_text(json, "id");
    put_text(json, gpu->id);
    put_text(json, "name");
    put_text(json, gpu->name);
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        put_text(json, allot_gpu_field_name((allot_gpu_field)i));
        yajl_gen_integer(json, (long long)allot_gpu_value(gpu, (allot_gpu_field)i));
    }
    put_sources(json, gpu);
    yajl_gen_map_close(json);
    const unsigned char *text = NULL;
    size_t size = 0;
    yajl_gen_get_buf(json, &text, &size);
    const allot_status status = sink.write(sink.context, text, size);
    yajl_gen_free(json);
    return status;
}
