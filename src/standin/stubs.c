/* SPDX-License-Identifier: MIT */
/*
 * Every CUDA function that is answered by guess: stubs/table.inc says what each takes, gives back
 * and does. A guess succeeds, clears its outputs and makes the handles it is asked for; it is
 * counted and named in the report, and fails in strict mode.
 */
#include <string.h>

#include "standin/abi.h"
#include "standin/handle.h"
#include "standin/report.h"
#include "standin/state.h"

typedef struct stub_complex {
    double re, im;
} stub_complex;

/* Structures passed by value, by size: only their place in the calling convention matters. */
#define STUB_STRUCT(size)                                                                          \
    typedef struct stub_##size {                                                                   \
        char bytes[size];                                                                          \
    } stub_##size;
STUB_STRUCT(8)
STUB_STRUCT(12)
STUB_STRUCT(24)
STUB_STRUCT(32)
STUB_STRUCT(64)
STUB_STRUCT(128)
#undef STUB_STRUCT

enum { GUESS_REFUSED = CUDA_NOT_SUPPORTED };

/** Whether a pointer is one of the host that may be written through. */
static bool is_writable(const void *pointer)
{
    if ((uintptr_t)pointer <= UINT16_MAX) {
        return false;
    }
    standin *const state = standin_open();
    const bool is_device = address_is_inside(&state->space, (uintptr_t)pointer);
    standin_close(state);
    return !is_device;
}

static void clear(void *pointer, size_t size)
{
    if (is_writable(pointer)) {
        memset(pointer, 0, size);
    }
}

static void give_handle(void *pointer)
{
    if (is_writable(pointer)) {
        void *const handle = handle_create();
        memcpy(pointer, &handle, sizeof handle);
    }
}

/** Store a size in units of `unit` bytes where an output parameter of `width` bytes points to. */
static void give_size(void *pointer, size_t width, uint64_t unit, uint64_t bytes)
{
    const uint64_t count = bytes / unit + (bytes % unit != 0 ? 1 : 0);
    const int narrow = count > INT32_MAX ? INT32_MAX : (int)count;
    if (is_writable(pointer)) {
        memcpy(pointer, width == sizeof narrow ? (const void *)&narrow : &count, width);
    }
}

static void work(void *stream)
{
    standin *const state = standin_open();
    stream_work_on(state, stream);
    standin_close(state);
}

#define ZERO(pointer, size) clear(pointer, size);
#define HANDLE(pointer) give_handle(pointer);
#define FREE(pointer) handle_destroy(pointer);
#define WORK(stream) work(stream);
#define LIBRARY(handle) handle_work(handle);
#define TEXT result = (stub_result)(uintptr_t) "stand-in";

/* Each stub is compiled under a name of its own and exported under CUDA's, since a few of CUDA's
 * names are known to the compiler's headers with other types. The result lives in a type as wide as
 * a register; functions without one simply leave it there. */
typedef long stub_result;
#define STUB(symbol, type, parameters, actions)                                                    \
    __attribute__((visibility("default")))                                                         \
    stub_result stub_of_##symbol parameters __asm__(#symbol);                                      \
    stub_result stub_of_##symbol parameters                                                        \
    {                                                                                              \
        static report_guess guess = {.name = #symbol};                                             \
        stub_result result = 0;                                                                    \
        if (!report_guess_call(&guess)) {                                                          \
            return GUESS_REFUSED;                                                                  \
        }                                                                                          \
        actions; /* statements: NOLINT(bugprone-macro-parentheses) */                              \
        return result;                                                                             \
    }

/* A function that tells a size: the user's table answers, else it is not known and 0. */
#define SIZE_STUB(symbol, parameters, entry, pointer, width, unit, actions)                        \
    __attribute__((visibility("default")))                                                         \
    stub_result stub_of_##symbol parameters __asm__(#symbol);                                      \
    stub_result stub_of_##symbol parameters                                                        \
    {                                                                                              \
        static report_size size = {.name = #symbol, .workspace = ALLOT_WORKSPACE_##entry};         \
        uint64_t bytes = 0;                                                                        \
        if (!report_size_by_table(&size, REPORT_UNKNOWN, &bytes, 0)) {                             \
            return GUESS_REFUSED;                                                                  \
        }                                                                                          \
        actions; /* statements: NOLINT(bugprone-macro-parentheses) */                              \
        give_size(pointer, width, unit, bytes);                                                    \
        return 0;                                                                                  \
    }

/* A second name for a function of any source file: one jump. */
#if defined(__aarch64__)
#define STUB_JUMP(name) "b " name
#else
#define STUB_JUMP(name) "jmp " name "@PLT"
#endif
#define ALIAS(plain, full)                                                                         \
    __asm__(".text\n.globl " #plain "\n.type " #plain ", @function\n" #plain ": " STUB_JUMP(#full));

#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "standin/stubs/table.inc"
