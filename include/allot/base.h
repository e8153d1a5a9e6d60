/* SPDX-License-Identifier: MIT */
/**
 * @file
 * What every other header needs: export marks, status codes, the text of the last failure, sinks
 * that receive bytes, and progress callbacks.
 */
#ifndef ALLOT_BASE_H
#define ALLOT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <allot/version.h>

#if defined(__GNUC__)
#define ALLOT_API __attribute__((visibility("default")))
#define ALLOT_NODISCARD __attribute__((warn_unused_result))
#else
#define ALLOT_API
#define ALLOT_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Locale. Numbers with a fraction are read and written with a point, which the C library does in
 * the numeric locale "C": a program that calls setlocale() leaves LC_NUMERIC at that.
 *
 * Structs that begin with `struct_size`.
 *
 * Options: zero-initialise, set struct_size to the size of the struct, then change fields; NULL is
 * all defaults. A zero field is its default. What a smaller struct (of an older header) lacks is
 * zero; a larger one (of a newer header) is taken if what it adds is zero. Every call that takes
 * options returns ALLOT_STATUS_INVALID where struct_size was not set, and ALLOT_STATUS_UNSUPPORTED
 * where a field is set that this version of the library does not know.
 *
 * What the library fills in (results, statistics, settings): it sets struct_size to what it wrote.
 * These structs grow only together with the number in the name of the shared library.
 */

/** An index that points at nothing: no string, no stack, no stream. */
#define ALLOT_NONE UINT32_MAX

/** One list that yields each status: code, value, text. A code says what a caller can do about it.
 */
#define ALLOT_STATUS_LIST(X)                                                                       \
    X(OK, 0, "success")                                                                            \
    X(INVALID, 1, "invalid argument")                                                              \
    X(HOST_MEMORY, 2, "out of host memory")                                                        \
    X(DEVICE_MEMORY, 3, "out of device memory")                                                    \
    X(FRAGMENTED, 4, "enough bytes are free, but no single range is large enough")                 \
    X(BUDGET, 5, "a limit set by the caller was reached")                                          \
    X(BUSY, 6, "in use")                                                                           \
    X(UNSUPPORTED, 7, "not supported")                                                             \
    X(BACKEND, 8, "the backend failed")                                                            \
    X(VERSION, 9, "version not supported")                                                         \
    X(FORMAT, 10, "the input is malformed, truncated or refused")                                  \
    X(IO, 11, "a file could not be opened, read or written")                                       \
    X(NOT_FOUND, 12, "not found")                                                                  \
    X(CANCELLED, 13, "cancelled by the caller")                                                    \
    X(MISMATCH, 14, "the result differs from the recording")                                       \
    X(FORKED, 15, "made before fork(): a child process makes its own")

/** Result of every call that can fail. ALLOT_STATUS_OK is zero. */
typedef enum allot_status {
#define ALLOT_STATUS_ENUM(name, value, text) ALLOT_STATUS_##name = (value),
    ALLOT_STATUS_LIST(ALLOT_STATUS_ENUM)
#undef ALLOT_STATUS_ENUM
} allot_status;

/** Name of a status without its prefix, for example "INVALID"; "UNKNOWN" for no status.
 * Thread-safe. */
ALLOT_API const char *allot_status_name(allot_status status);

/** One line that says what a status means. Thread-safe. */
ALLOT_API const char *allot_status_text(allot_status status);

/**
 * What was asked and what was there at this thread's last failing call, for example
 * "snapshot.pickle: byte 1042: opcode GLOBAL is refused: it could run code".
 *
 * @return Text, "" before the first failure. Borrowed: valid until this thread's next failing call.
 * Thread-safe.
 */
ALLOT_API const char *allot_error_detail(void);

/** Version of the library that is running, for example "0.1.0". Thread-safe. */
ALLOT_API const char *allot_version(void);

/** Where output goes. The caller fills it in; `write` receives every byte in order. */
typedef struct allot_sink {
    /** Receives `size` bytes; returns ALLOT_STATUS_OK or the failure to hand through. Not NULL. */
    allot_status (*write)(void *context, const void *data, size_t size);
    void *context; /**< First argument of `write`. */
} allot_sink;

/**
 * A sink that writes to a stdio stream, which is neither flushed nor closed: the caller does both,
 * and looks at what they return.
 *
 * @param[in] file  A FILE pointer; not NULL. It stays the caller's.
 * @return A sink that returns ALLOT_STATUS_IO if the stream takes less than it is given.
 */
ALLOT_API allot_sink allot_sink_stdio(void *file);

/**
 * How far a long call has come. Called on the thread of that call.
 *
 * @param[in] stage  What is being done, for example "reading"; borrowed for the call.
 * @param[in] done   Units finished, 0 to `total`.
 * @param[in] total  Units in all; 0 where it is not known.
 * @return false to cancel: the call then ends with ALLOT_STATUS_CANCELLED.
 */
typedef bool (*allot_progress_fn)(void *context, const char *stage, uint64_t done, uint64_t total);

/** Room that allot_size_format() needs at most, the final NUL included. */
#define ALLOT_SIZE_TEXT_MAX 32

/**
 * Write a size for people: "0 B", "512 B", "1.5 KiB", "20.0 MiB", "10.29 GiB" (powers of 1024).
 *
 * @param[out] buffer  [ALLOT_SIZE_TEXT_MAX]
 * @return `buffer`. Thread-safe.
 */
ALLOT_API const char *allot_size_format(uint64_t bytes, char *buffer);

/**
 * Read a size: a number, which may have a fraction, and a unit: none or B (bytes), K/KB/KiB, M, G,
 * T, P, E likewise, all powers of 1024 as the field uses them, in any case; "24GiB", "8000 MiB",
 * "1.5g".
 *
 * @param[in]  text  Not NULL; spaces only between number and unit.
 * @param[out] out   Bytes, rounded to the nearest; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID with the position of the first wrong character, or
 *         for 2^64 bytes and more. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_size_parse(const char *text, uint64_t *out);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_BASE_H */
