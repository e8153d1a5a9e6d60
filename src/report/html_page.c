/* SPDX-License-Identifier: MIT */
/* Packing the data and filling in the template. */
#include "report/html_page.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "core/array.h"
#include "core/status.h"
#include "report/html_assets.h"

static allot_status text_write(void *context, const void *data, size_t size)
{
    alloti_pack *const text = context;
    const allot_status status =
        alloti_array_reserve(&text->bytes, &text->capacity, text->size + size, 1);
    if (status == ALLOT_STATUS_OK) {
        memcpy(text->bytes + text->size, data, size);
        text->size += size;
    }
    return status;
}

void alloti_html_page_begin(alloti_html_page *page, const char *verb, const char *title)
{
    *page = (alloti_html_page){.title = title};
    page->text_sink = (allot_sink){.write = text_write, .context = &page->text};
    alloti_json_begin(&page->json, &page->text_sink, "allot.html/1");
    alloti_json_put_string(&page->json, "generator", "allot " ALLOT_VERSION_STRING);
    alloti_json_put_string(&page->json, "verb", verb);
    alloti_json_put_string(&page->json, "title", title);
}

/** Bytes to a sink as base64: three become four, so a rest of up to two waits for the next. */
typedef struct base64 {
    const allot_sink *sink;
    uint32_t bits;
    unsigned count; /* bytes in `bits` */
    char text[1024];
    size_t length;
    allot_status status;
} base64;

static void base64_flush(base64 *self)
{
    if (self->status == ALLOT_STATUS_OK && self->length != 0) {
        self->status = self->sink->write(self->sink->context, self->text, self->length);
    }
    self->length = 0;
}

/** Put the `count` bytes in `bits` down as four characters. */
static void base64_quad(base64 *self)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint32_t bits = self->bits << 8 * (3 - self->count);
    for (unsigned i = 0; i < 4; i++) {
        self->text[self->length++] = i <= self->count ? DIGITS[bits >> (18 - 6 * i) & 63] : '=';
    }
    self->bits = 0;
    self->count = 0;
    if (self->length == sizeof self->text) {
        base64_flush(self);
    }
}

static void base64_put(base64 *self, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        self->bits = self->bits << 8 | bytes[i];
        if (++self->count == 3) {
            base64_quad(self);
        }
    }
}

static allot_status base64_end(base64 *self)
{
    if (self->count != 0) {
        base64_quad(self);
    }
    base64_flush(self);
    return self->status;
}

/** One part of the data through zlib to base64. */
static bool deflate_part(z_stream *stream, const uint8_t *bytes, uint64_t size, bool is_last,
                         base64 *out)
{
    enum { PIECE = 1 << 30 };
    unsigned char buffer[16384];
    do {
        const uInt piece = size < PIECE ? (uInt)size : PIECE;
        stream->next_in = bytes;
        stream->avail_in = piece;
        if (piece != 0) { /* of nothing there may be no bytes */
            bytes += piece;
        }
        size -= piece;
        do {
            stream->next_out = buffer;
            stream->avail_out = sizeof buffer;
            if (deflate(stream, is_last && size == 0 ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR) {
                return false;
            }
            base64_put(out, buffer, sizeof buffer - stream->avail_out);
        } while (stream->avail_out == 0);
    } while (size != 0);
    return true;
}

static allot_status write_data(const alloti_html_page *page, const allot_sink *sink)
{
    enum { LEVEL = 7 };
    z_stream stream = {0};
    if (deflateInit(&stream, LEVEL) != Z_OK) {
        return alloti_fail_memory(1 << 18);
    }
    const uint64_t size = page->text.size;
    const uint8_t length[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                               (uint8_t)(size >> 24)};
    base64 out = {.sink = sink};
    const bool is_ok = deflate_part(&stream, length, sizeof length, false, &out) &&
                       deflate_part(&stream, page->text.bytes, size, false, &out) &&
                       deflate_part(&stream, page->pack.bytes, page->pack.size, true, &out);
    deflateEnd(&stream);
    if (!is_ok) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "zlib could not compress the page");
    }
    return base64_end(&out);
}

static allot_status write_hash(const alloti_html_asset *asset, const allot_sink *sink)
{
    base64 out = {.sink = sink};
    base64_put(&out, asset->sha256, sizeof asset->sha256);
    return base64_end(&out);
}

static allot_status write_bytes(const alloti_html_asset *asset, const allot_sink *sink)
{
    return sink->write(sink->context, asset->bytes, asset->size);
}

/** Text as HTML shows it. */
static allot_status write_escaped(const char *text, const allot_sink *sink)
{
    allot_status status = ALLOT_STATUS_OK;
    for (; *text != '\0' && status == ALLOT_STATUS_OK; text++) {
        const char *const entity = *text == '<'   ? "&lt;"
                                   : *text == '>' ? "&gt;"
                                   : *text == '&' ? "&amp;"
                                   : *text == '"' ? "&quot;"
                                                  : NULL;
        status = entity != NULL ? sink->write(sink->context, entity, strlen(entity))
                                : sink->write(sink->context, text, 1);
    }
    return status;
}

static allot_status write_slot(const alloti_html_page *page, const char *name, size_t length,
                               const allot_sink *sink)
{
    const struct {
        const char *name;
        const alloti_html_asset *asset;
        allot_status (*write)(const alloti_html_asset *asset, const allot_sink *sink);
    } slots[] = {
        {"STYLE", &alloti_html_style, write_bytes},
        {"STYLE_HASH", &alloti_html_style, write_hash},
        {"SCRIPT", &alloti_html_script, write_bytes},
        {"SCRIPT_HASH", &alloti_html_script, write_hash},
    };
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        if (strlen(slots[i].name) == length && memcmp(slots[i].name, name, length) == 0) {
            return slots[i].write(slots[i].asset, sink);
        }
    }
    return memcmp(name, "DATA", length) == 0 ? write_data(page, sink)
                                             : write_escaped(page->title, sink);
}

/** The template, with each {{NAME}} replaced. */
static allot_status write_page(const alloti_html_page *page, const allot_sink *sink)
{
    const char *at = (const char *)alloti_html_template.bytes;
    const char *const end = at + alloti_html_template.size;
    allot_status status = ALLOT_STATUS_OK;
    while (at < end && status == ALLOT_STATUS_OK) {
        const char *stop = at;
        while (stop + 1 < end && (stop[0] != '{' || stop[1] != '{')) {
            stop++;
        }
        if (stop + 1 >= end) {
            return sink->write(sink->context, at, (size_t)(end - at));
        }
        status = sink->write(sink->context, at, (size_t)(stop - at));
        const char *const name = stop + 2;
        const char *const close = memchr(name, '}', (size_t)(end - name));
        if (status == ALLOT_STATUS_OK) {
            status = write_slot(page, name, (size_t)(close - name), sink);
        }
        at = close + 2;
    }
    return status;
}

allot_status alloti_html_page_finish(alloti_html_page *page, allot_status status,
                                     const allot_sink *sink)
{
    const allot_status json_status = alloti_json_end(&page->json);
    status = status != ALLOT_STATUS_OK ? status : json_status;
    status = status != ALLOT_STATUS_OK ? status : page->pack.status;
    if (status == ALLOT_STATUS_OK) {
        status = write_page(page, sink);
    }
    alloti_pack_fini(&page->pack);
    alloti_pack_fini(&page->text);
    return status;
}
