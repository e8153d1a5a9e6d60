/* SPDX-License-Identifier: MIT */
/** Ranks of NCCL as threads of a test, each with a GPU of its own. */
#ifndef NCCL_RANKS_H
#define NCCL_RANKS_H

#include <stddef.h>
#include <stdint.h>

enum { RANKS = 4, RANKS_INT32 = 2, RANKS_INT64 = 4, RANKS_FLOAT = 7, RANKS_DOUBLE = 8 };
enum { RANKS_SUM = 0, RANKS_PRODUCT = 1, RANKS_MAX = 2, RANKS_MIN = 3, RANKS_AVERAGE = 4 };

/** Run `body` as each of RANKS ranks of one communicator, which is destroyed afterwards. */
void ranks_run(void (*body)(int rank, void *comm));

/** Device memory with these bytes; NULL: nothing written. Freed with cudaFree(). */
void *ranks_put(const void *bytes, size_t size);

/** Read device memory back. 0 on success. */
int ranks_get(void *bytes, const void *device, size_t size);

#endif /* NCCL_RANKS_H */
