/* SPDX-License-Identifier: MIT */
/* Calls that are answered by guess fail in strict mode; the others work. */
#include "support/check.h"
#include "support/standin.h"

static void guesses_fail(void)
{
    standin_load("strict:1");
    void *handle = NULL;
    int version = 7;
    CHECK_EQ(cuda.cusparseCreate(&handle), 801);
    CHECK(handle == NULL);
    CHECK_EQ(cuda.cusparseGetVersion(NULL, &version), 801);
    CHECK_EQ(version, 7);
}

static void what_is_written_by_hand_works(void)
{
    standin_load("strict:1");
    void *memory = NULL;
    CHECK_EQ(cuda.cudaMalloc(&memory, 100), 0);
    CHECK_EQ(cuda.cudaFree(memory), 0);
}

static const check_test TESTS[] = {
    {"guesses_fail", guesses_fail},
    {"what_is_written_by_hand_works", what_is_written_by_hand_works},
};
CHECK_MAIN(TESTS)
