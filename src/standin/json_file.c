/* SPDX-License-Identifier: MIT */
#include "standin/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

enum { FILE_MAX = 1 << 16 };

static allot_status read_file(const char *path, char *text)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return alloti_fail(ALLOT_STATUS_IO, "%s", strerror(errno));
    }
    const size_t size = fread(text, 1, FILE_MAX, file);
    const bool has_failed = ferror(file) != 0;
    fclose(file);
    if (has_failed || size == FILE_MAX) {
        return alloti_fail(has_failed ? ALLOT_STATUS_IO : ALLOT_STATUS_FORMAT,
                           has_failed ? "cannot be read" : "longer than 64 KiB");
    }
    text[size] = '\0';
    return ALLOT_STATUS_OK;
}

allot_status alloti_json_read(const char *path, yajl_val *out)
{
    char *const text = malloc(FILE_MAX + 1);
    if (text == NULL) {
        return alloti_fail_memory(FILE_MAX + 1);
    }
    allot_status status = read_file(path, text);
    if (status == ALLOT_STATUS_OK) {
        char error[256] = "";
        yajl_val root = yajl_tree_parse(text, error, sizeof error);
        if (root == NULL) {
            status = alloti_fail(ALLOT_STATUS_FORMAT, "not JSON: %s", error);
        } else {
            *out = root;
        }
    }
    free(text);
    return status;
}

yajl_val alloti_json_member(yajl_val object, const char *key)
{
    const char *path[] = {key, NULL};
    return YAJL_IS_OBJECT(object) ? yajl_tree_get(object, path, yajl_t_any) : NULL;
}
