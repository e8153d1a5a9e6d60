/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create */
#include "standin/bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/size_math.h"
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

int bytes_share(standin *state, uint64_t address, uint64_t extent)
{
    const int file = bytes_file(state, extent);
    void *const view =
        file < 0 ? MAP_FAILED
                 : mmap(NULL, (size_t)extent, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (view == MAP_FAILED) {
        if (file >= 0) {
            close(file);
        }
        return -1;
    }
    memcpy(view, alias(state, address), (size_t)extent);
    munmap(view, (size_t)extent);
    if (bytes_map(state, address, extent, file, 0) != CUDA_OK) {
        close(file);
        return -1;
    }
    return file;
}

cuda_status bytes_map_foreign(standin *state, uint64_t address, uint64_t extent, long process,
                              int file)
{
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    char path[64];
    struct stat facts;
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, file);
    const int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0) {
        return CUDA_INVALID_VALUE;
    }
    cuda_status status = CUDA_INVALID_VALUE;
    if (fstat(opened, &facts) == 0 && (uint64_t)facts.st_size >= extent) {
        status = bytes_map(state, address, extent, opened, 0);
    }
    close(opened);
    return status;
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

/** Whether the device of a stream, or the one that the memory is of, was granted an access. */
static bool is_granted(const memory_block *block, uint32_t device, bool is_write)
{
    const uint64_t granted = is_write ? block->writers : block->readers;
    return (granted >> device & 1) != 0 || (granted >> block->device & 1) != 0;
}

static cuda_status refuse(standin *state, const rule_place *where, const memory_block *block,
                          uint64_t at)
{
    if (block == NULL && vmm_reservation_at(state, at) != NULL) {
        return rule_broken(state, where, CUDA_INVALID_VALUE,
                           "address 0x%" PRIx64 " is reserved, but no memory is mapped there", at);
    }
    if (block == NULL) {
        return rule_broken(
            state, where, CUDA_INVALID_VALUE,
            "address 0x%" PRIx64 " belongs to no allocation, or to one that was freed", at);
    }
    return rule_broken(state, where, CUDA_INVALID_VALUE,
                       "address 0x%" PRIx64 " lies %" PRIu64 " bytes past the end of an allocation "
                       "of %" PRIu64 " bytes",
                       at, at - block->address - block->size, block->size);
}

static cuda_status refuse_access(standin *state, const rule_place *where, uint32_t device,
                                 uint64_t at, bool is_write)
{
    return rule_broken(state, where, CUDA_ILLEGAL_ADDRESS,
                       "device %u may not %s address 0x%" PRIx64
                       ": cuMemSetAccess did not allow it",
                       (unsigned)device, is_write ? "write" : "read", at);
}

cuda_status bytes_check(standin *state, uint32_t device, const rule_place *where, uint64_t address,
                        uint64_t size, bool is_write)
{
    if (size > UINT64_MAX - address) {
        return rule_broken(state, where, CUDA_INVALID_VALUE,
                           "%" PRIu64 " bytes from address 0x%" PRIx64 " wrap around", size,
                           address);
    }
    for (uint64_t at = address; at < address + size;) {
        const memory_block *const block = memory_find(state, at);
        if (block == NULL || at >= block->address + block->size) {
            return refuse(state, where, block, at);
        }
        if (!is_granted(block, device, is_write)) {
            return refuse_access(state, where, device, at, is_write);
        }
        at = block->address + block->size;
        if (block->kind != MEMORY_MAPPING && at < address + size) {
            /* Neighbours by chance are not one allocation. */
            return refuse(state, where, block, at);
        }
    }
    return CUDA_OK;
}

cuda_status bytes_check_backing(standin *state, uint32_t device, const rule_place *where,
                                uint64_t address, uint64_t size, bool is_write)
{
    for (uint64_t at = address; at < address + size;
         at = alloti_align_down(at, STANDIN_GRANULE) + STANDIN_GRANULE) {
        const uint32_t index = address_owner(&state->space, at);
        if (index == ALLOT_NONE) {
            return refuse(state, where, NULL, at);
        }
        if (!is_granted(&state->memory.blocks[index], device, is_write)) {
            return refuse_access(state, where, device, at, is_write);
        }
    }
    return CUDA_OK;
}

/** A copy of real bytes outside of all streams. */
static void copy_now(standin *state, uint64_t to, uint64_t from, uint64_t size)
{
    const bool to_device = address_is_inside(&state->space, to);
    const bool from_device = address_is_inside(&state->space, from);
    const uint32_t device = standin_this_thread()->device;
    if ((!to_device || bytes_check(state, device, NULL, to, size, true) == CUDA_OK) &&
        (!from_device || bytes_check(state, device, NULL, from, size, false) == CUDA_OK)) {
        memmove((void *)(uintptr_t)(to_device ? to + state->space.alias : to),
                (const void *)(uintptr_t)(from_device ? from + state->space.alias : from),
                (size_t)size);
    }
}

void bytes_copy(standin *state, void *to, const void *from, uint64_t size)
{
    const uint64_t target = (uintptr_t)to;
    const uint64_t source = (uintptr_t)from;
    if (size == 0) {
        return;
    }
    if (state->config.has_bytes) {
        copy_now(state, target, source, size);
        return;
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
}

void bytes_set(standin *state, void *to, int value, uint64_t size)
{
    const uint64_t target = (uintptr_t)to;
    if (size == 0) {
        return;
    }
    if (address_is_inside(&state->space, target)) {
        value_forget(&state->values, target, size);
    } else {
        memset(to, value, (size_t)size);
    }
}
