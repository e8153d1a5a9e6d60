/* SPDX-License-Identifier: MIT */
/**
 * The opcodes of Python's pickle format, protocols 0 to 5: PICKLE_OPS(X) calls
 * X(name, byte, class) for each. The class says what the reader does with it.
 */
#ifndef ALLOTI_TRACE_PICKLE_OPS_H
#define ALLOTI_TRACE_PICKLE_OPS_H

typedef enum pickle_class {
    PICKLE_UNKNOWN, /**< No opcode. */
    PICKLE_DATA,    /**< Plain data: obeyed. */
    PICKLE_CODE,    /**< Could import, call or look something up: refused. */
    PICKLE_TEXT,    /**< Of protocols 0 and 1 only: refused. */
    PICKLE_ABSENT,  /**< Data of a kind that no snapshot has: refused. */
} pickle_class;

/* clang-format off */
#define PICKLE_OPS(X)                     \
    X(MARK,             0x28, DATA)       \
    X(EMPTY_TUPLE,      0x29, DATA)       \
    X(STOP,             0x2e, DATA)       \
    X(POP,              0x30, DATA)       \
    X(POP_MARK,         0x31, DATA)       \
    X(DUP,              0x32, DATA)       \
    X(BINBYTES,         0x42, DATA)       \
    X(SHORT_BINBYTES,   0x43, DATA)       \
    X(FLOAT,            0x46, TEXT)       \
    X(BINFLOAT,         0x47, DATA)       \
    X(INT,              0x49, TEXT)       \
    X(BININT,           0x4a, DATA)       \
    X(BININT1,          0x4b, DATA)       \
    X(LONG,             0x4c, TEXT)       \
    X(BININT2,          0x4d, DATA)       \
    X(NONE,             0x4e, DATA)       \
    X(PERSID,           0x50, CODE)       \
    X(BINPERSID,        0x51, CODE)       \
    X(REDUCE,           0x52, CODE)       \
    X(STRING,           0x53, TEXT)       \
    X(BINSTRING,        0x54, DATA)       \
    X(SHORT_BINSTRING,  0x55, DATA)       \
    X(UNICODE,          0x56, TEXT)       \
    X(BINUNICODE,       0x58, DATA)       \
    X(EMPTY_LIST,       0x5d, DATA)       \
    X(APPEND,           0x61, DATA)       \
    X(BUILD,            0x62, CODE)       \
    X(GLOBAL,           0x63, CODE)       \
    X(DICT,             0x64, DATA)       \
    X(APPENDS,          0x65, DATA)       \
    X(GET,              0x67, TEXT)       \
    X(BINGET,           0x68, DATA)       \
    X(INST,             0x69, CODE)       \
    X(LONG_BINGET,      0x6a, DATA)       \
    X(LIST,             0x6c, DATA)       \
    X(OBJ,              0x6f, CODE)       \
    X(PUT,              0x70, TEXT)       \
    X(BINPUT,           0x71, DATA)       \
    X(LONG_BINPUT,      0x72, DATA)       \
    X(SETITEM,          0x73, DATA)       \
    X(TUPLE,            0x74, DATA)       \
    X(SETITEMS,         0x75, DATA)       \
    X(EMPTY_DICT,       0x7d, DATA)       \
    X(PROTO,            0x80, DATA)       \
    X(NEWOBJ,           0x81, CODE)       \
    X(EXT1,             0x82, CODE)       \
    X(EXT2,             0x83, CODE)       \
    X(EXT4,             0x84, CODE)       \
    X(TUPLE1,           0x85, DATA)       \
    X(TUPLE2,           0x86, DATA)       \
    X(TUPLE3,           0x87, DATA)       \
    X(NEWTRUE,          0x88, DATA)       \
    X(NEWFALSE,         0x89, DATA)       \
    X(LONG1,            0x8a, DATA)       \
    X(LONG4,            0x8b, DATA)       \
    X(SHORT_BINUNICODE, 0x8c, DATA)       \
    X(BINUNICODE8,      0x8d, DATA)       \
    X(BINBYTES8,        0x8e, DATA)       \
    X(EMPTY_SET,        0x8f, ABSENT)     \
    X(ADDITEMS,         0x90, ABSENT)     \
    X(FROZENSET,        0x91, ABSENT)     \
    X(NEWOBJ_EX,        0x92, CODE)       \
    X(STACK_GLOBAL,     0x93, CODE)       \
    X(MEMOIZE,          0x94, DATA)       \
    X(FRAME,            0x95, DATA)       \
    X(BYTEARRAY8,       0x96, DATA)       \
    X(NEXT_BUFFER,      0x97, CODE)       \
    X(READONLY_BUFFER,  0x98, CODE)
/* clang-format on */

typedef enum pickle_op {
#define PICKLE_OP_ENUM(name, byte, kind) PICKLE_OP_##name = (byte),
    PICKLE_OPS(PICKLE_OP_ENUM)
#undef PICKLE_OP_ENUM
} pickle_op;

#endif /* ALLOTI_TRACE_PICKLE_OPS_H */
