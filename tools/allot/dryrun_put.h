/* SPDX-License-Identifier: MIT */
/** Members of JSON objects. */
#ifndef CLI_DRYRUN_PUT_H
#define CLI_DRYRUN_PUT_H

#include <stdbool.h>
#include <stdint.h>
#include <yajl/yajl_gen.h>

/** A document with its schema and, if `has_version`, allot's version; NULL, with a message, where
 * memory is short. */
yajl_gen dryrun_put_open(const char *schema, bool has_version);
/** Write a document to standard output and release it. */
void dryrun_put_close(yajl_gen json);

void dryrun_put_key(yajl_gen json, const char *key);
void dryrun_put_text(yajl_gen json, const char *key, const char *text);
void dryrun_put_number(yajl_gen json, const char *key, uint64_t value);
void dryrun_put_bool(yajl_gen json, const char *key, bool value);
void dryrun_put_null(yajl_gen json, const char *key);

#endif /* CLI_DRYRUN_PUT_H */
