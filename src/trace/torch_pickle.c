/* SPDX-License-Identifier: MIT */
/*
 * The pickle machine for PyTorch snapshots: a stack, marks, a memo, and the opcodes of plain data.
 *
 * A snapshot comes from a stranger, and Python's own reader would run what it says. This one knows
 * lists, dicts, tuples, strings, numbers, bytes, and refuses every other opcode by name.
 *
 * Values are 64 bits (torch_value.h); what they mean is decided in torch_store.c as containers are
 * completed. A container on the stack that is memoised is a REF to its memo slot, which is its only
 * cell: extending it changes the slot, so all references see the same container.
 *
 * Memory: 8 bytes a stack or memo slot, at most one of each for a byte of the file; memo indices
 * beyond the bytes read so far and nesting beyond MARKS_MAX are refused; strings are looked at
 * where they lie.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/pickle_ops.h"
#include "trace/reader.h"
#include "trace/torch_store.h"

enum {
    SLICE = 4 << 20, /**< Bytes between two looks at the progress. */
    MARKS_MAX = 1000,
    STACK_MIN = 64,
    PROTOCOL_MAX = 5,
    RUN_MAX = 999, /**< Frames of a stack that is read in one go; longer ones come in batches. */
};

typedef struct machine {
    alloti_source *source;
    const alloti_progress *progress;
    alloti_store *store;

    const uint8_t *base;    /**< The source's cursor. */
    const uint8_t *cursor;  /**< Next byte. */
    const uint8_t *end;     /**< End of the bytes in view. */
    uint64_t base_offset;   /**< Offset of `base`. */
    bool has_source_failed; /**< Its message names a place already. */
    const uint8_t *opcode;  /**< The present opcode; stays in view until the next one. */

    alloti_value *stack;
    uint64_t top; /**< Values on the stack. */
    uint64_t stack_capacity;
    uint64_t marks[MARKS_MAX]; /**< Heights of the stack at the marks that are open. */
    uint64_t mark_count;
    alloti_value *memo; /**< 0 where nothing was stored. */
    uint64_t memo_size; /**< Slots below which all are initialised. */
    uint64_t memo_capacity;
    uint64_t memo_used; /**< Slots that are not 0. */

    uint32_t run[RUN_MAX]; /**< Frames of a stack that is being read. */
} machine;

typedef struct opcode_info {
    const char *name;
    pickle_class kind;
} opcode_info;

static const opcode_info OPCODES[UINT8_MAX + 1] = {
#define OPCODE_INFO(name, byte, kind) [byte] = {#name, PICKLE_##kind},
    PICKLE_OPS(OPCODE_INFO)
#undef OPCODE_INFO
};

static const char *opcode_name(const machine *m)
{
    return OPCODES[*m->opcode].name;
}

/* A failure's text gets the place of the present opcode in front. */
static allot_status fail_here(const machine *m, allot_status status)
{
    return alloti_fail_prefix(status, "byte %" PRIu64 ": ",
                              m->base_offset + (uint64_t)(m->opcode - m->base));
}

static allot_status fail_opcode(const machine *m, const char *text)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "opcode %s %s", opcode_name(m), text);
}

/* Give back what lies before `keep` and bring `want` bytes from there into view, or what is left.
 */
static allot_status refill(machine *m, const uint8_t *keep, size_t want)
{
    uint64_t done = 0;
    uint64_t total = 0;
    alloti_source_progress(m->source, &done, &total);
    allot_status status = alloti_progress_tell(m->progress, done, total);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const size_t ahead = (size_t)(m->cursor - keep);
    alloti_source_consume(m->source, (size_t)(keep - m->base));
    const uint8_t *data = NULL;
    size_t available = 0;
    const size_t size = want < SLICE ? SLICE : want;
    status = alloti_source_fill(m->source, size, &data, &available);
    if (status != ALLOT_STATUS_OK) {
        m->has_source_failed = true;
        return status;
    }
    m->base_offset = alloti_source_offset(m->source);
    m->base = data;
    m->opcode = data;
    m->cursor = data + ahead;
    m->end = data + (available < size ? available : size);
    return ALLOT_STATUS_OK;
}

/* `size` bytes of the present opcode's argument come into view at the cursor. */
static allot_status need(machine *m, uint64_t size)
{
    if ((uint64_t)(m->end - m->cursor) >= size) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t ahead = (uint64_t)(m->cursor - m->opcode);
    if (size <= SIZE_MAX / 2) {
        const allot_status status = refill(m, m->opcode, (size_t)(ahead + size));
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return (uint64_t)(m->end - m->cursor) >= size
               ? ALLOT_STATUS_OK
               : fail_opcode(m, "needs more bytes than the file has");
}

/* Little-endian number of `size` bytes (at most 8) at the cursor, which moves on. */
static allot_status take_number(machine *m, size_t size, uint64_t *out)
{
    const allot_status status = need(m, size);
    if (status == ALLOT_STATUS_OK) {
        uint64_t number = 0;
        for (size_t i = 0; i < size; i++) {
            number |= (uint64_t)m->cursor[i] << (8 * i);
        }
        m->cursor += size;
        *out = number;
    }
    return status;
}

static allot_status push(machine *m, alloti_value value)
{
    if (m->top == m->stack_capacity) {
        const allot_status status =
            alloti_array_reserve(&m->stack, &m->stack_capacity, m->top + 1, sizeof *m->stack);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    m->stack[m->top++] = value;
    return ALLOT_STATUS_OK;
}

/* Height of the stack that opcodes may not go below: that of the innermost mark. */
static uint64_t stack_floor(const machine *m)
{
    return m->mark_count == 0 ? 0 : m->marks[m->mark_count - 1];
}

static allot_status require_values(const machine *m, uint64_t count)
{
    return m->top - stack_floor(m) >= count ? ALLOT_STATUS_OK
                                            : fail_opcode(m, "finds too few values on the stack");
}

/* Close the innermost mark; the values above it begin at *from. */
static allot_status pop_mark(machine *m, uint64_t *from)
{
    if (m->mark_count == 0) {
        return fail_opcode(m, "finds no mark on the stack");
    }
    *from = m->marks[--m->mark_count];
    return ALLOT_STATUS_OK;
}

/* The only place where the container in a stack slot may be changed. */
static alloti_value *slot_cell(machine *m, uint64_t slot)
{
    const alloti_value value = m->stack[slot];
    return alloti_value_get_type(value) == ALLOTI_VALUE_REF ? &m->memo[alloti_value_payload(value)]
                                                            : &m->stack[slot];
}

/* The values from `from` up are put into a container. */
static allot_status use_values(machine *m, uint64_t from)
{
    for (uint64_t i = from; i < m->top; i++) {
        alloti_value *const cell = slot_cell(m, i);
        if (alloti_value_is_container(*cell)) {
            const allot_status status = alloti_store_use(m->store, cell);
            if (status != ALLOT_STATUS_OK) {
                return status;
            }
        }
        m->stack[i] = *cell;
    }
    return ALLOT_STATUS_OK;
}

static allot_status memo_grow(machine *m, uint64_t index)
{
    /* Picklers number what they store from 0 (or 1), so an index beyond the bytes read is a trap.
     */
    if (index > m->base_offset + (uint64_t)(m->opcode - m->base)) {
        return fail_opcode(m, "has a memo index that no writer would use here");
    }
    const allot_status status =
        alloti_array_reserve(&m->memo, &m->memo_capacity, index + 1, sizeof *m->memo);
    if (status == ALLOT_STATUS_OK) {
        memset(m->memo + m->memo_size, 0, (index + 1 - m->memo_size) * sizeof *m->memo);
        m->memo_size = index + 1;
    }
    return status;
}

/* Store the topmost value; a container moves into the memo and leaves a reference. */
static allot_status memo_put(machine *m, uint64_t index)
{
    allot_status status = require_values(m, 1);
    if (status == ALLOT_STATUS_OK && index >= m->memo_size) {
        status = memo_grow(m, index);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (m->memo[index] != 0) {
        return fail_opcode(m, "stores into a memo slot that is taken");
    }
    alloti_value *const slot = &m->stack[m->top - 1];
    m->memo[index] = *slot;
    m->memo_used++;
    if (alloti_value_is_container(*slot)) {
        *slot = alloti_value_make(ALLOTI_VALUE_REF, index);
    }
    return ALLOT_STATUS_OK;
}

static allot_status memo_get(machine *m, uint64_t index)
{
    if (index >= m->memo_size || m->memo[index] == 0) {
        return fail_opcode(m, "asks for a memo slot that was never stored");
    }
    const alloti_value value = m->memo[index];
    return push(m, alloti_value_is_container(value) ? alloti_value_make(ALLOTI_VALUE_REF, index)
                                                    : value);
}

static allot_status op_memo_put(machine *m, size_t size)
{
    uint64_t index = 0;
    const allot_status status = take_number(m, size, &index);
    return status == ALLOT_STATUS_OK ? memo_put(m, index) : status;
}

static allot_status op_memo_get(machine *m, size_t size)
{
    uint64_t index = 0;
    const allot_status status = take_number(m, size, &index);
    return status == ALLOT_STATUS_OK ? memo_get(m, index) : status;
}

/*
 * A list of frames that were all seen before, which is what most of a file consists of:
 * MARK, then BINGET or LONG_BINGET for each frame, then APPENDS. The frames go straight into the
 * stack. Returns false, having done nothing, where the bytes are anything else.
 */
static bool run_of_frames(machine *m, uint32_t *count)
{
    const uint8_t *p = m->cursor;
    const uint8_t *const last = m->end - 6; /* An opcode with its argument, and one more byte. */
    uint32_t n = 0;
    while (p <= last && n < RUN_MAX) {
        uint64_t index = 0;
        if (*p == PICKLE_OP_LONG_BINGET) {
            index =
                (uint32_t)p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;
            p += 5;
        } else if (*p == PICKLE_OP_BINGET) {
            index = p[1];
            p += 2;
        } else {
            break;
        }
        const alloti_value value = index < m->memo_size ? m->memo[index] : 0;
        if (alloti_value_get_type(value) != ALLOTI_VALUE_FRAME) {
            return false;
        }
        m->run[n++] = (uint32_t)alloti_value_payload(value);
    }
    if (n == 0 || p > last || *p != PICKLE_OP_APPENDS) {
        return false;
    }
    m->cursor = p + 1;
    *count = n;
    return true;
}

static allot_status op_mark(machine *m)
{
    if (m->top > stack_floor(m)) {
        alloti_value *const cell = slot_cell(m, m->top - 1);
        uint32_t count = 0;
        if (*cell == alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0) && m->end - m->cursor > 6 &&
            run_of_frames(m, &count)) {
            return alloti_store_extend_frames(m->store, cell, m->run, count);
        }
    }
    if (m->mark_count == MARKS_MAX) {
        return fail_opcode(m, "opens more levels than any snapshot has");
    }
    m->marks[m->mark_count++] = m->top;
    return ALLOT_STATUS_OK;
}

static allot_status op_pop(machine *m)
{
    if (m->top > stack_floor(m)) {
        m->top--;
        return ALLOT_STATUS_OK;
    }
    uint64_t from = 0;
    return m->mark_count == 0 ? fail_opcode(m, "finds too few values on the stack")
                              : pop_mark(m, &from);
}

static allot_status op_pop_mark(machine *m)
{
    return pop_mark(m, &m->top);
}

static allot_status op_dup(machine *m)
{
    const allot_status status = require_values(m, 1);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const alloti_value value = m->stack[m->top - 1];
    return alloti_value_is_container(value) ? fail_opcode(m, "doubles a list or dict")
                                            : push(m, value);
}

/* Values above `from` become items of the list below them. */
static allot_status append_values(machine *m, uint64_t from)
{
    if (from <= stack_floor(m)) {
        return fail_opcode(m, "finds too few values on the stack");
    }
    allot_status status = use_values(m, from);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_extend_list(m->store, slot_cell(m, from - 1), m->stack + from,
                                          m->top - from);
    }
    m->top = from;
    return status;
}

static allot_status set_values(machine *m, uint64_t from)
{
    const uint64_t count = m->top - from;
    if (from <= stack_floor(m)) {
        return fail_opcode(m, "finds too few values on the stack");
    }
    if (count % 2 != 0) {
        return fail_opcode(m, "has a key without a value");
    }
    allot_status status = use_values(m, from);
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_store_extend_dict(m->store, slot_cell(m, from - 1), m->stack + from, count / 2);
    }
    m->top = from;
    return status;
}

static allot_status op_append(machine *m)
{
    const allot_status status = require_values(m, 2);
    return status == ALLOT_STATUS_OK ? append_values(m, m->top - 1) : status;
}

static allot_status op_appends(machine *m)
{
    uint64_t from = 0;
    const allot_status status = pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? append_values(m, from) : status;
}

static allot_status op_setitem(machine *m)
{
    const allot_status status = require_values(m, 3);
    return status == ALLOT_STATUS_OK ? set_values(m, m->top - 2) : status;
}

static allot_status op_setitems(machine *m)
{
    uint64_t from = 0;
    const allot_status status = pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? set_values(m, from) : status;
}

/* LIST and DICT: the container is made after what is in it. */
static allot_status op_build(machine *m, alloti_value_type type)
{
    uint64_t from = 0;
    allot_status status = pop_mark(m, &from);
    if (status == ALLOT_STATUS_OK && type == ALLOTI_VALUE_NEW_DICT && (m->top - from) % 2 != 0) {
        status = fail_opcode(m, "has a key without a value");
    }
    if (status == ALLOT_STATUS_OK) {
        status = use_values(m, from);
    }
    alloti_value cell = alloti_value_make(type, 0);
    if (status == ALLOT_STATUS_OK) {
        status =
            type == ALLOTI_VALUE_NEW_DICT
                ? alloti_store_extend_dict(m->store, &cell, m->stack + from, (m->top - from) / 2)
                : alloti_store_extend_list(m->store, &cell, m->stack + from, m->top - from);
    }
    m->top = from;
    return status == ALLOT_STATUS_OK ? push(m, cell) : status;
}

static allot_status make_tuple(machine *m, uint64_t from)
{
    alloti_value tuple = 0;
    allot_status status = use_values(m, from);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_tuple(m->store, m->stack + from, m->top - from, &tuple);
    }
    m->top = from;
    return status == ALLOT_STATUS_OK ? push(m, tuple) : status;
}

static allot_status op_tuple(machine *m)
{
    uint64_t from = 0;
    const allot_status status = pop_mark(m, &from);
    return status == ALLOT_STATUS_OK ? make_tuple(m, from) : status;
}

static allot_status op_tuple_n(machine *m, uint64_t count)
{
    const allot_status status = require_values(m, count);
    return status == ALLOT_STATUS_OK ? make_tuple(m, m->top - count) : status;
}

static allot_status push_number(machine *m, uint64_t magnitude, bool is_negative)
{
    alloti_value value = 0;
    const allot_status status = alloti_store_integer(m->store, magnitude, is_negative, &value);
    return status == ALLOT_STATUS_OK ? push(m, value) : status;
}

static allot_status push_signed(machine *m, int64_t number)
{
    return push_number(m, number < 0 ? -(uint64_t)number : (uint64_t)number, number < 0);
}

static allot_status op_unsigned(machine *m, size_t size)
{
    uint64_t number = 0;
    const allot_status status = take_number(m, size, &number);
    return status == ALLOT_STATUS_OK ? push_number(m, number, false) : status;
}

static allot_status op_binint(machine *m)
{
    uint64_t number = 0;
    const allot_status status = take_number(m, 4, &number);
    return status == ALLOT_STATUS_OK ? push_signed(m, (int32_t)(uint32_t)number) : status;
}

/* Two's complement, little-endian, any length; what needs more than 64 bits is kept as OTHER. */
static allot_status op_long(machine *m, size_t length_size)
{
    uint64_t length = 0;
    allot_status status = take_number(m, length_size, &length);
    if (status == ALLOT_STATUS_OK && length_size == 4 && length > INT32_MAX) {
        status = fail_opcode(m, "has a negative length");
    }
    if (status == ALLOT_STATUS_OK) {
        status = need(m, length);
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
                    : push(m, alloti_value_make(ALLOTI_VALUE_OTHER, 0));
}

static allot_status op_float(machine *m)
{
    allot_status status = need(m, sizeof(uint64_t));
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
    return status == ALLOT_STATUS_OK ? push(m, value) : status;
}

/* Text or bytes after a length of `length_size` bytes. */
static allot_status op_text(machine *m, size_t length_size, bool is_string)
{
    uint64_t length = 0;
    allot_status status = take_number(m, length_size, &length);
    if (status == ALLOT_STATUS_OK) {
        status = need(m, length);
    }
    alloti_value value = alloti_value_make(ALLOTI_VALUE_OTHER, 0);
    if (status == ALLOT_STATUS_OK && is_string) {
        status = alloti_store_string(m->store, (const char *)m->cursor, (size_t)length, &value);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    m->cursor += length;
    return push(m, value);
}

static allot_status op_proto(machine *m)
{
    uint64_t version = 0;
    const allot_status status = take_number(m, 1, &version);
    if (status == ALLOT_STATUS_OK && version > PROTOCOL_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "pickle protocol %" PRIu64 "; the protocols 2 to %d are read", version,
                           PROTOCOL_MAX);
    }
    return status;
}

/* The length of a frame only helps readers of streams. */
static allot_status op_frame(machine *m)
{
    uint64_t length = 0;
    return take_number(m, sizeof length, &length);
}

static allot_status op_refused(const machine *m)
{
    switch (OPCODES[*m->opcode].kind) {
    case PICKLE_CODE:
        return fail_opcode(m, "is refused: it could run code");
    case PICKLE_TEXT:
        return fail_opcode(m,
                           "is refused: it belongs to protocol 0; the protocols 2 to 5 are read");
    case PICKLE_ABSENT:
        return fail_opcode(m, "is refused: no snapshot holds a set");
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT, "0x%02x is no opcode of a pickle", *m->opcode);
    }
}

static allot_status obey(machine *m)
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
        return memo_put(m, m->memo_used);
    case PICKLE_OP_EMPTY_LIST:
        return push(m, alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0));
    case PICKLE_OP_EMPTY_DICT:
        return push(m, alloti_value_make(ALLOTI_VALUE_NEW_DICT, 0));
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
        return push(m, alloti_value_make(ALLOTI_VALUE_NONE, 0));
    case PICKLE_OP_NEWTRUE:
        return push(m, alloti_value_make(ALLOTI_VALUE_BOOL, 1));
    case PICKLE_OP_NEWFALSE:
        return push(m, alloti_value_make(ALLOTI_VALUE_BOOL, 0));
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

static allot_status finish(machine *m)
{
    allot_status status = require_values(m, 1);
    if (status == ALLOT_STATUS_OK && (m->top != 1 || m->mark_count != 0)) {
        status = fail_opcode(m, "leaves values on the stack");
    }
    if (status == ALLOT_STATUS_OK) {
        status = use_values(m, 0);
    }
    return status == ALLOT_STATUS_OK ? alloti_store_finish(m->store, m->stack[0]) : status;
}

static allot_status machine_run(machine *m)
{
    for (;;) {
        if (m->cursor == m->end) {
            const allot_status status = refill(m, m->cursor, 1);
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
    machine *const m = calloc(1, sizeof *m);
    if (m == NULL) {
        return alloti_fail_memory(sizeof *m);
    }
    m->source = source;
    m->progress = progress;
    allot_status status = alloti_store_create(builder, &m->store);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&m->stack, &m->stack_capacity, STACK_MIN, sizeof *m->stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = refill(m, m->cursor, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = machine_run(m);
    }
    if (status == ALLOT_STATUS_FORMAT && !m->has_source_failed) {
        status = fail_here(m, status);
    }
    alloti_store_destroy(m->store);
    free(m->stack);
    free(m->memo);
    free(m);
    return status;
}

const alloti_reader alloti_reader_torch_pickle = {
    .format = ALLOT_TRACE_FORMAT_TORCH_PICKLE, .detect = detect, .read = read_pickle};
