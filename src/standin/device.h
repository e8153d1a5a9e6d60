/* SPDX-License-Identifier: MIT */
/** What a device says about itself: properties and attributes from the profile. */
#ifndef ALLOTI_STANDIN_DEVICE_H
#define ALLOTI_STANDIN_DEVICE_H

#include "standin/config.h"

enum { DEVICE_WARP = 32, DEVICE_BLOCK_THREADS = 1024 };

/** Major version of CUDA that the program was built for: 12 or 13. */
unsigned device_cuda_major(void);

/** The same by the runtime that the program has loaded, whatever the settings are; else 13. */
unsigned device_runtime_major(void);

/** A version number as CUDA spells it: 12080 for 12.8. */
int device_cuda_version(void);

/** Value of attribute `number` (CUdevice_attribute, cudaDeviceAttr) of a device; false: unknown. */
bool device_attribute(const standin_config *config, int number, unsigned device, int *out);

/** Fill in a cudaDeviceProp of the layout of CUDA 12 or 13. */
void device_properties(const standin_config *config, unsigned device, unsigned major, void *out);

/** The 16 bytes of a device's UUID. */
void device_uuid(unsigned device, unsigned char *out);

/** "GPU-a1a8afb6-...", by the number among the installed ones: also for the NVML library. */
__attribute__((visibility("default"))) void allot_standin_uuid_text(unsigned device, char *out,
                                                                    size_t size);

/** "0000:01:00.0" */
void device_bus_id(unsigned device, char *out, size_t size);
/** The device of such a text, or -1. */
int device_of_bus_id(const char *text);

#endif /* ALLOTI_STANDIN_DEVICE_H */
