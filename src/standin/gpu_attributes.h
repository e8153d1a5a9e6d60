/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_STANDIN_GPU_ATTRIBUTES_H
#define ALLOTI_STANDIN_GPU_ATTRIBUTES_H

/** Attributes of a device by CUDA's number, and the field of a profile that holds each. */
#define GPU_ATTRIBUTE_LIST(X)                                                                      \
    X(8, block_shared_size)                                                                        \
    X(13, clock_khz)                                                                               \
    X(16, sm_count)                                                                                \
    X(36, memory_clock_khz)                                                                        \
    X(37, memory_bus_bits)                                                                         \
    X(38, l2_size)                                                                                 \
    X(39, sm_threads)                                                                              \
    X(40, copy_engine_count)                                                                       \
    X(75, compute_major)                                                                           \
    X(76, compute_minor)                                                                           \
    X(81, sm_shared_size)                                                                          \
    X(82, sm_registers)                                                                            \
    X(97, block_shared_optin_size)                                                                 \
    X(106, sm_blocks)                                                                              \
    X(108, l2_persisting_size)                                                                     \
    X(111, block_shared_reserved_size)

#endif /* ALLOTI_STANDIN_GPU_ATTRIBUTES_H */
