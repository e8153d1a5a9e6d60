/* SPDX-License-Identifier: MIT */
/*
 * What calls of a simulated GPU cost. Those that take and map memory: core/driver_costs.h, where
 * making and mapping a page, and unmapping and releasing it, are halved between the two calls. The
 * others are round figures of the order that CUDA's own calls have: about a microsecond for what
 * only reads or marks, a few for what gives work to a stream. They rank, they do not predict.
 */
#include "core/driver_costs.h"
#include "device/simulated.h"

enum {
    MARK_NS = 1000,   /**< Reading or marking: queries, events. */
    SUBMIT_NS = 3000, /**< Giving work to a stream. */
    STREAM_NS = 10000,
    COPY_LATENCY_NS = 5000, /**< Of the device, before the first byte moves. */
};

/** 16 lanes of PCIe 4: 32 GB/s less protocol. */
static const uint64_t LINK_BYTES_PER_S = UINT64_C(25000000000);

static const simulated_call_cost CALLS[ALLOT_DEVICE_CALL_COUNT] = {
    [ALLOT_DEVICE_CALL_MEMORY_INFO] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_ALLOC] = {.call_ns = DRIVER_COST_ALLOC_NS,
                                 .gib_ns = DRIVER_COST_ALLOC_NS_PER_GIB},
    [ALLOT_DEVICE_CALL_FREE] = {.call_ns = DRIVER_COST_FREE_NS},
    [ALLOT_DEVICE_CALL_RESERVE] = {.call_ns = DRIVER_COST_RANGE_NS},
    [ALLOT_DEVICE_CALL_UNRESERVE] = {.call_ns = DRIVER_COST_RANGE_NS},
    [ALLOT_DEVICE_CALL_MEMORY_CREATE] = {.granule_ns = DRIVER_COST_PAGE_MAP_NS / 2,
                                         .gib_ns = DRIVER_COST_ALLOC_NS_PER_GIB},
    [ALLOT_DEVICE_CALL_MEMORY_RELEASE] = {.granule_ns = DRIVER_COST_PAGE_UNMAP_NS / 2},
    [ALLOT_DEVICE_CALL_MAP] = {.call_ns = DRIVER_COST_RANGE_NS,
                               .granule_ns = DRIVER_COST_PAGE_MAP_NS / 2},
    [ALLOT_DEVICE_CALL_UNMAP] = {.call_ns = DRIVER_COST_RANGE_NS,
                                 .granule_ns = DRIVER_COST_PAGE_UNMAP_NS / 2},
    [ALLOT_DEVICE_CALL_STREAM_CREATE] = {.call_ns = STREAM_NS},
    [ALLOT_DEVICE_CALL_STREAM_DESTROY] = {.call_ns = STREAM_NS},
    [ALLOT_DEVICE_CALL_STREAM_WAIT] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_EVENT_CREATE] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_EVENT_DESTROY] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_EVENT_RECORD] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_EVENT_QUERY] = {.call_ns = MARK_NS},
    [ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_COPY] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_COPY_BATCH] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_FILL] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_WRITE] = {.call_ns = SUBMIT_NS},
    [ALLOT_DEVICE_CALL_READ] = {.call_ns = SUBMIT_NS},
};

void alloti_simulated_costs(const allot_gpu *gpu, simulated_costs *out)
{
    *out =
        (simulated_costs){.copy_latency_ns = COPY_LATENCY_NS, .link_bytes_per_s = LINK_BYTES_PER_S};
    for (size_t i = 0; i < ALLOT_DEVICE_CALL_COUNT; i++) {
        out->calls[i] = CALLS[i];
    }
    /* Memory moves two words a clock; a copy reads and writes each byte. */
    const uint64_t peak = gpu->memory_clock_khz * 1000 * 2 * (gpu->memory_bus_bits / 8);
    out->fill_bytes_per_s = peak;
    out->copy_bytes_per_s = peak / 2;
}
