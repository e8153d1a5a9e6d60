/* SPDX-License-Identifier: MIT */
/**
 * Bytes that are put together in memory, and read back: a buffer that grows, a cursor, numbers as
 * little-endian base-128 varints. Both remember the first failure, so that a caller writes or reads
 * on and asks once.
 */
#ifndef ALLOTI_CORE_BYTES_H
#define ALLOTI_CORE_BYTES_H

#include <allot/base.h>

/** A growing buffer. Zero-initialise; alloti_bytes_fini() releases it. */
typedef struct alloti_bytes {
    uint8_t *data;
    uint64_t size;
    uint64_t capacity;
    allot_status status; /**< First failure; nothing is added after it. */
} alloti_bytes;

void alloti_bytes_fini(alloti_bytes *bytes);
void alloti_bytes_put(alloti_bytes *bytes, const void *data, size_t size);
void alloti_bytes_put_u8(alloti_bytes *bytes, uint8_t value);
/** 1 to 10 bytes, 7 bits in each, the lowest first. */
void alloti_bytes_put_varint(alloti_bytes *bytes, uint64_t value);
void alloti_bytes_put_le32(alloti_bytes *bytes, uint32_t value);
void alloti_bytes_put_le64(alloti_bytes *bytes, uint64_t value);

/** A place in bytes [size] that somebody else owns. */
typedef struct alloti_cursor {
    const uint8_t *data;
    uint64_t size;
    uint64_t pos;
    bool has_failed; /**< Something was read past the end, or was no varint; then all reads give 0.
                      */
} alloti_cursor;

uint8_t alloti_cursor_u8(alloti_cursor *cursor);
uint64_t alloti_cursor_varint(alloti_cursor *cursor);
uint32_t alloti_cursor_le32(alloti_cursor *cursor);
uint64_t alloti_cursor_le64(alloti_cursor *cursor);
/** The next `size` bytes, NULL if there are fewer. Borrowed from the owner. */
const uint8_t *alloti_cursor_take(alloti_cursor *cursor, uint64_t size);

/** Differences of either sign as small numbers: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... modulo
 * 2^64. */
static inline uint64_t alloti_zigzag(uint64_t difference)
{
    return (difference << 1) ^ (0 - (difference >> 63));
}

static inline uint64_t alloti_unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

#endif /* ALLOTI_CORE_BYTES_H */
