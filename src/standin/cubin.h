/* SPDX-License-Identifier: MIT */
/**
 * What the code of a kernel says about it: registers, static shared memory, largest block. A cubin
 * is an ELF file; ".nv.info" lists attributes of its kernels, each with a format, a number and a
 * value. Numbers of attributes as shown by cuobjdump. In a fat binary it is compressed, by zstd
 * since CUDA 12.8; what was compressed otherwise is not read, and its kernels stay unknown.
 */
#ifndef ALLOTI_STANDIN_CUBIN_H
#define ALLOTI_STANDIN_CUBIN_H

#include <allot/base.h>

typedef struct cubin_kernel {
    uint32_t registers;   /**< Per thread; 0: unknown. */
    uint32_t threads_max; /**< Of a block, from the kernel's launch bounds; 0: none given. */
    uint64_t shared_size; /**< Static, per block. */
} cubin_kernel;

/**
 * Read a kernel's values from a cubin [size], by its mangled name; false if it is not there or the
 * file is not sound.
 */
bool cubin_read(const void *cubin, uint64_t size, const char *name, cubin_kernel *out);

/** The same from a cubin compressed by zstd, of `full_size` bytes when expanded. */
bool cubin_read_compressed(const void *bytes, uint64_t size, uint64_t full_size, const char *name,
                           cubin_kernel *out);

#endif /* ALLOTI_STANDIN_CUBIN_H */
