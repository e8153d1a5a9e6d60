/* SPDX-License-Identifier: MIT */
/**
 * The program's kernels: which binary each belongs to, and for which architectures that binary
 * holds code. PyTorch's sort and scan kernels size their memory by the architecture of the code
 * that the device would choose, so it is read from the binary itself: its headers are walked when a
 * kernel is first asked about, not when it registers.
 *
 * A fat binary is a header and a list of entries, each machine code for one architecture or PTX,
 * which any later architecture can run. Layout as emitted by nvcc and seen by cuobjdump.
 */
#ifndef ALLOTI_STANDIN_MODULE_H
#define ALLOTI_STANDIN_MODULE_H

#include <allot/base.h>

#include "standin/cubin.h"

/** Remember a fat binary (the wrapper that the compiler emits); a handle for it, never NULL. */
void **module_register(const void *wrapper);

/** Say that a host function stands for a kernel of a binary; the name is the compiler's constant.
 */
void module_add_function(void **handle, const void *function, const char *name);

/** Mangled name of the kernel that a function stands for, NULL if it is unknown. */
const char *module_function_name(const void *function);

/**
 * Architecture of the code that a device of compute capability major.minor runs for a function: 86
 * also on 8.9 where there is none for 8.9 itself. 0 if nothing fits, -1 if the function is unknown.
 */
int module_architecture(const void *function, unsigned major, unsigned minor);

/** What the code for that device says about the kernel; false if that cannot be read. */
bool module_kernel(const void *function, unsigned major, unsigned minor, cubin_kernel *out);

#endif /* ALLOTI_STANDIN_MODULE_H */
