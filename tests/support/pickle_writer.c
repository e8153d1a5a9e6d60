/* SPDX-License-Identifier: MIT */
#include "support/pickle_writer.h"

#include <assert.h>
#include <string.h>

#include "support/check.h"

void pickle_bytes(pickle_writer *w, const void *data, size_t size)
{
    assert(size <= sizeof w->data - w->size);
    memcpy(w->data + w->size, data, size);
    w->size += size;
}

void pickle_ops(pickle_writer *w, const char *ops)
{
    pickle_bytes(w, ops, strlen(ops));
}

void pickle_begin(pickle_writer *w)
{
    w->size = 0;
    pickle_ops(w, "\x80\x04");
}

void pickle_text(pickle_writer *w, const char *text)
{
    const uint8_t head[] = {0x8c, (uint8_t)strlen(text)};
    pickle_bytes(w, head, sizeof head);
    pickle_ops(w, text);
}

void pickle_u64(pickle_writer *w, uint64_t number)
{
    uint8_t bytes[11] = {0x8a, 9};
    for (size_t i = 0; i < 8; i++) {
        bytes[2 + i] = (uint8_t)(number >> (8 * i));
    }
    pickle_bytes(w, bytes, sizeof bytes);
}

void pickle_pair(pickle_writer *w, const char *key, uint64_t number)
{
    pickle_text(w, key);
    pickle_u64(w, number);
}

void pickle_text_pair(pickle_writer *w, const char *key, const char *text)
{
    pickle_text(w, key);
    pickle_text(w, text);
}

void pickle_frame(pickle_writer *w, const char *name, const char *filename, uint64_t line)
{
    pickle_ops(w, "}(");
    pickle_text_pair(w, "name", name);
    pickle_text_pair(w, "filename", filename);
    pickle_pair(w, "line", line);
    pickle_ops(w, "u");
}

void pickle_begin_entries(pickle_writer *w)
{
    pickle_begin(w);
    pickle_ops(w, "}(");
    pickle_text(w, "device_traces");
    pickle_ops(w, "](](");
}

void pickle_end_entries(pickle_writer *w)
{
    pickle_ops(w, "eeu.");
}

void pickle_open_entry(pickle_writer *w, const char *action, uint64_t addr, uint64_t size)
{
    pickle_ops(w, "}(");
    pickle_text_pair(w, "action", action);
    pickle_pair(w, "addr", addr);
    pickle_pair(w, "size", size);
}

allot_status pickle_read(const pickle_writer *w, allot_trace **out)
{
    const allot_trace_read_options options = {.struct_size = sizeof options,
                                              .format = ALLOT_TRACE_FORMAT_TORCH_PICKLE};
    return allot_trace_read_memory(w->data, w->size, "test", &options, out);
}

void pickle_check_refused(const pickle_writer *w, const char *part)
{
    allot_trace *trace = NULL;
    CHECK_EQ(pickle_read(w, &trace), ALLOT_STATUS_FORMAT);
    CHECK(trace == NULL);
    CHECK_CONTAINS(allot_error_detail(), part);
    CHECK_CONTAINS(allot_error_detail(), "test: byte ");
    allot_trace_destroy(trace);
}
