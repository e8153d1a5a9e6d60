/* SPDX-License-Identifier: MIT */
/**
 * @file
 * What CUDA's libraries need beside the memory that a program asks for: sizes that only real
 * hardware tells, as a table that the user fills in for a dry run.
 */
#ifndef ALLOT_WORKSPACE_H
#define ALLOT_WORKSPACE_H

#include <allot/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One list that yields each entry: name, text. */
#define ALLOT_WORKSPACE_LIST(X)                                                                    \
    X(context, "taken of the device by a CUDA context")                                            \
    X(cudnn, "answered as each workspace of cuDNN, which lives for one call")                      \
    X(cudnn_reserve, "answered as what cuDNN keeps of a layer until its backward pass")            \
    X(cublas, "taken of the device by each handle of cuBLAS")                                      \
    X(cusolver, "answered as each workspace of cuSOLVER")                                          \
    X(cusparse, "answered as each workspace of cuSPARSE and cuSPARSELt")                           \
    X(cufft, "answered as the work area of each plan of cuFFT")                                    \
    X(nccl, "taken of the device by each communicator of NCCL with more than one rank")

typedef enum allot_workspace {
#define ALLOT_WORKSPACE_ENUM(name, text) ALLOT_WORKSPACE_##name,
    ALLOT_WORKSPACE_LIST(ALLOT_WORKSPACE_ENUM)
#undef ALLOT_WORKSPACE_ENUM
        ALLOT_WORKSPACE_COUNT
} allot_workspace;

/** The table. Zero it and set struct_size; no entry is set then. */
typedef struct allot_workspaces {
    size_t struct_size;                   /**< sizeof(allot_workspaces). */
    uint64_t size[ALLOT_WORKSPACE_COUNT]; /**< Bytes; 0 where not set. */
    bool is_set[ALLOT_WORKSPACE_COUNT];   /**< 0 bytes is a size like any other. */
} allot_workspaces;

/** Name of an entry ("cudnn"), and what its size stands for. Thread-safe. */
ALLOT_API const char *allot_workspace_name(allot_workspace workspace);
ALLOT_API const char *allot_workspace_text(allot_workspace workspace);

/**
 * Set the entries that a text names: "cudnn=64MiB,nccl=200MiB"; others stay as they are.
 *
 * @param[in]     text  Not NULL; names of ALLOT_WORKSPACE_LIST, sizes as allot_size_parse() takes.
 * @param[in,out] out   Untouched on failure.
 * @return ALLOT_STATUS_INVALID with the part that is wrong and the names there are. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_workspaces_parse(const char *text,
                                                              allot_workspaces *out);

/**
 * Set the entries of a JSON file: {"schema": "allot-workspaces/1", "cudnn": "64MiB", "nccl": 0}.
 *
 * @param[in,out] out  Untouched on failure.
 * @return ALLOT_STATUS_FORMAT with what is wrong; ALLOT_STATUS_VERSION; ALLOT_STATUS_IO.
 *         Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_workspaces_read(const char *path,
                                                             allot_workspaces *out);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_WORKSPACE_H */
