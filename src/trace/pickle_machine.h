/* SPDX-License-Identifier: MIT */
/**
 * The parts of a pickle machine: the bytes in view, the stack with its marks, the memo. What the
 * opcodes do with them is in torch_pickle.c; pickle_run.c reads whole stretches at once.
 *
 * A container on the stack that is memoised is a REF to its memo slot. The slot is its only cell:
 * extending the container changes the slot, so that all references see the same one.
 *
 * Memory: 8 bytes a value on the stack or in the memo, at most one of each for a byte of the file;
 * decompressed bytes that make more values than eight for each byte of the compressed file are
 * refused beyond the first few million;
 * memo indices beyond the bytes read so far and nesting beyond MARKS_MAX are refused; texts are
 * looked at where they lie.
 */
#ifndef ALLOTI_TRACE_PICKLE_MACHINE_H
#define ALLOTI_TRACE_PICKLE_MACHINE_H

#include "core/array.h"
#include "core/progress.h"
#include "trace/source.h"
#include "trace/torch_store.h"

enum {
    ALLOTI_PICKLE_SLICE = 4 << 20, /**< Bytes between two looks at the progress. */
    ALLOTI_PICKLE_MARKS_MAX = 1000,
    ALLOTI_PICKLE_STACK_MIN = 64,
    /** Frames of a stack that is read in one go; longer ones come in batches. */
    ALLOTI_PICKLE_RUN_MAX = 999,
};

typedef struct alloti_pickle {
    alloti_source *source;
    const alloti_progress *progress;
    alloti_store *store;

    const uint8_t *base;    /**< The source's cursor. */
    const uint8_t *cursor;  /**< Next byte. */
    const uint8_t *end;     /**< End of the bytes in view. */
    uint64_t base_offset;   /**< Offset of `base`. */
    bool has_source_failed; /**< Its message names a place already. */
    const uint8_t *opcode;  /**< The present opcode; stays in view until the next one. */

    alloti_value *stack; /**< Not NULL while opcodes are obeyed. */
    uint64_t top;        /**< Values on the stack. */
    uint64_t stack_capacity;
    uint64_t marks[ALLOTI_PICKLE_MARKS_MAX]; /**< Heights of the stack at the open marks. */
    uint64_t mark_count;
    alloti_value *memo; /**< 0 where nothing was stored. */
    uint64_t memo_size; /**< Slots below which all are initialised. */
    uint64_t memo_capacity;
    uint64_t memo_used; /**< Slots that are not 0. */

    uint32_t run[ALLOTI_PICKLE_RUN_MAX]; /**< Frames of a stack that is being read. */
} alloti_pickle;

/** FORMAT: "opcode NAME <text>". */
allot_status alloti_pickle_fail(const alloti_pickle *m, const char *text);

/** Put the place of the present opcode in front of a failure's text; returns `status`. */
allot_status alloti_pickle_fail_place(const alloti_pickle *m, allot_status status);

/** Give back what lies before `keep` and bring `want` bytes from there into view, or what is left.
 */
ALLOT_NODISCARD allot_status alloti_pickle_refill(alloti_pickle *m, const uint8_t *keep,
                                                  size_t want);

/** `size` bytes of the present opcode's argument come into view at the cursor. */
ALLOT_NODISCARD allot_status alloti_pickle_need(alloti_pickle *m, uint64_t size);

/** Little-endian number of `size` bytes (at most 8) at the cursor, which moves on. */
ALLOT_NODISCARD allot_status alloti_pickle_take(alloti_pickle *m, size_t size, uint64_t *out);

/** Fails if fewer than `count` values lie above the innermost mark. */
ALLOT_NODISCARD allot_status alloti_pickle_require(const alloti_pickle *m, uint64_t count);

/** Close the innermost mark; the values above it begin at *from. */
ALLOT_NODISCARD allot_status alloti_pickle_pop_mark(alloti_pickle *m, uint64_t *from);

/** The values from `from` up are put into a container. */
ALLOT_NODISCARD allot_status alloti_pickle_use(alloti_pickle *m, uint64_t from);

/** Make memo slot `index` exist, empty. */
ALLOT_NODISCARD allot_status alloti_pickle_memo_grow(alloti_pickle *m, uint64_t index);

/** Store the topmost value; a container moves into the memo and leaves a reference. */
ALLOT_NODISCARD allot_status alloti_pickle_memo_put(alloti_pickle *m, uint64_t index);

/** Push what a memo slot holds. */
ALLOT_NODISCARD allot_status alloti_pickle_memo_get(alloti_pickle *m, uint64_t index);

/**
 * Read on past a MARK as far as a whole stretch of a known shape goes: the frames of a stack, or a
 * trace entry, all of it seen before. *done is false, and nothing has happened, for any other
 * bytes.
 */
ALLOT_NODISCARD allot_status alloti_pickle_run(alloti_pickle *m, bool *done);

/** Height of the stack that opcodes may not go below: that of the innermost mark. */
static inline uint64_t alloti_pickle_floor(const alloti_pickle *m)
{
    return m->mark_count == 0 ? 0 : m->marks[m->mark_count - 1];
}

/** The only place where the container in a stack slot may be changed. */
static inline alloti_value *alloti_pickle_cell(alloti_pickle *m, uint64_t slot)
{
    const alloti_value value = m->stack[slot];
    return alloti_value_get_type(value) == ALLOTI_VALUE_REF ? &m->memo[alloti_value_payload(value)]
                                                            : &m->stack[slot];
}

ALLOT_NODISCARD static inline allot_status alloti_pickle_push(alloti_pickle *m, alloti_value value)
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

#endif /* ALLOTI_TRACE_PICKLE_MACHINE_H */
