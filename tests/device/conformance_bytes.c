/* SPDX-License-Identifier: MIT */
/* Copies, fills, writes, reads and moves. Without bytes the calls are made all the same. */
#include "device/conformance.h"

#define MIB (UINT64_C(1) << 20)

void written_bytes_are_read_back(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, 2 * MIB);
    write_pattern(&s, DEFAULT_STREAM, ptr, 1, 2 * MIB);
    write_pattern(&s, DEFAULT_STREAM, offset_by(ptr, 1000003), 2, 77);
    CHECK(holds_pattern(&s, DEFAULT_STREAM, ptr, 1, 1000003));
    CHECK(holds_pattern(&s, DEFAULT_STREAM, offset_by(ptr, 1000003), 2, 77));
    must_free(s.device, ptr, 2 * MIB);
    subject_end(&s);
}

void fills_set_bytes(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, MIB);
    CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, ptr, 0xa5, MIB));
    CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, offset_by(ptr, 101), 3, 1001));
    CHECK(holds_value(&s, DEFAULT_STREAM, ptr, 0xa5, 101));
    CHECK(holds_value(&s, DEFAULT_STREAM, offset_by(ptr, 101), 3, 1001));
    CHECK(holds_value(&s, DEFAULT_STREAM, offset_by(ptr, 1102), 0xa5, MIB - 1102));
    must_free(s.device, ptr, MIB);
    subject_end(&s);
}

void copies_copy_bytes(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    uint64_t state = check_seed();
    const allot_devptr from = must_alloc(s.device, 4 * MIB);
    const allot_devptr to = must_alloc(s.device, 4 * MIB);
    for (uint64_t i = 0; i < 20; i++) {
        const uint64_t size = check_random_range(&state, 1, 2 * MIB);
        const allot_devptr src = offset_by(from, check_random_range(&state, 0, 2 * MIB));
        const allot_devptr dst = offset_by(to, check_random_range(&state, 0, 2 * MIB));
        write_pattern(&s, DEFAULT_STREAM, src, i, size);
        CHECK_OK(allot_device_copy(s.device, DEFAULT_STREAM, dst, src, size));
        CHECK(holds_pattern(&s, DEFAULT_STREAM, dst, i, size));
        CHECK(holds_pattern(&s, DEFAULT_STREAM, src, i, size));
    }
    must_free(s.device, from, 4 * MIB);
    must_free(s.device, to, 4 * MIB);
    subject_end(&s);
}

void work_of_no_size_does_nothing(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr none = {0};
    CHECK_OK(allot_device_copy(s.device, DEFAULT_STREAM, none, none, 0));
    CHECK_OK(allot_device_move(s.device, DEFAULT_STREAM, none, none, 0));
    CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, none, 1, 0));
    CHECK_OK(allot_device_write(s.device, DEFAULT_STREAM, none, NULL, 0));
    CHECK_OK(allot_device_read(s.device, DEFAULT_STREAM, NULL, none, 0));
    CHECK_OK(allot_device_copy_batch(s.device, DEFAULT_STREAM, NULL, 0));
    CHECK_EQ(allot_device_fill(s.device, DEFAULT_STREAM, none, 1, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_fill(s.device, DEFAULT_STREAM, (allot_devptr){UINT64_MAX - 10}, 1, 4096),
             ALLOT_STATUS_INVALID);
    subject_end(&s);
}

void overlapping_copies_are_refused(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, MIB);
    write_pattern(&s, DEFAULT_STREAM, ptr, 5, MIB);
    const allot_devptr next = offset_by(ptr, 1000);
    CHECK_EQ(allot_device_copy(s.device, DEFAULT_STREAM, next, ptr, 1001), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_copy(s.device, DEFAULT_STREAM, ptr, next, 1001), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_copy(s.device, DEFAULT_STREAM, ptr, ptr, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_move(s.device, DEFAULT_STREAM, next, ptr, 1001), ALLOT_STATUS_INVALID);
    CHECK(holds_pattern(&s, DEFAULT_STREAM, ptr, 5, MIB));
    CHECK_OK(allot_device_copy(s.device, DEFAULT_STREAM, next, ptr, 1000));
    CHECK(holds_pattern(&s, DEFAULT_STREAM, next, 5, 1000));
    must_free(s.device, ptr, MIB);
    subject_end(&s);
}

void batches_copy_all(void)
{
    enum { COUNT = 50, PIECE = 10000, GAP = 10240 };
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const uint64_t size = (uint64_t)COUNT * GAP;
    const allot_devptr from = must_alloc(s.device, size);
    const allot_devptr to = must_alloc(s.device, size);
    CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, to, 0xee, size));
    allot_copy copies[COUNT + 2] = {{.size = 0}}; /* one at each end does nothing */
    for (uint64_t i = 0; i < COUNT; i++) {
        copies[i + 1] = (allot_copy){.dst = offset_by(to, (COUNT - 1 - i) * GAP),
                                     .src = offset_by(from, i * GAP),
                                     .size = PIECE};
        write_pattern(&s, DEFAULT_STREAM, copies[i + 1].src, i, PIECE);
    }
    CHECK_OK(allot_device_copy_batch(s.device, DEFAULT_STREAM, copies, COUNT + 2));
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK(holds_pattern(&s, DEFAULT_STREAM, copies[i + 1].dst, i, PIECE));
        CHECK(holds_value(&s, DEFAULT_STREAM, offset_by(copies[i + 1].dst, PIECE), 0xee,
                          GAP - PIECE));
    }
    must_free(s.device, from, size);
    must_free(s.device, to, size);
    subject_end(&s);
}

void wrong_batches_are_refused(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, MIB);
    const allot_copy overlapping[2] = {
        {.dst = offset_by(ptr, 4096), .src = ptr, .size = 4096},
        {.dst = offset_by(ptr, 20000), .src = offset_by(ptr, 20001), .size = 2}};
    CHECK_EQ(allot_device_copy_batch(s.device, DEFAULT_STREAM, overlapping, 2),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_stream_synchronize(s.device, DEFAULT_STREAM));
    must_free(s.device, ptr, MIB);
    subject_end(&s);
}

void moves_keep_bytes(void)
{
    static const struct {
        uint64_t dst;
        uint64_t src;
        uint64_t size;
    } cases[] = {{0, 0, 16 * MIB},           {0, 0, 4 * MIB},          {2 * MIB, 4 * MIB, 8 * MIB},
                 {0, 0, 64 << 10},           {4096, 8192, 3 * MIB},    {100, 300, 2 * MIB + 17},
                 {4096 + 5, 5, 5 * MIB - 5}, {MIB, 2 * MIB + 1, 4099}, {7, 9, 1}};
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr from = must_alloc(s.device, 16 * MIB);
    const allot_devptr to = must_alloc(s.device, 16 * MIB);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, to, 0x11, 16 * MIB));
        const allot_devptr src = offset_by(from, cases[i].src);
        const allot_devptr dst = offset_by(to, cases[i].dst);
        write_pattern(&s, DEFAULT_STREAM, src, i, cases[i].size);
        CHECK_OK(allot_device_move(s.device, DEFAULT_STREAM, dst, src, cases[i].size));
        CHECK(holds_pattern(&s, DEFAULT_STREAM, dst, i, cases[i].size));
        CHECK(cases[i].dst == 0 || holds_value(&s, DEFAULT_STREAM, to, 0x11, cases[i].dst));
        const uint64_t end = cases[i].dst + cases[i].size;
        CHECK(end == 16 * MIB ||
              holds_value(&s, DEFAULT_STREAM, offset_by(to, end), 0x11, 16 * MIB - end));
    }
    must_free(s.device, from, 16 * MIB);
    must_free(s.device, to, 16 * MIB);
    subject_end(&s);
}

void what_was_moved_away_can_be_used(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const uint64_t size = 8 * MIB;
    const allot_devptr from = must_alloc(s.device, size);
    const allot_devptr to = must_alloc(s.device, size);
    for (uint64_t i = 0; i < 5; i++) {
        write_pattern(&s, DEFAULT_STREAM, from, i, size);
        CHECK_OK(allot_device_move(s.device, DEFAULT_STREAM, to, from, size));
        CHECK_OK(allot_device_fill(s.device, DEFAULT_STREAM, from, 0x22, size));
        CHECK(holds_value(&s, DEFAULT_STREAM, from, 0x22, size));
        CHECK(holds_pattern(&s, DEFAULT_STREAM, to, i, size));
        CHECK_OK(allot_device_move(s.device, DEFAULT_STREAM, from, to, size));
        CHECK(holds_pattern(&s, DEFAULT_STREAM, from, i, size));
    }
    must_free(s.device, from, size);
    must_free(s.device, to, size);
    subject_end(&s);
}

void streams_keep_their_order(void)
{
    enum { STREAMS = 4, ROUNDS = 10 };
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    allot_stream streams[STREAMS];
    allot_devptr buffers[STREAMS];
    for (size_t i = 0; i < STREAMS; i++) {
        streams[i] = must_create_stream(s.device);
        buffers[i] = must_alloc(s.device, MIB);
    }
    /* A value goes round: each stream waits for the one before it, copies and hands on. */
    for (unsigned round = 1; round <= ROUNDS; round++) {
        CHECK_OK(allot_device_fill(s.device, streams[0], buffers[0], (uint8_t)round, MIB));
        for (size_t i = 1; i <= STREAMS; i++) {
            const allot_event done = must_record(s.device, streams[i - 1]);
            CHECK_OK(allot_device_stream_wait(s.device, streams[i % STREAMS], done));
            if (i < STREAMS) {
                CHECK_OK(allot_device_copy(s.device, streams[i], buffers[i], buffers[i - 1], MIB));
            }
            must_destroy_event(s.device, done);
        }
    }
    CHECK_OK(allot_device_stream_synchronize(s.device, streams[0]));
    for (size_t i = 0; i < STREAMS; i++) {
        CHECK(holds_value(&s, streams[i], buffers[i], ROUNDS, MIB));
        must_free(s.device, buffers[i], MIB);
        must_destroy_stream(s.device, streams[i]);
    }
    subject_end(&s);
}
