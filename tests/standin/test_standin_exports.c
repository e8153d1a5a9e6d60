/* SPDX-License-Identifier: MIT */
/* Every symbol that the supported wheels of PyTorch import exists: one missing breaks the import.
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

static void every_imported_symbol_exists(void)
{
    standin_load("limit:64MiB");
    FILE *const list = fopen(ALLOT_SOURCE_DIR "/src/standin/stubs/imports.txt", "r");
    REQUIRE(list != NULL);
    char line[512];
    unsigned count = 0;
    while (fgets(line, sizeof line, list) != NULL) {
        const size_t length = strcspn(line, " \n");
        if (line[0] == '#' || length == 0) {
            continue;
        }
        line[length] = '\0';
        count++;
        if (!CHECK(standin_symbol("libcuda.so.1", line) != NULL)) {
            fprintf(stderr, "missing: %s\n", line);
        }
    }
    fclose(list);
    CHECK(count > 700);
}

static void the_named_libraries_lead_to_the_stand_in(void)
{
    standin_load("limit:64MiB");
    FILE *const list = fopen(ALLOT_SOURCE_DIR "/src/standin/libraries.txt", "r");
    REQUIRE(list != NULL);
    char line[512];
    void *const own = standin_symbol("libcuda.so.1", "cudaMalloc");
    while (fgets(line, sizeof line, list) != NULL) {
        const size_t length = strcspn(line, " \n");
        if (line[0] != '#' && length != 0) {
            line[length] = '\0';
            CHECK(standin_symbol(line, "cudaMalloc") == own);
        }
    }
    fclose(list);
}

/* PyTorch 2.6 looks its driver functions up by these names when memory runs out. */
static void driver_functions_have_their_plain_names(void)
{
    static const char *const names[] = {
        "cuStreamWriteValue32", "cuMemAlloc",       "cuMemFree",           "cuDeviceTotalMem",
        "cuCtxPushCurrent",     "cuGetProcAddress", "cuMemGetAddressRange"};
    standin_load("limit:64MiB");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(standin_symbol("libcuda.so.1", names[i]) != NULL);
    }
    int (*allocate)(uint64_t *, size_t) = NULL;
    *(void **)&allocate = standin_symbol("libcuda.so.1", "cuMemAlloc");
    uint64_t address = 0;
    REQUIRE(allocate != NULL);
    CHECK_EQ(allocate(&address, STANDIN_MIB(4)), 0);
    CHECK_EQ(standin_used(), STANDIN_MIB(4));
    CHECK_EQ(cuda.cudaFree((void *)(uintptr_t)address), 0);
}

static const check_test TESTS[] = {
    {"driver_functions_have_their_plain_names", driver_functions_have_their_plain_names},
    {"every_imported_symbol_exists", every_imported_symbol_exists},
    {"the_named_libraries_lead_to_the_stand_in", the_named_libraries_lead_to_the_stand_in},
};
CHECK_MAIN(TESTS)
