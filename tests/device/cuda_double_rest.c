/* SPDX-License-Identifier: MIT */
/* Every function that the backend looks for, weakly: it succeeds and does nothing. */
#include "device/cuda_driver.h"

#define DO_NOTHING(name, suffix, need, parameters)                                                 \
    __attribute__((visibility("default"), weak)) int name##suffix(void);                           \
    int name##suffix(void)                                                                         \
    {                                                                                              \
        return 0;                                                                                  \
    }
CUDA_FUNCTION_LIST(DO_NOTHING)
