/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 for the helper program on a machine that has no driver: cuDNN's libraries are linked
 * with it. No function of it does anything; each says that there is no device.
 */
enum { NO_DEVICE = 100 };

#define DRIVER_ENTRY(name)                                                                         \
    __attribute__((visibility("default"))) int name(void)                                          \
    {                                                                                              \
        return NO_DEVICE;                                                                          \
    }

DRIVER_ENTRY(cuDriverGetVersion)
DRIVER_ENTRY(cuFuncGetAttribute)
DRIVER_ENTRY(cuFuncSetAttribute)
DRIVER_ENTRY(cuGetErrorName)
DRIVER_ENTRY(cuGetErrorString)
DRIVER_ENTRY(cuGetProcAddress)
DRIVER_ENTRY(cuGetProcAddress_v2)
DRIVER_ENTRY(cuInit)
DRIVER_ENTRY(cuKernelGetAttribute)
DRIVER_ENTRY(cuKernelGetFunction)
DRIVER_ENTRY(cuKernelSetAttribute)
DRIVER_ENTRY(cuLaunchCooperativeKernel)
DRIVER_ENTRY(cuLaunchKernel)
DRIVER_ENTRY(cuLaunchKernelEx)
DRIVER_ENTRY(cuLibraryGetKernel)
DRIVER_ENTRY(cuLibraryLoadData)
DRIVER_ENTRY(cuLibraryUnload)
DRIVER_ENTRY(cuModuleGetFunction)
DRIVER_ENTRY(cuModuleGetGlobal_v2)
DRIVER_ENTRY(cuModuleLoadData)
DRIVER_ENTRY(cuModuleLoadDataEx)
DRIVER_ENTRY(cuModuleUnload)
DRIVER_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor)
DRIVER_ENTRY(cuOccupancyMaxActiveClusters)
DRIVER_ENTRY(cuOccupancyMaxPotentialClusterSize)
DRIVER_ENTRY(cuTensorMapEncodeIm2col)
DRIVER_ENTRY(cuTensorMapEncodeTiled)
