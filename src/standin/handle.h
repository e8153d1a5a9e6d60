/* SPDX-License-Identifier: MIT */
/** Handles of libraries and descriptors that carry nothing but, where one was set, a stream. */
#ifndef ALLOTI_STANDIN_HANDLE_H
#define ALLOTI_STANDIN_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

enum { HANDLE_VALUES = 12 };

typedef struct standin_handle {
    uint64_t mark;
    void *stream;                  /**< Set by the program; NULL: the default stream. */
    int64_t values[HANDLE_VALUES]; /**< For the library that made it. */
} standin_handle;

/** A new handle; NULL without host memory. */
standin_handle *handle_create(void);

/** NULL unless it is a live handle. */
standin_handle *handle_get(void *pointer);

/** Frees a handle; anything else is left alone. */
void handle_destroy(void *pointer);

/** Count one piece of work on the stream that was set for a library handle. */
void handle_work(void *pointer);

#endif /* ALLOTI_STANDIN_HANDLE_H */
