/* SPDX-License-Identifier: MIT */
/** Small JSON files that people write: profiles, tables of workspaces. */
#ifndef ALLOTI_STANDIN_JSON_FILE_H
#define ALLOTI_STANDIN_JSON_FILE_H

#include <allot/base.h>
#include <yajl/yajl_tree.h>

/**
 * Read a file of up to 64 KiB. The caller releases *out with yajl_tree_free().
 *
 * @return ALLOT_STATUS_IO; ALLOT_STATUS_FORMAT if it is longer or no JSON.
 */
ALLOT_NODISCARD allot_status alloti_json_read(const char *path, yajl_val *out);

/** Member of an object, NULL for none. */
yajl_val alloti_json_member(yajl_val object, const char *key);

#endif /* ALLOTI_STANDIN_JSON_FILE_H */
