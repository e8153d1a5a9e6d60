/* SPDX-License-Identifier: MIT */
#include "dryrun_put.h"

#include <string.h>

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
