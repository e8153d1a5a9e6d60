/* SPDX-License-Identifier: MIT */
/** Members of JSON objects. */
#ifndef CLI_DRYRUN_PUT_H
#define CLI_DRYRUN_PUT_H

#include <stdbool.h>
#include <stdint.h>
#include <yajl/yajl_gen.h>

void dryrun_put_key(yajl_gen json, const char *key);
void dryrun_put_text(yajl_gen json, const char *key, const char *text);
void dryrun_put_number(yajl_gen json, const char *key, uint64_t value);
void dryrun_put_bool(yajl_gen json, const char *key, bool value);
void dryrun_put_null(yajl_gen json, const char *key);

#endif /* CLI_DRYRUN_PUT_H */
