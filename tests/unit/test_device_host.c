/* SPDX-License-Identifier: MIT */
/* The host device: what it says of itself, its quota, its virtual memory, misuse, forks. */
#include <allot/device.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/host_machine.h"
#include "support/alloc_fault.h"
#include "support/check.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static const allot_stream DEFAULT_STREAM = {0};

/** Open a device with settings behind "host,"; exits where that fails. */
static allot_device *open_host(const char *settings)
{
    char text[128];
    snprintf(text, sizeof text, "host%s%s", settings[0] == '\0' ? "" : ",", settings);
    allot_device *device = NULL;
    if (!CHECK_OK(allot_device_open(text, &device))) {
        exit(1);
    }
    return device;
}

static void *at(allot_devptr ptr, uint64_t offset)
{
    return (void *)(uintptr_t)(ptr.address + offset); /* NOLINT(performance-no-int-to-ptr) */
}

static allot_devptr after(allot_devptr ptr, uint64_t offset)
{
    return (allot_devptr){ptr.address + offset};
}

static allot_device_info info_of(const allot_device *device)
{
    allot_device_info info;
    allot_device_get_info(device, &info);
    return info;
}

static uint64_t size_free(allot_device *device)
{
    uint64_t size = 0;
    uint64_t total = 0;
    CHECK_OK(allot_device_memory_info(device, &size, &total));
    CHECK_EQ(total, info_of(device).memory_total);
    return size;
}

static allot_devptr reserve(allot_device *device, uint64_t size)
{
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_reserve(device, size, &ptr));
    return ptr;
}

static allot_memory create(allot_device *device, uint64_t size)
{
    allot_memory memory = {0};
    CHECK_OK(allot_device_memory_create(device, size, &memory));
    return memory;
}

/** A file that the kernel has about this process; exits where there is none. */
static FILE *open_own(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        CHECK(file != NULL);
        exit(1);
    }
    return file;
}

/** Lines of the kernel's list of this process's mappings that meet a range. */
static uint64_t count_mappings(allot_devptr begin, uint64_t size)
{
    FILE *const file = open_own("maps");
    uint64_t count = 0;
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        char *end = NULL;
        const uint64_t low = strtoull(line, &end, 16);
        const uint64_t high = strtoull(end + 1, NULL, 16);
        count += low < begin.address + size && high > begin.address;
    }
    (void)fclose(file);
    return count;
}

/** Pages of a range that have memory behind them. */
static uint64_t count_pages(allot_devptr begin, uint64_t size)
{
    static unsigned char resident[8192];
    const uint64_t page = alloti_host_machine()->page;
    if (!CHECK(size / page <= sizeof resident)) {
        return 0;
    }
    CHECK_EQ(mincore(at(begin, 0), (size_t)size, resident), 0);
    uint64_t count = 0;
    for (uint64_t i = 0; i < size / page; i++) {
        count += resident[i] & 1;
    }
    return count;
}

static void says_what_it_is(void)
{
    allot_device *const device = open_host("memory:1GiB");
    const allot_device_info info = info_of(device);
    CHECK_CONTAINS(info.name, "host (moves: ");
    CHECK_STR(info.backend, "host");
    CHECK_EQ(info.memory_total, 1024 * MIB);
    CHECK_EQ(info.granule, 2 * MIB);
    CHECK_EQ(info.align, alloti_host_machine()->has_huge ? 2 * MIB : alloti_host_machine()->page);
    CHECK(info.is_host_accessible);
    CHECK(info.has_bytes);
    CHECK(info.copy_bytes_per_s != 0);
    CHECK((info.page == 0) == (info.page_move_min == 0));
    allot_device_destroy(device);

    allot_device *const copier = open_host("move:copy,huge:false");
    CHECK_STR(info_of(copier).name, "host (moves: copying)");
    CHECK_EQ(info_of(copier).page, 0);
    CHECK_EQ(info_of(copier).align, alloti_host_machine()->page);
    CHECK(info_of(copier).memory_total <= alloti_host_machine()->memory);
    allot_device_destroy(copier);
}

static void settings_that_cannot_be_are_refused(void)
{
    const char *const texts[] = {"host,granule:3MiB", "host,granule:512", "host,memory:1MiB",
                                 "host,memory:1EiB,granule:4KiB"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        allot_device *device = NULL;
        CHECK_EQ(allot_device_open(texts[i], &device), ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), "granule");
        CHECK(device == NULL);
    }
    allot_device *device = NULL;
    CHECK_EQ(allot_device_open("host:1", &device), ALLOT_STATUS_NOT_FOUND);
}

static void addresses_that_cannot_be_are_refused(void)
{
    allot_devptr range = {5};
    allot_device *const device = open_host("memory:8EiB,granule:8EiB");
    errno = 0;
    CHECK_EQ(allot_device_reserve(device, UINT64_C(1) << 63, &range), ALLOT_STATUS_HOST_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), strerror(ENOMEM));
    CHECK_EQ(range.address, 5);
    allot_device_destroy(device);
}

static void ways_that_do_not_work_say_why(void)
{
    allot_backend_probe_result found;
    CHECK_OK(allot_backend_probe(ALLOT_BACKEND_HOST, &found));
    CHECK_EQ(found.device_count, 1);
    CHECK_CONTAINS(found.reason, "moves by ");
    for (unsigned way = 0; way < HOST_WAY_COUNT; way++) {
        const host_way_found *const result = alloti_host_way_find((host_way)way);
        char text[64];
        snprintf(text, sizeof text, "host,move:%s", alloti_host_way_spelling((host_way)way));
        allot_device *device = NULL;
        const allot_status status = allot_device_open(text, &device);
        CHECK_EQ(status, result->works ? ALLOT_STATUS_OK : ALLOT_STATUS_UNSUPPORTED);
        if (!result->works) {
            CHECK_CONTAINS(allot_error_detail(), result->reason);
        } else if (way != HOST_WAY_COPY) {
            CHECK_CONTAINS(info_of(device).name, alloti_host_way_text((host_way)way));
        }
        allot_device_destroy(device);
    }
}

static void allocations_are_zeroed_and_counted(void)
{
    allot_device *const device = open_host("memory:8MiB");
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc(device, 3 * MIB + 1, &ptr));
    CHECK_EQ(size_free(device), 5 * MIB - alloti_host_machine()->page);
    const unsigned char *const bytes = at(ptr, 0);
    for (uint64_t i = 0; i < 3 * MIB + 1; i++) {
        if (!CHECK_EQ(bytes[i], 0)) {
            break;
        }
    }
    CHECK_EQ(allot_device_free(device, ptr, 3 * MIB), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(device, after(ptr, 1), 3 * MIB), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "no allocation of 3145728 bytes begins at");
    CHECK_OK(allot_device_free(device, ptr, 3 * MIB + 1));
    CHECK_EQ(allot_device_free(device, ptr, 3 * MIB + 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(size_free(device), 8 * MIB);
    allot_device_destroy(device);
}

static void no_more_than_the_quota_is_handed_out(void)
{
    allot_device *const device = open_host("memory:8MiB");
    allot_devptr ptr = {0};
    allot_memory memory = create(device, 4 * MIB);
    CHECK_EQ(allot_device_alloc(device, 4 * MIB + 1, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), "4.0 MiB (4194304) of 8.0 MiB are free");
    CHECK_EQ(allot_device_alloc(device, UINT64_MAX, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(ptr.address, 0);
    CHECK_OK(allot_device_alloc(device, 4 * MIB, &ptr));
    allot_memory other = {0};
    CHECK_EQ(allot_device_memory_create(device, 2 * MIB, &other), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_OK(allot_device_memory_release(device, memory, 4 * MIB));
    CHECK_OK(allot_device_memory_create(device, 2 * MIB, &other));
    CHECK_EQ(size_free(device), 2 * MIB);
    CHECK_OK(allot_device_memory_release(device, other, 2 * MIB));
    CHECK_OK(allot_device_free(device, ptr, 4 * MIB));
    allot_devptr huge = {0};
    CHECK_EQ(allot_device_reserve(device, UINT64_C(1) << 62, &huge), ALLOT_STATUS_HOST_MEMORY);
    allot_device_destroy(device);
}

/** Size of huge pages in the mapping that holds an address, in bytes. */
static uint64_t huge_bytes(allot_devptr ptr)
{
    FILE *const file = open_own("smaps");
    uint64_t size = 0;
    bool is_here = false;
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t low = 0;
        char *end = NULL;
        low = strtoull(line, &end, 16);
        if (end != line && *end == '-') {
            is_here = low <= ptr.address && strtoull(end + 1, NULL, 16) > ptr.address;
        } else if (is_here && strncmp(line, "AnonHugePages:", 14) == 0) {
            size = strtoull(line + 14, NULL, 10) * KIB;
        }
    }
    (void)fclose(file);
    return size;
}

static void huge_pages_are_used_where_wanted(void)
{
    if (!alloti_host_machine()->has_huge) {
        check_skip("this kernel hands out no huge pages of 2 MiB");
        return;
    }
    allot_device *const device = open_host("memory:64MiB");
    allot_device *const small = open_host("memory:64MiB,huge:false");
    allot_devptr ptr = {0};
    allot_devptr other = {0};
    CHECK_OK(allot_device_alloc(device, 8 * MIB, &ptr));
    CHECK_OK(allot_device_alloc(small, 8 * MIB, &other));
    CHECK_OK(allot_device_fill(device, DEFAULT_STREAM, ptr, 1, 8 * MIB));
    CHECK_OK(allot_device_fill(small, DEFAULT_STREAM, other, 1, 8 * MIB));
    CHECK(huge_bytes(ptr) > 0);
    CHECK_EQ(huge_bytes(other), 0);
    allot_device_destroy(small);
    allot_device_destroy(device);
}

/** Settings under which virtual memory behaves alike. */
static const char *const KINDS[] = {"move:copy",   "move:copy,guard:true",
                                    "move:mremap", "move:mremap,guard:true",
                                    "move:uffd",   "move:uffd,guard:true"};

/** Call `run` with a device of each kind that this machine has. */
static void each_kind(const char *settings, void (*run)(allot_device *device))
{
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "host,%s,%s", settings, KINDS[i]);
        allot_device *device = NULL;
        const allot_status status = allot_device_open(text, &device);
        if (status == ALLOT_STATUS_UNSUPPORTED) {
            printf("     %s: %s\n", text, allot_error_detail());
            continue;
        }
        CHECK_OK(status);
        run(device);
        allot_device_destroy(device);
    }
}

/** Fill memory with one byte, and see whether it is still there. */
static void mark(allot_devptr ptr, uint64_t size, int byte)
{
    memset(at(ptr, 0), byte, (size_t)size);
}

static bool has_mark(allot_devptr ptr, uint64_t size, int byte)
{
    const unsigned char *const bytes = at(ptr, 0);
    return CHECK_EQ(bytes[0], byte) && CHECK(memcmp(bytes, bytes + 1, (size_t)size - 1) == 0);
}

static void carry_bytes(allot_device *device)
{
    const uint64_t granule = info_of(device).granule;
    const uint64_t size = 3 * granule;
    const allot_devptr range = reserve(device, 16 * granule);
    const allot_memory memory = create(device, size);
    /* Where it was, far away, and over itself in both directions. */
    const uint64_t places[] = {0, 0, 8, 9, 7, 7, 13, 1, 2};
    CHECK_OK(allot_device_map(device, range, memory, size));
    mark(range, granule, 1);
    mark(after(range, granule), granule, 2);
    mark(after(range, 2 * granule), granule, 3);
    uint64_t old = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const allot_devptr place = after(range, places[i] * granule);
        CHECK_OK(allot_device_unmap(device, after(range, old * granule), size));
        CHECK_OK(allot_device_map(device, place, memory, size));
        has_mark(place, granule, 1);
        has_mark(after(place, granule), granule, 2);
        has_mark(after(place, 2 * granule), granule, 3);
        CHECK_EQ(count_pages(range, 16 * granule) * alloti_host_machine()->page, size);
        old = places[i];
    }
    CHECK_OK(allot_device_unmap(device, after(range, old * granule), size));
    CHECK_OK(allot_device_memory_release(device, memory, size));
    CHECK_EQ(count_pages(range, 16 * granule), 0);
    CHECK_OK(allot_device_unreserve(device, range, 16 * granule));
}

static void bytes_follow_their_memory(void)
{
    each_kind("granule:64KiB", carry_bytes);
    each_kind("granule:2MiB,huge:false", carry_bytes);
}

static void make_way(allot_device *device)
{
    const uint64_t granule = info_of(device).granule;
    const allot_devptr range = reserve(device, 4 * granule);
    const allot_memory first = create(device, 2 * granule);
    const allot_memory second = create(device, granule);
    const allot_memory third = create(device, granule);
    CHECK_OK(allot_device_map(device, range, first, 2 * granule));
    mark(range, 2 * granule, 1);
    CHECK_OK(allot_device_unmap(device, range, 2 * granule));
    /* Another memory over half of where its bytes were left; its own bytes are new ones. */
    CHECK_OK(allot_device_map(device, after(range, granule), second, granule));
    has_mark(after(range, granule), granule, 0);
    mark(after(range, granule), granule, 2);
    CHECK_OK(allot_device_unmap(device, after(range, granule), granule));
    CHECK_OK(allot_device_map(device, after(range, granule), third, granule));
    CHECK_OK(allot_device_map(device, after(range, 2 * granule), first, 2 * granule));
    has_mark(after(range, 2 * granule), 2 * granule, 1);
    CHECK_OK(allot_device_map(device, range, second, granule));
    has_mark(range, granule, 2);
    /* Addresses go while bytes are left in them. */
    CHECK_OK(allot_device_unmap(device, range, granule));
    CHECK_OK(allot_device_unmap(device, after(range, granule), granule));
    CHECK_OK(allot_device_unmap(device, after(range, 2 * granule), 2 * granule));
    CHECK_OK(allot_device_unreserve(device, range, 4 * granule));
    const allot_devptr other = reserve(device, 2 * granule);
    CHECK_OK(allot_device_map(device, other, first, 2 * granule));
    has_mark(other, 2 * granule, 1);
    CHECK_OK(allot_device_unmap(device, other, 2 * granule));
    CHECK_OK(allot_device_memory_release(device, second, granule));
    CHECK_OK(allot_device_map(device, other, third, granule));
    CHECK_OK(allot_device_unmap(device, other, granule));
    CHECK_OK(allot_device_memory_release(device, third, granule));
    CHECK_OK(allot_device_memory_release(device, first, 2 * granule));
    CHECK_OK(allot_device_unreserve(device, other, 2 * granule));
    allot_device_counts counts;
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.live_count, 0);
    CHECK_EQ(size_free(device), info_of(device).memory_total);
}

static void memories_make_way_for_each_other(void)
{
    each_kind("granule:64KiB", make_way);
    each_kind("granule:2MiB", make_way);
}

static void look_for_old_bytes(allot_device *device)
{
    const uint64_t granule = info_of(device).granule;
    const allot_devptr range = reserve(device, 2 * granule);
    for (int round = 1; round <= 3; round++) {
        const allot_memory memory = create(device, 2 * granule);
        CHECK_OK(allot_device_map(device, range, memory, 2 * granule));
        has_mark(range, 2 * granule, 0);
        mark(range, 2 * granule, round);
        CHECK_OK(allot_device_unmap(device, range, 2 * granule));
        CHECK_OK(allot_device_memory_release(device, memory, 2 * granule));
    }
    CHECK_OK(allot_device_unreserve(device, range, 2 * granule));
}

static void new_memory_has_nobodys_bytes(void)
{
    each_kind("granule:64KiB", look_for_old_bytes);
}

static void stray_writes_do_not_come_up_in_new_memory(void)
{
    allot_device *const device = open_host("granule:64KiB");
    const allot_devptr range = reserve(device, 64 * KIB);
    mark(range, 64 * KIB, 5);
    const allot_memory memory = create(device, 64 * KIB);
    CHECK_OK(allot_device_map(device, range, memory, 64 * KIB));
    has_mark(range, 64 * KIB, 0);
    allot_device_destroy(device);
}

static void misuse(allot_device *device)
{
    const uint64_t granule = info_of(device).granule;
    const allot_devptr range = reserve(device, 4 * granule);
    const allot_memory memory = create(device, 2 * granule);
    const allot_memory other = create(device, granule);
    const allot_memory none = {memory.value + (UINT64_C(2) << 32)};
    CHECK_EQ(allot_device_unmap(device, range, 2 * granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(device, range, none, 2 * granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(device, range, memory, granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(device, after(range, 3 * granule), memory, 2 * granule),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(device, after(range, 16 * granule), memory, 2 * granule),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_map(device, after(range, granule), memory, 2 * granule));
    CHECK_EQ(allot_device_map(device, range, memory, 2 * granule), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_map(device, after(range, 2 * granule), other, granule),
             ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_memory_release(device, memory, 2 * granule), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_unreserve(device, range, 4 * granule), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_unmap(device, after(range, granule), granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unmap(device, after(range, 2 * granule), granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(device, range, 4 * granule), ALLOT_STATUS_INVALID);
    mark(after(range, granule), 2 * granule, 9);
    has_mark(after(range, granule), 2 * granule, 9);
    CHECK_OK(allot_device_unmap(device, after(range, granule), 2 * granule));
    CHECK_EQ(allot_device_unmap(device, after(range, granule), 2 * granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_memory_release(device, memory, granule), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_memory_release(device, memory, 2 * granule));
    CHECK_EQ(allot_device_memory_release(device, memory, 2 * granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unreserve(device, range, granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unreserve(device, after(range, granule), granule), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_unreserve(device, range, 4 * granule));
    CHECK_EQ(allot_device_unreserve(device, range, 4 * granule), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_memory_release(device, other, granule));
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc(device, granule, &ptr));
    CHECK_EQ(allot_device_unreserve(device, ptr, granule), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_free(device, ptr, granule));
}

static void misuse_is_told_and_changes_nothing(void)
{
    each_kind("granule:64KiB", misuse);
}

enum { PIECES = 4096 };

/** Map every other granule, then the ones between, then turn all around. */
static void scatter(allot_device *device, allot_devptr range)
{
    const uint64_t granule = info_of(device).granule;
    static allot_memory memories[PIECES];
    for (uint64_t start = 0; start < 2; start++) {
        for (uint64_t i = start; i < PIECES; i += 2) {
            memories[i] = create(device, granule);
            CHECK_OK(allot_device_map(device, after(range, i * granule), memories[i], granule));
            mark(after(range, i * granule), 1, (int)(i % 251));
        }
        CHECK_EQ(count_mappings(range, PIECES * granule), 1);
    }
    for (uint64_t i = 0; i < PIECES; i++) {
        CHECK_OK(allot_device_unmap(device, after(range, i * granule), granule));
    }
    for (uint64_t i = 0; i < PIECES; i += 2) {
        CHECK_OK(allot_device_map(device, after(range, (PIECES - 1 - i) * granule), memories[i],
                                  granule));
    }
    CHECK_EQ(count_mappings(range, PIECES * granule), 1);
    for (uint64_t i = 0; i < PIECES; i++) {
        if (i % 2 == 0) {
            const allot_devptr place = after(range, (PIECES - 1 - i) * granule);
            CHECK_EQ(*(unsigned char *)at(place, 0), i % 251);
            CHECK_OK(allot_device_unmap(device, place, granule));
        }
        CHECK_OK(allot_device_memory_release(device, memories[i], granule));
    }
}

static void a_range_is_one_mapping_whatever_is_mapped_in_it(void)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        allot_device *device = NULL;
        char text[128];
        snprintf(text, sizeof text, "host,granule:16KiB,%s", KINDS[i]);
        if (strstr(text, "guard") != NULL || strstr(text, "mremap") != NULL ||
            allot_device_open(text, &device) != ALLOT_STATUS_OK) {
            continue;
        }
        const uint64_t size = PIECES * 16 * KIB;
        const allot_devptr range = reserve(device, size);
        scatter(device, range);
        CHECK_EQ(count_mappings(range, size), 1);
        CHECK_OK(allot_device_unreserve(device, range, size));
        allot_device_destroy(device);
    }
}

static void mremap_adds_a_bounded_number_of_mappings(void)
{
    allot_device *device = NULL;
    if (allot_device_open("host,granule:16KiB,huge:false,move:mremap", &device) !=
        ALLOT_STATUS_OK) {
        check_skip(allot_error_detail());
        return;
    }
    enum { MOVES = 9000 };
    const uint64_t granule = 16 * KIB;
    const allot_devptr range = reserve(device, 2 * MOVES * granule);
    const allot_memory memory = create(device, granule);
    CHECK_OK(allot_device_map(device, range, memory, granule));
    mark(range, granule, 1);
    for (uint64_t i = 1; i < MOVES; i++) {
        if (!CHECK_OK(allot_device_unmap(device, after(range, (i - 1) * 2 * granule), granule)) ||
            !CHECK_OK(allot_device_map(device, after(range, i * 2 * granule), memory, granule))) {
            break;
        }
    }
    has_mark(after(range, UINT64_C(2) * (MOVES - 1) * granule), granule, 1);
    CHECK(count_mappings(range, 2 * MOVES * granule) <= 8192 + 1);
    allot_device_destroy(device);
}

/** Whether a child that reads an address dies of it. */
static bool faults(allot_devptr ptr)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        (void)*(volatile unsigned char *)at(ptr, 0);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void guarded_addresses_fault_where_nothing_is_mapped(void)
{
    allot_device *const device = open_host("granule:64KiB,guard:true");
    const uint64_t granule = 64 * KIB;
    const allot_devptr range = reserve(device, 4 * granule);
    CHECK(faults(range));
    const allot_memory memory = create(device, 2 * granule);
    const allot_memory other = create(device, granule);
    CHECK_OK(allot_device_map(device, range, memory, 2 * granule));
    mark(range, 2 * granule, 1);
    CHECK(!faults(range));
    CHECK(faults(after(range, 2 * granule)));
    CHECK_OK(allot_device_unmap(device, range, 2 * granule));
    CHECK(faults(range));
    CHECK_OK(allot_device_map(device, after(range, granule), memory, 2 * granule));
    has_mark(after(range, granule), 2 * granule, 1);
    CHECK(faults(range));
    CHECK(!faults(after(range, granule)));
    CHECK(!faults(after(range, 2 * granule)));
    CHECK_OK(allot_device_unmap(device, after(range, granule), 2 * granule));
    CHECK_OK(allot_device_map(device, after(range, granule), other, granule));
    CHECK(!faults(after(range, granule)));
    CHECK(faults(after(range, 2 * granule)));
    CHECK_OK(allot_device_map(device, after(range, 2 * granule), memory, 2 * granule));
    has_mark(after(range, 2 * granule), 2 * granule, 1);
    allot_device_destroy(device);
}

static void move_everywhere(allot_device *device)
{
    const uint64_t size = 6 * MIB;
    allot_devptr plain = {0};
    CHECK_OK(allot_device_alloc(device, 2 * size, &plain));
    const allot_devptr range = reserve(device, size);
    const allot_memory memory = create(device, size);
    CHECK_OK(allot_device_map(device, range, memory, size));
    unsigned char *const foreign = malloc((size_t)size);
    REQUIRE(foreign != NULL);
    mark(plain, size, 1);
    mark(range, size, 2);
    memset(foreign, 3, (size_t)size);
    const allot_devptr outside = {(uint64_t)(uintptr_t)foreign};
    CHECK_OK(allot_device_move(device, DEFAULT_STREAM, after(plain, size), plain, size));
    has_mark(after(plain, size), size, 1);
    CHECK_OK(allot_device_move(device, DEFAULT_STREAM, plain, range, size));
    has_mark(plain, size, 2);
    CHECK_OK(allot_device_move(device, DEFAULT_STREAM, range, after(plain, size), size));
    has_mark(range, size, 1);
    CHECK_OK(allot_device_move(device, DEFAULT_STREAM, range, outside, size));
    has_mark(range, size, 3);
    CHECK_OK(allot_device_move(device, DEFAULT_STREAM, outside, plain, size));
    has_mark(outside, size, 2);
    /* Whatever became of its pages, the range is a range and the memory a memory. */
    CHECK_OK(allot_device_unmap(device, range, size));
    CHECK_OK(allot_device_memory_release(device, memory, size));
    CHECK_EQ(count_pages(range, size), 0);
    mark(plain, 2 * size, 4);
    CHECK_OK(allot_device_unreserve(device, range, size));
    CHECK_OK(allot_device_free(device, plain, 2 * size));
    free(foreign);
}

static void bytes_move_between_all_kinds_of_memory(void)
{
    each_kind("granule:64KiB", move_everywhere);
    each_kind("granule:2MiB", move_everywhere);
}

static void streams_and_events_are_checked(void)
{
    allot_device *const device = open_host("");
    allot_stream stream = {0};
    allot_event event = {0};
    allot_devptr ptr = {0};
    unsigned char byte = 7;
    CHECK_OK(allot_device_stream_create(device, &stream));
    CHECK_OK(allot_device_event_create(device, &event));
    CHECK_OK(allot_device_alloc(device, 100, &ptr));
    CHECK_OK(allot_device_event_query(device, event));
    CHECK_OK(allot_device_write(device, stream, ptr, &byte, 1));
    CHECK_OK(allot_device_event_record(device, event, stream));
    CHECK_OK(allot_device_stream_wait(device, DEFAULT_STREAM, event));
    CHECK_OK(allot_device_copy(device, DEFAULT_STREAM, after(ptr, 50), ptr, 1));
    CHECK_OK(allot_device_event_synchronize(device, event));
    byte = 0;
    CHECK_OK(allot_device_read(device, stream, &byte, after(ptr, 50), 1));
    CHECK_EQ(byte, 7);
    const allot_stream wrong = {stream.value + 1};
    CHECK_EQ(allot_device_fill(device, wrong, ptr, 9, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(*(unsigned char *)at(ptr, 0), 7);
    CHECK_OK(allot_device_stream_destroy(device, stream));
    CHECK_EQ(allot_device_stream_destroy(device, stream), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_stream_synchronize(device, stream), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_event_record(device, event, stream), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_copy(device, stream, after(ptr, 50), ptr, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_move(device, stream, after(ptr, 50), ptr, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_write(device, stream, ptr, &byte, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_read(device, stream, &byte, ptr, 1), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_event_destroy(device, event));
    CHECK_EQ(allot_device_event_query(device, event), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "host: no event");
    CHECK_OK(allot_device_free(device, ptr, 100));
    allot_device_destroy(device);
}

static void a_child_opens_its_own_device(void)
{
    allot_device *const device = open_host("memory:64MiB");
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc(device, 4 * MIB, &ptr));
    mark(ptr, 4 * MIB, 1);
    const pid_t child = fork();
    if (child == 0) {
        bool ok = allot_device_free(device, ptr, 4 * MIB) == ALLOT_STATUS_FORKED;
        allot_device_destroy(device);
        allot_device *const own = open_host("memory:64MiB");
        allot_devptr block = {0};
        ok = ok && allot_device_alloc(own, 8 * MIB, &block) == ALLOT_STATUS_OK;
        mark(block, 4 * MIB, 2);
        ok = ok && allot_device_move(own, DEFAULT_STREAM, after(block, 4 * MIB), block, 4 * MIB) ==
                       ALLOT_STATUS_OK;
        ok = ok && has_mark(after(block, 4 * MIB), 4 * MIB, 2);
        allot_device_destroy(own);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    has_mark(ptr, 4 * MIB, 1);
    CHECK_OK(allot_device_free(device, ptr, 4 * MIB));
    allot_device_destroy(device);
}

/** All that needs host memory, in one go. */
static allot_status use_everything(void *context)
{
    allot_device *device = NULL;
    allot_status status = allot_device_open(context, &device);
    const uint64_t granule = 64 * KIB;
    allot_devptr ptr = {0};
    allot_devptr range = {0};
    allot_memory memories[2] = {{0}};
    allot_stream stream = {0};
    allot_event event = {0};
    bool is_marked = false;
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_alloc(device, granule, &ptr);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_reserve(device, 2 * granule, &range);
    }
    for (int i = 0; i < 2 && status == ALLOT_STATUS_OK; i++) {
        status = allot_device_memory_create(device, (uint64_t)(2 - i) * granule, &memories[i]);
    }
    if (status == ALLOT_STATUS_OK) {
        CHECK_OK(allot_device_map(device, range, memories[0], 2 * granule));
        mark(range, 2 * granule, 6);
        is_marked = true;
        CHECK_OK(allot_device_unmap(device, range, 2 * granule));
        status = allot_device_map(device, range, memories[1], granule);
    }
    if (status == ALLOT_STATUS_OK) {
        CHECK_OK(allot_device_unmap(device, range, granule));
    }
    if (is_marked && status != ALLOT_STATUS_OK) {
        /* It could not make way, and still has its bytes. */
        CHECK_OK(allot_device_map(device, range, memories[0], 2 * granule));
        has_mark(range, 2 * granule, 6);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_stream_create(device, &stream);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(device, &event);
    }
    allot_device_destroy(device);
    return status;
}

static void running_out_of_host_memory_is_survived(void)
{
    (void)alloti_host_machine();
    char text[] = "host,memory:64MiB,granule:64KiB";
    CHECK(alloc_fault_each(use_everything, text) > 8);
    char guarded[] = "host,memory:64MiB,granule:64KiB,guard:true";
    CHECK(alloc_fault_each(use_everything, guarded) > 8);
}

enum { THREADS = 4, ROUNDS = 60 };

typedef struct worker {
    allot_device *device;
    int byte;
} worker;

static void *work(void *context)
{
    const worker *const w = context;
    const uint64_t granule = 64 * KIB;
    const allot_devptr range = reserve(w->device, 4 * granule);
    for (int i = 0; i < ROUNDS; i++) {
        const allot_memory memory = create(w->device, 2 * granule);
        allot_devptr ptr = {0};
        CHECK_OK(allot_device_alloc(w->device, MIB, &ptr));
        CHECK_OK(allot_device_map(w->device, range, memory, 2 * granule));
        mark(range, 2 * granule, w->byte);
        CHECK_OK(allot_device_unmap(w->device, range, 2 * granule));
        CHECK_OK(allot_device_map(w->device, after(range, granule), memory, 2 * granule));
        CHECK_OK(
            allot_device_move(w->device, DEFAULT_STREAM, ptr, after(range, granule), 2 * granule));
        has_mark(ptr, 2 * granule, w->byte);
        mark(ptr, MIB / 2, w->byte);
        CHECK_OK(allot_device_move(w->device, DEFAULT_STREAM, after(ptr, MIB / 2), ptr, MIB / 2));
        has_mark(after(ptr, MIB / 2), MIB / 2, w->byte);
        CHECK_OK(allot_device_unmap(w->device, after(range, granule), 2 * granule));
        CHECK_OK(allot_device_memory_release(w->device, memory, 2 * granule));
        CHECK_OK(allot_device_free(w->device, ptr, MIB));
    }
    CHECK_OK(allot_device_unreserve(w->device, range, 4 * granule));
    return NULL;
}

static void run_threads(allot_device *device)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){device, i + 1};
        REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(size_free(device), info_of(device).memory_total);
}

static void threads_share_a_device(void)
{
    each_kind("granule:64KiB,memory:64MiB,huge:false", run_threads);
}

static const check_test TESTS[] = {
    {"says_what_it_is", says_what_it_is},
    {"settings_that_cannot_be_are_refused", settings_that_cannot_be_are_refused},
    {"addresses_that_cannot_be_are_refused", addresses_that_cannot_be_are_refused},
    {"ways_that_do_not_work_say_why", ways_that_do_not_work_say_why},
    {"allocations_are_zeroed_and_counted", allocations_are_zeroed_and_counted},
    {"no_more_than_the_quota_is_handed_out", no_more_than_the_quota_is_handed_out},
    {"huge_pages_are_used_where_wanted", huge_pages_are_used_where_wanted},
    {"bytes_follow_their_memory", bytes_follow_their_memory},
    {"memories_make_way_for_each_other", memories_make_way_for_each_other},
    {"new_memory_has_nobodys_bytes", new_memory_has_nobodys_bytes},
    {"stray_writes_do_not_come_up_in_new_memory", stray_writes_do_not_come_up_in_new_memory},
    {"misuse_is_told_and_changes_nothing", misuse_is_told_and_changes_nothing},
    {"a_range_is_one_mapping_whatever_is_mapped_in_it",
     a_range_is_one_mapping_whatever_is_mapped_in_it},
    {"mremap_adds_a_bounded_number_of_mappings", mremap_adds_a_bounded_number_of_mappings},
    {"guarded_addresses_fault_where_nothing_is_mapped",
     guarded_addresses_fault_where_nothing_is_mapped},
    {"bytes_move_between_all_kinds_of_memory", bytes_move_between_all_kinds_of_memory},
    {"streams_and_events_are_checked", streams_and_events_are_checked},
    {"a_child_opens_its_own_device", a_child_opens_its_own_device},
    {"running_out_of_host_memory_is_survived", running_out_of_host_memory_is_survived},
    {"threads_share_a_device", threads_share_a_device},
};

CHECK_MAIN(TESTS)
