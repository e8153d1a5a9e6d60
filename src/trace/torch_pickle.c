/* SPDX-License-Identifier: MIT */
/*
 * The pickle machine for PyTorch snapshots: a stack, marks, a memo, and the opcodes of plain data.
 *
 * A snapshot comes from a stranger, and Python's own reader would run what it says. This one knows
 * lists, dicts, tuples, strings, numbers, bytes, and refuses every other opcode by name.
 *
 * Values are 64 bits (torch_value.h); what they mean is decided in torch_store.c as containers are
 * completed. The machine's parts are in pickle_machine.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "trace/pickle_machine.h"
#include "trace/pickle_ops.h"
#include "trace/reader.h"

enum { PROTOCOL_MAX = 5 };

static const pickle_class CLASSES[UINT8_MAX + 1] = {
#define OPCODE_CLASS(name, byte, kind) [byte] = PICKLE_##kind,
    PICKLE_OPS(OPCODE_CLASS)
#undef OPCODE_CLASS
};

static allot_status op_memo_put(alloti_pickle *m, size_t size)
{
    uint64_t index = 0;
    const allot_status status = alloti_pickle_take(m, size, &index);
    return status == ALLOT_STATUS_OK ? alloti_pickle_memo_put(m, index) : status;
}

static allot_status op_memo_get(alloti_pickle *m, size_t size)
{
    uint64_t index = 0;
    const allot_status status = alloti_pickle_take(m, size, &index);
    return status == ALLOT_STATUS_OK ? alloti_pickle_memo_get(m, index) : status;
}

static allot_status op_mark(alloti_pickle *m)
{
    bool done = false;
    const allot_status status = alloti_pickle_run(m, &done);
    if (status != ALLOT_STATUS_OK || done) {
        return status;
    }
    if (m->mark_count == ALLOTI_PICKLE_MARKS_MAX) {
        return alloti_pickle_fail(m, "opens more levels than any snapshot has");
    }
    m->marks[m->mark_count++] = m->top;
    return ALLOT_STATUS_OK;
}

static allot_status op_pop(alloti_pickle *m)
{
    if (m->top > alloti_pickle_floor(m)) {
        m->top--;
        return ALLOT_STATUS_OK;
    }
    uint64_t from = 0;
    return m->mark_count == 0 ? alloti_pickle_fail(m, "finds too few values on the stack")
                              : alloti_pickle_pop_mark(m, &from);
}

static allot_status op_pop_mark(alloti_pickle *m)
{
    return alloti_pickle_pop_mark(m, &m->top);
}

static allot_status op_dup(alloti_pickle *m)
{
    const allot_status status = alloti_pickle_require(m, 1);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const alloti_value value = m->stack[m->top - 1];
    return alloti_value_is_container(value) ? alloti_pickle_fail(m, "doubles a list or dict")
                                            : alloti_pickle_push(m, value);
}

/* Values above `from` become items of the list below them. */
static allot_status append_values(alloti_pickle *m, uint64_t from)
{
    if (from <= alloti_pickle_floor(m)) {
        return alloti_pickle_fail(m, "finds too few values on the stack");
    }
    allot_status status = alloti_pickle_use(m, from);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_extend_list(m->store, alloti_pickle_cell(m, from - 1),
                                          m->stack + from, m->top - from);
    }
    m->top = from;
    return status;
}

static allot_status set_values(alloti_pickle *m, uint64_t from)
{
    const uint64_t count = m->top - from;
    if (from <= alloti_pickle_floor(m)) {
        return alloti_pickle_fail(m, "finds too few values on the stack");
    }
    if (count % 2 != 0) {
        return alloti_pickle_fail(m, "has a key without a value");
    }
    allot_status status = alloti_pickle_use(m, from);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_extend_dict(m->store, alloti_pickle_cell(m, from - 1),
                                          m->stack + from, count / 2);
    }
    m->top = from;
    return status;
}

static allot_status op_append(alloti_pickle *m)
{
    const allot_status status = alloti_pickle_require(m, 2);
    return status == ALLOT_STATUS_OK ? append_values(m, m->top - 1) : status;
}

static allot_status op_appends(alloti_pickle *m)
{
    uint64_t from = 0;
    const allot_status status = alloti_pickle_pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? append_values(m, from) : status;
}

static allot_status op_setitem(alloti_pickle *m)
{
    const allot_status status = alloti_pickle_require(m, 3);
    return status == ALLOT_STATUS_OK ? set_values(m, m->top - 2) : status;
}

static allot_status op_setitems(alloti_pickle *m)
{
    uint64_t from = 0;
    const allot_status status = alloti_pickle_pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? set_values(m, from) : status;
}

/* LIST and DICT: the container is made after what is in it. */
static allot_status op_build(alloti_pickle *m, alloti_value_type type)
{
    uint64_t from = 0;
    allot_status status = alloti_pickle_pop_mark(m, &from);
    if (status == ALLOT_STATUS_OK && type == ALLOTI_VALUE_NEW_DICT && (m->top - from) % 2 != 0) {
        status = alloti_pickle_fail(m, "has a key without a value");
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pickle_use(m, from);
    }
    alloti_value cell = alloti_value_make(type, 0);
    if (status == ALLOT_STATUS_OK) {
        status =
            type == ALLOTI_VALUE_NEW_DICT
                ? alloti_store_extend_dict(m->store, &cell, m->stack + from, (m->top - from) / 2)
                : alloti_store_extend_list(m->store, &cell, m->stack + from, m->top - from);
    }
    m->top = from;
    return status == ALLOT_STATUS_OK ? alloti_pickle_push(m, cell) : status;
}

static allot_status make_tuple(alloti_pickle *m, uint64_t from)
{
    alloti_value tuple = 0;
    allot_status status = alloti_pickle_use(m, from);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_tuple(m->store, m->stack + from, m->top - from, &tuple);
    }
    m->top = from;
    return status == ALLOT_STATUS_OK ? alloti_pickle_push(m, tuple) : status;
}

static allot_status op_tuple(alloti_pickle *m)
{
    uint64_t from = 0;
    const allot_status status = alloti_pickle_pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? make_tuple(m, from) : status;
}

static allot_status op_tuple_n(alloti_pickle *m, uint64_t count)
{
    const allot_status status = alloti_pickle_require(m, count);
    return status == ALLOT_STATUS_OK ? make_tuple(m, m->top - count) : status;
}

static allot_status push_number(alloti_pickle *m, uint64_t magnitude, bool is_negative)
{
    alloti_value value = 0;
    const allot_status status = alloti_store_integer(m->store, magnitude, is_negative, &value);
    return status == ALLOT_STATUS_OK ? alloti_pickle_push(m, value) : status;
}

static allot_status push_signed(alloti_pickle *m, int64_t number)
{
    return push_number(m, number < 0 ? -(uint64_t)number : (uint64_t)number, number < 0);
}

static allot_status op_unsigned(alloti_pickle *m, size_t size)
{
    uint64_t number = 0;
    const allot_status status = alloti_pickle_take(m, size, &number);
    return status == ALLOT_STATUS_OK ? push_number(m, number, false) : status;
}

static allot_status op_binint(alloti_pickle *m)
{
    uint64_t number = 0;
    const allot_status status = alloti_pickle_take(m, 4, &number);
    return status == ALLOT_STATUS_OK ? push_signed(m, (int32_t)(uint32_t)number) : status;
}

/* Two's complement, little-endian, any length; what needs more than 64 bits is kept as OTHER. */
static allot_status op_long(alloti_pickle *m, size_t length_size)
{
    uint64_t length = 0;
    allot_status status = alloti_pickle_take(m, length_size, &length);
    if (status == ALLOT_STATUS_OK && length_size == 4 && length > INT32_MAX) {
        status = alloti_pickle_fail(m, "has a negative length");
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pickle_need(m, length);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint8_t *const bytes = m->cursor;
    m->cursor += length;
    const bool is_negative = length != 0 && (bytes[length - 1] & 0x80) != 0;
    const uint8_t filler = is_negative ? 0xff : 0;
    while (length > sizeof(uint64_t) && bytes[length - 1] == filler) {
        length--;
    }
    uint64_t number = is_negative ? UINT64_MAX : 0;
    for (uint64_t i = length; i > 0 && length <= sizeof number; i--) {
        number = number << 8 | bytes[i - 1];
    }
    const bool does_fit = length <= sizeof number && (!is_negative || (number >> 63) != 0);
    return does_fit ? push_number(m, is_negative ? -number : number, is_negative)
                    : alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_OTHER, 0));
}

static allot_status op_float(alloti_pickle *m)
{
    allot_status status = alloti_pickle_need(m, sizeof(uint64_t));
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof bits; i++) {
        bits = bits << 8 | m->cursor[i];
    }
    m->cursor += sizeof bits;
    double number = 0;
    memcpy(&number, &bits, sizeof number);
    alloti_value value = 0;
    status = alloti_store_float(m->store, number, &value);
    return status == ALLOT_STATUS_OK ? alloti_pickle_push(m, value) : status;
}

/* Text or bytes after a length of `length_size` bytes. */
static allot_status op_text(alloti_pickle *m, size_t length_size, bool is_string)
{
    uint64_t length = 0;
    allot_status status = alloti_pickle_take(m, length_size, &length);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pickle_need(m, length);
    }
    alloti_value value = alloti_value_make(ALLOTI_VALUE_OTHER, 0);
    if (status == ALLOT_STATUS_OK && is_string) {
        status = alloti_store_string(m->store, (const char *)m->cursor, (size_t)length, &value);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    m->cursor += length;
    return alloti_pickle_push(m, value);
}

static allot_status op_proto(alloti_pickle *m)
{
    uint64_t version = 0;
    const allot_status status = alloti_pickle_take(m, 1, &version);
    if (status == ALLOT_STATUS_OK && version > PROTOCOL_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "pickle protocol %" PRIu64 "; the protocols 2 to %d are read", version,
                           PROTOCOL_MAX);
    }
    return status;
}

/* The length of a frame only helps readers of streams. */
static allot_status op_frame(alloti_pickle *m)
{
    uint64_t length = 0;
    return alloti_pickle_take(m, sizeof length, &length);
}

static allot_status op_refused(const alloti_pickle *m)
{
    switch (CLASSES[*m->opcode]) {
    case PICKLE_CODE:
        return alloti_pickle_fail(m, "is refused: it could run code");
    case PICKLE_TEXT:
        return alloti_pickle_fail(
            m, "is refused: it belongs to protocol 0; the protocols 2 to 5 are read");
    case PICKLE_ABSENT:
        return alloti_pickle_fail(m, "is refused: no snapshot holds a set");
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT, "0x%02x is no opcode of a pickle", *m->opcode);
    }
}

static allot_status obey(alloti_pickle *m)
{
    switch (*m->opcode) {
    case PICKLE_OP_MARK:
        return op_mark(m);
    case PICKLE_OP_BINGET:
        return op_memo_get(m, 1);
    case PICKLE_OP_LONG_BINGET:
        return op_memo_get(m, 4);
    case PICKLE_OP_BINPUT:
        return op_memo_put(m, 1);
    case PICKLE_OP_LONG_BINPUT:
        return op_memo_put(m, 4);
    case PICKLE_OP_MEMOIZE:
        return alloti_pickle_memo_put(m, m->memo_used);
    case PICKLE_OP_EMPTY_LIST:
        return alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0));
    case PICKLE_OP_EMPTY_DICT:
        return alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_NEW_DICT, 0));
    case PICKLE_OP_EMPTY_TUPLE:
        return op_tuple_n(m, 0);
    case PICKLE_OP_APPEND:
        return op_append(m);
    case PICKLE_OP_APPENDS:
        return op_appends(m);
    case PICKLE_OP_SETITEM:
        return op_setitem(m);
    case PICKLE_OP_SETITEMS:
        return op_setitems(m);
    case PICKLE_OP_LIST:
        return op_build(m, ALLOTI_VALUE_NEW_LIST);
    case PICKLE_OP_DICT:
        return op_build(m, ALLOTI_VALUE_NEW_DICT);
    case PICKLE_OP_TUPLE:
        return op_tuple(m);
    case PICKLE_OP_TUPLE1:
        return op_tuple_n(m, 1);
    case PICKLE_OP_TUPLE2:
        return op_tuple_n(m, 2);
    case PICKLE_OP_TUPLE3:
        return op_tuple_n(m, 3);
    case PICKLE_OP_NONE:
        return alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_NONE, 0));
    case PICKLE_OP_NEWTRUE:
        return alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_BOOL, 1));
    case PICKLE_OP_NEWFALSE:
        return alloti_pickle_push(m, alloti_value_make(ALLOTI_VALUE_BOOL, 0));
    case PICKLE_OP_BININT:
        return op_binint(m);
    case PICKLE_OP_BININT1:
        return op_unsigned(m, 1);
    case PICKLE_OP_BININT2:
        return op_unsigned(m, 2);
    case PICKLE_OP_LONG1:
        return op_long(m, 1);
    case PICKLE_OP_LONG4:
        return op_long(m, 4);
    case PICKLE_OP_BINFLOAT:
        return op_float(m);
    case PICKLE_OP_SHORT_BINUNICODE:
    case PICKLE_OP_SHORT_BINSTRING:
        return op_text(m, 1, true);
    case PICKLE_OP_BINUNICODE:
    case PICKLE_OP_BINSTRING:
        return op_text(m, 4, true);
    case PICKLE_OP_BINUNICODE8:
        return op_text(m, 8, true);
    case PICKLE_OP_SHORT_BINBYTES:
        return op_text(m, 1, false);
    case PICKLE_OP_BINBYTES:
        return op_text(m, 4, false);
    case PICKLE_OP_BINBYTES8:
    case PICKLE_OP_BYTEARRAY8:
        return op_text(m, 8, false);
    case PICKLE_OP_PROTO:
        return op_proto(m);
    case PICKLE_OP_FRAME:
        return op_frame(m);
    case PICKLE_OP_POP:
        return op_pop(m);
    case PICKLE_OP_POP_MARK:
        return op_pop_mark(m);
    case PICKLE_OP_DUP:
        return op_dup(m);
    default:
        return op_refused(m);
    }
}

static allot_status finish(alloti_pickle *m)
{
    allot_status status = alloti_pickle_require(m, 1);
    if (status == ALLOT_STATUS_OK && (m->top != 1 || m->mark_count != 0)) {
        status = alloti_pickle_fail(m, "leaves values on the stack");
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pickle_use(m, 0);
    }
    return status == ALLOT_STATUS_OK ? alloti_store_finish(m->store, m->stack[0]) : status;
}

static allot_status machine_run(alloti_pickle *m)
{
    for (;;) {
        if (m->cursor == m->end) {
            const allot_status status = alloti_pickle_refill(m, m->cursor, 1);
            if (status != ALLOT_STATUS_OK) {
                return status;
            }
            if (m->cursor == m->end) {
                return alloti_fail(ALLOT_STATUS_FORMAT, "the file ends before its STOP opcode");
            }
        }
        m->opcode = m->cursor++;
        if (*m->opcode == PICKLE_OP_STOP) {
            return finish(m);
        }
        const allot_status status = obey(m);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
}

static bool detect(const uint8_t *head, size_t size)
{
    return size >= 2 && head[0] == PICKLE_OP_PROTO && head[1] >= 2 && head[1] < 0x20;
}

static allot_status read_pickle(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    alloti_pickle *const m = calloc(1, sizeof *m);
    if (m == NULL) {
        return alloti_fail_memory(sizeof *m);
    }
    m->source = source;
    m->progress = progress;
    allot_status status = alloti_store_create(builder, &m->store);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&m->stack, &m->stack_capacity, ALLOTI_PICKLE_STACK_MIN,
                                      sizeof *m->stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pickle_refill(m, m->cursor, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = machine_run(m);
    }
    if (status == ALLOT_STATUS_FORMAT && !m->has_source_failed) {
        status = alloti_pickle_fail_place(m, status);
    }
    alloti_store_destroy(m->store);
    free(m->stack);
    free(m->memo);
    free(m);
    return status;
}

const alloti_reader alloti_reader_torch_pickle = {
    .format = ALLOT_TRACE_FORMAT_TORCH_PICKLE, .detect = detect, .read = read_pickle};
