/* SPDX-License-Identifier: MIT */
/** Sizes that only real hardware tells: what a dry run answered instead, and how sure that is. */
#ifndef CLI_DRYRUN_SIZES_H
#define CLI_DRYRUN_SIZES_H

#include <yajl/yajl_gen.h>

#include "dryrun.h"

/** Set the entries that the user gave as "cudnn=64MiB,nccl=0" or as a file; false after a message.
 */
bool dryrun_read_workspaces(const char *text, allot_workspaces *out);

/** Bytes that real hardware may need beyond what was answered by rules. */
uint64_t dryrun_sizes_spread(const dryrun_result *result);

/** One line for each kind of size, with where it comes from, and what the installed cuDNN did. */
void dryrun_print_sizes(const dryrun_result *result);

/** What to do about sizes that are not known; nothing if all are. */
void dryrun_print_ways_out(const dryrun_result *result);

/** The members "workspaces" and "cudnn" of an open object. */
void dryrun_put_sizes(yajl_gen json, const dryrun_result *result);

#endif /* CLI_DRYRUN_SIZES_H */
