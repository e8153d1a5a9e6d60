/* SPDX-License-Identifier: MIT */
/** The functions of a real cuDNN that the helper program calls. */
#ifndef ALLOTI_STANDIN_ORACLE_LIBRARY_H
#define ALLOTI_STANDIN_ORACLE_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

/** One list of what is loaded: name without "cudnn", result, parameters. */
#define CUDNN_FUNCTION_LIST(X)                                                                     \
    X(GetVersion, size_t, (void))                                                                  \
    X(BackendCreateDescriptor, int, (int, void **))                                                \
    X(BackendDestroyDescriptor, int, (void *))                                                     \
    X(BackendSetAttribute, int, (void *, int, int, int64_t, const void *))                         \
    X(BackendGetAttribute, int, (void *, int, int, int64_t, int64_t *, void *))                    \
    X(BackendFinalize, int, (void *))

typedef struct cudnn_library {
/* Parts of a declaration: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define CUDNN_MEMBER(name, result, parameters) result(*name) parameters;
    CUDNN_FUNCTION_LIST(CUDNN_MEMBER)
#undef CUDNN_MEMBER
    size_t version; /**< 92800 for 9.28.0; 0: not loaded. */
} cudnn_library;

/**
 * Load a library that can be asked without a device, cuDNN 9.8 or newer.
 *
 * @param[out] problem  [size], what is wrong; "" for nothing.
 */
void cudnn_library_load(const char *path, cudnn_library *out, char *problem, size_t size);

#endif /* ALLOTI_STANDIN_ORACLE_LIBRARY_H */
