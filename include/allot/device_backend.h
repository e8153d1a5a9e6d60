/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Bringing a device of one's own: the table of operations behind <allot/device.h>.
 *
 * The calls of device.h check arguments, count, and check what came back; a backend gets sizes
 * above 0, alignments that are powers of 2 and ranges that do not overflow. It sets the detail text
 * of a failure with allot_backend_fail(). All operations may be called from several threads at
 * once, never with the device already destroyed, never in the child of a fork().
 */
#ifndef ALLOT_DEVICE_BACKEND_H
#define ALLOT_DEVICE_BACKEND_H

#include <allot/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Operations of a backend; `self` is what was given to allot_device_create(). Addresses, streams,
 * events and memories are plain numbers here. Contracts are those of the calls of the same name in
 * device.h.
 */
typedef struct allot_device_ops {
    size_t struct_size;

    /** Release `self`. In a forked child only host memory may be touched (`is_forked`). */
    void (*destroy)(void *self, bool is_forked);
    /** Fill in everything but struct_size, has_async_alloc, has_batch_copy, which follow from this
     * table; called once. */
    void (*get_info)(void *self, allot_device_info *out);

    allot_status (*memory_info)(void *self, uint64_t *size_free, uint64_t *size_total);
    allot_status (*alloc)(void *self, uint64_t size, uint64_t *address);
    allot_status (*free)(void *self, uint64_t address, uint64_t size);

    allot_status (*stream_create)(void *self, uint64_t *stream);
    allot_status (*stream_destroy)(void *self, uint64_t stream);
    allot_status (*stream_wait)(void *self, uint64_t stream, uint64_t event);
    allot_status (*stream_synchronize)(void *self, uint64_t stream);
    allot_status (*event_create)(void *self, uint64_t *event);
    allot_status (*event_destroy)(void *self, uint64_t event);
    allot_status (*event_record)(void *self, uint64_t event, uint64_t stream);
    allot_status (*event_query)(void *self, uint64_t event);
    allot_status (*event_synchronize)(void *self, uint64_t event);

    allot_status (*copy)(void *self, uint64_t stream, uint64_t dst, uint64_t src, uint64_t size);
    allot_status (*fill)(void *self, uint64_t stream, uint64_t dst, uint8_t value, uint64_t size);
    allot_status (*write)(void *self, uint64_t stream, uint64_t dst, const void *src,
                          uint64_t size);
    allot_status (*read)(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size);

    /** (optional) Default: the clock of the machine. */
    uint64_t (*clock_ns)(void *self);
    /** (optional) Default: one copy after the other. */
    allot_status (*copy_batch)(void *self, uint64_t stream, const allot_copy *copies, size_t count);
    /** (optional) Default: copy. */
    allot_status (*move)(void *self, uint64_t stream, uint64_t dst, uint64_t src, uint64_t size);

    /** (optional, both or none) Default: alloc, and free after stream_synchronize. */
    allot_status (*alloc_async)(void *self, uint64_t stream, uint64_t size, uint64_t *address);
    allot_status (*free_async)(void *self, uint64_t stream, uint64_t address, uint64_t size);

    /** (optional, all or none) Virtual memory; the granule in the info is above 0 if it is there.
     */
    allot_status (*reserve)(void *self, uint64_t size, uint64_t *address);
    allot_status (*unreserve)(void *self, uint64_t address, uint64_t size);
    allot_status (*memory_create)(void *self, uint64_t size, uint64_t *memory);
    allot_status (*memory_release)(void *self, uint64_t memory, uint64_t size);
    allot_status (*map)(void *self, uint64_t address, uint64_t memory, uint64_t size);
    allot_status (*unmap)(void *self, uint64_t address, uint64_t size);
} allot_device_ops;

/**
 * Make a device of a table of operations.
 *
 * @param[in] ops   Not NULL; copied.
 * @param[in] self  Passed to every operation. The device takes ownership on success only, and
 *                  releases it through `destroy`.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID with the operation that is missing, or for an info
 *         that contradicts the table; ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_device_create(const allot_device_ops *ops, void *self,
                                                           allot_device **out);

/** Set this thread's allot_error_detail(), as printf, and return `status`. */
ALLOT_API allot_status allot_backend_fail(allot_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_DEVICE_BACKEND_H */
