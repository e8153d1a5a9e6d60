/* SPDX-License-Identifier: MIT */
/* The page around the data: what is in it comes out again, and no name gets into the markup. */
#include "report/html_page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support/alloc_fault.h"
#include "support/check.h"

typedef struct text {
    char *bytes;
    size_t size;
} text;

static allot_status text_append(void *context, const void *data, size_t size)
{
    text *const self = context;
    char *const bytes = realloc(self->bytes, self->size + size + 1);
    if (bytes == NULL) {
        return ALLOT_STATUS_HOST_MEMORY;
    }
    memcpy(bytes + self->size, data, size);
    self->bytes = bytes;
    self->size += size;
    bytes[self->size] = '\0';
    return ALLOT_STATUS_OK;
}

static const uint64_t VALUES[] = {0, 1, 127, 128, 300, 5, ALLOTI_PACK_MAX, UINT64_MAX, 7};
enum { VALUE_COUNT = sizeof VALUES / sizeof VALUES[0] };

static allot_status make_page(const char *title, text *out)
{
    const allot_sink sink = {.write = text_append, .context = out};
    alloti_html_page page;
    alloti_html_page_begin(&page, "explain", title);
    alloti_json_put_string(&page.json, "name", "</script><script>alert(1)</script>");
    alloti_pack_array(&page.pack, &page.json, "plain", false, VALUES, VALUE_COUNT);
    alloti_pack_array(&page.pack, &page.json, "delta", true, VALUES, VALUE_COUNT);
    return alloti_html_page_finish(&page, ALLOT_STATUS_OK, &sink);
}

/** What lies between two marks, unpacked; the caller frees it. */
static unsigned char *unpack(const char *page, size_t *size)
{
    const char *at = strstr(page, "id=\"data\">");
    if (at == NULL) {
        return NULL;
    }
    at += strlen("id=\"data\">");
    const size_t length = strcspn(at, "<");
    unsigned char *const packed = malloc(length);
    size_t count = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < length && at[i] != '='; i++) {
        static const char DIGITS[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bits = bits << 6 | (uint32_t)(strchr(DIGITS, at[i]) - DIGITS);
        if (i % 4 != 0) {
            packed[count++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    uLongf room = 1 << 16;
    unsigned char *const out = malloc(room);
    CHECK_EQ(uncompress(out, &room, packed, count), Z_OK);
    free(packed);
    *size = room;
    return out;
}

/** The numbers of a column as the page's script reads them. */
static void check_column(const unsigned char *at, bool is_delta)
{
    uint64_t previous = 0;
    for (unsigned n = 0; n < VALUE_COUNT; n++) {
        uint64_t value = 0;
        unsigned shift = 0;
        do {
            value |= (uint64_t)(*at & 127) << shift;
            shift += 7;
        } while (*at++ > 127);
        if (is_delta) {
            value = value % 2 != 0 ? previous - (value + 1) / 2 : previous + value / 2;
        }
        CHECK_EQ(value, VALUES[n] > ALLOTI_PACK_MAX ? ALLOTI_PACK_MAX : VALUES[n]);
        previous = value;
    }
}

/** "at" of the column whose description begins at `json`. */
static size_t column_at(const char *json)
{
    return strtoul(strstr(json, "\"at\": ") + strlen("\"at\": "), NULL, 10);
}

static void what_goes_in_comes_out(void)
{
    text page = {0};
    REQUIRE_OK(make_page("run.pickle", &page));
    size_t size = 0;
    unsigned char *const data = unpack(page.bytes, &size);
    REQUIRE(data != NULL && size > 4);
    const size_t length = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16;
    REQUIRE(length + 4 < size);
    char *const json = calloc(length + 1, 1);
    memcpy(json, data + 4, length);
    CHECK_CONTAINS(json, "\"schema\": \"allot.html/1\"");
    const char *const plain = strstr(json, "\"plain\": {");
    const char *const delta = strstr(json, "\"delta\": {");
    REQUIRE(plain != NULL && delta != NULL);
    check_column(data + 4 + length + column_at(plain), false);
    check_column(data + 4 + length + column_at(delta), true);
    free(json);
    free(data);
    free(page.bytes);
}

static unsigned count_text(const char *page, const char *part)
{
    unsigned count = 0;
    for (; (page = strstr(page, part)) != NULL; page++) {
        count++;
    }
    return count;
}

static void names_never_become_markup(void)
{
    text page = {0};
    REQUIRE_OK(make_page("\"><script>alert('x')</script>&.pickle", &page));
    CHECK_EQ(count_text(page.bytes, "<script"), 2); /* the data and the page's own */
    CHECK_EQ(count_text(page.bytes, "</script"), 2);
    CHECK_EQ(count_text(page.bytes, "{{"), 0);
    CHECK_CONTAINS(page.bytes, "&quot;&gt;&lt;script&gt;alert('x')&lt;/script&gt;&amp;.pickle");
    CHECK_CONTAINS(page.bytes, "default-src 'none'; script-src 'sha256-");
    free(page.bytes);
}

static void a_failing_sink_is_handed_through(void)
{
    alloti_html_page page;
    alloti_html_page_begin(&page, "explain", "x");
    CHECK_EQ(alloti_html_page_finish(&page, ALLOT_STATUS_CANCELLED, NULL), ALLOT_STATUS_CANCELLED);
}

static allot_status make_and_free(void *context)
{
    (void)context;
    text page = {0};
    const allot_status status = make_page("x", &page);
    free(page.bytes);
    return status;
}

static void every_failing_allocation_is_reported(void)
{
    CHECK(alloc_fault_each(make_and_free, NULL) > 3);
}

static const check_test TESTS[] = {
    {"what_goes_in_comes_out", what_goes_in_comes_out},
    {"names_never_become_markup", names_never_become_markup},
    {"a_failing_sink_is_handed_through", a_failing_sink_is_handed_through},
    {"every_failing_allocation_is_reported", every_failing_allocation_is_reported},
};
CHECK_MAIN(TESTS)
