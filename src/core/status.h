/* SPDX-License-Identifier: MIT */
/** Failing with a text: every function of the library that fails goes through alloti_fail(). */
#ifndef ALLOTI_CORE_STATUS_H
#define ALLOTI_CORE_STATUS_H

#include <allot/base.h>

/** Size of the thread-local detail buffer in bytes; longer texts are cut. */
enum { ALLOTI_DETAIL_SIZE = 1024 };

/** Set this thread's detail text and return `status`. Never allocates. */
allot_status alloti_fail(allot_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Put a text in front of the present detail ("file.pickle: ..."); returns `status`. */
allot_status alloti_fail_prefix(allot_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The usual failure of an allocation of `size` bytes. */
allot_status alloti_fail_memory(uint64_t size);

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time: this tells it that a failure is never a success. */
#define alloti_fail(status, ...) ((void)alloti_fail((status), __VA_ARGS__), (status))
#define alloti_fail_prefix(status, ...) ((void)alloti_fail_prefix((status), __VA_ARGS__), (status))
#define alloti_fail_memory(size) ((void)alloti_fail_memory(size), ALLOT_STATUS_HOST_MEMORY)
#endif

#endif /* ALLOTI_CORE_STATUS_H */
