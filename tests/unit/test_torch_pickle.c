/* SPDX-License-Identifier: MIT */
/* The pickle machine: each family of opcodes, each refusal, limits, truncation, failing memory. */
#include <stdio.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/pickle_writer.h"

static pickle_writer w;

typedef struct opcode {
    uint8_t byte;
    const char *name;
} opcode;

/* PROTO 4, then the opcode at byte 2. */
static void refuse_opcode(const opcode *op, const char *why)
{
    char wanted[160];
    pickle_begin(&w);
    pickle_ops(&w, "}}(");
    pickle_bytes(&w, &op->byte, 1);
    pickle_ops(&w, "os\nsystem\n.");
    snprintf(wanted, sizeof wanted, "test: byte 5: opcode %s %s", op->name, why);
    pickle_check_refused(&w, wanted);
}

static void opcodes_that_could_run_code_are_refused_by_name_and_place(void)
{
    static const opcode OPS[] = {
        {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
        {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
        {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {0x82, "EXT1"},
        {0x83, "EXT2"},     {0x84, "EXT4"},         {'P', "PERSID"},
        {'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
    };
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        refuse_opcode(&OPS[i], "is refused: it could run code");
    }
}

static void opcodes_of_protocol_0_are_refused(void)
{
    static const opcode OPS[] = {{'F', "FLOAT"},   {'I', "INT"}, {'L', "LONG"}, {'S', "STRING"},
                                 {'V', "UNICODE"}, {'g', "GET"}, {'p', "PUT"}};
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        refuse_opcode(&OPS[i], "is refused: it belongs to protocol 0");
    }
}

static void sets_are_refused(void)
{
    static const opcode OPS[] = {{0x8f, "EMPTY_SET"}, {0x90, "ADDITEMS"}, {0x91, "FROZENSET"}};
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        refuse_opcode(&OPS[i], "is refused: no snapshot holds a set");
    }
}

static void every_other_byte_is_no_opcode(void)
{
    static const uint8_t BYTES[] = {0x00, 0x01, 0x20, 'A', 'z', 0x7f, 0x99, 0xff};
    for (size_t i = 0; i < sizeof BYTES; i++) {
        char wanted[64];
        pickle_begin(&w);
        pickle_bytes(&w, &BYTES[i], 1);
        snprintf(wanted, sizeof wanted, "test: byte 2: 0x%02x is no opcode", BYTES[i]);
        pickle_check_refused(&w, wanted);
    }
}

static void protocols_2_to_5_are_read(void)
{
    for (uint8_t version = 2; version <= 6; version++) {
        pickle_begin_entries(&w);
        pickle_open_entry(&w, "alloc", 4096, 512);
        pickle_ops(&w, "u");
        pickle_end_entries(&w);
        w.data[1] = version;
        if (version == 6) {
            pickle_check_refused(&w, "byte 0: pickle protocol 6; the protocols 2 to 5 are read");
            return;
        }
        allot_trace *trace = NULL;
        CHECK_OK(pickle_read(&w, &trace));
        allot_trace_destroy(trace);
    }
}

/* One entry whose value of `key` is these bytes. */
static void write_value(const char *key, const void *value, size_t size)
{
    pickle_begin_entries(&w);
    pickle_open_entry(&w, "alloc", 4096, 512);
    pickle_text(&w, key);
    pickle_bytes(&w, value, size);
    pickle_ops(&w, "u");
    pickle_end_entries(&w);
}

static allot_trace *read_events(allot_events *events)
{
    allot_trace *trace = NULL;
    if (CHECK_OK(pickle_read(&w, &trace))) {
        allot_trace_get_events(trace, 0, events);
    } else {
        *events = (allot_events){0};
    }
    return trace;
}

typedef struct number_case {
    const char *bytes;
    size_t size;
    uint64_t value;
} number_case;

#define BYTES(text) (text), sizeof(text) - 1

static void integers_of_every_opcode_are_read(void)
{
    static const number_case CASES[] = {
        {BYTES("K\x00"), 0},
        {BYTES("K\xff"), 255},
        {BYTES("M\x34\x12"), 0x1234},
        {BYTES("J\x78\x56\x34\x12"), 0x12345678},
        {BYTES("\x8a\x00"), 0},
        {BYTES("\x8a\x01\x7f"), 127},
        {BYTES("\x8a\x02\xff\x00"), 255},
        {BYTES("\x8a\x06\x00\x00\x00\x00\xf0\x7f"), UINT64_C(0x7ff000000000)},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x01"), UINT64_C(0x01ffffffffffffff)},
        {BYTES("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x02"), UINT64_C(0x0200000000000000)},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), INT64_MAX},
        {BYTES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"), UINT64_C(1) << 63},
        {BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"), UINT64_MAX},
        {BYTES("\x8a\x0b\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 1},
        {BYTES("\x8b\x03\x00\x00\x00\x01\x02\x03"), 0x030201},
        {BYTES("\x8b\x09\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00"), UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        write_value("addr", CASES[i].bytes, CASES[i].size);
        allot_events events;
        allot_trace *const trace = read_events(&events);
        REQUIRE(events.count == 1);
        CHECK_EQ(events.addr[0], CASES[i].value);
        allot_trace_destroy(trace);
    }
}

static void negative_and_huge_integers_are_refused_as_sizes(void)
{
    write_value("size", BYTES("J\xff\xff\xff\xff"));
    pickle_check_refused(&w, "\"size\" of a trace entry is negative");
    write_value("size", BYTES("\x8a\x01\x80"));
    pickle_check_refused(&w, "\"size\" of a trace entry is negative");
    write_value("size", BYTES("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"));
    pickle_check_refused(&w, "\"size\" of a trace entry is negative");
    write_value("size", BYTES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"));
    pickle_check_refused(&w, "\"size\" of a trace entry is bytes or a huge integer");
    write_value("size", BYTES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80"));
    pickle_check_refused(&w, "\"size\" of a trace entry is bytes or a huge integer");
    write_value("size", BYTES("\x8b\xff\xff\xff\xff\x00"));
    pickle_check_refused(&w, "opcode LONG4 has a negative length");
}

static void texts_of_every_opcode_are_read(void)
{
    static const number_case CASES[] = {
        {BYTES("\x8c\x03one"), 3},
        {BYTES("X\x03\x00\x00\x00one"), 3},
        {BYTES("\x8d\x03\x00\x00\x00\x00\x00\x00\x00one"), 3},
        {BYTES("U\x03one"), 3},
        {BYTES("T\x03\x00\x00\x00one"), 3},
        {BYTES("N"), 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        write_value("user_metadata", CASES[i].bytes, CASES[i].size);
        allot_events events;
        allot_trace *const trace = read_events(&events);
        REQUIRE(events.count == 1);
        const uint32_t id = events.metadata == NULL ? ALLOT_NONE : events.metadata[0];
        CHECK_STR(allot_trace_string(trace, id, NULL), CASES[i].value == 0 ? "" : "one");
        allot_trace_destroy(trace);
    }
}

static void bytes_bools_and_floats_are_no_texts(void)
{
    static const number_case CASES[] = {
        {BYTES("C\x03one"), 0},
        {BYTES("B\x03\x00\x00\x00one"), 0},
        {BYTES("\x8e\x03\x00\x00\x00\x00\x00\x00\x00one"), 0},
        {BYTES("\x96\x03\x00\x00\x00\x00\x00\x00\x00one"), 0},
        {BYTES("\x88"), 0},
        {BYTES("\x89"), 0},
        {BYTES("G\x3f\xf0\x00\x00\x00\x00\x00\x00"), 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        write_value("user_metadata", CASES[i].bytes, CASES[i].size);
        pickle_check_refused(&w, "\"user_metadata\" of a trace entry is ");
        /* Where nobody asks for a text, they are allowed. */
        write_value("unheard of", CASES[i].bytes, CASES[i].size);
        allot_events events;
        allot_trace_destroy(read_events(&events));
    }
}

static void pools_are_pairs_of_any_kind(void)
{
    static const number_case GOOD[] = {
        {BYTES("K\x01K\x02\x86"), 0},
        {BYTES("(K\x01K\x02t"), 0},
        {BYTES("](K\x01K\x02"
               "e"),
         0},
        {BYTES("]K\x01"
               "aK\x02"
               "a"),
         0},
        {BYTES("(K\x01K\x02l"), 0},
    };
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        write_value("pool_id", GOOD[i].bytes, GOOD[i].size);
        allot_events events;
        allot_trace *const trace = read_events(&events);
        REQUIRE(events.count == 1 && events.pool[0] != ALLOT_NONE);
        CHECK_EQ(allot_trace_pool(trace, events.pool[0]).first, 1);
        CHECK_EQ(allot_trace_pool(trace, events.pool[0]).second, 2);
        allot_trace_destroy(trace);
    }
    static const number_case BAD[] = {
        {BYTES("K\x01\x85"), 0}, {BYTES("K\x01K\x02K\x03\x87"), 0},        {BYTES(")"), 0},
        {BYTES("NN\x86"), 0},    {BYTES("K\x01J\xff\xff\xff\xff\x86"), 0}, {BYTES("K\x05"), 0}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        write_value("pool_id", BAD[i].bytes, BAD[i].size);
        pickle_check_refused(&w, "\"pool_id\" of a trace entry is ");
    }
}

static void containers_can_be_built_from_the_stack_or_one_by_one(void)
{
    /* DICT from a mark; a list by APPEND; a dict by SETITEM. */
    pickle_begin(&w);
    pickle_text(&w, "device_traces");
    pickle_ops(&w, "0(");
    pickle_text(&w, "device_traces");
    pickle_ops(&w, "]](");
    pickle_text_pair(&w, "action", "alloc");
    pickle_pair(&w, "addr", 512);
    pickle_pair(&w, "size", 100);
    pickle_ops(&w, "da}");
    pickle_text_pair(&w, "action", "alloc");
    pickle_ops(&w, "s");
    pickle_pair(&w, "addr", 1024);
    pickle_ops(&w, "s");
    pickle_pair(&w, "size", 200);
    pickle_ops(&w, "saad.");
    allot_events events;
    allot_trace *const trace = read_events(&events);
    REQUIRE(events.count == 2);
    CHECK_EQ(events.addr[1], 1024);
    CHECK_EQ(events.size[0], 100);
    allot_trace_destroy(trace);
}

static void popped_and_doubled_values_behave_like_in_python(void)
{
    /* NONE POP; MARK NONE NONE POP_MARK; MARK POP; 512 DUP as addr and size. */
    pickle_begin_entries(&w);
    pickle_ops(&w, "N0(NN1(0}(");
    pickle_text_pair(&w, "action", "alloc");
    pickle_text(&w, "size");
    pickle_u64(&w, 512);
    pickle_ops(&w, "2");          /* action alloc size 512 512 */
    pickle_ops(&w, "0");          /* action alloc size 512 */
    pickle_pair(&w, "addr", 512); /* action alloc size 512 addr 512 */
    pickle_ops(&w, "u");
    pickle_end_entries(&w);
    allot_events events;
    allot_trace *const trace = read_events(&events);
    REQUIRE(events.count == 1);
    CHECK_EQ(events.addr[0], 512);
    allot_trace_destroy(trace);
}

static void memo_of_every_width_is_shared(void)
{
    pickle_begin_entries(&w);
    pickle_ops(&w, "}(");
    pickle_text(&w, "action");
    pickle_bytes(&w, BYTES("q\x07"));
    pickle_text(&w, "alloc");
    pickle_bytes(&w, BYTES("r\x09\x00\x00\x00"));
    pickle_pair(&w, "addr", 1);
    pickle_pair(&w, "size", 2);
    pickle_ops(&w, "u}(");
    pickle_bytes(&w, BYTES("h\x07j\x09\x00\x00\x00"));
    pickle_pair(&w, "addr", 3);
    pickle_pair(&w, "size", 4);
    pickle_ops(&w, "u");
    pickle_end_entries(&w);
    allot_events events;
    allot_trace *const trace = read_events(&events);
    REQUIRE(events.count == 2);
    CHECK_EQ(events.addr[1], 3);
    allot_trace_destroy(trace);
}

static void bad_memo_use_is_refused(void)
{
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("Nq\x00h\x01."));
    pickle_check_refused(&w, "byte 5: opcode BINGET asks for a memo slot that was never stored");
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("j\xff\xff\xff\xff."));
    pickle_check_refused(&w, "byte 2: opcode LONG_BINGET asks for a memo slot");
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("Nr\xff\xff\xff\xff."));
    pickle_check_refused(&w,
                         "byte 3: opcode LONG_BINPUT has a memo index that no writer would use");
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("Nq\x00Nq\x00."));
    pickle_check_refused(&w, "byte 6: opcode BINPUT stores into a memo slot that is taken");
}

static void too_few_values_are_refused_by_name_and_place(void)
{
    static const opcode OPS[] = {{'a', "APPEND"},  {'s', "SETITEM"},    {0x85, "TUPLE1"},
                                 {0x86, "TUPLE2"}, {0x87, "TUPLE3"},    {'0', "POP"},
                                 {'2', "DUP"},     {'.', "STOP"},       {0x94, "MEMOIZE"},
                                 {'q', "BINPUT"},  {'r', "LONG_BINPUT"}};
    static const opcode MARKED[] = {{'e', "APPENDS"}, {'u', "SETITEMS"}, {'t', "TUPLE"},
                                    {'l', "LIST"},    {'d', "DICT"},     {'1', "POP_MARK"}};
    char wanted[96];
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        pickle_begin(&w);
        pickle_bytes(&w, &OPS[i].byte, 1);
        pickle_bytes(&w, "\0\0\0\0", 4);
        snprintf(wanted, sizeof wanted, "byte 2: opcode %s finds too few values", OPS[i].name);
        pickle_check_refused(&w, wanted);
    }
    for (size_t i = 0; i < sizeof MARKED / sizeof MARKED[0]; i++) {
        pickle_begin(&w);
        pickle_ops(&w, "NN");
        pickle_bytes(&w, &MARKED[i].byte, 1);
        snprintf(wanted, sizeof wanted, "byte 4: opcode %s finds no mark", MARKED[i].name);
        pickle_check_refused(&w, wanted);
    }
}

static void values_below_a_mark_are_out_of_reach(void)
{
    static const char *const PICKLES[] = {"](a", "](Na", "}(Ns", "N(\x85",
                                          "(e",  "(u",   "](.",  "]N."};
    for (size_t i = 0; i < sizeof PICKLES / sizeof PICKLES[0]; i++) {
        pickle_begin(&w);
        pickle_ops(&w, PICKLES[i]);
        pickle_check_refused(&w, "on the stack");
    }
    pickle_begin(&w);
    pickle_ops(&w, "}(Nu.");
    pickle_check_refused(&w, "opcode SETITEMS has a key without a value");
}

static void wrong_containers_are_refused(void)
{
    pickle_begin(&w);
    pickle_ops(&w, "}(Ne.");
    pickle_check_refused(&w, "items for an empty dict, which is no list");
    pickle_begin(&w);
    pickle_ops(&w, "](NNu.");
    pickle_check_refused(&w, "keys for an empty list, which is no dict");
    pickle_begin(&w);
    pickle_ops(&w, "N(Ne.");
    pickle_check_refused(&w, "items for None, which is no list");
}

static void containers_cannot_contain_themselves(void)
{
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("]\x94h\x00"
                           "a."));
    pickle_check_refused(&w, "byte 6: a list is changed after it was put into another");
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("}\x94(K\x01h\x00u."));
    pickle_check_refused(&w, "a dict is changed after it was put into another");
    /* a = []; b = [a]; a.append(b) */
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("]\x94]\x94h\x00"
                           "ah\x00h\x01"
                           "a."));
    pickle_check_refused(&w, "a list is changed after it was put into another");
    pickle_begin(&w);
    pickle_ops(&w, "]2.");
    pickle_check_refused(&w, "opcode DUP doubles a list or dict");
}

static void records_cannot_change_after_they_are_complete(void)
{
    pickle_begin_entries(&w);
    pickle_open_entry(&w, "alloc", 1, 2);
    pickle_ops(&w, "u");
    pickle_pair(&w, "size", 3);
    pickle_ops(&w, "s");
    pickle_end_entries(&w);
    pickle_check_refused(&w, "a trace entry is changed after it was complete");
}

/* level n = [level n - 1, level n - 1]: 2^n lists for whoever follows them. */
static void sharing_multiplies_nothing(void)
{
    const uint8_t levels = 100;
    static const char *const KEYS[] = {"device_traces", "segments", "external_annotations",
                                       "categories", "unheard of"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        pickle_begin(&w);
        pickle_bytes(&w, BYTES("(]\x94")); /* They lie on the stack until POP_MARK. */
        for (uint8_t k = 0; k < levels; k++) {
            const uint8_t twice[] = {']', 0x94, '(', 'h', k, 'h', k, 'e'};
            pickle_bytes(&w, twice, sizeof twice);
        }
        pickle_ops(&w, "1}(");
        pickle_text(&w, KEYS[i]);
        const uint8_t last[] = {'h', levels, 'u', '.'};
        pickle_bytes(&w, last, sizeof last);
        allot_trace *trace = NULL;
        CHECK_EQ(pickle_read(&w, &trace), ALLOT_STATUS_FORMAT);
        allot_trace_destroy(trace);
    }
}

static void lengths_beyond_the_file_are_refused(void)
{
    static const number_case CASES[] = {
        {BYTES("X\xff\xff\xff\xff"), 0},
        {BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), 0},
        {BYTES("\x8d\x00\x00\x00\x00\x00\x00\x00\x80"), 0},
        {BYTES("\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"), 0},
        {BYTES("B\x01\x00\x00\x00"), 0},
        {BYTES("\x8a\xff\x00"), 0},
        {BYTES("\x8b\xff\xff\xff\x7f"), 0},
        {BYTES("\x8c\x02"
               "a"),
         0},
        {BYTES("G\x00\x00\x00\x00\x00\x00\x00"), 0},
        {BYTES("J\x00\x00\x00"), 0},
        {BYTES("\x95\x00\x00"), 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        pickle_begin(&w);
        pickle_bytes(&w, CASES[i].bytes, CASES[i].size);
        pickle_check_refused(&w, "byte 2: opcode ");
        pickle_check_refused(&w, "needs more bytes than the file has");
    }
}

static void deep_nesting_is_refused(void)
{
    pickle_begin(&w);
    for (unsigned i = 0; i < 1001; i++) {
        pickle_ops(&w, "(");
    }
    pickle_check_refused(&w, "byte 1002: opcode MARK opens more levels");
    /* Lists without marks nest as deep as they like: nobody follows them. */
    pickle_begin(&w);
    for (unsigned i = 0; i < 100000; i++) {
        pickle_ops(&w, "]");
    }
    for (unsigned i = 1; i < 100000; i++) {
        pickle_ops(&w, "a");
    }
    pickle_ops(&w, ".");
    pickle_check_refused(&w, "\"segments\" of the snapshot is a list");
}

static void file_without_stop_is_refused(void)
{
    pickle_begin(&w);
    pickle_ops(&w, "}");
    pickle_check_refused(&w, "byte 3: the file ends before its STOP opcode");
}

/* Everything a file of Python's has: frames shared through the memo, a segment, settings. */
static void write_sample(void)
{
    pickle_begin(&w);
    pickle_bytes(&w, BYTES("\x95\x00\x01\x00\x00\x00\x00\x00\x00"));
    pickle_bytes(&w, BYTES("}\x94("));
    pickle_text(&w, "device_traces");
    pickle_bytes(&w, BYTES("\x94]\x94]\x94("));
    for (unsigned i = 0; i < 3; i++) {
        pickle_open_entry(&w, i == 2 ? "free_requested" : "alloc", 4096, 512);
        pickle_pair(&w, "time_us", 1700000000000000);
        pickle_text(&w, "frames");
        pickle_bytes(&w, BYTES("]\x94("));
        if (i == 0) {
            pickle_frame(&w, "f", "/srv/a.py", 3);
            pickle_bytes(&w, BYTES("\x94"));
            pickle_frame(&w, "g", "/srv/b.py", 4);
            pickle_bytes(&w, BYTES("\x94"));
        } else {
            pickle_bytes(&w, BYTES("h\x05j\x06\x00\x00\x00"));
        }
        pickle_ops(&w, "eu");
    }
    pickle_ops(&w, "ea");
    pickle_text(&w, "segments");
    pickle_ops(&w, "]}(");
    pickle_pair(&w, "address", 4096);
    pickle_pair(&w, "total_size", 2 << 20);
    pickle_text(&w, "blocks");
    pickle_ops(&w, "]}(");
    pickle_pair(&w, "size", 2 << 20);
    pickle_text_pair(&w, "state", "inactive");
    pickle_ops(&w, "uaua");
    pickle_text(&w, "allocator_settings");
    pickle_ops(&w, "}");
    pickle_text(&w, "expandable_segments");
    pickle_bytes(&w, BYTES("\x89su."));
}

static void every_cut_of_a_file_is_refused(void)
{
    write_sample();
    const size_t size = w.size;
    allot_trace *trace = NULL;
    CHECK_OK(pickle_read(&w, &trace));
    allot_trace_destroy(trace);
    for (w.size = 1; w.size < size; w.size++) {
        pickle_check_refused(&w, "byte ");
    }
}

static allot_status read_sample(void *context)
{
    (void)context;
    allot_trace *trace = NULL;
    const allot_status status = pickle_read(&w, &trace);
    allot_trace_destroy(trace);
    return status;
}

static void every_allocation_may_fail(void)
{
    write_sample();
    CHECK(alloc_fault_each(read_sample, NULL) > 10);
}

static void sample_shares_stacks(void)
{
    write_sample();
    allot_events events;
    allot_trace *const trace = read_events(&events);
    REQUIRE(events.count == 3);
    CHECK_EQ(allot_trace_stack_count(trace), 1);
    CHECK_EQ(events.stack[0], events.stack[2]);
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(trace, events.stack[0], &count);
    REQUIRE(count == 2);
    CHECK_STR(allot_trace_string(trace, allot_trace_frame(trace, frames[1])->filename, NULL),
              "/srv/b.py");
    CHECK_EQ(events.time_ns[0], INT64_C(1700000000000000000));
    allot_trace_destroy(trace);
}

/* `count` frames in batches of `batch`, the first written out, all others from the memo. */
static void write_deep_stack(unsigned count, unsigned batch)
{
    pickle_begin_entries(&w);
    pickle_frame(&w, "f", "/srv/a.py", 1);
    pickle_bytes(&w, BYTES("\x94"
                           "0"));
    pickle_open_entry(&w, "alloc", 4096, 512);
    pickle_text(&w, "frames");
    pickle_bytes(&w, BYTES("]\x94"));
    for (unsigned done = 0; done < count; done += batch) {
        pickle_ops(&w, "(");
        for (unsigned i = done; i < count && i < done + batch; i++) {
            pickle_bytes(&w, BYTES("h\x00"));
        }
        pickle_ops(&w, "e");
    }
    pickle_ops(&w, "u");
    pickle_end_entries(&w);
}

static void stacks_of_any_depth_and_batch_are_read(void)
{
    static const unsigned COUNTS[] = {1, 2, 998, 999, 1000, 1001, 2500, 30000};
    static const unsigned BATCHES[] = {1, 7, 999, 1000, 100000};
    for (size_t i = 0; i < sizeof COUNTS / sizeof COUNTS[0]; i++) {
        for (size_t k = 0; k < sizeof BATCHES / sizeof BATCHES[0]; k++) {
            write_deep_stack(COUNTS[i], BATCHES[k]);
            allot_events events;
            allot_trace *const trace = read_events(&events);
            REQUIRE(events.count == 1);
            uint32_t count = 0;
            allot_trace_stack(trace, events.stack[0], &count);
            CHECK_EQ(count, COUNTS[i]);
            allot_trace_destroy(trace);
        }
    }
}

static bool stop_at_once(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    ++*(unsigned *)context;
    return false;
}

static void caller_can_cancel(void)
{
    write_sample();
    unsigned calls = 0;
    const allot_trace_read_options options = {
        .struct_size = sizeof options, .progress = stop_at_once, .progress_context = &calls};
    allot_trace *trace = NULL;
    CHECK_EQ(allot_trace_read_memory(w.data, w.size, "test", &options, &trace),
             ALLOT_STATUS_CANCELLED);
    CHECK(calls != 0);
}

static const check_test TESTS[] = {
    {"opcodes_that_could_run_code_are_refused_by_name_and_place",
     opcodes_that_could_run_code_are_refused_by_name_and_place},
    {"opcodes_of_protocol_0_are_refused", opcodes_of_protocol_0_are_refused},
    {"sets_are_refused", sets_are_refused},
    {"every_other_byte_is_no_opcode", every_other_byte_is_no_opcode},
    {"protocols_2_to_5_are_read", protocols_2_to_5_are_read},
    {"integers_of_every_opcode_are_read", integers_of_every_opcode_are_read},
    {"negative_and_huge_integers_are_refused_as_sizes",
     negative_and_huge_integers_are_refused_as_sizes},
    {"texts_of_every_opcode_are_read", texts_of_every_opcode_are_read},
    {"bytes_bools_and_floats_are_no_texts", bytes_bools_and_floats_are_no_texts},
    {"pools_are_pairs_of_any_kind", pools_are_pairs_of_any_kind},
    {"containers_can_be_built_from_the_stack_or_one_by_one",
     containers_can_be_built_from_the_stack_or_one_by_one},
    {"popped_and_doubled_values_behave_like_in_python",
     popped_and_doubled_values_behave_like_in_python},
    {"memo_of_every_width_is_shared", memo_of_every_width_is_shared},
    {"bad_memo_use_is_refused", bad_memo_use_is_refused},
    {"too_few_values_are_refused_by_name_and_place", too_few_values_are_refused_by_name_and_place},
    {"values_below_a_mark_are_out_of_reach", values_below_a_mark_are_out_of_reach},
    {"wrong_containers_are_refused", wrong_containers_are_refused},
    {"containers_cannot_contain_themselves", containers_cannot_contain_themselves},
    {"records_cannot_change_after_they_are_complete",
     records_cannot_change_after_they_are_complete},
    {"sharing_multiplies_nothing", sharing_multiplies_nothing},
    {"lengths_beyond_the_file_are_refused", lengths_beyond_the_file_are_refused},
    {"deep_nesting_is_refused", deep_nesting_is_refused},
    {"file_without_stop_is_refused", file_without_stop_is_refused},
    {"every_cut_of_a_file_is_refused", every_cut_of_a_file_is_refused},
    {"every_allocation_may_fail", every_allocation_may_fail},
    {"sample_shares_stacks", sample_shares_stacks},
    {"stacks_of_any_depth_and_batch_are_read", stacks_of_any_depth_and_batch_are_read},
    {"caller_can_cancel", caller_can_cancel},
};
CHECK_MAIN(TESTS)
