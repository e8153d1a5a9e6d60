/* SPDX-License-Identifier: MIT */
/**
 * Mappings of private anonymous memory, which the host backend is made of. Addresses are plain
 * numbers here and multiples of the page, sizes likewise.
 */
#ifndef ALLOTI_DEVICE_HOST_PAGES_H
#define ALLOTI_DEVICE_HOST_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/** Huge pages are used where the kernel's have this size. */
#define HOST_HUGE_PAGE (UINT64_C(2) << 20)

/** What alloti_host_pages_map() makes. */
typedef struct host_mapping {
    uint64_t size;
    uint64_t align;   /**< A power of 2, at least the page. */
    bool is_huge;     /**< Ask for huge pages; else ask for none. */
    bool is_reserved; /**< The kernel need not have memory for all of it. */
    bool is_closed;   /**< Use of it faults until it is opened. */
} host_mapping;

/** The one place where addresses become pointers. */
static inline void *alloti_host_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): they are addresses */
}

/** Size of a page of this machine. */
uint64_t alloti_host_page(void);

/** Whether the kernel hands out huge pages of HOST_HUGE_PAGE to those who ask. */
bool alloti_host_has_huge_pages(void);

/** Map zeroed memory, readable and writable unless closed; 0 with errno on failure. */
uint64_t alloti_host_pages_map(const host_mapping *mapping);

/** False with errno, and everything still mapped, on failure. */
bool alloti_host_pages_unmap(uint64_t address, uint64_t size);

/** Give the memory behind addresses back; they read as zero afterwards. */
void alloti_host_pages_discard(uint64_t address, uint64_t size);

/** Let use of the addresses work (`open`) or fault; false with errno on failure. */
bool alloti_host_pages_protect(uint64_t address, uint64_t size, bool open);

#endif /* ALLOTI_DEVICE_HOST_PAGES_H */
