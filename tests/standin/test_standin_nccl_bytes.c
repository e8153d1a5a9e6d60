/* SPDX-License-Identifier: MIT */
/* NCCL between real ranks whose device memory holds bytes: everything arrives, whatever its size.
 */
#include <stdlib.h>

#include "nccl_ranks.h"
#include "support/check.h"
#include "support/standin.h"

enum { COUNT = 3 << 20 };

static void exchange_much(int rank, void *comm)
{
    float *const own = malloc(COUNT * sizeof *own);
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        own[i] = (float)((i + (size_t)rank) % 1000);
    }
    void *const from = ranks_put(own, COUNT * sizeof *own);
    void *const to = ranks_put(NULL, COUNT * sizeof *own);
    CHECK_EQ(cuda.ncclAllReduce(from, to, COUNT, RANKS_FLOAT, RANKS_SUM, comm, NULL), 0);
    CHECK_EQ(ranks_get(own, to, COUNT * sizeof *own), 0);
    for (size_t i = 0; i < COUNT; i++) {
        const float expected = (float)(i % 1000 + (i + 1) % 1000 + (i + 2) % 1000 + (i + 3) % 1000);
        wrong += own[i] != expected ? 1 : 0;
    }
    CHECK_EQ(wrong, 0);
    free(own);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void all_bytes_are_exchanged(void)
{
    standin_load("devices:4,wait:60,bytes:real");
    ranks_run(exchange_much);
}

static const check_test TESTS[] = {
    {"all_bytes_are_exchanged", all_bytes_are_exchanged},
};
CHECK_MAIN(TESTS)
