/* SPDX-License-Identifier: MIT */
/** Words that the texts of dry runs share. */
#ifndef CLI_DRYRUN_WORDS_H
#define CLI_DRYRUN_WORDS_H

#include "dryrun_judge.h"

/** "1.5 GiB"; valid until eight more were asked for. */
const char *dryrun_size_text(uint64_t size);

/** "9882 MiB", for limits, which are whole ones; valid until four more were asked for. */
const char *dryrun_exact_text(uint64_t size);

/** "once", "7 times"; valid until four more were asked for. */
const char *dryrun_times_text(uint64_t count);

/** "NVIDIA L4 (22.5 GiB)" or "NVIDIA L4 with 11.0 GiB", into the buffer. */
const char *dryrun_card_text(const dryrun_request *request, char *buffer, size_t size);

/** Settings of the allocator: "default" for none. */
const char *dryrun_conf_text(const char *conf);

/**
 * Where the context's size comes from, by the CUDA that the program used. `reference` receives
 * where to look it up, "" for nothing; NULL: not wanted.
 */
const char *dryrun_context_source(const dryrun_request *request, const dryrun_result *result,
                                  const char **reference);

/** "train.py:7 (step)" of "runs/train.py:7 (step)". */
const char *dryrun_short_line(const char *line);

/** The same for a line of the folder that the command was given in; others as they are. */
const char *dryrun_near_line(const char *line);

/** "of the 27 listed and 1 imported, by its memory alone: --fit runs on it", into the buffer. */
const char *dryrun_smallest_text(const dryrun_smallest *smallest, char *buffer, size_t size);

/** " (3 out-of-memory caught, approximate)" behind "fits", or "", into the buffer. */
const char *dryrun_fits_remark(const dryrun_result *result, char *buffer, size_t size);

/** "out of memory". */
const char *dryrun_verdict_text(dryrun_verdict verdict);

#endif /* CLI_DRYRUN_WORDS_H */
