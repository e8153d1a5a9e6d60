/* SPDX-License-Identifier: MIT */
/* Two processes see the bytes of one allocation. The other one is forked before anything is loaded.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { TO_DEVICE = 1, TO_HOST = 2, SIZE = 1000 };

static void load(void)
{
    standin_load("limit:64MiB,bytes:real,delay:2");
}

/** The other process: sees 3, writes 4. */
static int other(int from, int to)
{
    standin_ipc handle;
    unsigned char bytes[SIZE];
    char done = 1;
    void *memory = NULL;
    if (read(from, &handle, sizeof handle) != (ssize_t)sizeof handle) {
        return 1;
    }
    load();
    int failed = cuda.cudaIpcOpenMemHandle(&memory, handle, 1);
    failed |= cuda.cudaMemcpy(bytes, memory, SIZE, TO_HOST);
    failed |= bytes[0] != 3 || bytes[SIZE - 1] != 3;
    failed |= standin_used() != 0; /* its owner pays */
    failed |= cuda.cudaMemset(memory, 4, SIZE);
    failed |= cuda.cudaIpcCloseMemHandle(memory);
    failed |= cuda.cudaMemset(memory, 5, SIZE) == 0;
    return write(to, &done, 1) != 1 || failed != 0;
}

static void another_process_sees_the_bytes(void)
{
    int there[2] = {-1, -1};
    int back[2] = {-1, -1};
    REQUIRE(pipe(there) == 0 && pipe(back) == 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(other(there[0], back[1]));
    }
    load();
    standin_ipc handle = {{0}};
    unsigned char bytes[SIZE];
    char done = 0;
    void *neighbour = NULL;
    void *memory = NULL;
    int status = 1;
    CHECK_EQ(cuda.cudaMalloc(&neighbour, 3000), 0); /* in the same granule */
    CHECK_EQ(cuda.cudaMalloc(&memory, SIZE), 0);
    CHECK_EQ(cuda.cudaMemset(memory, 3, SIZE), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(cuda.cudaIpcGetMemHandle(&handle, memory), 0);
    CHECK(write(there[1], &handle, sizeof handle) == (ssize_t)sizeof handle);
    CHECK(read(back[0], &done, 1) == 1);
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    CHECK_EQ(cuda.cudaMemcpy(bytes, memory, SIZE, TO_HOST), 0);
    CHECK_EQ(bytes[0], 4);
    CHECK_EQ(bytes[SIZE - 1], 4);
    CHECK_EQ(cuda.cudaFree(memory), 0);
    cuda.cudaFree(neighbour);
    CHECK_EQ(standin_used(), 0);
}

static const check_test TESTS[] = {
    {"another_process_sees_the_bytes", another_process_sees_the_bytes},
};
CHECK_MAIN(TESTS)
