/* SPDX-License-Identifier: MIT */
/* CUDA_VISIBLE_DEVICES with UUIDs, whole and shortened, as batch systems and containers set it. */
#include <stdlib.h>

#include "support/check.h"
#include "support/standin.h"

#define UUID_1 "GPU-a2a9b0b7-bec5-ccd3-dae1-e8eff6fd040b"

static void devices_are_chosen_by_uuid(void)
{
    static const char *const expected[] = {"0000:03:00.0", "0000:01:00.0", "0000:02:00.0"};
    int count = 0;
    char text[96] = "";
    void *handle = NULL;
    setenv("CUDA_VISIBLE_DEVICES", "GPU-a3aab1b8,0," UUID_1 ",GPU-a,3", 1);
    standin_load("devices:4");
    CHECK_EQ(cuda.cudaGetDeviceCount(&count), 0);
    CHECK_EQ(count, 3); /* "GPU-a" is short of telling which */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cuda.cudaDeviceGetPCIBusId(text, sizeof text, i), 0);
        CHECK_STR(text, expected[i]);
    }
    int (*const get_handle)(unsigned, void **) = (int (*)(unsigned, void **))(
        uintptr_t)standin_symbol("libnvidia-ml.so.1", "nvmlDeviceGetHandleByIndex_v2");
    int (*const get_uuid)(void *, char *, unsigned) = (int (*)(void *, char *, unsigned))(
        uintptr_t)standin_symbol("libnvidia-ml.so.1", "nvmlDeviceGetUUID");
    CHECK_EQ(get_handle(1, &handle), 0);
    CHECK_EQ(get_uuid(handle, text, sizeof text), 0);
    CHECK_STR(text, UUID_1);
}

static const check_test TESTS[] = {
    {"devices_are_chosen_by_uuid", devices_are_chosen_by_uuid},
};
CHECK_MAIN(TESTS)
