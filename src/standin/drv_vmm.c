/* SPDX-License-Identifier: MIT */
/* CUDA driver: virtual memory. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "standin/runtime.h"

CUDA_ENTRY(int, cuMemGetAllocationGranularity)
(size_t *granularity, const cuda_allocation_properties *properties, int option)
{
    (void)properties;
    (void)option;
    *granularity = STANDIN_GRANULE;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuMemAddressReserve)
(uint64_t *out, size_t size, size_t align, uint64_t wish, unsigned long long flags)
{
    if (flags != 0) {
        return CUDA_INVALID_VALUE;
    }
    standin *const state = standin_open();
    const cuda_status status = vmm_reserve(state, size, align, wish, out);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemAddressFree)(uint64_t address, size_t size)
{
    standin *const state = standin_open();
    const cuda_status status = vmm_unreserve(state, address, size);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemCreate)
(uint64_t *handle, size_t size, const cuda_allocation_properties *properties,
 unsigned long long flags)
{
    if (properties == NULL || flags != 0) {
        return CUDA_INVALID_VALUE;
    }
    standin *const state = standin_open();
    const cuda_status status = vmm_create(state, size, properties, handle);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemRelease)(uint64_t handle)
{
    standin *const state = standin_open();
    const cuda_status status = vmm_release(state, handle);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemRetainAllocationHandle)(uint64_t *handle, void *address)
{
    standin *const state = standin_open();
    const cuda_status status = vmm_retain_at(state, (uintptr_t)address, handle);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemMap)
(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags)
{
    if (flags != 0) {
        return CUDA_INVALID_VALUE;
    }
    standin *const state = standin_open();
    const cuda_status status = vmm_map(state, address, size, offset, handle);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemUnmap)(uint64_t address, size_t size)
{
    standin *const state = standin_open();
    const cuda_status status = vmm_unmap(state, address, size);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemSetAccess)
(uint64_t address, size_t size, const cuda_access *access, size_t count)
{
    standin *const state = standin_open();
    const cuda_status status = vmm_set_access(state, address, size, access, count);
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cuMemGetAccess)
(unsigned long long *flags, const cuda_location *location, uint64_t address)
{
    enum { DEVICE = 1, READ = 1, WRITE = 2 };
    if (location->type != DEVICE || (unsigned)location->id >= standin_settings()->device_count) {
        return CUDA_INVALID_VALUE;
    }
    const unsigned device = (unsigned)location->id;
    standin *const state = standin_open();
    const memory_block *const block = memory_find(state, address);
    if (block != NULL) {
        *flags = (block->readers >> device & 1) * READ + (block->writers >> device & 1) * WRITE;
    }
    standin_close(state);
    return block == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
}

CUDA_ENTRY(int, cuMemGetAllocationPropertiesFromHandle)
(cuda_allocation_properties *properties, uint64_t handle)
{
    standin *const state = standin_open();
    const vmm_physical *const physical = vmm_find(state, handle);
    if (physical != NULL) {
        *properties = physical->properties;
    }
    standin_close(state);
    return physical == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
}

/*
 * A handle goes to another process as a file that ends with how large the memory is and whose. With
 * real bytes these come first.
 */
typedef struct shared_handle {
    uint64_t mark;
    uint64_t size;
    uint64_t device;
} shared_handle;

enum { HANDLE_FILE = 1 };
static const uint64_t SHARED_MARK = UINT64_C(0x616c6c6f74736872);

/** A file to give away, for the physical memory of that file or, without bytes, -1. */
static int make_shared(const shared_handle *shared, int bytes)
{
    const int file = bytes >= 0 ? dup(bytes) : memfd_create("allot-standin-handle", MFD_CLOEXEC);
    const off_t end = bytes >= 0 ? (off_t)shared->size : 0;
    if (file >= 0 && pwrite(file, shared, sizeof *shared, end) != (ssize_t)sizeof *shared) {
        close(file);
        return -1;
    }
    return file;
}

static bool read_shared(int file, shared_handle *out)
{
    struct stat facts;
    return fstat(file, &facts) == 0 && facts.st_size >= (off_t)sizeof *out &&
           pread(file, out, sizeof *out, facts.st_size - (off_t)sizeof *out) ==
               (ssize_t)sizeof *out &&
           out->mark == SHARED_MARK && out->size != 0 && out->size % STANDIN_GRANULE == 0 &&
           out->device < standin_settings()->device_count;
}

CUDA_ENTRY(int, cuMemExportToShareableHandle)
(int *out, uint64_t handle, int type, unsigned long long flags)
{
    standin *const state = standin_open();
    const vmm_physical *const physical = vmm_find(state, handle);
    int file = -1;
    cuda_status status = CUDA_INVALID_VALUE;
    if (physical != NULL && type == HANDLE_FILE && flags == 0) {
        const shared_handle shared = {SHARED_MARK, physical->size, physical->device};
        file = make_shared(&shared, physical->file);
        status = file < 0 ? CUDA_OUT_OF_MEMORY : CUDA_OK;
    }
    standin_close(state);
    if (status == CUDA_OK) {
        *out = file;
    }
    return status;
}

CUDA_ENTRY(int, cuMemImportFromShareableHandle)(uint64_t *handle, void *system_handle, int type)
{
    shared_handle shared = {0};
    const int file = (int)(intptr_t)system_handle;
    if (type != HANDLE_FILE || !read_shared(file, &shared)) {
        return CUDA_INVALID_VALUE;
    }
    const int own = standin_settings()->has_bytes ? dup(file) : -1;
    standin *const state = standin_open();
    const cuda_status status = vmm_import(state, shared.size, (uint32_t)shared.device, own, handle);
    standin_close(state);
    if (status != CUDA_OK && own >= 0) {
        close(own);
    }
    return status;
}
