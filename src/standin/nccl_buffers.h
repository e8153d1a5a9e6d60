/* SPDX-License-Identifier: MIT */
/** What communicators of NCCL take of the device, outside any allocator. */
#ifndef ALLOTI_STANDIN_NCCL_BUFFERS_H
#define ALLOTI_STANDIN_NCCL_BUFFERS_H

#include "standin/abi.h"

/** Take the buffers of a communicator of `ranks`; *size is what nccl_buffers_give_back() returns.
 */
cuda_status nccl_buffers_take(unsigned device, int ranks, uint64_t *size);
void nccl_buffers_give_back(unsigned device, uint64_t size);

#endif /* ALLOTI_STANDIN_NCCL_BUFFERS_H */
