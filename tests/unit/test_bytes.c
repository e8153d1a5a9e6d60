/* SPDX-License-Identifier: MIT */
#include "core/bytes.h"

#include "support/check.h"

static void numbers_come_back(void)
{
    static const uint64_t VALUES[] = {
        0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 63, INT64_MAX, UINT64_MAX, 300};
    enum { COUNT = sizeof VALUES / sizeof VALUES[0] };
    alloti_bytes bytes = {.size = 0};
    for (size_t i = 0; i < COUNT; i++) {
        alloti_bytes_put_varint(&bytes, VALUES[i]);
        alloti_bytes_put_le32(&bytes, (uint32_t)VALUES[i]);
        alloti_bytes_put_le64(&bytes, VALUES[i]);
    }
    REQUIRE_OK(bytes.status);
    alloti_cursor cursor = {.data = bytes.data, .size = bytes.size};
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(alloti_cursor_varint(&cursor), VALUES[i]);
        CHECK_EQ(alloti_cursor_le32(&cursor), (uint32_t)VALUES[i]);
        CHECK_EQ(alloti_cursor_le64(&cursor), VALUES[i]);
    }
    CHECK_EQ(cursor.pos, cursor.size);
    CHECK(!cursor.has_failed);
    alloti_bytes_fini(&bytes);
}

static void a_cursor_never_passes_the_end(void)
{
    static const uint8_t DATA[] = {0x81};
    alloti_cursor cursor = {.data = DATA, .size = sizeof DATA};
    CHECK_EQ(alloti_cursor_varint(&cursor), 0); /* it goes on after the last byte */
    CHECK(cursor.has_failed);
    CHECK_EQ(alloti_cursor_u8(&cursor), 0);
    CHECK(alloti_cursor_take(&cursor, 0) == NULL);
    alloti_cursor other = {.data = DATA, .size = sizeof DATA};
    CHECK(alloti_cursor_take(&other, UINT64_MAX) == NULL);
    CHECK(other.has_failed);
}

static void varints_above_64_bits_are_refused(void)
{
    static const uint8_t LONG[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    static const uint8_t ENDLESS[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    alloti_cursor cursor = {.data = LONG, .size = sizeof LONG};
    CHECK_EQ(alloti_cursor_varint(&cursor), 0);
    CHECK(cursor.has_failed);
    cursor = (alloti_cursor){.data = ENDLESS, .size = sizeof ENDLESS};
    alloti_cursor_varint(&cursor);
    CHECK(cursor.has_failed);
}

static void zigzag_keeps_small_differences_small(void)
{
    CHECK_EQ(alloti_zigzag(0), 0);
    CHECK_EQ(alloti_zigzag(UINT64_MAX), 1);
    CHECK_EQ(alloti_zigzag(1), 2);
    static const uint64_t VALUES[] = {0, 1, 2, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++) {
        CHECK_EQ(alloti_unzigzag(alloti_zigzag(VALUES[i])), VALUES[i]);
    }
}

static const check_test TESTS[] = {
    {"numbers_come_back", numbers_come_back},
    {"a_cursor_never_passes_the_end", a_cursor_never_passes_the_end},
    {"varints_above_64_bits_are_refused", varints_above_64_bits_are_refused},
    {"zigzag_keeps_small_differences_small", zigzag_keeps_small_differences_small},
};
CHECK_MAIN(TESTS)
