/* SPDX-License-Identifier: MIT */
#include "trace/native_section.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>

#include "core/array.h"
#include "core/status.h"

/* A frame may ask for a window of this size at most: memory that the input did not pay for. */
enum { WINDOW_LOG_MAX = 23, UNPACK_STEP = 256 << 10 };

struct alloti_section_reader {
    alloti_source *source;
    const alloti_progress *progress;
    ZSTD_DStream *unpacker;
    uint8_t *raw; /**< Of the section taken last. */
    uint64_t raw_capacity;
    uint64_t offset; /**< Where that section begins. */
    const char *tag;
    uint64_t count;
};

static allot_status fail_short(const alloti_source *source, size_t available)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": the file ends too early",
                       alloti_source_offset(source) + available);
}

static allot_status check_magic(alloti_source *source)
{
    const uint8_t *data = NULL;
    size_t available = 0;
    const allot_status status =
        alloti_source_fill(source, ALLOTI_NATIVE_HEADER_SIZE, &data, &available);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const size_t compared =
        available < ALLOTI_NATIVE_MAGIC_SIZE ? available : ALLOTI_NATIVE_MAGIC_SIZE;
    if (memcmp(data, ALLOTI_NATIVE_MAGIC, compared) != 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte 0: this is no .allot file");
    }
    if (available < ALLOTI_NATIVE_HEADER_SIZE) {
        return fail_short(source, available);
    }
    alloti_cursor cursor = {.data = data, .size = available, .pos = ALLOTI_NATIVE_MAGIC_SIZE};
    const uint32_t version = alloti_cursor_le32(&cursor);
    if (version != ALLOTI_NATIVE_VERSION) {
        return alloti_fail(ALLOT_STATUS_VERSION,
                           "byte %d: version %" PRIu32 " of the format; this program reads %d",
                           ALLOTI_NATIVE_MAGIC_SIZE, version, ALLOTI_NATIVE_VERSION);
    }
    if (alloti_cursor_le32(&cursor) != 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte %d: 0 was expected",
                           ALLOTI_NATIVE_MAGIC_SIZE + 4);
    }
    alloti_source_consume(source, ALLOTI_NATIVE_HEADER_SIZE);
    return ALLOT_STATUS_OK;
}

allot_status alloti_sections_begin(alloti_source *source, const alloti_progress *progress,
                                   alloti_section_reader **out)
{
    const allot_status status = check_magic(source);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_section_reader *const reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return alloti_fail_memory(sizeof *reader);
    }
    reader->source = source;
    reader->progress = progress;
    reader->unpacker = ZSTD_createDStream();
    if (reader->unpacker == NULL) {
        free(reader);
        return alloti_fail_memory(ZSTD_DStreamInSize());
    }
    ZSTD_DCtx_setParameter(reader->unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    *out = reader;
    return ALLOT_STATUS_OK;
}

void alloti_sections_end(alloti_section_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    ZSTD_freeDStream(reader->unpacker);
    free(reader->raw);
    free(reader);
}

uint64_t alloti_sections_count(const alloti_section_reader *reader)
{
    return reader->count;
}

allot_status alloti_section_fail(const alloti_section_reader *reader, const char *format, ...)
{
    char text[ALLOTI_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": section %s: %s", reader->offset,
                       reader->tag, text);
}

/* Unpack into `raw`, growing it as bytes come: the size that the header claims is only compared. */
static allot_status unpack(alloti_section_reader *reader, const uint8_t *packed, size_t size,
                           uint64_t raw_size)
{
    ZSTD_DCtx_reset(reader->unpacker, ZSTD_reset_session_only);
    ZSTD_inBuffer in = {packed, size, 0};
    uint64_t done = 0;
    size_t code = 1;
    while (code != 0) {
        const allot_status status =
            alloti_array_reserve(&reader->raw, &reader->raw_capacity, done + UNPACK_STEP, 1);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        ZSTD_outBuffer out = {reader->raw + done, UNPACK_STEP, 0};
        code = ZSTD_decompressStream(reader->unpacker, &out, &in);
        if (ZSTD_isError(code)) {
            return alloti_section_fail(reader, "zstd: %s", ZSTD_getErrorName(code));
        }
        done += out.pos;
        if (done > raw_size || (code != 0 && out.pos == 0 && in.pos == in.size)) {
            break;
        }
    }
    if (code != 0 || done != raw_size || in.pos != in.size) {
        return alloti_section_fail(reader, "does not unpack to %" PRIu64 " bytes", raw_size);
    }
    return ALLOT_STATUS_OK;
}

static allot_status tell_progress(const alloti_section_reader *reader)
{
    uint64_t done = 0;
    uint64_t total = 0;
    alloti_source_progress(reader->source, &done, &total);
    return alloti_progress_tell(reader->progress, done, total);
}

allot_status alloti_sections_next(alloti_section_reader *reader, alloti_native_section section,
                                  alloti_cursor *out)
{
    alloti_source *const source = reader->source;
    const uint8_t *data = NULL;
    size_t available = 0;
    reader->offset = alloti_source_offset(source);
    reader->tag = alloti_native_tag(section);
    allot_status status = alloti_source_fill(source, ALLOTI_NATIVE_SECTION_SIZE, &data, &available);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (available < ALLOTI_NATIVE_SECTION_SIZE) {
        return fail_short(source, available);
    }
    alloti_cursor header = {.data = data, .size = ALLOTI_NATIVE_SECTION_SIZE};
    const uint8_t *const tag = alloti_cursor_take(&header, ALLOTI_NATIVE_TAG_SIZE);
    if (memcmp(tag, reader->tag, ALLOTI_NATIVE_TAG_SIZE) != 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": section %s was expected",
                           reader->offset, reader->tag);
    }
    if (alloti_cursor_le32(&header) != 0) {
        return alloti_section_fail(reader, "its header is damaged");
    }
    const uint64_t raw_size = alloti_cursor_le64(&header);
    const uint64_t packed_size = alloti_cursor_le64(&header);
    const uint64_t checksum = alloti_cursor_le64(&header);
    alloti_source_consume(source, ALLOTI_NATIVE_SECTION_SIZE);
    const size_t wanted = packed_size > SIZE_MAX ? SIZE_MAX : (size_t)packed_size;
    status = alloti_source_fill(source, wanted, &data, &available);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (available < wanted) {
        return fail_short(source, available);
    }
    if (XXH3_64bits_withSeed(data, wanted, alloti_native_seed(reader->tag, raw_size)) != checksum) {
        return alloti_section_fail(reader, "the checksum differs: the file is damaged");
    }
    status = unpack(reader, data, wanted, raw_size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_source_consume(source, wanted);
    reader->count++;
    *out = (alloti_cursor){.data = reader->raw, .size = raw_size};
    return tell_progress(reader);
}

allot_status alloti_sections_finish(alloti_section_reader *reader)
{
    const uint8_t *data = NULL;
    size_t available = 0;
    const allot_status status = alloti_source_fill(reader->source, 1, &data, &available);
    if (status == ALLOT_STATUS_OK && available != 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": bytes after the last section",
                           alloti_source_offset(reader->source));
    }
    return status;
}
