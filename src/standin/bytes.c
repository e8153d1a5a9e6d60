/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create */
#include "standin/bytes.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin/state.h"

static void *alias(const standin *state, uint64_t address)
{
    return (void *)(uintptr_t)(address + state->space.alias);
}

cuda_status bytes_commit(standin *state, uint64_t address, uint64_t extent)
{
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    void *const got = mmap(alias(state, address), (size_t)extent, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return got == MAP_FAILED ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

void bytes_release(standin *state, uint64_t address, uint64_t extent)
{
    if (state->config.has_bytes) {
        (void)mmap(alias(state, address), (size_t)extent, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
}

int bytes_file(const standin *state, uint64_t size)
{
    if (!state->config.has_bytes) {
        return -1;
    }
    const int file = memfd_create("allot-standin", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)size) != 0) {
        close(file);
        return -1;
    }
    return file;
}

cuda_status bytes_map(standin *state, uint64_t address, uint64_t size, int file, uint64_t offset)
{
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    void *const got = mmap(alias(state, address), (size_t)size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, file, (off_t)offset);
    return got == MAP_FAILED ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

/** Whether [address, address + size) lies in blocks that may be accessed. */
static cuda_status check_range(const standin *state, uint64_t address, uint64_t size)
{
    uint64_t at = address;
    while (at < address + size) {
        const memory_block *const block = memory_find(state, at);
        if (block == NULL) {
            return CUDA_INVALID_VALUE;
        }
        if (!block->is_readable) {
            return CUDA_ILLEGAL_ADDRESS;
        }
        const uint64_t end = block->kind == MEMORY_MAPPING ? block->address + block->extent
                                                           : block->address + block->size;
        if (at >= end) {
            return CUDA_INVALID_VALUE;
        }
        at = end;
        if (block->kind != MEMORY_MAPPING && at < address + size) {
            return CUDA_INVALID_VALUE; /* neighbours by chance are not one allocation */
        }
    }
    return CUDA_OK;
}

/** Where the bytes of a place are; host places are themselves. */
static cuda_status resolve(const standin *state, uint64_t place, uint64_t size, void **out)
{
    if (!address_is_inside(&state->space, place)) {
        *out = (void *)(uintptr_t)place;
        return CUDA_OK;
    }
    *out = alias(state, place);
    return check_range(state, place, size);
}

static cuda_status copy_real(standin *state, uint64_t to, uint64_t from, uint64_t size)
{
    void *target = NULL;
    void *source = NULL;
    cuda_status status = resolve(state, to, size, &target);
    if (status == CUDA_OK) {
        status = resolve(state, from, size, &source);
    }
    if (status == CUDA_OK) {
        memmove(target, source, (size_t)size);
    }
    return status;
}

cuda_status bytes_copy(standin *state, void *to, const void *from, uint64_t size)
{
    const uint64_t target = (uintptr_t)to;
    const uint64_t source = (uintptr_t)from;
    if (size == 0) {
        return CUDA_OK;
    }
    if (state->config.has_bytes) {
        return copy_real(state, target, source, size);
    }
    const bool to_device = address_is_inside(&state->space, target);
    const bool from_device = address_is_inside(&state->space, source);
    if (to_device && from_device) {
        value_copy(&state->values, target, source, size);
    } else if (to_device) {
        value_write(&state->values, target, from, size);
    } else if (from_device) {
        if (!host_clear(&state->host, to, size)) {
            memset(to, 0, (size_t)size);
        }
        value_read(&state->values, source, to, size);
    } else {
        memmove(to, from, (size_t)size);
    }
    return CUDA_OK;
}

cuda_status bytes_set(standin *state, void *to, int value, uint64_t size)
{
    const uint64_t target = (uintptr_t)to;
    if (size == 0) {
        return CUDA_OK;
    }
    if (state->config.has_bytes) {
        void *place = NULL;
        const cuda_status status = resolve(state, target, size, &place);
        if (status == CUDA_OK) {
            memset(place, value, (size_t)size);
        }
        return status;
    }
    if (address_is_inside(&state->space, target)) {
        value_forget(&state->values, target, size);
    } else {
        memset(to, value, (size_t)size);
    }
    return CUDA_OK;
}
