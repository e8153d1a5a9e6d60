/* SPDX-License-Identifier: MIT */
/**
 * A GPU that is only simulated: addresses are given out and checked as a driver would, time is
 * counted, there are no bytes.
 *
 * Time. The host has a clock, which every call moves on by what it costs and nothing else does but
 * allot_simulated_advance(). Each stream knows when its work ends; work begins when it is given and
 * all before it is done. So the same calls lead to the same times, on every machine. Streams do not
 * compete for bandwidth.
 *
 * Addresses. Allocations and reservations get the lowest free range. Where memory lies physically
 * plays no part: memory that was made has a size and nothing else.
 *
 * simulated.c opens devices, simulated_cost.c knows what calls cost, simulated_memory.c does
 * allocations and virtual memory, simulated_stream.c streams, events and copies.
 */
#ifndef ALLOTI_DEVICE_SIMULATED_H
#define ALLOTI_DEVICE_SIMULATED_H

#include <allot/gpu.h>
#include <allot/space.h>
#include <pthread.h>

#include "core/slot.h"
#include "device/areas.h"
#include "device/device.h"

/** What a call takes of the host's time. */
typedef struct simulated_call_cost {
    uint64_t call_ns;
    uint64_t granule_ns; /**< In addition where it succeeds, for each granule. */
    uint64_t gib_ns;     /**< In addition, per GiB. */
} simulated_call_cost;

/** All zero: nothing takes time. */
typedef struct simulated_costs {
    simulated_call_cost calls[ALLOT_DEVICE_CALL_COUNT];
    uint64_t copy_latency_ns;  /**< Of the stream's time, for each copy or fill. */
    uint64_t copy_bytes_per_s; /**< Within the device; 0: at once. */
    uint64_t fill_bytes_per_s;
    uint64_t link_bytes_per_s; /**< From and to the host. */
} simulated_costs;

/** What calls cost on a GPU. */
void alloti_simulated_costs(const allot_gpu *gpu, simulated_costs *out);

/** Addresses begin here, and there are so many, whatever the memory: those of a 48-bit GPU. */
#define SIMULATED_BASE (UINT64_C(1) << 46)
#define SIMULATED_ADDRESSES (UINT64_C(1) << 46)

/** First byte of handles. */
enum { SIMULATED_STREAM = 's', SIMULATED_EVENT = 'e', SIMULATED_MEMORY = 'm' };

/** Kinds of areas. */
enum { SIMULATED_ALLOCATED, SIMULATED_RESERVED };

typedef struct simulated_stream {
    uint64_t end_ns; /**< When its work ends. */
} simulated_stream;

typedef struct simulated_event {
    uint64_t end_ns; /**< When it is reached. */
} simulated_event;

typedef struct simulated_memory {
    uint64_t size;
    bool is_mapped;
} simulated_memory;

typedef struct simulated {
    allot_device_info info;
    simulated_costs costs;
    /* Guards everything below; no other lock is taken under it. */
    pthread_mutex_t mutex;
    uint64_t memory_used;
    allot_space *addresses; /**< Offsets from SIMULATED_BASE. */
    device_areas areas;     /**< Allocations and reservations; values are ranges of `addresses`. */
    device_areas maps;      /**< What is mapped; values are memories. */
    alloti_slots memories;
    alloti_slots streams;
    alloti_slots events;
    simulated_stream stream_default;
    uint64_t host_ns;
    uint64_t end_ns; /**< When the last work of all streams ends. */
} simulated;

/** Lock, and let the host's time pass for a call. */
void alloti_simulated_begin(simulated *self, allot_device_call call);

/** Let it pass for `size` bytes as well if the call succeeded; unlock and return `status`. */
allot_status alloti_simulated_end(simulated *self, allot_device_call call, uint64_t size,
                                  allot_status status);

/** The host waits until a time. */
void alloti_simulated_wait(simulated *self, uint64_t time_ns);

/** A time later by so much; the end of time instead of an overflow. */
uint64_t alloti_simulated_later(uint64_t time_ns, uint64_t by_ns);

/** Nothing, or ALLOT_STATUS_INVALID where not all of a range is memory that can be used. */
ALLOT_NODISCARD allot_status alloti_simulated_check_access(const simulated *self, uint64_t address,
                                                           uint64_t size);

/** @name Operations @{ */
allot_status alloti_simulated_memory_info(void *self, uint64_t *size_free, uint64_t *size_total);
allot_status alloti_simulated_alloc(void *self, uint64_t size, uint64_t *address);
allot_status alloti_simulated_free(void *self, uint64_t address, uint64_t size);
allot_status alloti_simulated_reserve(void *self, uint64_t size, uint64_t *address);
allot_status alloti_simulated_unreserve(void *self, uint64_t address, uint64_t size);
allot_status alloti_simulated_memory_create(void *self, uint64_t size, uint64_t *memory);
allot_status alloti_simulated_memory_release(void *self, uint64_t memory, uint64_t size);
allot_status alloti_simulated_map(void *self, uint64_t address, uint64_t memory, uint64_t size);
allot_status alloti_simulated_unmap(void *self, uint64_t address, uint64_t size);

allot_status alloti_simulated_stream_create(void *self, uint64_t *stream);
allot_status alloti_simulated_stream_destroy(void *self, uint64_t stream);
allot_status alloti_simulated_stream_wait(void *self, uint64_t stream, uint64_t event);
allot_status alloti_simulated_stream_synchronize(void *self, uint64_t stream);
allot_status alloti_simulated_event_create(void *self, uint64_t *event);
allot_status alloti_simulated_event_destroy(void *self, uint64_t event);
allot_status alloti_simulated_event_record(void *self, uint64_t event, uint64_t stream);
allot_status alloti_simulated_event_query(void *self, uint64_t event);
allot_status alloti_simulated_event_synchronize(void *self, uint64_t event);
uint64_t alloti_simulated_clock_ns(void *self);
allot_status alloti_simulated_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                   uint64_t size);
allot_status alloti_simulated_copy_batch(void *self, uint64_t stream, const allot_copy *copies,
                                         size_t count);
allot_status alloti_simulated_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                                   uint64_t size);
allot_status alloti_simulated_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                                    uint64_t size);
allot_status alloti_simulated_read(void *self, uint64_t stream, void *dst, uint64_t src,
                                   uint64_t size);
/** @} */

#endif /* ALLOTI_DEVICE_SIMULATED_H */
