/* SPDX-License-Identifier: MIT */
#include "trace/pickle_out.h"

#include <string.h>

#include "trace/pickle_ops.h"

enum { PROTOCOL = 4, LIST_BATCH = 1000 };

static void put_op(alloti_pickle *pickle, pickle_op op)
{
    const uint8_t byte = (uint8_t)op;
    alloti_output_put(pickle->output, &byte, 1);
}

/* An opcode and a number of `size` bytes, the lowest first. */
static void put_op_number(alloti_pickle *pickle, pickle_op op, uint64_t value, size_t size)
{
    uint8_t bytes[9] = {(uint8_t)op};
    for (size_t i = 0; i < size; i++) {
        bytes[1 + i] = (uint8_t)(value >> (8 * i));
    }
    alloti_output_put(pickle->output, bytes, 1 + size);
}

void alloti_pickle_begin(alloti_pickle *pickle, alloti_output *output)
{
    *pickle = (alloti_pickle){.output = output};
    put_op_number(pickle, PICKLE_OP_PROTO, PROTOCOL, 1);
}

void alloti_pickle_end(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_STOP);
}

void alloti_pickle_list_begin(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_EMPTY_LIST);
    put_op(pickle, PICKLE_OP_MARK);
}

void alloti_pickle_list_item(alloti_pickle *pickle, uint64_t index)
{
    if (index != 0 && index % LIST_BATCH == 0) {
        put_op(pickle, PICKLE_OP_APPENDS);
        put_op(pickle, PICKLE_OP_MARK);
    }
}

void alloti_pickle_list_end(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_APPENDS);
}

void alloti_pickle_empty_list(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_EMPTY_LIST);
}

void alloti_pickle_dict_begin(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_EMPTY_DICT);
    put_op(pickle, PICKLE_OP_MARK);
}

void alloti_pickle_dict_end(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_SETITEMS);
}

void alloti_pickle_none(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_NONE);
}

void alloti_pickle_bool(alloti_pickle *pickle, bool value)
{
    put_op(pickle, value ? PICKLE_OP_NEWTRUE : PICKLE_OP_NEWFALSE);
}

/* LONG1: the length in bytes, then two's complement; `sign` is what stands above 64 bits. */
static void put_long(alloti_pickle *pickle, uint64_t value, uint8_t sign)
{
    uint8_t bytes[2 + 9] = {PICKLE_OP_LONG1, 8};
    for (size_t i = 0; i < 8; i++) {
        bytes[2 + i] = (uint8_t)(value >> (8 * i));
    }
    bytes[2 + 8] = sign;
    if ((bytes[2 + 7] ^ sign) >> 7 != 0) { /* eight bytes would have the other sign */
        bytes[1] = 9;
    }
    alloti_output_put(pickle->output, bytes, 2u + bytes[1]);
}

void alloti_pickle_u64(alloti_pickle *pickle, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_op_number(pickle, PICKLE_OP_BININT1, value, 1);
    } else if (value <= UINT16_MAX) {
        put_op_number(pickle, PICKLE_OP_BININT2, value, 2);
    } else if (value <= INT32_MAX) {
        put_op_number(pickle, PICKLE_OP_BININT, value, 4);
    } else {
        put_long(pickle, value, 0);
    }
}

void alloti_pickle_i64(alloti_pickle *pickle, int64_t value)
{
    if (value >= 0) {
        alloti_pickle_u64(pickle, (uint64_t)value);
    } else if (value >= INT32_MIN) {
        put_op_number(pickle, PICKLE_OP_BININT, (uint64_t)value, 4);
    } else {
        put_long(pickle, (uint64_t)value, UINT8_MAX);
    }
}

void alloti_pickle_double(alloti_pickle *pickle, double value)
{
    uint64_t bits = 0;
    uint8_t bytes[9] = {PICKLE_OP_BINFLOAT};
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < 8; i++) { /* the highest byte first */
        bytes[1 + i] = (uint8_t)(bits >> (8 * (7 - i)));
    }
    alloti_output_put(pickle->output, bytes, sizeof bytes);
}

void alloti_pickle_string(alloti_pickle *pickle, const char *text, size_t length)
{
    if (length <= UINT8_MAX) {
        put_op_number(pickle, PICKLE_OP_SHORT_BINUNICODE, length, 1);
    } else if (length <= UINT32_MAX) {
        put_op_number(pickle, PICKLE_OP_BINUNICODE, length, 4);
    } else {
        put_op_number(pickle, PICKLE_OP_BINUNICODE8, length, 8);
    }
    alloti_output_put(pickle->output, text, length);
}

void alloti_pickle_pair(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_TUPLE2);
}

uint32_t alloti_pickle_remember(alloti_pickle *pickle)
{
    put_op(pickle, PICKLE_OP_MEMOIZE);
    return pickle->memo_count++;
}

void alloti_pickle_recall(alloti_pickle *pickle, uint32_t number)
{
    if (number <= UINT8_MAX) {
        put_op_number(pickle, PICKLE_OP_BINGET, number, 1);
    } else {
        put_op_number(pickle, PICKLE_OP_LONG_BINGET, number, 4);
    }
}
