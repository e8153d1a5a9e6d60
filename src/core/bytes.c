/* SPDX-License-Identifier: MIT */
#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

void alloti_bytes_fini(alloti_bytes *bytes)
{
    free(bytes->data);
    *bytes = (alloti_bytes){.size = 0};
}

void alloti_bytes_put(alloti_bytes *bytes, const void *data, size_t size)
{
    if (bytes->status != ALLOT_STATUS_OK || size == 0) {
        return;
    }
    bytes->status = alloti_array_reserve(&bytes->data, &bytes->capacity, bytes->size + size, 1);
    if (bytes->status == ALLOT_STATUS_OK) {
        memcpy(bytes->data + bytes->size, data, size);
        bytes->size += size;
    }
}

void alloti_bytes_put_u8(alloti_bytes *bytes, uint8_t value)
{
    alloti_bytes_put(bytes, &value, 1);
}

void alloti_bytes_put_varint(alloti_bytes *bytes, uint64_t value)
{
    uint8_t text[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) {
        text[size++] = (uint8_t)(value | 0x80);
    }
    text[size++] = (uint8_t)value;
    alloti_bytes_put(bytes, text, size);
}

void alloti_bytes_put_le32(alloti_bytes *bytes, uint32_t value)
{
    const uint8_t text[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                             (uint8_t)(value >> 24)};
    alloti_bytes_put(bytes, text, sizeof text);
}

void alloti_bytes_put_le64(alloti_bytes *bytes, uint64_t value)
{
    alloti_bytes_put_le32(bytes, (uint32_t)value);
    alloti_bytes_put_le32(bytes, (uint32_t)(value >> 32));
}

const uint8_t *alloti_cursor_take(alloti_cursor *cursor, uint64_t size)
{
    if (cursor->has_failed || size > cursor->size - cursor->pos) {
        cursor->has_failed = true;
        return NULL;
    }
    const uint8_t *const taken = cursor->data + cursor->pos;
    cursor->pos += size;
    return taken;
}

uint8_t alloti_cursor_u8(alloti_cursor *cursor)
{
    const uint8_t *const taken = alloti_cursor_take(cursor, 1);
    return taken == NULL ? 0 : *taken;
}

uint64_t alloti_cursor_varint(alloti_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = alloti_cursor_u8(cursor);
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return cursor->has_failed ? 0 : value;
        }
    }
    cursor->has_failed = true;
    return 0;
}

uint32_t alloti_cursor_le32(alloti_cursor *cursor)
{
    const uint8_t *const t = alloti_cursor_take(cursor, 4);
    return t == NULL
               ? 0
               : (uint32_t)t[0] | (uint32_t)t[1] << 8 | (uint32_t)t[2] << 16 | (uint32_t)t[3] << 24;
}

uint64_t alloti_cursor_le64(alloti_cursor *cursor)
{
    const uint64_t low = alloti_cursor_le32(cursor);
    return low | (uint64_t)alloti_cursor_le32(cursor) << 32;
}
