/* SPDX-License-Identifier: MIT */
/*
 * Whole stretches of a snapshot at once. In files with stacks nearly all bytes are trace entries
 * whose keys, texts and frames were seen before:
 *
 *     }  memo  (  key value  key value ...  "frames"  ]  memo  (  frame frame ...  e  u
 *
 * with BINGET or LONG_BINGET for each key and frame. Such a stretch is read without the stack and
 * without a look at each opcode; "memo" is MEMOIZE, BINPUT or LONG_BINPUT, or absent. The bytes are
 * first only looked at. Where anything is not as expected, the machine goes on opcode by opcode
 * from where it was, so a stretch means exactly what its opcodes mean.
 */
#include <string.h>

#include "trace/pickle_machine.h"
#include "trace/pickle_ops.h"

enum {
    VALUES_MAX = 32,    /**< Keys and values of an entry. */
    ITEM_SIZE_MAX = 12, /**< Bytes looked at for a key, a value, or the head of a list. */
    PAIR_SIZE_MAX = 24,
};

/** What a stretch puts into the memo. */
typedef struct list_slot {
    bool is_memoised;
    uint64_t index;
} list_slot;

static uint64_t load(const uint8_t *p, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        number |= (uint64_t)p[i] << (8 * i);
    }
    return number;
}

/* Memo value that BINGET or LONG_BINGET at *p names; 0, and *p as it was, for anything else. */
static inline alloti_value take_known(const alloti_pickle *m, const uint8_t **p)
{
    uint64_t index = 0;
    const uint8_t *const at = *p;
    if (*at == PICKLE_OP_LONG_BINGET) {
        index = load(at + 1, sizeof(uint32_t));
        *p = at + 1 + sizeof(uint32_t);
    } else if (*at == PICKLE_OP_BINGET) {
        index = at[1];
        *p = at + 2;
    } else {
        return 0;
    }
    return index < m->memo_size ? m->memo[index] : 0;
}

/* Frames from `p` to APPENDS; where the next opcode lies, NULL for anything else. */
static const uint8_t *look_at_frames(alloti_pickle *m, const uint8_t *p, uint32_t *count)
{
    uint32_t n = 0;
    while (m->end - p >= ITEM_SIZE_MAX) {
        if (*p == PICKLE_OP_APPENDS) {
            *count = n;
            return p + 1;
        }
        const alloti_value value = take_known(m, &p);
        if (alloti_value_get_type(value) != ALLOTI_VALUE_FRAME || n == ALLOTI_PICKLE_RUN_MAX) {
            return NULL;
        }
        m->run[n++] = (uint32_t)alloti_value_payload(value);
    }
    return NULL;
}

/* After EMPTY_LIST: the opcode that memoises it, if there is one, and MARK. */
static const uint8_t *look_at_list_head(const alloti_pickle *m, const uint8_t *p, list_slot *slot)
{
    *slot = (list_slot){.is_memoised = *p != PICKLE_OP_MARK, .index = m->memo_used};
    if (*p == PICKLE_OP_BINPUT || *p == PICKLE_OP_LONG_BINPUT) {
        const size_t size = *p == PICKLE_OP_BINPUT ? 1 : sizeof(uint32_t);
        slot->index = load(p + 1, size);
        p += 1 + size;
    } else if (*p == PICKLE_OP_MEMOIZE) {
        p++;
    }
    const bool is_next = slot->index == m->memo_used && m->memo_used == m->memo_size;
    return *p == PICKLE_OP_MARK && (is_next || !slot->is_memoised) ? p + 1 : NULL;
}

/* The `size` low bytes of the eight at `p`, which are in view; NULL if a value has no room for it.
 */
static const uint8_t *make_integer(const uint8_t *p, size_t size, bool is_signed, alloti_value *out)
{
    if (size == 0) {
        *out = alloti_value_make(ALLOTI_VALUE_INT, 0);
        return p;
    }
    const unsigned unused = 64 - 8 * (unsigned)size;
    const uint64_t number = load(p, sizeof number) << unused;
    const int64_t value = is_signed ? (int64_t)number >> unused : (int64_t)(number >> unused);
    *out = alloti_value_make(ALLOTI_VALUE_INT, (uint64_t)value);
    return alloti_value_integer(*out) == value ? p + size : NULL;
}

/* A value that is a number, a constant or in the memo; NULL for anything else. */
static const uint8_t *look_at_value(const alloti_pickle *m, const uint8_t *p, alloti_value *out)
{
    switch (*p) {
    case PICKLE_OP_BINGET:
    case PICKLE_OP_LONG_BINGET:
        *out = take_known(m, &p);
        return *out == 0 || alloti_value_is_container(*out) ||
                       alloti_value_get_type(*out) == ALLOTI_VALUE_REF
                   ? NULL
                   : p;
    case PICKLE_OP_BININT1:
        return make_integer(p + 1, 1, false, out);
    case PICKLE_OP_BININT2:
        return make_integer(p + 1, 2, false, out);
    case PICKLE_OP_BININT:
        return make_integer(p + 1, 4, true, out);
    case PICKLE_OP_LONG1:
        return p[1] <= sizeof(uint64_t) ? make_integer(p + 2, p[1], true, out) : NULL;
    case PICKLE_OP_NONE:
        *out = alloti_value_make(ALLOTI_VALUE_NONE, 0);
        return p + 1;
    default:
        return NULL;
    }
}

/** A trace entry that was looked at. */
typedef struct entry {
    alloti_value pairs[VALUES_MAX];
    uint64_t count;       /**< Values in `pairs`. */
    uint64_t stack_place; /**< Where in `pairs` the list of frames belongs; 0: there is none. */
    uint32_t frame_count;
    list_slot slot;
} entry;

/* Pairs from `p` to SETITEMS; where the next opcode lies, NULL for anything else. */
static const uint8_t *look_at_entry(alloti_pickle *m, const uint8_t *p, entry *e)
{
    e->count = 0;
    e->stack_place = 0;
    while (p != NULL && m->end - p >= PAIR_SIZE_MAX && e->count < VALUES_MAX) {
        if (*p == PICKLE_OP_SETITEMS) {
            return p + 1;
        }
        const alloti_value key = take_known(m, &p);
        if (alloti_value_get_type(key) != ALLOTI_VALUE_STRING) {
            return NULL;
        }
        e->pairs[e->count] = key;
        if (*p != PICKLE_OP_EMPTY_LIST) {
            p = look_at_value(m, p, &e->pairs[e->count + 1]);
        } else if (e->stack_place == 0) {
            e->stack_place = e->count + 1;
            p = look_at_list_head(m, p + 1, &e->slot);
            p = p == NULL ? NULL : look_at_frames(m, p, &e->frame_count);
        } else {
            return NULL;
        }
        e->count += 2;
    }
    return NULL;
}

/* Do what the entry's opcodes would have done. */
static allot_status finish_entry(alloti_pickle *m, entry *e)
{
    if (e->stack_place != 0) {
        alloti_value list = alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0);
        allot_status status = alloti_store_extend_frames(m->store, &list, m->run, e->frame_count);
        list |= ALLOTI_VALUE_USED;
        e->pairs[e->stack_place] = list;
        if (status == ALLOT_STATUS_OK && e->slot.is_memoised) {
            status = alloti_pickle_memo_grow(m, e->slot.index);
            if (status == ALLOT_STATUS_OK) {
                m->memo[e->slot.index] = list;
                m->memo_used++;
            }
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return alloti_store_extend_dict(m->store, alloti_pickle_cell(m, m->top - 1), e->pairs,
                                    e->count / 2);
}

static allot_status run_entry(alloti_pickle *m, bool *done)
{
    entry e;
    const uint8_t *const next = look_at_entry(m, m->cursor, &e);
    if (next == NULL) {
        return ALLOT_STATUS_OK;
    }
    *done = true;
    m->opcode = next - 1;
    m->cursor = next;
    return finish_entry(m, &e);
}

static allot_status run_frames(alloti_pickle *m, alloti_value *list, bool *done)
{
    uint32_t count = 0;
    const uint8_t *const next = look_at_frames(m, m->cursor, &count);
    if (next == NULL) {
        return ALLOT_STATUS_OK;
    }
    *done = true;
    m->opcode = next - 1;
    m->cursor = next;
    return count == 0 ? ALLOT_STATUS_OK : alloti_store_extend_frames(m->store, list, m->run, count);
}

allot_status alloti_pickle_run(alloti_pickle *m, bool *done)
{
    *done = false;
    if (m->top == alloti_pickle_floor(m)) {
        return ALLOT_STATUS_OK;
    }
    alloti_value *const cell = alloti_pickle_cell(m, m->top - 1);
    if (*cell == alloti_value_make(ALLOTI_VALUE_NEW_DICT, 0)) {
        return run_entry(m, done);
    }
    if (*cell == alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0)) {
        return run_frames(m, cell, done);
    }
    return ALLOT_STATUS_OK;
}
