/* SPDX-License-Identifier: MIT */
/** A small heap over a simulated device, for situations made by hand. */
#ifndef SMALL_HEAP_H
#define SMALL_HEAP_H

#include <allot/heap.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

enum { SMALL_STREAMS = 4 };

typedef struct small_heap {
    allot_device *device;
    allot_heap *heap;
    allot_stream streams[SMALL_STREAMS]; /**< [0]: the default stream. */
} small_heap;

/** Plain segments of 1 MiB, or what the options say; 64 MiB of memory. */
small_heap small_open(allot_heap_options options);
/** Destroys the heap, and sees that the device has everything back. */
void small_close(small_heap *h);

/** Ask for a block of a stream; a check fails if there is none. */
allot_handle small_alloc(small_heap *h, uint64_t size, int stream);
allot_status small_try(small_heap *h, allot_request request, allot_handle *out);
void small_free(small_heap *h, allot_handle handle);

/** Let a stream be busy until small_finish(). */
void small_busy(small_heap *h, int stream);
void small_finish(small_heap *h, int stream);

/** Let the limit be what is held now, so that nothing can grow. */
void small_close_limit(small_heap *h);

allot_heap_stats small_stats(small_heap *h);
uint64_t small_held(small_heap *h);
/** Calls of the device so far. */
uint64_t small_calls(small_heap *h, allot_device_call call);
uint64_t small_address(small_heap *h, allot_handle handle);
bool small_is_dropped(small_heap *h, allot_handle handle);

#endif /* SMALL_HEAP_H */
