/* SPDX-License-Identifier: MIT */
/**
 * Values of options that are numbers. Each call names the option and what it wants where the text
 * is no such number, and leaves *out alone where the text is NULL: the option was not given.
 */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include "cli.h"

/** A whole number from `least`, in decimal digits. */
cli_exit cli_read_count(const char *option, const char *text, uint32_t least, uint32_t *out);

/** A size such as 24GiB that is not 0. */
cli_exit cli_read_size(const char *option, const char *text, uint64_t *out);

/**
 * Memory of a device, as --limit gives it: CLI_OK, else the message has been printed. What no
 * device has is refused: the unit was forgotten.
 */
cli_exit cli_read_limit(const char *text, uint64_t *out);

/** --fraction: a share of --limit, above 0 and up to 1. `limit` is the text of --limit. */
cli_exit cli_read_fraction(const char *text, const char *limit, double *out);

/** A number of percent from 0 to 1,000,000. */
cli_exit cli_read_percent(const char *option, const char *text, double *out);

/** A length of time above 0 with its unit, such as 1ms or 0.5s, as nanoseconds. */
cli_exit cli_read_time(const char *option, const char *text, uint64_t *out);

#endif /* CLI_NUMBER_H */
