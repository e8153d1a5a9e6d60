/* SPDX-License-Identifier: MIT */
/* Every function that the backend looks for, weakly: it succeeds and does nothing. */
#include "device/opencl_driver.h"

#define DO_NOTHING(result, name, parameters)                                                       \
    __attribute__((visibility("default"), weak)) int name(void);                                   \
    int name(void)                                                                                 \
    {                                                                                              \
        return 0;                                                                                  \
    }
OPENCL_FUNCTION_LIST(DO_NOTHING)
