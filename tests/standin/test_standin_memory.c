/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101 };

static void load(void)
{
    standin_load("limit:64MiB,devices:2,gpu:rtx4090");
    cuda.cudaSetDevice(0);
}

static void sizes_are_rounded_to_granules(void)
{
    load();
    const size_t before = standin_used();
    void *a = NULL;
    void *b = NULL;
    REQUIRE(cuda.cudaMalloc(&a, 1) == 0);
    REQUIRE(cuda.cudaMalloc(&b, STANDIN_MIB(2) + 1) == 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(6));
    CHECK_EQ((uintptr_t)a % STANDIN_MIB(2), 0);
    CHECK_EQ(cuda.cudaFree(a), 0);
    CHECK_EQ(cuda.cudaFree(b), 0);
    CHECK_EQ(standin_used(), before);
}

static void a_freed_range_is_used_again(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    void *c = NULL;
    REQUIRE(cuda.cudaMalloc(&a, STANDIN_MIB(4)) == 0);
    REQUIRE(cuda.cudaMalloc(&b, STANDIN_MIB(2)) == 0);
    CHECK_EQ(cuda.cudaFree(a), 0);
    REQUIRE(cuda.cudaMalloc(&c, STANDIN_MIB(4)) == 0);
    CHECK(c == a);
    cuda.cudaFree(b);
    cuda.cudaFree(c);
}

static void the_limit_is_exact(void)
{
    load();
    void *all = NULL;
    void *more = NULL;
    size_t free_size = 0;
    size_t total = 0;
    REQUIRE(cuda.cudaMemGetInfo(&free_size, &total) == 0);
    CHECK_EQ(total, STANDIN_MIB(64));
    REQUIRE(cuda.cudaMalloc(&all, free_size) == 0);
    CHECK_EQ(cuda.cudaMalloc(&more, 1), OUT_OF_MEMORY);
    CHECK(more == NULL);
    CHECK_EQ(cuda.cudaPeekAtLastError(), OUT_OF_MEMORY);
    CHECK_EQ(cuda.cudaGetLastError(), OUT_OF_MEMORY);
    CHECK_EQ(cuda.cudaGetLastError(), 0);
    CHECK_EQ(cuda.cudaFree(all), 0);
    CHECK_EQ(cuda.cudaMalloc(&more, SIZE_MAX), OUT_OF_MEMORY);
    CHECK_EQ(cuda.cudaMalloc(&more, 0), 0);
    CHECK(more == NULL);
}

static void devices_have_memory_of_their_own(void)
{
    load();
    void *a = NULL;
    REQUIRE(cuda.cudaMalloc(&a, STANDIN_MIB(32)) == 0);
    CHECK_EQ(cuda.cudaSetDevice(1), 0);
    CHECK(standin_used() < STANDIN_MIB(32));
    int device = -1;
    CHECK_EQ(cuda.cuPointerGetAttribute(&device, 9, (uintptr_t)a), 0);
    CHECK_EQ(device, 0);
    CHECK_EQ(cuda.cudaSetDevice(2), INVALID_DEVICE);
    CHECK_EQ(cuda.cudaSetDevice(-1), INVALID_DEVICE);
    CHECK_EQ(cuda.cudaSetDevice(0), 0);
    CHECK_EQ(cuda.cudaFree(a), 0);
}

static void peer_access_is_enabled_once(void)
{
    load();
    int can = 0;
    CHECK_EQ(cuda.cudaDeviceCanAccessPeer(&can, 0, 1), 0);
    CHECK_EQ(can, 1);
    CHECK_EQ(cuda.cudaDeviceCanAccessPeer(&can, 0, 0), 0);
    CHECK_EQ(can, 0);
    CHECK_EQ(cuda.cudaDeviceEnablePeerAccess(1, 0), 0);
    CHECK_EQ(cuda.cudaDeviceEnablePeerAccess(1, 0), 704);
    CHECK_EQ(cuda.cudaDeviceDisablePeerAccess(1), 0);
    CHECK_EQ(cuda.cudaDeviceDisablePeerAccess(1), 705);
    CHECK_EQ(cuda.cudaDeviceEnablePeerAccess(0, 0), INVALID_DEVICE);
}

static void a_double_free_is_refused(void)
{
    load();
    void *a = NULL;
    REQUIRE(cuda.cudaMalloc(&a, STANDIN_MIB(4)) == 0);
    CHECK_EQ(cuda.cudaFree((char *)a + STANDIN_MIB(2)), INVALID_VALUE);
    CHECK_EQ(cuda.cudaFree(a), 0);
    CHECK_EQ(cuda.cudaFree(a), INVALID_VALUE);
    CHECK_EQ(cuda.cudaFree(NULL), 0);
    int on_stack = 0;
    CHECK_EQ(cuda.cudaFree(&on_stack), INVALID_VALUE);
    cuda.cudaGetLastError();
}

static void pointers_say_what_they_are(void)
{
    load();
    struct {
        int type;
        int device;
        void *device_pointer;
        void *host_pointer;
        long reserved[8];
    } attributes;
    void *device = NULL;
    void *pinned = NULL;
    void *managed = NULL;
    char own[64];
    REQUIRE(cuda.cudaMalloc(&device, 100) == 0);
    REQUIRE(cuda.cudaHostAlloc(&pinned, 100, 0) == 0);
    REQUIRE(cuda.cudaMallocManaged(&managed, 100, 1) == 0);
    CHECK_EQ(cuda.cudaPointerGetAttributes(&attributes, (char *)device + 50), 0);
    CHECK_EQ(attributes.type, 2);
    CHECK_EQ(cuda.cudaPointerGetAttributes(&attributes, (char *)pinned + 50), 0);
    CHECK_EQ(attributes.type, 1);
    CHECK_EQ(cuda.cudaPointerGetAttributes(&attributes, managed), 0);
    CHECK_EQ(attributes.type, 3);
    CHECK_EQ(cuda.cudaPointerGetAttributes(&attributes, own), 0);
    CHECK_EQ(attributes.type, 0);
    uint64_t base = 0;
    size_t size = 0;
    CHECK_EQ(cuda.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)device + 50), 0);
    CHECK_EQ(base, (uintptr_t)device);
    CHECK_EQ(size, 100);
    CHECK_EQ(cuda.cudaFree(device), 0);
    CHECK_EQ(cuda.cudaFreeHost(pinned), 0);
    CHECK_EQ(cuda.cudaFree(managed), 0);
    CHECK_EQ(cuda.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)device), INVALID_VALUE);
}

static void host_memory_is_real(void)
{
    load();
    void *pinned = NULL;
    void *managed = NULL;
    void *seen = NULL;
    REQUIRE(cuda.cudaHostAlloc(&pinned, STANDIN_MIB(1), 0) == 0);
    REQUIRE(cuda.cudaMallocManaged(&managed, STANDIN_MIB(1), 1) == 0);
    memset(pinned, 1, STANDIN_MIB(1));
    memset(managed, 2, STANDIN_MIB(1));
    CHECK_EQ(cuda.cudaHostGetDevicePointer(&seen, pinned, 0), 0);
    CHECK(seen == pinned);
    CHECK_EQ(cuda.cudaMemcpy(pinned, managed, STANDIN_MIB(1), 4), 0);
    CHECK_EQ(((unsigned char *)pinned)[STANDIN_MIB(1) - 1], 2);
    CHECK_EQ(cuda.cudaFreeHost(managed), INVALID_VALUE);
    CHECK_EQ(cuda.cudaFreeHost(pinned), 0);
    CHECK_EQ(cuda.cudaFree(managed), 0);
}

static void registered_memory_is_known_until_it_is_not(void)
{
    load();
    static char own[8192];
    void *seen = NULL;
    CHECK_EQ(cuda.cudaHostUnregister(own), 713);
    CHECK_EQ(cuda.cudaHostRegister(own, sizeof own, 0), 0);
    CHECK_EQ(cuda.cudaHostRegister(own + 100, 10, 0), 712);
    CHECK_EQ(cuda.cudaHostGetDevicePointer(&seen, own + 100, 0), 0);
    CHECK_EQ(cuda.cudaHostUnregister(own), 0);
    CHECK_EQ(cuda.cudaHostGetDevicePointer(&seen, own, 0), INVALID_VALUE);
    cuda.cudaGetLastError();
}

static void what_the_host_did_not_write_is_read_as_zero(void)
{
    load();
    void *device = NULL;
    void *pinned = NULL;
    unsigned char bytes[100];
    memset(bytes, 7, sizeof bytes);
    REQUIRE(cuda.cudaMalloc(&device, STANDIN_MIB(1)) == 0);
    REQUIRE(cuda.cudaHostAlloc(&pinned, STANDIN_MIB(1), 0) == 0);
    CHECK_EQ(cuda.cudaMemcpy(device, bytes, sizeof bytes, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(bytes, device, sizeof bytes, 2), 0);
    memset(pinned, 7, STANDIN_MIB(1));
    /* Large reads into pinned memory give pages back instead of writing: the ends are special. */
    CHECK_EQ(cuda.cudaMemcpy((char *)pinned + 100, device, STANDIN_MIB(1) - 200, 2), 0);
    CHECK_EQ(((unsigned char *)pinned)[99], 7);
    CHECK_EQ(((unsigned char *)pinned)[STANDIN_MIB(1) - 100], 7);
    uint64_t sum = 0;
    for (size_t i = 100; i < STANDIN_MIB(1) - 100; i++) {
        sum += ((unsigned char *)pinned)[i];
    }
    CHECK_EQ(sum, 0);
    CHECK_EQ(bytes[0], 7); /* no kernel was launched since the host wrote it */
    CHECK_EQ(bytes[sizeof bytes - 1], 7);
    CHECK_EQ(cuda.cudaMemset((char *)device + 50, 1, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(bytes, device, sizeof bytes, 2), 0);
    CHECK_EQ(bytes[0] + bytes[sizeof bytes - 1], 0);
    cuda.cudaFree(device);
    cuda.cudaFreeHost(pinned);
}

static size_t pool_value(void *pool, int attribute)
{
    uint64_t value = 0;
    CHECK_EQ(cuda.cudaMemPoolGetAttribute(pool, attribute, &value), 0);
    return (size_t)value;
}

/* Numbers of cudaMemPoolAttr. */
enum { THRESHOLD = 4, RESERVED = 5, USED = 7 };

static void pools_keep_what_is_freed_up_to_their_threshold(void)
{
    load();
    void *pool = NULL;
    void *a = NULL;
    void *b = NULL;
    const size_t before = standin_used();
    REQUIRE(cuda.cudaDeviceGetDefaultMemPool(&pool, 0) == 0);
    REQUIRE(cuda.cudaMallocAsync(&a, STANDIN_MIB(8), NULL) == 0);
    CHECK_EQ(pool_value(pool, USED), STANDIN_MIB(8));
    CHECK_EQ(cuda.cudaFreeAsync(a, NULL), 0);
    CHECK_EQ(pool_value(pool, USED), 0);
    CHECK_EQ(pool_value(pool, RESERVED), STANDIN_MIB(8));
    REQUIRE(cuda.cudaMallocAsync(&b, STANDIN_MIB(6), NULL) == 0);
    CHECK(b == a);
    CHECK_EQ(cuda.cudaFreeAsync(b, NULL), 0);
    uint64_t keep = STANDIN_MIB(8);
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(8));
    keep = 0;
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cudaFreeAsync(a, NULL), INVALID_VALUE);
}

static void a_full_device_takes_back_what_pools_keep(void)
{
    load();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    void *pool = NULL;
    void *a = NULL;
    void *large = NULL;
    uint64_t keep = UINT64_MAX;
    const size_t before = standin_used();
    REQUIRE(cuda.cudaMemPoolCreate(&pool, &properties) == 0);
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
    REQUIRE(cuda.cudaMallocFromPoolAsync(&a, STANDIN_MIB(32), pool, NULL) == 0);
    CHECK_EQ(cuda.cudaFreeAsync(a, NULL), 0);
    CHECK_EQ(standin_used() - before, STANDIN_MIB(32));
    CHECK_EQ(cuda.cudaMalloc(&large, STANDIN_MIB(60)), 0);
    CHECK_EQ(cuda.cudaFree(large), 0);
    CHECK_EQ(cuda.cudaMemPoolDestroy(pool), 0);
    CHECK_EQ(cuda.cudaMemPoolDestroy(NULL), INVALID_VALUE);
    CHECK_EQ(standin_used(), before);
}

static void memory_of_this_process_opens_to_itself(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    standin_ipc handle;
    REQUIRE(cuda.cudaMalloc(&a, STANDIN_MIB(4)) == 0);
    CHECK_EQ(cuda.cudaIpcGetMemHandle(&handle, (char *)a + 100), 0);
    CHECK_EQ(cuda.cudaIpcOpenMemHandle(&b, handle, 1), 0);
    CHECK(b == a);
    /* Of another process: the same memory, seen elsewhere, paid for there. */
    const size_t before = standin_used();
    int64_t process = 1;
    memcpy(handle.bytes + 24, &process, sizeof process);
    CHECK_EQ(cuda.cudaIpcOpenMemHandle(&b, handle, 1), 0);
    CHECK(b != NULL && b != a);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(cuda.cudaFree(b), INVALID_VALUE);
    CHECK_EQ(cuda.cudaIpcCloseMemHandle(b), 0);
    memset(&handle, 0, sizeof handle);
    CHECK_EQ(cuda.cudaIpcOpenMemHandle(&b, handle, 1), INVALID_VALUE);
    cuda.cudaFree(a);
}

/** Run `touch` in a child whose standard error is read back; true if a signal ended it. */
static bool dies(const void *address, char *said, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        *(volatile char *)(uintptr_t)address = 1;
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got = 0;
    while (used + 1 < size && (got = read(ends[0], said + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    said[used] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void touching_device_memory_names_the_allocation(void)
{
    load();
    void *a = NULL;
    char said[4096];
    REQUIRE(cuda.cudaMalloc(&a, 12345) == 0);
    CHECK(dies((char *)a + 100, said, sizeof said));
    CHECK_CONTAINS(said, "host code touched device address 0x");
    CHECK_CONTAINS(said, "100 bytes into allocation");
    CHECK_CONTAINS(said, "of 12345 bytes on device 0");
    cuda.cudaFree(a);
    CHECK(dies(a, said, sizeof said));
    CHECK_CONTAINS(said, "belongs to no allocation");
}

/** Random calls against a plain sum of what is live. */
static void random_calls_keep_the_sum(void)
{
    enum { LIVE_MAX = 24 };
    load();
    void *live[LIVE_MAX] = {0};
    size_t sizes[LIVE_MAX] = {0};
    uint64_t random = check_seed();
    const size_t before = standin_used();
    size_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        const size_t at = (size_t)check_random_range(&random, 0, LIVE_MAX - 1);
        if (live[at] != NULL) {
            CHECK_EQ(cuda.cudaFree(live[at]), 0);
            sum -= sizes[at];
            live[at] = NULL;
            continue;
        }
        const size_t size = (size_t)check_random_range(&random, STANDIN_MIB(2), STANDIN_MIB(9));
        const size_t extent = (size + STANDIN_MIB(2) - 1) / STANDIN_MIB(2) * STANDIN_MIB(2);
        const int status = cuda.cudaMalloc(&live[at], size);
        CHECK_EQ(status, before + sum + extent > STANDIN_MIB(64) ? OUT_OF_MEMORY : 0);
        sizes[at] = extent;
        sum += status == 0 ? extent : 0;
        for (size_t j = 0; j < LIVE_MAX && status == 0; j++) {
            CHECK(j == at || live[j] == NULL || (char *)live[at] + extent <= (char *)live[j] ||
                  (char *)live[j] + sizes[j] <= (char *)live[at]);
        }
        REQUIRE(standin_used() == before + sum);
        REQUIRE(cuda.allot_standin_check());
    }
    for (size_t j = 0; j < LIVE_MAX; j++) {
        cuda.cudaFree(live[j]);
    }
    CHECK_EQ(standin_used(), before);
    cuda.cudaGetLastError();
}

static void small_allocations_share_granules(void)
{
    load();
    enum { COUNT = 4096 };
    static void *small[COUNT + 1];
    const size_t before = standin_used();
    for (int i = 0; i < COUNT; i++) {
        REQUIRE(cuda.cudaMalloc(&small[i], 512) == 0);
    }
    CHECK(standin_used() - before <= STANDIN_MIB(2));
    const size_t full = standin_used();
    REQUIRE(cuda.cudaMalloc(&small[COUNT], 1) == 0);
    CHECK(standin_used() <= full + STANDIN_MIB(2));
    uint64_t base = 0;
    size_t size = 0;
    CHECK_EQ(cuda.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)small[7] + 511), 0);
    CHECK_EQ(base, (uintptr_t)small[7]);
    CHECK_EQ(size, 512);
    CHECK_EQ(cuda.cudaFree((char *)small[7] + 1), INVALID_VALUE);
    for (int i = 0; i <= COUNT; i++) {
        CHECK_EQ((uintptr_t)small[i] % 512, 0);
        CHECK_EQ(cuda.cudaFree(small[i]), 0);
    }
    CHECK_EQ(cuda.cudaFree(small[7]), INVALID_VALUE);
    CHECK_EQ(standin_used(), before);
    cuda.cudaGetLastError();
}

/** Random small sizes against a plain list of what is live. */
static void small_allocations_do_not_overlap(void)
{
    enum { LIVE_MAX = 64 };
    load();
    char *live[LIVE_MAX] = {0};
    size_t sizes[LIVE_MAX] = {0};
    uint64_t random = check_seed();
    const size_t before = standin_used();
    for (int i = 0; i < 20000; i++) {
        const size_t at = (size_t)check_random_range(&random, 0, LIVE_MAX - 1);
        if (live[at] != NULL) {
            CHECK_EQ(cuda.cudaFree(live[at]), 0);
            live[at] = NULL;
            continue;
        }
        const size_t most = check_random(&random) % 4 == 0 ? STANDIN_MIB(2) - 1 : 20000;
        sizes[at] = (size_t)check_random_range(&random, 1, most);
        if (cuda.cudaMalloc((void **)&live[at], sizes[at]) != 0) {
            live[at] = NULL; /* the device is full */
            continue;
        }
        uint64_t base = 0;
        size_t size = 0;
        CHECK_EQ(cuda.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)live[at] + sizes[at] - 1),
                 0);
        CHECK_EQ(base, (uintptr_t)live[at]);
        CHECK_EQ(size, sizes[at]);
        for (size_t j = 0; j < LIVE_MAX; j++) {
            CHECK(j == at || live[j] == NULL || live[at] + sizes[at] <= live[j] ||
                  live[j] + sizes[j] <= live[at]);
        }
        REQUIRE(cuda.allot_standin_check());
    }
    for (size_t j = 0; j < LIVE_MAX; j++) {
        cuda.cudaFree(live[j]);
    }
    CHECK_EQ(standin_used(), before);
    cuda.cudaGetLastError();
}

static void pools_divide_and_join_what_they_hold(void)
{
    load();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    void *pool = NULL;
    char *parts[4] = {0};
    void *whole = NULL;
    const size_t before = standin_used();
    uint64_t keep = UINT64_MAX;
    REQUIRE(cuda.cudaMemPoolCreate(&pool, &properties) == 0);
    CHECK_EQ(cuda.cudaMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cuda.cudaMallocFromPoolAsync((void **)&parts[i], 500000, pool, NULL), 0);
    }
    CHECK_EQ(pool_value(pool, RESERVED), STANDIN_MIB(2));
    CHECK_EQ(pool_value(pool, USED), 4 * 500224); /* in units of 512 */
    CHECK_EQ(standin_used() - before, STANDIN_MIB(2));
    CHECK_EQ(parts[1] - parts[0], 500224);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cuda.cudaFreeAsync(parts[(i + 1) % 4], NULL), 0);
        CHECK(cuda.allot_standin_check());
    }
    CHECK_EQ(cuda.cudaMallocFromPoolAsync(&whole, STANDIN_MIB(2), pool, NULL), 0);
    CHECK(whole == parts[0]);
    CHECK_EQ(pool_value(pool, RESERVED), STANDIN_MIB(2));
    CHECK_EQ(cuda.cudaMemPoolDestroy(pool), 0); /* lives on until its memory is freed */
    CHECK_EQ(standin_used() - before, STANDIN_MIB(2));
    CHECK_EQ(cuda.cudaFreeAsync(whole, NULL), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(standin_used(), before);
}

static const check_test TESTS[] = {
    {"sizes_are_rounded_to_granules", sizes_are_rounded_to_granules},
    {"a_freed_range_is_used_again", a_freed_range_is_used_again},
    {"the_limit_is_exact", the_limit_is_exact},
    {"devices_have_memory_of_their_own", devices_have_memory_of_their_own},
    {"peer_access_is_enabled_once", peer_access_is_enabled_once},
    {"a_double_free_is_refused", a_double_free_is_refused},
    {"pointers_say_what_they_are", pointers_say_what_they_are},
    {"host_memory_is_real", host_memory_is_real},
    {"registered_memory_is_known_until_it_is_not", registered_memory_is_known_until_it_is_not},
    {"what_the_host_did_not_write_is_read_as_zero", what_the_host_did_not_write_is_read_as_zero},
    {"pools_keep_what_is_freed_up_to_their_threshold",
     pools_keep_what_is_freed_up_to_their_threshold},
    {"a_full_device_takes_back_what_pools_keep", a_full_device_takes_back_what_pools_keep},
    {"memory_of_this_process_opens_to_itself", memory_of_this_process_opens_to_itself},
    {"touching_device_memory_names_the_allocation", touching_device_memory_names_the_allocation},
    {"random_calls_keep_the_sum", random_calls_keep_the_sum},
    {"small_allocations_share_granules", small_allocations_share_granules},
    {"small_allocations_do_not_overlap", small_allocations_do_not_overlap},
    {"pools_divide_and_join_what_they_hold", pools_divide_and_join_what_they_hold},
};
CHECK_MAIN(TESTS)
