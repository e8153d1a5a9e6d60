/* SPDX-License-Identifier: MIT */
/*
 * The reader of allot's own format. Checksums would stop nearly every changed byte at once, so an
 * input whose first byte is odd is not a file but what the sections hold: each a length (16 bits)
 * and that many bytes. They are packed and summed as the writer would do it.
 */
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>

#include "core/bytes.h"
#include "support/fuzz_reader.h"
#include "trace/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_section(alloti_bytes *file, const char *tag, const uint8_t *raw, size_t size)
{
    const size_t room = ZSTD_compressBound(size);
    uint8_t *const packed = malloc(room);
    if (packed == NULL) {
        return;
    }
    const size_t packed_size = ZSTD_compress(packed, room, raw, size, 1);
    if (!ZSTD_isError(packed_size)) {
        alloti_bytes_put(file, tag, ALLOTI_NATIVE_TAG_SIZE);
        alloti_bytes_put_le32(file, 0);
        alloti_bytes_put_le64(file, size);
        alloti_bytes_put_le64(file, packed_size);
        alloti_bytes_put_le64(
            file, XXH3_64bits_withSeed(packed, packed_size, alloti_native_seed(tag, size)));
        alloti_bytes_put(file, packed, packed_size);
    }
    free(packed);
}

/* How many EVENTS sections the file needs: its number of devices, the second number of META. */
static uint64_t device_count(const uint8_t *meta, size_t size)
{
    alloti_cursor cursor = {.data = meta, .size = size};
    alloti_cursor_varint(&cursor);
    return alloti_cursor_varint(&cursor);
}

static int fuzz_sections(const uint8_t *data, size_t size)
{
    alloti_cursor in = {.data = data, .size = size};
    alloti_bytes file = {.size = 0};
    alloti_bytes_put(&file, ALLOTI_NATIVE_MAGIC, ALLOTI_NATIVE_MAGIC_SIZE);
    alloti_bytes_put_le32(&file, ALLOTI_NATIVE_VERSION);
    alloti_bytes_put_le32(&file, 0);
    uint64_t events_left = 0;
    for (unsigned i = ALLOTI_NATIVE_META; i <= ALLOTI_NATIVE_END && !in.has_failed;) {
        const uint64_t low = alloti_cursor_u8(&in);
        const uint64_t length = low | (uint64_t)alloti_cursor_u8(&in) << 8;
        const uint8_t *const raw = alloti_cursor_take(&in, length);
        if (raw == NULL) {
            break;
        }
        put_section(&file, alloti_native_tag((alloti_native_section)i), raw, (size_t)length);
        if (i == ALLOTI_NATIVE_META) {
            events_left = device_count(raw, (size_t)length);
        }
        const bool stays = i == ALLOTI_NATIVE_EVENTS && events_left > 1;
        events_left -= stays;
        i += !stays;
        i += i == ALLOTI_NATIVE_EVENTS && events_left == 0;
    }
    const int result = fuzz_reader(ALLOT_TRACE_FORMAT_ALLOT, file.data, (size_t)file.size);
    alloti_bytes_fini(&file);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size != 0 && data[0] % 2 != 0 && data[0] != (uint8_t)ALLOTI_NATIVE_MAGIC[0]) {
        return fuzz_sections(data + 1, size - 1);
    }
    return fuzz_reader(ALLOT_TRACE_FORMAT_ALLOT, data, size);
}
