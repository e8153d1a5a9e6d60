/* SPDX-License-Identifier: MIT */
/**
 * What this machine lets the host backend do, and how fast: tried and measured once per process,
 * when it is first asked for, in a few milliseconds.
 */
#ifndef ALLOTI_DEVICE_HOST_MACHINE_H
#define ALLOTI_DEVICE_HOST_MACHINE_H

#include "device/host_move.h"

/** Bytes from which moving pages is cheaper than copying them where it never is. */
#define HOST_NEVER UINT64_MAX

enum { HOST_REASON_MAX = 160 };

/** What was found of a way to move pages. */
typedef struct host_way_found {
    bool works;
    char reason[HOST_REASON_MAX]; /**< Why not. */
    bool is_huge_cheap;           /**< An aligned huge page is moved faster than copied. */
    uint64_t page_min[2];         /**< From which on small pages [0], parts of huge ones [1], are
                                     moved faster than copied; HOST_NEVER. */
} host_way_found;

typedef struct host_machine {
    uint64_t page;
    uint64_t memory; /**< Bytes of the machine. */
    bool has_huge;
    uint64_t copy_bytes_per_s; /**< Of bytes that no cache holds. */
    uint64_t copy_latency_ns;
} host_machine;

/** What was found. Measures at the first call. Thread-safe. */
const host_machine *alloti_host_machine(void);

/** What was found of a way. Measures at the first call for it. Thread-safe. */
const host_way_found *alloti_host_way_find(host_way way);

/** The fastest way, by which huge pages or small ones are moved. */
host_way alloti_host_way_best(bool is_huge);

/** Bytes from which on a way moves pages instead of copying; HOST_NEVER. */
uint64_t alloti_host_way_min(host_way way, bool is_huge);

#endif /* ALLOTI_DEVICE_HOST_MACHINE_H */
