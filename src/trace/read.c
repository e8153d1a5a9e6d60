/* SPDX-License-Identifier: MIT */
/* Reading a trace of whatever format: opens the source, finds the reader, names the file in errors.
 */
#include <inttypes.h>

#include "core/options.h"
#include "core/status.h"
#include "trace/reader.h"

enum { HEAD_SIZE = 64 << 10 };

/* In the order in which they are tried: the strictest recognition first. */
static const alloti_reader *const READERS[] = {
    &alloti_reader_native,   &alloti_reader_torch_pickle, &alloti_reader_umpire_json,
    &alloti_reader_timeline, &alloti_reader_chrome,       &alloti_reader_torch_json,
    &alloti_reader_vma_json, &alloti_reader_csv,          &alloti_reader_umpire_csv,
    &alloti_reader_rmm_csv,
};

enum { READER_COUNT = sizeof READERS / sizeof READERS[0] };

static allot_status find_reader(alloti_source *source, allot_trace_format format,
                                const alloti_reader **out)
{
    const uint8_t *head = NULL;
    size_t size = 0;
    const allot_status status = alloti_source_fill(source, HEAD_SIZE, &head, &size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    size = size < HEAD_SIZE ? size : HEAD_SIZE;
    if (size == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte 0: the file is empty");
    }
    for (size_t i = 0; i < READER_COUNT; i++) {
        const bool wanted = format == ALLOT_TRACE_FORMAT_AUTO ? READERS[i]->detect(head, size)
                                                              : READERS[i]->format == format;
        if (wanted) {
            *out = READERS[i];
            return ALLOT_STATUS_OK;
        }
    }
    if (format != ALLOT_TRACE_FORMAT_AUTO) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "format %s cannot be read",
                           allot_trace_format_name(format));
    }
    return alloti_fail(ALLOT_STATUS_FORMAT, "byte 0: not a memory trace of a known format");
}

static allot_status read_source(alloti_source *source, const allot_trace_read_options *options,
                                allot_trace **out)
{
    const alloti_progress progress = {
        .report = options->progress, .context = options->progress_context, .stage = "reading"};
    const alloti_reader *reader = NULL;
    alloti_builder *builder = NULL;
    allot_status status = find_reader(source, options->format, &reader);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_create(&builder);
    }
    if (status == ALLOT_STATUS_OK) {
        status = reader->read(source, &progress, builder);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_finish(builder, reader->format, out);
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_builder_destroy(builder);
    }
    return status;
}

allot_status allot_trace_read(const char *path, const allot_trace_read_options *options,
                              allot_trace **out)
{
    allot_trace_read_options o;
    alloti_source *source = NULL;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_source_open(path, &source);
    if (status == ALLOT_STATUS_OK) {
        status = read_source(source, &o, out);
    }
    alloti_source_close(source);
    return status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "%s: ", path);
}

allot_status allot_trace_read_memory(const void *data, size_t size, const char *name,
                                     const allot_trace_read_options *options, allot_trace **out)
{
    allot_trace_read_options o;
    alloti_source *source = NULL;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_source_open_memory(data, size, &source);
    if (status == ALLOT_STATUS_OK) {
        status = read_source(source, &o, out);
    }
    alloti_source_close(source);
    return status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "%s: ", name);
}
