/* SPDX-License-Identifier: MIT */
/**
 * The records of a PyTorch snapshot (frame, trace entry, block, segment) made from the pairs of a
 * dict, and the tables they lie in until the snapshot is complete. Private to torch_*.c.
 */
#ifndef ALLOTI_TRACE_TORCH_RECORDS_H
#define ALLOTI_TRACE_TORCH_RECORDS_H

#include "trace/torch_store.h"

/** Keys with a meaning, at most 64, then other words. X(NAME, spelling) */
#define TORCH_KEYS(X)                                                                              \
    X(ACTION, "action")                                                                            \
    X(ADDR, "addr")                                                                                \
    X(DEVICE_FREE, "device_free")                                                                  \
    X(SIZE, "size")                                                                                \
    X(STREAM, "stream")                                                                            \
    X(TIME_US, "time_us")                                                                          \
    X(COMPILE_CONTEXT, "compile_context")                                                          \
    X(USER_METADATA, "user_metadata")                                                              \
    X(POOL_ID, "pool_id")                                                                          \
    X(FRAMES, "frames")                                                                            \
    X(CATEGORY, "category")                                                                        \
    X(NAME, "name")                                                                                \
    X(FILENAME, "filename")                                                                        \
    X(LINE, "line")                                                                                \
    X(FX_NODE_OP, "fx_node_op")                                                                    \
    X(FX_NODE_NAME, "fx_node_name")                                                                \
    X(FX_NODE_TARGET, "fx_node_target")                                                            \
    X(FX_ORIGINAL_TRACE, "fx_original_trace")                                                      \
    X(STATE, "state")                                                                              \
    X(REQUESTED_SIZE, "requested_size")                                                            \
    X(ADDRESS, "address")                                                                          \
    X(HISTORY, "history")                                                                          \
    X(REAL_SIZE, "real_size")                                                                      \
    X(DEVICE, "device")                                                                            \
    X(TOTAL_SIZE, "total_size")                                                                    \
    X(ALLOCATED_SIZE, "allocated_size")                                                            \
    X(ACTIVE_SIZE, "active_size")                                                                  \
    X(SEGMENT_TYPE, "segment_type")                                                                \
    X(SEGMENT_POOL_ID, "segment_pool_id")                                                          \
    X(IS_EXPANDABLE, "is_expandable")                                                              \
    X(BLOCKS, "blocks")                                                                            \
    X(STAGE, "stage")                                                                              \
    X(SEGMENTS, "segments")                                                                        \
    X(DEVICE_TRACES, "device_traces")                                                              \
    X(HOST_SEGMENTS, "host_segments")                                                              \
    X(HOST_TRACES, "host_traces")                                                                  \
    X(ALLOCATOR_SETTINGS, "allocator_settings")                                                    \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")                                                \
    X(CATEGORIES, "categories")

#define TORCH_WORDS(X)                                                                             \
    X(ACTIVE_ALLOCATED, "active_allocated")                                                        \
    X(ACTIVE_PENDING_FREE, "active_pending_free")                                                  \
    X(ACTIVE_AWAITING_FREE, "active_awaiting_free")                                                \
    X(INACTIVE, "inactive")                                                                        \
    X(LARGE, "large")                                                                              \
    X(SMALL, "small")                                                                              \
    X(START, "START")                                                                              \
    X(END, "END")

/** The builder's first strings are these, so that a word is known by its id. */
typedef enum torch_word {
#define TORCH_WORD_ENUM(name, spelling) WORD_##name,
    TORCH_KEYS(TORCH_WORD_ENUM) WORD_KEY_COUNT,
    WORD_BEFORE_OTHERS = WORD_KEY_COUNT - 1,
    TORCH_WORDS(TORCH_WORD_ENUM)
#undef TORCH_WORD_ENUM
#define TORCH_WORD_EVENT(name, value, spelling) WORD_EVENT_##name,
        ALLOT_EVENT_LIST(TORCH_WORD_EVENT)
#undef TORCH_WORD_EVENT
            WORD_COUNT,
} torch_word;

_Static_assert(WORD_KEY_COUNT <= 64, "a set of keys is a 64-bit mask");

/** Items of a list, or keys and values of a dict, of which the reader knows no shorter form. */
typedef struct torch_object {
    alloti_value *items;
    uint64_t count;
    uint64_t capacity;
    bool was_read; /**< Part of the trace already; a second time would be a copy. */
} torch_object;

/** A segment whose blocks are still a list. */
typedef struct torch_segment {
    allot_segment segment; /**< `device` is the number in the file. */
    alloti_value blocks;
    bool has_requested;
} torch_segment;

struct alloti_store {
    alloti_builder *builder;

    torch_object *objects;
    uint64_t object_count;
    uint64_t object_capacity;
    uint64_t *wide; /**< Magnitudes of numbers that do not fit a value. */
    uint64_t wide_count;
    uint64_t wide_capacity;
    double *floats;
    uint64_t float_count;
    uint64_t float_capacity;
    allot_block *blocks;
    uint64_t block_count;
    uint64_t block_capacity;
    torch_segment *segments;
    uint64_t segment_count;
    uint64_t segment_capacity;

    uint32_t *frames; /**< Scratch for one stack. */
    uint64_t frame_capacity;

    uint64_t last_stream; /**< The stream interned last, and its id. */
    uint32_t last_stream_id;
    allot_pool_id last_pool; /**< The same for pools. */
    uint32_t last_pool_id;
};

/** Category columns hold this + the index in "categories" until that list is known. */
enum { TORCH_CATEGORY_INDEX = 16 };

/** Address of a block that has none in the file: it follows from the blocks before it (2.0). */
#define TORCH_NO_ADDRESS UINT64_MAX

/**
 * The record that the pairs [2 * count] of a dict describe: FRAME, EVENT, BLOCK or SEGMENT; EMPTY
 * if they describe none.
 */
ALLOT_NODISCARD allot_status alloti_torch_record_make(alloti_store *store,
                                                      const alloti_value *pairs, uint64_t count,
                                                      alloti_value *out);

/** Spelling of a word. */
const char *alloti_torch_word_text(torch_word word);

/** Category by its spelling in any case; UNKNOWN for none. */
allot_category alloti_torch_parse_category(const char *text);

/* What follows is in torch_fields.c. *out is untouched where a value has the wrong type. */

/** Where a value stands, for messages: "size" of "a trace entry". */
typedef struct torch_field {
    const char *owner;
    torch_word key;
} torch_field;

/** "X of Y is Z, not W". */
allot_status alloti_torch_fail_type(torch_field field, alloti_value value, const char *wanted);

/** Whether a value is a number from 0 up, and which. */
bool alloti_torch_is_u64(const alloti_store *store, alloti_value value, uint64_t *out);

ALLOT_NODISCARD allot_status alloti_torch_get_u64(const alloti_store *store, torch_field field,
                                                  alloti_value value, uint64_t *out);

/** Microseconds, which may have a fraction, to nanoseconds. */
ALLOT_NODISCARD allot_status alloti_torch_get_time(const alloti_store *store, torch_field field,
                                                   alloti_value value, int64_t *out);

/** ALLOT_NONE for None. */
ALLOT_NODISCARD allot_status alloti_torch_get_string(torch_field field, alloti_value value,
                                                     uint32_t *out);

/** Items of a list [*count]; borrowed until the store changes. */
ALLOT_NODISCARD allot_status alloti_torch_get_list(const alloti_store *store, torch_field field,
                                                   alloti_value value, const alloti_value **items,
                                                   uint64_t *count);

/** Pool of two numbers. */
ALLOT_NODISCARD allot_status alloti_torch_make_pool(alloti_store *store, uint64_t first,
                                                    uint64_t second, uint32_t *out);

/** Pool of a pair, tuple or list; *out stays for None. */
ALLOT_NODISCARD allot_status alloti_torch_get_pool(alloti_store *store, torch_field field,
                                                   alloti_value value, uint32_t *out);

/** A stream is a pointer's value; where it came out signed, its bits are meant. */
ALLOT_NODISCARD allot_status alloti_torch_get_stream(alloti_store *store, torch_field field,
                                                     alloti_value value, uint32_t *out);

/** Stack of a list of frames; ALLOT_NONE for None. */
ALLOT_NODISCARD allot_status alloti_torch_get_stack(alloti_store *store, torch_field field,
                                                    alloti_value value, uint32_t *out);

/** A category by its spelling, or TORCH_CATEGORY_INDEX + its place in "categories". */
ALLOT_NODISCARD allot_status alloti_torch_get_category(const alloti_store *store, torch_field field,
                                                       alloti_value value, uint8_t *out);

#endif /* ALLOTI_TRACE_TORCH_RECORDS_H */
