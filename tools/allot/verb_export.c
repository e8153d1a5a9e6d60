/* SPDX-License-Identifier: MIT */
/*
 * allot export: writes a trace in another format.
 *
 * A file appears under its name only when it is complete: it is written beside it first. Devices
 * and pipes are written directly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "verbs.h"

static char *format_name;
static char *output_path;

static const struct poptOption OWN[] = {
    {"to", 't', POPT_ARG_STRING, &format_name, 0,
     "torch-pickle, chrome, allot, csv or folded; without it, the output's name decides (.pickle, "
     ".json, .allot, .csv, .folded)",
     "FORMAT"},
    {"output", 'o', POPT_ARG_STRING, &output_path, 0,
     "Where to write, default standard output; a name that ends in .gz is compressed", "FILE"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {CLI_INCLUDE_OPTIONS(OWN, "Export:"), POPT_TABLEEND};

/** What a name's ending says about the format. */
static const struct {
    const char *suffix;
    allot_trace_format format;
} SUFFIXES[] = {
    {".pickle", ALLOT_TRACE_FORMAT_TORCH_PICKLE},
    {".pkl", ALLOT_TRACE_FORMAT_TORCH_PICKLE},
    {".json", ALLOT_TRACE_FORMAT_CHROME},
    {".allot", ALLOT_TRACE_FORMAT_ALLOT},
    {".csv", ALLOT_TRACE_FORMAT_CSV},
    {".folded", ALLOT_TRACE_FORMAT_FOLDED},
};

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

static bool is_gzip_name(const char *path)
{
    return path != NULL && ends_with(path, strlen(path), ".gz");
}

static bool format_from_name(const char *path, allot_trace_format *out)
{
    if (path == NULL) {
        return false;
    }
    const size_t length = strlen(path) - (is_gzip_name(path) ? 3 : 0);
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof SUFFIXES[0]; i++) {
        if (ends_with(path, length, SUFFIXES[i].suffix)) {
            *out = SUFFIXES[i].format;
            return true;
        }
    }
    return false;
}

static bool format_from_ending(const char *ending, allot_trace_format *out)
{
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof SUFFIXES[0]; i++) {
        if (strcmp(SUFFIXES[i].suffix + 1, ending) == 0) {
            *out = SUFFIXES[i].format;
            return true;
        }
    }
    return false;
}

/* The format that --to names, by its own name or by the ending of its files. */
static cli_exit format_from_option(const char *name, allot_trace_format *out)
{
    const bool is_known =
        format_from_ending(name, out) || allot_trace_format_parse(name, out) == ALLOT_STATUS_OK;
    if (is_known && allot_trace_format_is_writable(*out)) {
        return CLI_OK;
    }
    return cli_usage("--to %s: %s; written are torch-pickle, chrome, allot, csv, folded", name,
                     is_known ? "not a format to write" : "unknown format");
}

/** An output file, or standard output, compressed or not. */
typedef struct output {
    const char *path; /**< NULL: standard output. */
    char *partial;    /**< Where it is written until it is complete; NULL: at `path`. */
    FILE *file;
    gzFile gzip; /**< NULL: not compressed. */
} output;

static allot_status output_write(void *context, const void *data, size_t size)
{
    const output *const out = context;
    if (out->gzip == NULL) {
        return fwrite(data, 1, size, out->file) == size ? ALLOT_STATUS_OK : ALLOT_STATUS_IO;
    }
    return gzfwrite(data, 1, size, out->gzip) == size ? ALLOT_STATUS_OK : ALLOT_STATUS_IO;
}

static cli_exit fail_output(const output *out)
{
    cli_progress_end();
    fprintf(stderr, "allot: %s: %s\n", out->path == NULL ? "standard output" : out->path,
            strerror(errno));
    return CLI_FAILED;
}

/* Whether something is there that must not be replaced by a file: a device, a pipe. */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static char *partial_name(const char *path)
{
    static const char SUFFIX[] = ".part";
    char *const name = malloc(strlen(path) + sizeof SUFFIX);
    if (name != NULL) {
        stpcpy(stpcpy(name, path), SUFFIX);
    }
    return name;
}

static cli_exit output_open(const char *path, output *out)
{
    *out = (output){.path = path == NULL || strcmp(path, "-") == 0 ? NULL : path};
    if (out->path == NULL) {
        out->file = stdout;
        return CLI_OK;
    }
    if (cli_is_input(path)) {
        return CLI_USAGE;
    }
    if (!is_special(path)) {
        out->partial = partial_name(path);
        if (out->partial == NULL) {
            return fail_output(out);
        }
    }
    out->file = fopen(out->partial != NULL ? out->partial : path, "wb");
    if (out->file == NULL) {
        const cli_exit code = fail_output(out);
        free(out->partial);
        return code;
    }
    if (is_gzip_name(path)) {
        out->gzip = gzdopen(dup(fileno(out->file)), "wb");
        if (out->gzip == NULL) {
            const cli_exit code = fail_output(out);
            fclose(out->file);
            free(out->partial);
            return code;
        }
    }
    return CLI_OK;
}

/* Close; `is_complete` says whether everything was written. */
static cli_exit output_close(output *out, bool is_complete)
{
    bool is_well = is_complete;
    if (out->gzip != NULL) {
        is_well = gzclose(out->gzip) == Z_OK && is_well;
    }
    if (out->path == NULL) {
        is_well = fflush(out->file) == 0 && is_well;
    } else {
        is_well = fclose(out->file) == 0 && is_well;
    }
    cli_exit code = CLI_OK;
    if (is_complete &&
        (!is_well || (out->partial != NULL && rename(out->partial, out->path) != 0))) {
        code = fail_output(out);
        is_well = false;
    }
    if (!is_well && out->partial != NULL) {
        unlink(out->partial);
    }
    free(out->partial);
    return code;
}

static cli_exit write_trace(const allot_trace *trace, allot_trace_format format)
{
    output out;
    const cli_exit opened = output_open(output_path, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_sink sink = {.write = output_write, .context = &out};
    const allot_trace_write_options options = {.struct_size = sizeof options,
                                               .progress = cli_progress};
    const allot_status status = allot_trace_write(trace, format, &options, &sink);
    cli_progress_end();
    cli_exit code = CLI_OK;
    if (status == ALLOT_STATUS_IO) {
        code = fail_output(&out);
    } else if (status != ALLOT_STATUS_OK) {
        code = cli_fail(status);
    }
    const cli_exit closed = output_close(&out, code == CLI_OK);
    return code != CLI_OK ? code : closed;
}

static bool is_binary(allot_trace_format format)
{
    return format == ALLOT_TRACE_FORMAT_TORCH_PICKLE || format == ALLOT_TRACE_FORMAT_ALLOT;
}

static cli_exit export_file(const char *path)
{
    allot_trace_format format = ALLOT_TRACE_FORMAT_AUTO;
    if (format_name == NULL && !format_from_name(output_path, &format)) {
        return cli_usage("name a format with --to, or an output whose name ends in one of .pickle "
                         ".json .allot .csv .folded (.gz may follow)");
    }
    if (format_name != NULL && format_from_option(format_name, &format) != CLI_OK) {
        return CLI_USAGE;
    }
    if (is_binary(format) && output_path == NULL && isatty(STDOUT_FILENO) != 0) {
        return cli_usage("%s is no text for a terminal: name a file with -o",
                         allot_trace_format_name(format));
    }
    allot_trace *trace = NULL;
    cli_exit code = cli_read_trace(path, &trace);
    if (code == CLI_OK) {
        code = write_trace(trace, format);
    }
    allot_trace_destroy(trace);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    const cli_exit code = count == 1 ? export_file(files[0]) : cli_usage("name one trace");
    free(format_name);
    free(output_path);
    return code;
}

const cli_verb cli_verb_export = {
    .name = "export",
    .arguments = "FILE",
    .summary = "Write a trace in another format",
    .options = OPTIONS,
    .run = run,
};
