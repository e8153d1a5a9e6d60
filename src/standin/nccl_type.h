/* SPDX-License-Identifier: MIT */
/** Element types and reductions of NCCL's collectives, computed on the host. */
#ifndef ALLOTI_STANDIN_NCCL_TYPE_H
#define ALLOTI_STANDIN_NCCL_TYPE_H

#include <allot/base.h>

/** Bytes of one element (ncclDataType_t); 0 for a type that does not exist. */
uint64_t nccl_type_size(uint32_t type);

/** "float32"; never NULL. */
const char *nccl_type_name(uint32_t type);

/** "sum"; never NULL. Operations that a program made itself count as sums. */
const char *nccl_operation_name(uint32_t operation);

/**
 * Reduce `count` elements of each of `ranks` inputs into `out`. An input that is NULL is all zero.
 * The average of integers is rounded towards zero. Eight-bit floating point is not computed: zero.
 */
void nccl_reduce(uint32_t type, uint32_t operation, unsigned char *const *inputs, unsigned ranks,
                 uint64_t count, unsigned char *out);

#endif /* ALLOTI_STANDIN_NCCL_TYPE_H */
