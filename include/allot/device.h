/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Devices: one set of calls over every kind of memory that allot manages. A heap, a compactor and a
 * tier see nothing else of a GPU.
 *
 * What a device can do beyond plain allocation is told by allot_device_get_info(): virtual memory
 * (addresses and memory apart from each other), moving pages instead of bytes, an allocator of its
 * own that follows streams, copies in batches. Calls of a group that a device lacks return
 * ALLOT_STATUS_UNSUPPORTED, but for those that say what happens instead.
 *
 * What every call may return beside what stands with it: ALLOT_STATUS_INVALID for an argument that
 * cannot be or a handle that is none, ALLOT_STATUS_HOST_MEMORY, and ALLOT_STATUS_BACKEND with what
 * the driver answered.
 *
 * Thread-safe: several threads may call for one device at once; destroying it is not. After fork()
 * every call in the child returns ALLOT_STATUS_FORKED, and allot_device_destroy() only frees host
 * memory: the child opens a device of its own. Drivers of GPUs do not bear that: where one was
 * started before fork(), opening a device returns ALLOT_STATUS_FORKED too.
 */
#ifndef ALLOT_DEVICE_H
#define ALLOT_DEVICE_H

#include <allot/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_device allot_device;

/** An address of device memory; 0 is none. Never dereferenced unless the device is_host_accessible.
 */
typedef struct allot_devptr {
    uint64_t address;
} allot_devptr;

/**
 * A queue of work on a device. 0 is the default stream. For CUDA the value is the CUstream, so
 * streams that something else made can be used as they are.
 */
typedef struct allot_stream {
    uint64_t value;
} allot_stream;

/** A moment in a stream; 0 is none. For CUDA the value is the CUevent. */
typedef struct allot_event {
    uint64_t value;
} allot_event;

/** Memory without an address, made by allot_device_memory_create(); 0 is none. */
typedef struct allot_memory {
    uint64_t value;
} allot_memory;

/** Backends. X(name, spelling, what it is) */
#define ALLOT_BACKEND_LIST(X)                                                                      \
    X(HOST, "host", "memory of this machine, with virtual memory and moving of pages")             \
    X(SIMULATED, "simulated", "addresses and a clock like those of a chosen GPU, no bytes")        \
    X(NULL, "null", "addresses, no bytes, no cost")                                                \
    X(OPENCL, "opencl", "a device of OpenCL, by shared virtual memory")                            \
    X(CUDA, "cuda", "a GPU of NVIDIA, through its driver")

typedef enum allot_backend {
#define ALLOT_BACKEND_ENUM(name, spelling, text) ALLOT_BACKEND_##name,
    ALLOT_BACKEND_LIST(ALLOT_BACKEND_ENUM)
#undef ALLOT_BACKEND_ENUM
        ALLOT_BACKEND_COUNT
} allot_backend;

/** Spelling of a backend, and one line about it; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_backend_name(allot_backend backend);
ALLOT_API const char *allot_backend_text(allot_backend backend);

/** Room for the name of a device, the final NUL included. */
#define ALLOT_DEVICE_NAME_MAX 128

/** Room for what a probe says, the final NUL included. */
#define ALLOT_PROBE_TEXT_MAX 256

/** What was found of a backend on this machine. Filled in by allot_backend_probe(). */
typedef struct allot_backend_probe_result {
    size_t struct_size;
    uint32_t device_count; /**< 0 where it is not available. */
    /** Why not, or what was found: "driver for CUDA 13.0, libcuda.so.1". */
    char reason[ALLOT_PROBE_TEXT_MAX];
} allot_backend_probe_result;

/**
 * Look for a backend on this machine: its library is loaded, its devices are counted.
 *
 * @return ALLOT_STATUS_OK if it can be used; ALLOT_STATUS_UNSUPPORTED where its library, its driver
 *         or a function of it is missing; ALLOT_STATUS_VERSION for a driver that is too old;
 *         ALLOT_STATUS_NOT_FOUND if it has no device; ALLOT_STATUS_FORKED in a child whose parent
 *         started the driver. *out says why in each case. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_backend_probe(allot_backend backend,
                                                           allot_backend_probe_result *out);

/**
 * Settings in the text that opens a device. X(key, values, backends, what it does)
 */
#define ALLOT_DEVICE_KEY_LIST(X)                                                                   \
    X(memory, "SIZE", "host, simulated, null, opencl",                                             \
      "memory that the device has; opencl: at most this much is used")                             \
    X(granule, "SIZE", "host, simulated, null", "smallest piece of virtual memory; 2 MiB")         \
    X(gpu, "NAME", "simulated",                                                                    \
      "profile that sizes and costs come from (allot gpu list); a100-80")                          \
    X(huge, "BOOL", "host", "ask for huge pages; true")                                            \
    X(move, "auto|copy|mremap|uffd", "host", "how pages are moved; auto: the fastest that works")  \
    X(guard, "BOOL", "host",                                                                       \
      "reserved addresses that nothing is mapped at fault when used; costs a kernel mapping "      \
      "each; false")

/**
 * Open a device.
 *
 * @param[in]  text  Backend, which of its devices, settings: "host", "host,memory:4GiB", "cuda:1",
 *                   "simulated,gpu:rtx4090,memory:20GiB". Not NULL.
 * @param[out] out   Untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID with the position of what is wrong in `text`; what
 *         allot_backend_probe() returns; ALLOT_STATUS_NOT_FOUND for a number above those present;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND.
 * The caller owns the result and releases it with allot_device_destroy(). Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_open(const char *text, allot_device **out);

/**
 * Close a device; NULL is allowed. Its memory and its addresses go with it, so heaps and wrappers
 * over it are destroyed before. Streams and events of CUDA that were not destroyed stay for as long
 * as something else of the process uses the GPU.
 */
ALLOT_API void allot_device_destroy(allot_device *device);

/** What a device is and can do. Filled in by allot_device_get_info(); does not change. */
typedef struct allot_device_info {
    size_t struct_size;
    char name[ALLOT_DEVICE_NAME_MAX];
    char backend[ALLOT_DEVICE_NAME_MAX]; /**< "host"; of wrappers: "failing(host)". */
    uint64_t memory_total;               /**< Bytes. */
    uint64_t align;                      /**< Of what allot_device_alloc() returns; a power of 2. */
    uint64_t granule; /**< Of virtual memory, a power of 2; 0: the device has none. */
    uint64_t page;    /**< Pieces that allot_device_move() can move without copying; 0: none. */
    /** Bytes from which on moving pages is cheaper than copying them; measured when opened. */
    uint64_t page_move_min;
    uint64_t copy_bytes_per_s; /**< Copying within the device, measured or modelled; 0: unknown. */
    uint64_t copy_latency_ns;  /**< Of one copy; 0: unknown. */
    bool is_host_accessible;   /**< Addresses are pointers of this process. */
    bool has_bytes;            /**< Memory keeps what is written to it. */
    bool has_async_alloc;      /**< allot_device_alloc_async() is the device's own. */
    bool has_batch_copy;       /**< allot_device_copy_batch() is one call of the device. */
} allot_device_info;

/** What a device is and can do. */
ALLOT_API void allot_device_get_info(const allot_device *device, allot_device_info *out);

/**
 * Free and total memory of the device in bytes, as it sees them now; others may use it too.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BACKEND.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_memory_info(allot_device *device,
                                                                uint64_t *size_free,
                                                                uint64_t *size_total);

/**
 * Time as the device counts it, in nanoseconds from any moment: that of the machine, or of the
 * simulation. 0 in the child of a fork().
 */
ALLOT_API uint64_t allot_device_clock_ns(allot_device *device);

/**
 * @name Plain memory
 * @{
 */

/**
 * Allocate memory. May wait for the device.
 *
 * @param[in]  size  Bytes, at least 1.
 * @param[out] out   Aligned as `align` of the device's info says; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID; ALLOT_STATUS_DEVICE_MEMORY;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND.
 * The caller owns the memory and releases it with allot_device_free().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_alloc(allot_device *device, uint64_t size,
                                                          allot_devptr *out);

/**
 * Free memory. May wait for the device; the caller sees to it that no work still uses the memory.
 *
 * @param[in] size  As allocated.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID if it is not the device's; ALLOT_STATUS_BACKEND,
 *         and the memory is still allocated.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_free(allot_device *device, allot_devptr ptr,
                                                         uint64_t size);

/**
 * Allocate and free in the order of a stream: the device's own allocator where it has one, else
 * allot_device_alloc(), and a free that waits for the stream.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_alloc_async(allot_device *device,
                                                                allot_stream stream, uint64_t size,
                                                                allot_devptr *out);
ALLOT_API ALLOT_NODISCARD allot_status allot_device_free_async(allot_device *device,
                                                               allot_stream stream,
                                                               allot_devptr ptr, uint64_t size);
/** @} */

/**
 * @name Virtual memory
 * Addresses are reserved, memory is made, one is mapped to the other: granule by granule, so that
 * what lies together in addresses need not lie together in memory.
 * @{
 */

/**
 * Reserve addresses without memory.
 *
 * @param[in]  size  Bytes, a multiple of the granule.
 * @param[out] out   A multiple of the granule; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID; ALLOT_STATUS_UNSUPPORTED;
 *         ALLOT_STATUS_HOST_MEMORY where there are no such addresses; ALLOT_STATUS_BACKEND.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_reserve(allot_device *device, uint64_t size,
                                                            allot_devptr *out);

/** Give addresses back; ALLOT_STATUS_BUSY while memory is mapped there. `size` as reserved. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_unreserve(allot_device *device,
                                                              allot_devptr ptr, uint64_t size);

/**
 * Make memory without an address.
 *
 * @param[in] size  Bytes, a multiple of the granule.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID; ALLOT_STATUS_UNSUPPORTED;
 *         ALLOT_STATUS_DEVICE_MEMORY; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_memory_create(allot_device *device,
                                                                  uint64_t size, allot_memory *out);

/** Give memory back; ALLOT_STATUS_BUSY while it is mapped. `size` as created. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_memory_release(allot_device *device,
                                                                   allot_memory memory,
                                                                   uint64_t size);

/**
 * Map all of a memory at a reserved address, ready to be used. Its bytes are those it had where it
 * was mapped before.
 *
 * @param[in] size  As created.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for an address that is not reserved or not aligned;
 *         ALLOT_STATUS_BUSY if the address or the memory is mapped already;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND. Nothing has changed after a failure.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_map(allot_device *device, allot_devptr ptr,
                                                        allot_memory memory, uint64_t size);

/**
 * Take a memory from its address. The caller sees to it that no work still uses it.
 *
 * @param[in] ptr   Where a memory was mapped: its begin; all of it is unmapped.
 * @param[in] size  As mapped.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID if no memory of this size is mapped there;
 *         ALLOT_STATUS_UNSUPPORTED; ALLOT_STATUS_BACKEND, and it is still mapped.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_unmap(allot_device *device, allot_devptr ptr,
                                                          uint64_t size);
/** @} */

/**
 * @name Streams and events
 * @{
 */

/** Make a stream, independent of the default stream. Released by allot_device_stream_destroy(),
 * which lets its work end. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_stream_create(allot_device *device,
                                                                  allot_stream *out);
ALLOT_API ALLOT_NODISCARD allot_status allot_device_stream_destroy(allot_device *device,
                                                                   allot_stream stream);

/** Let later work of a stream begin after an event. Does not wait on the host. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_stream_wait(allot_device *device,
                                                                allot_stream stream,
                                                                allot_event event);

/** Wait until a stream has done its work. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_stream_synchronize(allot_device *device,
                                                                       allot_stream stream);

/** Make an event; until it is recorded it counts as reached. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_event_create(allot_device *device,
                                                                 allot_event *out);
ALLOT_API ALLOT_NODISCARD allot_status allot_device_event_destroy(allot_device *device,
                                                                  allot_event event);

/** Set an event to the present end of a stream. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_event_record(allot_device *device,
                                                                 allot_event event,
                                                                 allot_stream stream);

/** ALLOT_STATUS_OK if the event was reached, ALLOT_STATUS_BUSY if not yet. Does not wait, and BUSY
 * leaves allot_error_detail() alone. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_event_query(allot_device *device,
                                                                allot_event event);

/** Wait until an event is reached. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_event_synchronize(allot_device *device,
                                                                      allot_event event);
/** @} */

/**
 * @name Bytes
 * All in the order of a stream, and done when the stream has come that far. Sizes of 0 do nothing.
 * Devices without bytes only count the time.
 * @{
 */

/** Copy within the device; ALLOT_STATUS_INVALID if the ranges overlap. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_copy(allot_device *device, allot_stream stream,
                                                         allot_devptr dst, allot_devptr src,
                                                         uint64_t size);

/** One copy of a batch. */
typedef struct allot_copy {
    allot_devptr dst;
    allot_devptr src;
    uint64_t size;
} allot_copy;

/**
 * Copies that do not depend on each other, in any order.
 *
 * @param[in] copies  [count] No destination overlaps another range of the batch.
 * @return As allot_device_copy(); after a failure any of them may have been done.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_copy_batch(allot_device *device,
                                                               allot_stream stream,
                                                               const allot_copy *copies,
                                                               size_t count);

/**
 * Bring bytes elsewhere; what stays behind at `src` has any value. Whole pages are moved instead of
 * copied where the device can and it is cheaper, which waits for the stream; else as
 * allot_device_copy().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_move(allot_device *device, allot_stream stream,
                                                         allot_devptr dst, allot_devptr src,
                                                         uint64_t size);

/** Set bytes to a value. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_fill(allot_device *device, allot_stream stream,
                                                         allot_devptr dst, uint8_t value,
                                                         uint64_t size);

/** From the host. `src` must stay as it is until the stream has come that far. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_write(allot_device *device, allot_stream stream,
                                                          allot_devptr dst, const void *src,
                                                          uint64_t size);

/** To the host. `dst` may be read once the stream has come that far. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_read(allot_device *device, allot_stream stream,
                                                         void *dst, allot_devptr src,
                                                         uint64_t size);
/** @} */

/** Calls that reach a backend. X(name, spelling) */
#define ALLOT_DEVICE_CALL_LIST(X)                                                                  \
    X(MEMORY_INFO, "memory_info")                                                                  \
    X(ALLOC, "alloc")                                                                              \
    X(FREE, "free")                                                                                \
    X(ALLOC_ASYNC, "alloc_async")                                                                  \
    X(FREE_ASYNC, "free_async")                                                                    \
    X(RESERVE, "reserve")                                                                          \
    X(UNRESERVE, "unreserve")                                                                      \
    X(MEMORY_CREATE, "memory_create")                                                              \
    X(MEMORY_RELEASE, "memory_release")                                                            \
    X(MAP, "map")                                                                                  \
    X(UNMAP, "unmap")                                                                              \
    X(STREAM_CREATE, "stream_create")                                                              \
    X(STREAM_DESTROY, "stream_destroy")                                                            \
    X(STREAM_WAIT, "stream_wait")                                                                  \
    X(STREAM_SYNCHRONIZE, "stream_synchronize")                                                    \
    X(EVENT_CREATE, "event_create")                                                                \
    X(EVENT_DESTROY, "event_destroy")                                                              \
    X(EVENT_RECORD, "event_record")                                                                \
    X(EVENT_QUERY, "event_query")                                                                  \
    X(EVENT_SYNCHRONIZE, "event_synchronize")                                                      \
    X(COPY, "copy")                                                                                \
    X(COPY_BATCH, "copy_batch")                                                                    \
    X(MOVE, "move")                                                                                \
    X(FILL, "fill")                                                                                \
    X(WRITE, "write")                                                                              \
    X(READ, "read")

typedef enum allot_device_call {
#define ALLOT_DEVICE_CALL_ENUM(name, spelling) ALLOT_DEVICE_CALL_##name,
    ALLOT_DEVICE_CALL_LIST(ALLOT_DEVICE_CALL_ENUM)
#undef ALLOT_DEVICE_CALL_ENUM
        ALLOT_DEVICE_CALL_COUNT
} allot_device_call;

/** Spelling of a call, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_device_call_name(allot_device_call call);

/** What was asked of a device since it was opened. Filled in by allot_device_get_counts(). */
typedef struct allot_device_counts {
    size_t struct_size;
    uint64_t calls[ALLOT_DEVICE_CALL_COUNT];
    uint64_t failures[ALLOT_DEVICE_CALL_COUNT]; /**< BUSY of event_query is none. */
    uint64_t size_allocated; /**< Bytes now held by plain and stream-ordered allocations. */
    uint64_t size_created;   /**< Bytes of memory made and not released. */
    uint64_t size_reserved;  /**< Bytes of addresses. */
    uint64_t live_count;     /**< Allocations, memories, reservations, streams and events held. */
    uint64_t size_copied;    /**< Bytes copied or moved within the device so far. */
} allot_device_counts;

/** What was asked of a device since it was opened. */
ALLOT_API void allot_device_get_counts(const allot_device *device, allot_device_counts *out);

/**
 * @name Wrappers
 * Devices over another device, which stays the caller's and must outlive them.
 * @{
 */

/** What allot_device_open_failing() does. Zero-initialise, then set struct_size. */
typedef struct allot_failing_options {
    size_t struct_size;
    uint64_t nth;   /**< The call that fails, counted from 1; 0: none. */
    uint64_t every; /**< Every call whose number is a multiple of this fails; 0: none. */
    /** Bits 1 << ALLOT_DEVICE_CALL_...: calls that count; 0: all but event_query, memory_info and
     * those that only release: free, free_async, unmap, unreserve, memory_release, stream_destroy
     * and event_destroy. */
    uint64_t call_mask;
    /** Of a failure; 0: DEVICE_MEMORY of calls that allocate, else BACKEND. */
    allot_status status;
    /** Events are reached only after so many queries, drawn from 0 to this number by `seed`, so
     * that those of different streams come in any order; or when waited for. One that is reached
     * brings those before it in its stream along. */
    uint32_t event_delay;
    uint64_t seed;
} allot_failing_options;

/** A device that fails on request, before anything reaches the one below. */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_open_failing(
    allot_device *inner, const allot_failing_options *options, allot_device **out);

/** Change what fails; counting begins anew. ALLOT_STATUS_INVALID for another kind of device. */
ALLOT_API ALLOT_NODISCARD allot_status allot_failing_arm(allot_device *device,
                                                         const allot_failing_options *options);

/** Calls that counted since the last arming, and how many of them were failed. 0 for another kind
 * of device, and in the child of a fork(). */
ALLOT_API uint64_t allot_failing_call_count(const allot_device *device);
ALLOT_API uint64_t allot_failing_failed_count(const allot_device *device);

/**
 * A device that writes what it is asked for in a form that allot reads: plain allocations as
 * segments, mapped memory as segment_map and segment_unmap, failures to allocate as OOM.
 *
 * allot_tracing_get_trace() hands out the trace so far.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_open_tracing(allot_device *inner,
                                                                 allot_device **out);

struct allot_trace;

/** The recording so far as a trace; see <allot/trace.h> for writing it to a file. The recording
 * goes on. ALLOT_STATUS_INVALID for another kind of device. */
ALLOT_API ALLOT_NODISCARD allot_status allot_tracing_get_trace(allot_device *device,
                                                               struct allot_trace **out);
/** @} */

/**
 * Let a stream of a simulated or null device be busy for a time, as a kernel would.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_UNSUPPORTED for a device that is neither.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_simulated_run(allot_device *device,
                                                           allot_stream stream, uint64_t time_ns);

/** Let the host's time of a simulated device pass. As above. */
ALLOT_API ALLOT_NODISCARD allot_status allot_simulated_advance(allot_device *device,
                                                               uint64_t time_ns);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_DEVICE_H */
