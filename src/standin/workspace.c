/* SPDX-License-Identifier: MIT */
/* The table of workspaces: from a text, from a file. */
#include <allot/workspace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "standin/json_file.h"

static const char SCHEMA[] = "allot-workspaces/1";

const char *allot_workspace_name(allot_workspace workspace)
{
    static const char *const names[] = {
#define NAME(name, text) #name,
        ALLOT_WORKSPACE_LIST(NAME)
#undef NAME
    };
    return workspace < ALLOT_WORKSPACE_COUNT ? names[workspace] : "";
}

const char *allot_workspace_text(allot_workspace workspace)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        ALLOT_WORKSPACE_LIST(TEXT)
#undef TEXT
    };
    return workspace < ALLOT_WORKSPACE_COUNT ? texts[workspace] : "";
}

static allot_status find(const char *name, allot_workspace *out)
{
    char known[256] = "";
    size_t length = 0;
    for (unsigned i = 0; i < ALLOT_WORKSPACE_COUNT; i++) {
        const char *const other = allot_workspace_name((allot_workspace)i);
        if (strcmp(other, name) == 0) {
            *out = (allot_workspace)i;
            return ALLOT_STATUS_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s",
                                   i == 0 ? "" : ", ", other);
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "no workspace is called \"%s\"; there are %s", name,
                       known);
}

static allot_status set(const char *name, const char *size, allot_workspaces *out)
{
    allot_workspace workspace = ALLOT_WORKSPACE_COUNT;
    uint64_t value = 0;
    allot_status status = find(name, &workspace);
    if (status == ALLOT_STATUS_OK) {
        status = allot_size_parse(size, &value);
        status =
            status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "workspace %s: ", name);
    }
    if (status == ALLOT_STATUS_OK) {
        out->size[workspace] = value;
        out->is_set[workspace] = true;
    }
    return status;
}

allot_status allot_workspaces_parse(const char *text, allot_workspaces *out)
{
    allot_workspaces table = *out;
    char *const list = strdup(text);
    if (list == NULL) {
        return alloti_fail_memory(strlen(text) + 1);
    }
    allot_status status = ALLOT_STATUS_OK;
    char *rest = list;
    char *item = NULL;
    while (status == ALLOT_STATUS_OK && (item = strtok_r(rest, ",", &rest)) != NULL) {
        char *const equals = strchr(item, '=');
        if (equals == NULL) {
            status = alloti_fail(ALLOT_STATUS_INVALID, "\"%s\": expected NAME=SIZE", item);
        } else {
            *equals = '\0';
            status = set(item, equals + 1, &table);
        }
    }
    free(list);
    if (status == ALLOT_STATUS_OK) {
        *out = table;
    }
    return status;
}

/** A size in a file: a number of bytes or a text with a unit. */
static allot_status set_value(const char *name, yajl_val value, allot_workspaces *out)
{
    if (YAJL_IS_STRING(value)) {
        return set(name, YAJL_GET_STRING(value), out);
    }
    if (YAJL_IS_NUMBER(value)) {
        return set(name, YAJL_GET_NUMBER(value), out);
    }
    return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\": expected a size", name);
}

static allot_status set_members(yajl_val root, allot_workspaces *out)
{
    const char *const schema = YAJL_GET_STRING(alloti_json_member(root, "schema"));
    if (schema == NULL || strcmp(schema, SCHEMA) != 0) {
        return alloti_fail(ALLOT_STATUS_VERSION, "\"schema\": expected %s", SCHEMA);
    }
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0;
         YAJL_IS_OBJECT(root) && i < YAJL_GET_OBJECT(root)->len && status == ALLOT_STATUS_OK; i++) {
        const char *const key = YAJL_GET_OBJECT(root)->keys[i];
        if (strcmp(key, "schema") != 0) {
            status = set_value(key, YAJL_GET_OBJECT(root)->values[i], out);
        }
    }
    return status == ALLOT_STATUS_INVALID ? ALLOT_STATUS_FORMAT : status;
}

allot_status allot_workspaces_read(const char *path, allot_workspaces *out)
{
    allot_workspaces table = *out;
    yajl_val root = NULL;
    allot_status status = alloti_json_read(path, &root);
    if (status == ALLOT_STATUS_OK) {
        status = set_members(root, &table);
        yajl_tree_free(root);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = table;
        return status;
    }
    return alloti_fail_prefix(status, "%s: ", path);
}
