/* SPDX-License-Identifier: MIT */
/**
 * The processes of a run: a launcher, its ranks, loaders of data. A process that used CUDA is a
 * rank. The one that is worst off stands for the run; of the others the main figures are kept.
 */
#ifndef CLI_DRYRUN_RANKS_H
#define CLI_DRYRUN_RANKS_H

#include <yajl/yajl_gen.h>

#include "dryrun_judge.h"

/** Read what all processes left in result->folder; `main` is the one that was started. */
void dryrun_read_ranks(const dryrun_request *request, dryrun_result *result, long main);

/** A line for each rank, if there are several. */
void dryrun_print_ranks(const dryrun_result *result);

/** Member "ranks" of the JSON: empty unless there are several. */
void dryrun_put_ranks(yajl_gen json, const dryrun_result *result);

/**
 * Where the snapshot of a rank is kept: "{rank}" in the path is replaced, or the rank put in front
 * of its suffix. false if the path is too long.
 */
bool dryrun_rank_path(const char *path, const dryrun_rank *rank, char *out, size_t size);

/** Snapshot of a rank in the run's folder. */
void dryrun_rank_snapshot(const dryrun_result *result, const dryrun_rank *rank, char *out,
                          size_t size);

#endif /* CLI_DRYRUN_RANKS_H */
