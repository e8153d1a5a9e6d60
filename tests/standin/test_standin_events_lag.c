/* SPDX-License-Identifier: MIT */
/* Work is finished once five further pieces of work were put on any stream. */
#include "support/check.h"
#include "support/standin.h"

enum { NOT_READY = 600, LAG = 5 };

static void *place;

static void load(void)
{
    standin_load("limit:1GiB,events:lag,lag:5");
    if (place == NULL) {
        cuda.cudaMalloc(&place, 16);
    }
}

static void an_event_is_ready_after_the_lag(void)
{
    load();
    void *e = NULL;
    void *other = NULL;
    REQUIRE(cuda.cudaEventCreateWithFlags(&e, 0) == 0);
    REQUIRE(cuda.cudaStreamCreateWithFlags(&other, 1) == 0);
    CHECK_EQ(cuda.cudaEventRecord(e, NULL), 0);
    for (int i = 0; i < LAG; i++) {
        CHECK_EQ(cuda.cudaEventQuery(e), NOT_READY);
        CHECK_EQ(cuda.cudaMemsetAsync(place, 0, 16, other), 0);
    }
    CHECK_EQ(cuda.cudaEventQuery(e), 0);
    CHECK_EQ(cuda.cudaStreamQuery(other), NOT_READY);
    CHECK_EQ(cuda.cudaStreamSynchronize(other), 0);
    CHECK_EQ(cuda.cudaStreamQuery(other), 0);
    cuda.cudaEventDestroy(e);
    cuda.cudaStreamDestroy(other);
}

static const check_test TESTS[] = {
    {"an_event_is_ready_after_the_lag", an_event_is_ready_after_the_lag},
};
CHECK_MAIN(TESTS)
