/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 for the helper program on a machine that has no driver: cuDNN's libraries are linked
 * with it, and cuDNN leaves engines out whose functions of the driver it does not find. No function
 * does anything; each says that there is no device. driver_names.inc is made by the build: the
 * driver's functions among those that the stand-in has.
 */
enum { NO_DEVICE = 100 };

#define DRIVER_ENTRY(name)                                                                         \
    __attribute__((visibility("default"))) int name(void)                                          \
    {                                                                                              \
        return NO_DEVICE;                                                                          \
    }

#include "driver_names.inc"
