/* SPDX-License-Identifier: MIT */
/* Every symbol that the supported wheels of PyTorch import exists: one missing breaks the import.
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

static void every_imported_symbol_exists(void)
{
    standin_load("");
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
    standin_load("");
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

static const check_test TESTS[] = {
    {"every_imported_symbol_exists", every_imported_symbol_exists},
    {"the_named_libraries_lead_to_the_stand_in", the_named_libraries_lead_to_the_stand_in},
};
CHECK_MAIN(TESTS)
