/* SPDX-License-Identifier: MIT */
#include "trace/source.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "support/alloc_fault.h"
#include "support/check.h"

enum { TEXT_SIZE = 3000000, PACKED_MAX = 4000000 };

static uint8_t text[TEXT_SIZE];
static uint8_t packed[2 * PACKED_MAX];
static char folder[] = "test-source-XXXXXX";

/* Text that packs by about half. */
static void make_text(void)
{
    uint64_t state = check_seed();
    for (size_t i = 0; i < TEXT_SIZE; i++) {
        text[i] = (uint8_t)('a' + check_random(&state) % 16);
    }
}

static size_t pack_gzip(const uint8_t *data, size_t size, uint8_t *out)
{
    enum { GZIP = 16 };
    z_stream stream = {0};
    deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = PACKED_MAX;
    CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t written = stream.total_out;
    deflateEnd(&stream);
    return written;
}

static size_t pack_zstd(const uint8_t *data, size_t size, uint8_t *out)
{
    const size_t written = ZSTD_compress(out, PACKED_MAX, data, size, 1);
    CHECK(!ZSTD_isError(written));
    return written;
}

/* Two members, the second from the middle of the text on: tools write files like that. */
static size_t pack_twice(size_t (*pack)(const uint8_t *, size_t, uint8_t *))
{
    const size_t half = TEXT_SIZE / 2 + 1;
    const size_t first = pack(text, half, packed);
    return first + pack(text + half, TEXT_SIZE - half, packed + first);
}

/* Reads all in pieces of changing size and compares with the text. */
static allot_status read_and_compare(alloti_source *source, uint64_t *out)
{
    uint64_t state = check_seed();
    uint64_t total = 0;
    for (;;) {
        const size_t want = (size_t)check_random_range(&state, 1, 400000);
        const uint8_t *data = NULL;
        size_t available = 0;
        const allot_status status = alloti_source_fill(source, want, &data, &available);
        *out = total;
        if (status != ALLOT_STATUS_OK || available == 0) {
            return status;
        }
        const size_t taken = available < want ? available : want;
        CHECK(available >= want || total + available == TEXT_SIZE);
        if (!CHECK(total + taken <= TEXT_SIZE && memcmp(data, text + total, taken) == 0)) {
            return ALLOT_STATUS_OK;
        }
        alloti_source_consume(source, taken);
        total += taken;
        CHECK_EQ(alloti_source_offset(source), total);
    }
}

static void check_reads_whole(const void *data, size_t size)
{
    alloti_source *source = NULL;
    uint64_t total = 0;
    REQUIRE_OK(alloti_source_open_memory(data, size, &source));
    CHECK_OK(read_and_compare(source, &total));
    CHECK_EQ(total, TEXT_SIZE);
    uint64_t done = 0;
    uint64_t all = 0;
    alloti_source_progress(source, &done, &all);
    CHECK_EQ(done, size);
    CHECK_EQ(all, size);
    alloti_source_close(source);
}

static void plain_bytes_are_shown_as_they_are(void)
{
    make_text();
    check_reads_whole(text, TEXT_SIZE);
}

static void gzip_is_unpacked_also_in_several_members(void)
{
    make_text();
    check_reads_whole(packed, pack_gzip(text, TEXT_SIZE, packed));
    check_reads_whole(packed, pack_twice(pack_gzip));
}

static void zstd_is_unpacked_also_in_several_frames(void)
{
    make_text();
    check_reads_whole(packed, pack_zstd(text, TEXT_SIZE, packed));
    check_reads_whole(packed, pack_twice(pack_zstd));
}

static void nothing_is_an_end_not_an_error(void)
{
    alloti_source *source = NULL;
    const uint8_t *data = NULL;
    size_t available = 9;
    REQUIRE_OK(alloti_source_open_memory("", 0, &source));
    CHECK_OK(alloti_source_fill(source, 10, &data, &available));
    CHECK_EQ(available, 0);
    alloti_source_close(source);
    alloti_source_close(NULL);
}

/* A cut file shows what is there, then fails with the place; it never succeeds. */
static void check_truncated(size_t size, const char *kind)
{
    for (size_t cut = 1; cut < 40; cut++) {
        const size_t left = cut < 20 ? size - cut : size * (cut - 19) / 21;
        alloti_source *source = NULL;
        uint64_t total = 0;
        REQUIRE_OK(alloti_source_open_memory(packed, left, &source));
        CHECK_EQ(read_and_compare(source, &total), ALLOT_STATUS_FORMAT);
        CHECK_CONTAINS(allot_error_detail(), kind);
        CHECK_CONTAINS(allot_error_detail(), "of the compressed file");
        CHECK(total < TEXT_SIZE);
        alloti_source_close(source);
    }
}

static void cut_files_fail_with_a_place(void)
{
    make_text();
    check_truncated(pack_gzip(text, TEXT_SIZE, packed), "gzip: the file ends too early");
    check_truncated(pack_zstd(text, TEXT_SIZE, packed), "zstd: the file ends too early");
}

static void changed_bytes_of_gzip_are_noticed(void)
{
    make_text();
    const size_t size = pack_gzip(text, 100000, packed);
    packed[size - 8] ^= 1; /* the checksum */
    alloti_source *source = NULL;
    const uint8_t *data = NULL;
    size_t available = 0;
    REQUIRE_OK(alloti_source_open_memory(packed, size, &source));
    CHECK_EQ(alloti_source_fill(source, 200000, &data, &available), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "gzip");
    alloti_source_close(source);
}

static void garbage_after_gzip_is_noticed(void)
{
    make_text();
    const size_t size = pack_gzip(text, 1000, packed);
    memcpy(packed + size, "garbage", 7);
    alloti_source *source = NULL;
    const uint8_t *data = NULL;
    size_t available = 0;
    REQUIRE_OK(alloti_source_open_memory(packed, size + 7, &source));
    CHECK_EQ(alloti_source_fill(source, 2000, &data, &available), ALLOT_STATUS_FORMAT);
    alloti_source_close(source);
}

static const char *file_in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *const file = fopen(path, "wb");
    if (CHECK(file != NULL)) {
        CHECK_EQ(fwrite(data, 1, size, file), size);
        CHECK_EQ(fclose(file), 0);
    }
}

static void check_file(const void *data, size_t size)
{
    const char *const path = file_in_folder("file");
    write_file(path, data, size);
    alloti_source *source = NULL;
    uint64_t total = 0;
    REQUIRE_OK(alloti_source_open(path, &source));
    unlink(path); /* an open source no longer needs the name */
    CHECK_OK(read_and_compare(source, &total));
    CHECK_EQ(total, TEXT_SIZE);
    alloti_source_close(source);
}

static void files_are_read_like_memory(void)
{
    make_text();
    REQUIRE(mkdtemp(folder) != NULL);
    check_file(text, TEXT_SIZE);
    check_file(packed, pack_gzip(text, TEXT_SIZE, packed));
    check_file(packed, pack_zstd(text, TEXT_SIZE, packed));
    rmdir(folder);
}

static void *write_pipe(void *context)
{
    write_file(context, text, TEXT_SIZE);
    return NULL;
}

static void a_pipe_is_read_to_its_end(void)
{
    make_text();
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    REQUIRE(mkdtemp(folder) != NULL);
    char path[200];
    snprintf(path, sizeof path, "%s", file_in_folder("pipe"));
    REQUIRE(mkfifo(path, 0600) == 0);
    pthread_t writer;
    REQUIRE(pthread_create(&writer, NULL, write_pipe, path) == 0);
    alloti_source *source = NULL;
    uint64_t total = 0;
    CHECK_OK(alloti_source_open(path, &source));
    pthread_join(writer, NULL);
    REQUIRE(source != NULL);
    CHECK_OK(read_and_compare(source, &total));
    CHECK_EQ(total, TEXT_SIZE);
    alloti_source_close(source);
    unlink(path);
    rmdir(folder);
}

static void what_is_no_file_is_refused(void)
{
    alloti_source *source = NULL;
    CHECK_EQ(alloti_source_open("/nonexistent/file", &source), ALLOT_STATUS_IO);
    CHECK_CONTAINS(allot_error_detail(), "No such file");
    CHECK_EQ(alloti_source_open("/", &source), ALLOT_STATUS_IO);
    CHECK_CONTAINS(allot_error_detail(), "directory");
    CHECK(source == NULL);
}

static allot_status open_and_read(void *context)
{
    const size_t *const size = context;
    alloti_source *source = NULL;
    uint64_t total = 0;
    allot_status status = alloti_source_open_memory(packed, *size, &source);
    if (status == ALLOT_STATUS_OK) {
        status = read_and_compare(source, &total);
    }
    alloti_source_close(source);
    return status;
}

static void every_allocation_may_fail(void)
{
    make_text();
    size_t size = pack_gzip(text, TEXT_SIZE, packed);
    CHECK(alloc_fault_each(open_and_read, &size) >= 2);
    size = pack_zstd(text, TEXT_SIZE, packed);
    CHECK(alloc_fault_each(open_and_read, &size) >= 2);
}

static void no_bytes_at_no_address_are_an_empty_file(void)
{
    alloti_source *source = NULL;
    const uint8_t *data = NULL;
    size_t available = 1;
    REQUIRE_OK(alloti_source_open_memory(NULL, 0, &source));
    CHECK_OK(alloti_source_fill(source, 1, &data, &available));
    CHECK_EQ(available, 0);
    alloti_source_close(source);
}

static const check_test TESTS[] = {
    {"no_bytes_at_no_address_are_an_empty_file", no_bytes_at_no_address_are_an_empty_file},
    {"plain_bytes_are_shown_as_they_are", plain_bytes_are_shown_as_they_are},
    {"gzip_is_unpacked_also_in_several_members", gzip_is_unpacked_also_in_several_members},
    {"zstd_is_unpacked_also_in_several_frames", zstd_is_unpacked_also_in_several_frames},
    {"nothing_is_an_end_not_an_error", nothing_is_an_end_not_an_error},
    {"cut_files_fail_with_a_place", cut_files_fail_with_a_place},
    {"changed_bytes_of_gzip_are_noticed", changed_bytes_of_gzip_are_noticed},
    {"garbage_after_gzip_is_noticed", garbage_after_gzip_is_noticed},
    {"files_are_read_like_memory", files_are_read_like_memory},
    {"a_pipe_is_read_to_its_end", a_pipe_is_read_to_its_end},
    {"what_is_no_file_is_refused", what_is_no_file_is_refused},
    {"every_allocation_may_fail", every_allocation_may_fail},
};
CHECK_MAIN(TESTS)
