/* SPDX-License-Identifier: MIT */
#include "dryrun_check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dryrun.h"
#include "dryrun_fit.h"
#include "dryrun_words.h"

/* ---- sizes ---- */

cli_exit dryrun_check_limit(const char *text, uint64_t *out)
{
    uint64_t size = 0;
    if (text == NULL) {
        return CLI_OK;
    }
    if (allot_size_parse(text, &size) != ALLOT_STATUS_OK) {
        return cli_usage("--limit: %s", allot_error_detail());
    }
    if (size < DRYRUN_GRANULE) {
        const bool has_unit = text[strspn(text, "0123456789.")] != '\0';
        return cli_usage("--limit %s: %s is less than the %s that a GPU hands out at once%s%s%s",
                         text, dryrun_size_text(size), dryrun_size_text(DRYRUN_GRANULE),
                         has_unit ? "" : "; did you mean ", has_unit ? "" : text,
                         has_unit ? "" : "MiB?");
    }
    *out = size;
    return CLI_OK;
}

/** KB, MB, GB and so on, which elsewhere may be powers of 1000. */
static bool has_decimal_unit(const char *text)
{
    const char *const unit = text + strspn(text, "0123456789. ");
    return unit[0] != '\0' && toupper((unsigned char)unit[1]) == 'B';
}

cli_exit dryrun_check_peak(const char *text, uint64_t *out)
{
    if (text == NULL) {
        return CLI_OK;
    }
    if (allot_size_parse(text, out) != ALLOT_STATUS_OK) {
        return cli_usage("--assert-peak: %s", allot_error_detail());
    }
    if (has_decimal_unit(text)) {
        fprintf(stderr,
                "allot: --assert-peak %s is read as %s, %" PRIu64
                " bytes: units are powers of 1024\n",
                text, dryrun_size_text(*out), *out);
    }
    return CLI_OK;
}

/* ---- rules ---- */

static bool is_answer(const char *text)
{
    static const char flip[] = "flip:";
    if (strcmp(text, "likely") == 0 || strcmp(text, "false") == 0 || strcmp(text, "true") == 0) {
        return true;
    }
    if (strncmp(text, flip, strlen(flip)) != 0) {
        return false;
    }
    const char *const number = text + strlen(flip);
    return number[strspn(number, "0")] != '\0' && number[strspn(number, "0123456789")] == '\0';
}

cli_exit dryrun_check_booleans(char *const *rules)
{
    for (size_t i = 0; rules != NULL && rules[i] != NULL; i++) {
        const char *const equals = strrchr(rules[i], '=');
        const bool is_line = equals == NULL || memchr(rules[i], ':', (size_t)(equals - rules[i]));
        if (!is_line || !is_answer(equals == NULL ? rules[i] : equals + 1)) {
            return cli_usage("--booleans %s: want likely, false, true, flip:N, or one of them for "
                             "a line: train.py:42=true",
                             rules[i]);
        }
        if (strchr(rules[i], ',') != NULL) {
            return cli_usage("--booleans %s: one rule at a time, and no comma in a file's name",
                             rules[i]);
        }
    }
    return CLI_OK;
}

/* ---- files ---- */

/** 0 if a file could be written there, else errno. */
static int writing_problem(const char *path)
{
    char folder[DRYRUN_PATH_MAX];
    struct stat found;
    if (stat(path, &found) == 0) {
        return S_ISDIR(found.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
    }
    const char *const slash = strrchr(path, '/');
    const int length = slash == NULL ? 0 : (int)(slash - path) + 1;
    if (snprintf(folder, sizeof folder, "%.*s", length, path) >= (int)sizeof folder) {
        return ENAMETOOLONG;
    }
    if (strstr(folder, "{rank}") != NULL) {
        return 0;
    }
    return access(length == 0 ? "." : folder, W_OK | X_OK) == 0 ? 0 : errno;
}

cli_exit dryrun_check_output(const char *path)
{
    const int problem = path == NULL || strcmp(path, "-") == 0 ? 0 : writing_problem(path);
    if (problem != 0) {
        fprintf(stderr, "allot: %s: %s\n", path, strerror(problem));
        return CLI_FAILED;
    }
    return CLI_OK;
}
