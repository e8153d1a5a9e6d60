/* SPDX-License-Identifier: MIT */
#include "dryrun_put.h"

#include <allot/base.h>
#include <stdio.h>
#include <string.h>

yajl_gen dryrun_put_open(const char *schema, bool has_version)
{
    yajl_gen json = yajl_gen_alloc(NULL);
    if (json == NULL) {
        fprintf(stderr, "allot: out of memory\n");
        return NULL;
    }
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_map_open(json);
    dryrun_put_text(json, "schema", schema);
    if (has_version) {
        dryrun_put_text(json, "version", allot_version());
    }
    return json;
}

void dryrun_put_close(yajl_gen json)
{
    const unsigned char *text = NULL;
    size_t size = 0;
    yajl_gen_map_close(json);
    yajl_gen_get_buf(json, &text, &size);
    fwrite(text, 1, size, stdout);
    yajl_gen_free(json);
}

void dryrun_put_key(yajl_gen json, const char *key)
{
    yajl_gen_string(json, (const unsigned char *)key, strlen(key));
}

void dryrun_put_text(yajl_gen json, const char *key, const char *text)
{
    dryrun_put_key(json, key);
    yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

void dryrun_put_number(yajl_gen json, const char *key, uint64_t value)
{
    dryrun_put_key(json, key);
    yajl_gen_integer(json, (long long)value);
}

void dryrun_put_bool(yajl_gen json, const char *key, bool value)
{
    dryrun_put_key(json, key);
    yajl_gen_bool(json, value);
}

void dryrun_put_null(yajl_gen json, const char *key)
{
    dryrun_put_key(json, key);
    yajl_gen_null(json);
}
