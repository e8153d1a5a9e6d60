/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "main.h"

static cli_exit exit_of(allot_status status)
{
    switch (status) {
    case ALLOT_STATUS_OK:
        return CLI_OK;
    case ALLOT_STATUS_MISMATCH:
        return CLI_FOUND;
    case ALLOT_STATUS_INVALID:
        return CLI_USAGE;
    case ALLOT_STATUS_FORMAT:
    case ALLOT_STATUS_IO:
    case ALLOT_STATUS_NOT_FOUND:
    case ALLOT_STATUS_UNSUPPORTED:
    case ALLOT_STATUS_VERSION:
        return CLI_REFUSED;
    default:
        return CLI_FAILED;
    }
}

cli_exit cli_fail(allot_status status)
{
    cli_progress_end();
    const char *const detail = allot_error_detail();
    fprintf(stderr, "allot: %s\n", detail[0] != '\0' ? detail : allot_status_text(status));
    return exit_of(status);
}

cli_exit cli_usage(const char *format, ...)
{
    cli_progress_end();
    const char *const verb = cli_current_verb();
    fprintf(stderr, "allot %s: ", verb);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\ntry: allot %s --help\n", verb);
    return CLI_USAGE;
}

cli_exit cli_read_trace(const char *path, allot_trace **out)
{
    const allot_trace_read_options options = {.struct_size = sizeof options,
                                              .progress = cli_progress};
    const allot_status status = allot_trace_read(path, &options, out);
    cli_progress_end();
    return status == ALLOT_STATUS_OK ? CLI_OK : cli_fail(status);
}

static bool is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static const char *const *inputs;
static size_t input_count;

void cli_set_inputs(const char *const *files, size_t count)
{
    inputs = files;
    input_count = count;
}

bool cli_is_input(const char *path)
{
    struct stat output;
    if (is_stdout(path) || stat(path, &output) != 0 || !S_ISREG(output.st_mode)) {
        return false;
    }
    for (size_t i = 0; i < input_count; i++) {
        struct stat input;
        if (stat(inputs[i], &input) == 0 && input.st_dev == output.st_dev &&
            input.st_ino == output.st_ino) {
            (void)cli_usage("%s is the input and would be overwritten", path);
            return true;
        }
    }
    return false;
}

cli_exit cli_open_output(const char *path, FILE **out)
{
    if (cli_is_input(path)) {
        return CLI_USAGE;
    }
    FILE *const file = is_stdout(path) ? stdout : fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "allot: %s: %s\n", path, strerror(errno));
        return CLI_FAILED;
    }
    *out = file;
    return CLI_OK;
}

cli_exit cli_close_output(const char *path, FILE *file)
{
    const bool failed = ferror(file) != 0;
    const int closed = is_stdout(path) ? fflush(file) : fclose(file);
    if (failed || closed != 0) {
        fprintf(stderr, "allot: %s: %s\n", is_stdout(path) ? "standard output" : path,
                strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}

cli_exit cli_end_output(allot_status status, const char *path, FILE *file)
{
    const cli_exit closed = cli_close_output(path, file);
    return closed != CLI_OK || status == ALLOT_STATUS_OK ? closed : cli_fail(status);
}

allot_report_options cli_report_options(bool json, uint32_t top, const char *name)
{
    allot_report_options options = {.struct_size = sizeof options,
                                    .format = json ? ALLOT_REPORT_JSON : ALLOT_REPORT_TEXT,
                                    .top = top,
                                    .name = name};
    if (isatty(STDOUT_FILENO) != 0) {
        const char *const no_color = getenv("NO_COLOR");
        struct winsize size = {0};
        options.use_color = no_color == NULL || no_color[0] == '\0';
        options.width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    }
    return options;
}

enum { PROGRESS_START_NS = 1000000000, PROGRESS_STEP_NS = 100000000 };

static int64_t progress_begin_ns;
static int64_t progress_last_ns;
static bool progress_shown;

static int64_t now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool cli_progress(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)context;
    const int64_t now = now_ns();
    if (progress_begin_ns == 0) {
        progress_begin_ns = now;
    }
    if (now - progress_begin_ns < PROGRESS_START_NS || now - progress_last_ns < PROGRESS_STEP_NS ||
        isatty(STDERR_FILENO) == 0) {
        return true;
    }
    progress_last_ns = now;
    progress_shown = true;
    if (total != 0) {
        fprintf(stderr, "\r\033[K%s %3.0f %%", stage, 100.0 * (double)done / (double)total);
    } else {
        fprintf(stderr, "\r\033[K%s ...", stage);
    }
    return true;
}

void cli_progress_end(void)
{
    if (progress_shown) {
        fputs("\r\033[K", stderr);
    }
    progress_shown = false;
    progress_begin_ns = 0;
}
