/* SPDX-License-Identifier: MIT */
/* CUDA_VISIBLE_DEVICES: which of the installed devices a program sees, and under which numbers. */
#include <stdlib.h>

#include "support/check.h"
#include "support/standin.h"

static void devices_are_chosen_and_ordered(void)
{
    int count = 0;
    int device = -1;
    char bus[32] = "";
    unsigned installed = 0;
    setenv("CUDA_VISIBLE_DEVICES", "2,0,7,1", 1);
    standin_load("devices:4");
    CHECK_EQ(cuda.cudaGetDeviceCount(&count), 0);
    CHECK_EQ(count, 2); /* the list ends at the first that is not there */
    CHECK_EQ(cuda.cudaDeviceGetPCIBusId(bus, sizeof bus, 0), 0);
    CHECK_STR(bus, "0000:03:00.0");
    CHECK_EQ(cuda.cudaDeviceGetByPCIBusId(&device, "0000:01:00.0"), 0);
    CHECK_EQ(device, 1);
    CHECK(cuda.cudaDeviceGetByPCIBusId(&device, "0000:02:00.0") != 0);
    CHECK(cuda.cudaSetDevice(2) != 0);
    int (*const get_count)(unsigned *) = (int (*)(unsigned *))(uintptr_t)standin_symbol(
        "libnvidia-ml.so.1", "nvmlDeviceGetCount_v2");
    CHECK_EQ(get_count(&installed), 0);
    CHECK_EQ(installed, 4);
}

static const check_test TESTS[] = {
    {"devices_are_chosen_and_ordered", devices_are_chosen_and_ordered},
};
CHECK_MAIN(TESTS)
