/* SPDX-License-Identifier: MIT */
#include "trace/pickle_machine.h"

#include <inttypes.h>
#include <string.h>

#include "core/status.h"
#include "trace/pickle_ops.h"

static const char *const OPCODES[UINT8_MAX + 1] = {
#define OPCODE_NAME(name, byte, kind) [byte] = #name,
    PICKLE_OPS(OPCODE_NAME)
#undef OPCODE_NAME
};

allot_status alloti_pickle_fail_place(const alloti_pickle *m, allot_status status)
{
    return alloti_fail_prefix(status, "byte %" PRIu64 ": ",
                              m->base_offset + (uint64_t)(m->opcode - m->base));
}

allot_status alloti_pickle_fail(const alloti_pickle *m, const char *text)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "opcode %s %s", OPCODES[*m->opcode], text);
}

/*
 * Whether the values held outgrow the file [size on disk]. Only compressed files get there: a byte
 * that was not compressed makes one value, or one object that counts as seven.
 */
static bool expands_too_far(const alloti_pickle *m, uint64_t size)
{
    enum { VALUES_MIN = 8 << 20, VALUES_PER_BYTE = 8, VALUES_PER_OBJECT = 7 };
    const uint64_t values =
        m->top + m->memo_size + VALUES_PER_OBJECT * alloti_store_object_count(m->store);
    return values > VALUES_MIN && (values - VALUES_MIN) / VALUES_PER_BYTE > size;
}

allot_status alloti_pickle_refill(alloti_pickle *m, const uint8_t *keep, size_t want)
{
    uint64_t done = 0;
    uint64_t total = 0;
    alloti_source_progress(m->source, &done, &total);
    allot_status status = alloti_progress_tell(m->progress, done, total);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (expands_too_far(m, total)) {
        return alloti_pickle_fail(m, "is one of more values than so small a file can mean");
    }
    const size_t ahead = (size_t)(m->cursor - keep);
    alloti_source_consume(m->source, (size_t)(keep - m->base));
    const uint8_t *data = NULL;
    size_t available = 0;
    const size_t size = want < ALLOTI_PICKLE_SLICE ? ALLOTI_PICKLE_SLICE : want;
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

allot_status alloti_pickle_need(alloti_pickle *m, uint64_t size)
{
    if ((uint64_t)(m->end - m->cursor) >= size) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t ahead = (uint64_t)(m->cursor - m->opcode);
    if (size <= SIZE_MAX / 2) {
        const allot_status status = alloti_pickle_refill(m, m->opcode, (size_t)(ahead + size));
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return (uint64_t)(m->end - m->cursor) >= size
               ? ALLOT_STATUS_OK
               : alloti_pickle_fail(m, "needs more bytes than the file has");
}

allot_status alloti_pickle_take(alloti_pickle *m, size_t size, uint64_t *out)
{
    const allot_status status = alloti_pickle_need(m, size);
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

allot_status alloti_pickle_require(const alloti_pickle *m, uint64_t count)
{
    return m->top - alloti_pickle_floor(m) >= count
               ? ALLOT_STATUS_OK
               : alloti_pickle_fail(m, "finds too few values on the stack");
}

allot_status alloti_pickle_pop_mark(alloti_pickle *m, uint64_t *from)
{
    if (m->mark_count == 0) {
        return alloti_pickle_fail(m, "finds no mark on the stack");
    }
    *from = m->marks[--m->mark_count];
    return ALLOT_STATUS_OK;
}

allot_status alloti_pickle_use(alloti_pickle *m, uint64_t from)
{
    for (uint64_t i = from; i < m->top; i++) {
        alloti_value *const cell = alloti_pickle_cell(m, i);
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

allot_status alloti_pickle_memo_grow(alloti_pickle *m, uint64_t index)
{
    /* Picklers number what they store from 0 (or 1), so an index beyond the bytes read is a trap.
     */
    if (index > m->base_offset + (uint64_t)(m->opcode - m->base)) {
        return alloti_pickle_fail(m, "has a memo index that no writer would use here");
    }
    const allot_status status =
        alloti_array_reserve(&m->memo, &m->memo_capacity, index + 1, sizeof *m->memo);
    if (status == ALLOT_STATUS_OK) {
        memset(m->memo + m->memo_size, 0, (index + 1 - m->memo_size) * sizeof *m->memo);
        m->memo_size = index + 1;
    }
    return status;
}

allot_status alloti_pickle_memo_put(alloti_pickle *m, uint64_t index)
{
    allot_status status = alloti_pickle_require(m, 1);
    if (status == ALLOT_STATUS_OK && index >= m->memo_size) {
        status = alloti_pickle_memo_grow(m, index);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (m->memo[index] != 0) {
        return alloti_pickle_fail(m, "stores into a memo slot that is taken");
    }
    alloti_value *const slot = &m->stack[m->top - 1];
    m->memo[index] = *slot;
    m->memo_used++;
    if (alloti_value_is_container(*slot)) {
        *slot = alloti_value_make(ALLOTI_VALUE_REF, index);
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_pickle_memo_get(alloti_pickle *m, uint64_t index)
{
    if (index >= m->memo_size || m->memo[index] == 0) {
        return alloti_pickle_fail(m, "asks for a memo slot that was never stored");
    }
    const alloti_value value = m->memo[index];
    return alloti_pickle_push(
        m, alloti_value_is_container(value) ? alloti_value_make(ALLOTI_VALUE_REF, index) : value);
}
