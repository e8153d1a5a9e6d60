/* SPDX-License-Identifier: MIT */
#include "device/host_pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/size_math.h"

enum { DISCARD_LOCKED = 24 }; /* MADV_DONTNEED_LOCKED, of Linux 5.18 */

uint64_t alloti_host_page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/** First line of a small file; false if it cannot be read. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    const bool is_read = fgets(line, size, file) != NULL;
    (void)fclose(file);
    return is_read;
}

bool alloti_host_has_huge_pages(void)
{
    char line[128];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", line, sizeof line) ||
        strcmp(line, "2097152\n") != 0) {
        return false;
    }
    return read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line) &&
           strstr(line, "[never]") == NULL;
}

/** Map `size` bytes anywhere; 0 on failure. */
static uint64_t map_anywhere(const host_mapping *mapping, uint64_t size)
{
    if (size > SIZE_MAX) {
        errno = ENOMEM;
        return 0;
    }
    const int protection = mapping->is_closed ? PROT_NONE : PROT_READ | PROT_WRITE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (mapping->is_reserved ? MAP_NORESERVE : 0);
    void *const start = mmap(NULL, (size_t)size, protection, flags, -1, 0);
    return start == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)start;
}

uint64_t alloti_host_pages_map(const host_mapping *mapping)
{
    const uint64_t slack = mapping->align - alloti_host_page();
    uint64_t span = 0;
    if (!alloti_add(mapping->size, slack, &span)) {
        errno = ENOMEM;
        return 0;
    }
    const uint64_t start = map_anywhere(mapping, span);
    if (start == 0) {
        return 0;
    }
    const uint64_t address = alloti_align_down(start + mapping->align - 1, mapping->align);
    const uint64_t tail = start + span - (address + mapping->size);
    /* What stays mapped of the slack where these fail is never touched, and so costs no memory. */
    if (address != start) {
        (void)alloti_host_pages_unmap(start, address - start);
    }
    if (tail != 0) {
        (void)alloti_host_pages_unmap(address + mapping->size, tail);
    }
    /* Advice: a kernel that does not know it gives the pages that it has. */
    (void)madvise(alloti_host_pointer(address), (size_t)mapping->size,
                  mapping->is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return address;
}

bool alloti_host_pages_unmap(uint64_t address, uint64_t size)
{
    return munmap(alloti_host_pointer(address), (size_t)size) == 0;
}

void alloti_host_pages_discard(uint64_t address, uint64_t size)
{
    void *const start = alloti_host_pointer(address);
    if (madvise(start, (size_t)size, MADV_DONTNEED) != 0 &&
        madvise(start, (size_t)size, DISCARD_LOCKED) != 0) {
        /* Locked into memory under a kernel before 5.18: the pages stay, their bytes go. */
        (void)alloti_host_pages_protect(address, size, true);
        memset(start, 0, (size_t)size);
    }
}

bool alloti_host_pages_protect(uint64_t address, uint64_t size, bool open)
{
    return mprotect(alloti_host_pointer(address), (size_t)size,
                    open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}
