/* SPDX-License-Identifier: MIT */
#include "standin/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/array.h"
#include "core/size_math.h"

enum { PAGE = 4096, CLEAR_MIN = 1 << 16 };

void host_fini(host_state *host)
{
    free(host->ranges);
}

/** Index of the first range that ends above `address`. */
static uint64_t lower_bound(const host_state *host, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = host->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (host->ranges[middle].address + host->ranges[middle].size <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void count_bytes(host_state *host, const host_range *range, bool is_added)
{
    uint64_t *const now = range->kind == HOST_MANAGED ? &host->managed : &host->pinned;
    uint64_t *const peak = range->kind == HOST_MANAGED ? &host->managed_peak : &host->pinned_peak;
    *now = is_added ? *now + range->size : *now - range->size;
    *peak = *now > *peak ? *now : *peak;
}

static cuda_status insert(host_state *host, const host_range *range)
{
    const uint64_t at = lower_bound(host, range->address);
    if (at < host->count && host->ranges[at].address < range->address + range->size) {
        return CUDA_HOST_ALREADY_REGISTERED;
    }
    if (alloti_array_reserve(&host->ranges, &host->capacity, host->count + 1,
                             sizeof *host->ranges) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    memmove(host->ranges + at + 1, host->ranges + at,
            (size_t)(host->count - at) * sizeof *host->ranges);
    host->ranges[at] = *range;
    host->count++;
    count_bytes(host, range, true);
    return CUDA_OK;
}

/** Take a range that begins at an address out of the array; false if there is none. */
static bool take(host_state *host, uint64_t address, host_range *out)
{
    const uint64_t at = lower_bound(host, address);
    if (at == host->count || host->ranges[at].address != address) {
        return false;
    }
    *out = host->ranges[at];
    host->count--;
    memmove(host->ranges + at, host->ranges + at + 1,
            (size_t)(host->count - at) * sizeof *host->ranges);
    count_bytes(host, out, false);
    return true;
}

cuda_status host_allocate(host_state *host, uint64_t size, uint32_t device, host_kind kind,
                          void **out)
{
    uint64_t extent = 0;
    if (!alloti_align_up(size == 0 ? 1 : size, PAGE, &extent)) {
        return CUDA_OUT_OF_MEMORY;
    }
    void *const got = mmap(NULL, (size_t)extent, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        return CUDA_OUT_OF_MEMORY;
    }
    const host_range range = {
        .address = (uintptr_t)got, .size = extent, .device = device, .kind = kind};
    const cuda_status status = insert(host, &range);
    if (status != CUDA_OK) {
        munmap(got, (size_t)extent);
        return status;
    }
    *out = got;
    return CUDA_OK;
}

cuda_status host_free(host_state *host, const void *address, host_kind kind)
{
    const host_range *const found = host_find(host, (uintptr_t)address);
    host_range range = {0};
    if (found == NULL || found->kind != kind || !take(host, (uintptr_t)address, &range)) {
        return CUDA_INVALID_VALUE;
    }
    munmap((void *)(uintptr_t)range.address, (size_t)range.size);
    return CUDA_OK;
}

cuda_status host_register(host_state *host, const void *address, uint64_t size, uint32_t device)
{
    if (address == NULL || size == 0) {
        return CUDA_INVALID_VALUE;
    }
    const host_range range = {
        .address = (uintptr_t)address, .size = size, .device = device, .kind = HOST_REGISTERED};
    return insert(host, &range);
}

cuda_status host_unregister(host_state *host, const void *address)
{
    const host_range *const found = host_find(host, (uintptr_t)address);
    host_range range = {0};
    if (found == NULL || found->kind != HOST_REGISTERED ||
        !take(host, (uintptr_t)address, &range)) {
        return CUDA_HOST_NOT_REGISTERED;
    }
    return CUDA_OK;
}

const host_range *host_find(const host_state *host, uint64_t address)
{
    const uint64_t at = lower_bound(host, address);
    return at < host->count && host->ranges[at].address <= address ? &host->ranges[at] : NULL;
}

bool host_clear(const host_state *host, void *address, uint64_t size)
{
    const uint64_t begin = (uintptr_t)address;
    const host_range *const range = size < CLEAR_MIN ? NULL : host_find(host, begin);
    if (range == NULL || range->kind == HOST_REGISTERED ||
        begin + size > range->address + range->size) {
        return false;
    }
    const uint64_t first = (begin + PAGE - 1) / PAGE * PAGE;
    const uint64_t last = alloti_align_down(begin + size, PAGE);
    memset(address, 0, (size_t)(first - begin));
    memset((void *)(uintptr_t)last, 0, (size_t)(begin + size - last));
    return madvise((void *)(uintptr_t)first, (size_t)(last - first), MADV_DONTNEED) == 0;
}
