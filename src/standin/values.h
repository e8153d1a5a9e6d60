/* SPDX-License-Identifier: MIT */
/**
 * Small values that a dry run knows although device memory holds none.
 *
 * Programs that run on several GPUs send small things through device memory and read them back:
 * shapes, counts, pickled objects. Small copies from the host are therefore kept, page by page, and
 * follow copies and collectives. They are given back only where they went through a collective, or
 * where no kernel was launched since: others may have changed by a kernel, and a stale count does
 * harm where a zero does not. Pages are forgotten after a number of kernel launches.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_VALUES_H
#define ALLOTI_STANDIN_VALUES_H

#include <allot/base.h>

enum { VALUE_BUCKETS = 1 << 12, VALUE_PAGE = 4096, VALUE_SIZE_MAX = 1 << 20, VALUE_UPLOADS = 64 };

typedef struct value_page {
    struct value_page *next; /**< In its bucket. */
    uint64_t number;         /**< Address divided by VALUE_PAGE. */
    uint64_t written;        /**< Launch count of the last write + 1; 0: knows nothing. */
    uint64_t collected;      /**< The same for the last write by a collective. */
    unsigned char bytes[VALUE_PAGE];
} value_page;

typedef struct value_range {
    uint64_t address;
    uint64_t size;
} value_range;

typedef struct value_state {
    value_page *buckets[VALUE_BUCKETS];
    uint64_t launches;   /**< Kernels launched so far. */
    bool is_collective;  /**< Copies now are those of a collective. */
    uint64_t uploads_at; /**< Launch count that the next two belong to. */
    uint64_t upload_count;
    value_range uploads[VALUE_UPLOADS]; /**< The last of them. */
} value_state;

/** The host wrote [address, address + size); larger pieces are forgotten instead. */
void value_write(value_state *values, uint64_t address, const void *from, uint64_t size);

/** Fill in what is known of a range; the rest of `to` stays as it is. */
void value_read(const value_state *values, uint64_t address, void *to, uint64_t size);

/** The host wrote a range whose bytes are kept elsewhere. */
void value_note_upload(value_state *values, uint64_t address, uint64_t size);

/** Whether the host wrote all of a range in one copy, and no kernel was launched since. */
bool value_is_uploaded(const value_state *values, uint64_t address, uint64_t size);

/** Whether a range holds what the host wrote, or a collective left there; zeros of the latter may
 * as well not be known. */
bool value_is_known(const value_state *values, uint64_t address, uint64_t size);

/** What is known of one range is now known of the other. */
void value_copy(value_state *values, uint64_t to, uint64_t from, uint64_t size);

/** A fill or a large write: nothing is known any more. */
void value_forget(value_state *values, uint64_t address, uint64_t size);

/** value_copy() as part of a collective. */
void value_collect(value_state *values, uint64_t to, uint64_t from, uint64_t size);

/** value_read() and value_write() as part of a collective: what a rank gives, and what it gets. */
void value_offer(value_state *values, uint64_t address, void *to, uint64_t size);
void value_receive(value_state *values, uint64_t address, const void *from, uint64_t size);

#endif /* ALLOTI_STANDIN_VALUES_H */
