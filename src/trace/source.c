/* SPDX-License-Identifier: MIT */
/*
 * The window over a trace file. A plain file is mapped and shown directly; pages behind the cursor
 * are given back every RELEASE_STEP bytes. A compressed file is mapped too and unpacked, step by
 * step, into a buffer that holds what was asked for; it grows by half. What cannot be mapped (a
 * pipe) is read into memory first.
 */
#include "trace/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "core/array.h"
#include "core/size_math.h"

enum { UNPACK_STEP = 256 << 10, RELEASE_STEP = 16 << 20, READ_STEP = 1 << 20 };

typedef enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD } packing;
typedef enum ownership { INPUT_BORROWED, INPUT_MAPPED, INPUT_ALLOCATED } ownership;

struct alloti_source {
    const uint8_t *input; /**< The file's bytes. */
    size_t input_size;
    size_t input_pos;      /**< Plain: the cursor. Packed: what the decoder has taken. */
    size_t input_released; /**< Bytes at the start of the mapping that were given back. */
    ownership owner;

    packing packed;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool is_between_frames; /**< The decoder stands at the end of a gzip member or zstd frame. */
    uint8_t *window;        /**< Unpacked bytes [window_begin, window_end). */
    uint64_t window_capacity;
    size_t window_begin;
    size_t window_end;

    uint64_t offset; /**< Decompressed bytes before the cursor. */
};

static allot_status packing_begin(alloti_source *source)
{
    const uint8_t *const head = source->input;
    const size_t size = source->input_size;
    if (size >= 2 && head[0] == 0x1f && head[1] == 0x8b) {
        enum { GZIP_ONLY = 16 };
        if (inflateInit2(&source->gzip, MAX_WBITS + GZIP_ONLY) != Z_OK) {
            return alloti_fail_memory(sizeof source->gzip);
        }
        source->packed = PACKING_GZIP;
    } else if (size >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0) {
        source->zstd = ZSTD_createDStream();
        if (source->zstd == NULL) {
            return alloti_fail_memory(ZSTD_DStreamInSize());
        }
        source->packed = PACKING_ZSTD;
    }
    source->is_between_frames = false;
    return ALLOT_STATUS_OK;
}

allot_status alloti_source_open_memory(const void *data, size_t size, alloti_source **out)
{
    alloti_source *const source = calloc(1, sizeof *source);
    if (source == NULL) {
        return alloti_fail_memory(sizeof *source);
    }
    source->input = data;
    source->input_size = size;
    const allot_status status = packing_begin(source);
    if (status != ALLOT_STATUS_OK) {
        alloti_source_close(source);
        return status;
    }
    *out = source;
    return ALLOT_STATUS_OK;
}

static allot_status read_all(int file, uint8_t **out, size_t *out_size)
{
    uint8_t *data = NULL;
    uint64_t capacity = 0;
    size_t size = 0;
    for (;;) {
        const allot_status status = alloti_array_reserve(&data, &capacity, size + READ_STEP, 1);
        if (status != ALLOT_STATUS_OK) {
            free(data);
            return status;
        }
        const ssize_t count = read(file, data + size, READ_STEP);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            free(data);
            return alloti_fail(ALLOT_STATUS_IO, "cannot read: %s", strerror(errno));
        }
        if (count == 0) {
            *out = data;
            *out_size = size;
            return ALLOT_STATUS_OK;
        }
        size += (size_t)count;
    }
}

static allot_status input_open(int file, const uint8_t **input, size_t *size, ownership *owner)
{
    struct stat info;
    if (fstat(file, &info) != 0) {
        return alloti_fail(ALLOT_STATUS_IO, "cannot read: %s", strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return alloti_fail(ALLOT_STATUS_IO, "is a directory");
    }
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        void *const map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (map != MAP_FAILED) {
            madvise(map, (size_t)info.st_size, MADV_SEQUENTIAL);
            *input = map;
            *size = (size_t)info.st_size;
            *owner = INPUT_MAPPED;
            return ALLOT_STATUS_OK;
        }
    }
    uint8_t *data = NULL;
    const allot_status status = read_all(file, &data, size);
    if (status == ALLOT_STATUS_OK) {
        *input = data;
        *owner = INPUT_ALLOCATED;
    }
    return status;
}

allot_status alloti_source_open(const char *path, alloti_source **out)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return alloti_fail(ALLOT_STATUS_IO, "cannot open: %s", strerror(errno));
    }
    const uint8_t *input = NULL;
    size_t size = 0;
    ownership owner = INPUT_BORROWED;
    allot_status status = input_open(file, &input, &size, &owner);
    close(file);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_source *source = NULL;
    status = alloti_source_open_memory(input, size, &source);
    if (status != ALLOT_STATUS_OK) {
        if (owner == INPUT_MAPPED) {
            munmap((void *)(uintptr_t)input, size);
        } else {
            free((void *)(uintptr_t)input);
        }
        return status;
    }
    source->owner = owner;
    *out = source;
    return ALLOT_STATUS_OK;
}

void alloti_source_close(alloti_source *source)
{
    if (source == NULL) {
        return;
    }
    if (source->packed == PACKING_GZIP) {
        inflateEnd(&source->gzip);
    }
    ZSTD_freeDStream(source->zstd);
    free(source->window);
    if (source->owner == INPUT_MAPPED) {
        munmap((void *)(uintptr_t)source->input, source->input_size);
    } else if (source->owner == INPUT_ALLOCATED) {
        free((void *)(uintptr_t)source->input);
    }
    free(source);
}

/* Give back pages of the mapping that were read; touching them again would read them anew. */
static void input_release(alloti_source *source)
{
    if (source->owner != INPUT_MAPPED ||
        source->input_pos - source->input_released < RELEASE_STEP) {
        return;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t end = (size_t)alloti_align_down(source->input_pos, page);
    madvise((void *)(uintptr_t)(source->input + source->input_released),
            end - source->input_released, MADV_DONTNEED);
    source->input_released = end;
}

static allot_status fail_packed(const alloti_source *source, const char *kind, const char *why)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "byte %zu of the compressed file: %s: %s",
                       source->input_pos, kind, why);
}

static allot_status unpack_gzip(alloti_source *source, size_t room)
{
    if (source->is_between_frames) {
        inflateReset(&source->gzip);
        source->is_between_frames = false;
    }
    const size_t left = source->input_size - source->input_pos;
    source->gzip.next_in = (Bytef *)(uintptr_t)(source->input + source->input_pos);
    source->gzip.avail_in = left > UINT32_MAX ? UINT32_MAX : (uInt)left;
    source->gzip.next_out = source->window + source->window_end;
    source->gzip.avail_out = (uInt)room;
    const uInt given = source->gzip.avail_in;
    const int code = inflate(&source->gzip, Z_NO_FLUSH);
    source->input_pos += given - source->gzip.avail_in;
    source->window_end += room - source->gzip.avail_out;
    if (code == Z_STREAM_END) {
        source->is_between_frames = true;
        return ALLOT_STATUS_OK;
    }
    if (code == Z_MEM_ERROR) {
        return alloti_fail_memory(room);
    }
    if (code == Z_BUF_ERROR ||
        (code == Z_OK && source->gzip.avail_out != 0 && source->input_pos == source->input_size)) {
        return fail_packed(source, "gzip", "the file ends too early");
    }
    if (code != Z_OK) {
        return fail_packed(source, "gzip", source->gzip.msg != NULL ? source->gzip.msg : "corrupt");
    }
    return ALLOT_STATUS_OK;
}

static allot_status unpack_zstd(alloti_source *source, size_t room)
{
    ZSTD_inBuffer in = {source->input, source->input_size, source->input_pos};
    ZSTD_outBuffer out = {source->window + source->window_end, room, 0};
    const size_t code = ZSTD_decompressStream(source->zstd, &out, &in);
    source->input_pos = in.pos;
    source->window_end += out.pos;
    if (ZSTD_isError(code)) {
        return fail_packed(source, "zstd", ZSTD_getErrorName(code));
    }
    source->is_between_frames = code == 0;
    if (code != 0 && out.pos < room && in.pos == in.size) {
        return fail_packed(source, "zstd", "the file ends too early");
    }
    return ALLOT_STATUS_OK;
}

static bool packed_is_at_end(const alloti_source *source)
{
    return source->is_between_frames && source->input_pos == source->input_size;
}

static allot_status unpack(alloti_source *source, size_t want)
{
    size_t have = source->window_end - source->window_begin;
    if (have >= want || packed_is_at_end(source)) {
        return ALLOT_STATUS_OK;
    }
    if (source->window_begin != 0) {
        memmove(source->window, source->window + source->window_begin, have);
        source->window_begin = 0;
        source->window_end = have;
    }
    while (have < want && !packed_is_at_end(source)) {
        /* Step by step: a length that a corrupt file claims must not be allocated in advance. */
        allot_status status = alloti_array_reserve(&source->window, &source->window_capacity,
                                                   source->window_end + UNPACK_STEP, 1);
        if (status == ALLOT_STATUS_OK) {
            status = source->packed == PACKING_GZIP ? unpack_gzip(source, UNPACK_STEP)
                                                    : unpack_zstd(source, UNPACK_STEP);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        input_release(source);
        have = source->window_end;
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_source_fill(alloti_source *source, size_t want, const uint8_t **data,
                                size_t *available)
{
    if (source->packed == PACKING_NONE) {
        *data = source->input == NULL ? NULL : source->input + source->input_pos;
        *available = source->input_size - source->input_pos;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = unpack(source, want);
    if (status == ALLOT_STATUS_OK) {
        *data = source->window + source->window_begin;
        *available = source->window_end - source->window_begin;
    }
    return status;
}

void alloti_source_consume(alloti_source *source, size_t size)
{
    source->offset += size;
    if (source->packed == PACKING_NONE) {
        assert(size <= source->input_size - source->input_pos);
        source->input_pos += size;
        input_release(source);
        return;
    }
    assert(size <= source->window_end - source->window_begin);
    source->window_begin += size;
}

uint64_t alloti_source_offset(const alloti_source *source)
{
    return source->offset;
}

void alloti_source_progress(const alloti_source *source, uint64_t *done, uint64_t *total)
{
    *done = source->input_pos;
    *total = source->input_size;
}
