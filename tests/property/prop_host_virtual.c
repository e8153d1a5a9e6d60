/* SPDX-License-Identifier: MIT */
/*
 * Random use of the host's virtual memory against a model: what lies where, which calls must fail,
 * and that every byte of a mapped memory is the one written last. Whatever happens to addresses
 * that nothing is mapped at is nobody's.
 */
#include <allot/device.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

enum {
    GRANULES = 24, /* of each range */
    RANGES = 2,
    MEMORIES = 12,
    GRANULES_MAX = 5, /* of a memory */
    STEPS = 3000,
};

#define GRANULE (UINT64_C(16) << 10)

typedef struct memory {
    allot_memory handle; /**< 0: none. */
    uint64_t granules;
    uint8_t marks[GRANULES_MAX];
    bool is_mapped;
    unsigned range;
    uint64_t place; /**< Granule in the range. */
} memory;

typedef struct model {
    allot_device *device;
    allot_devptr ranges[RANGES];
    memory memories[MEMORIES];
    uint64_t state;
} model;

static uint64_t draw(model *m, uint64_t low, uint64_t high)
{
    return check_random_range(&m->state, low, high);
}

static allot_devptr address_of(const model *m, unsigned range, uint64_t granule)
{
    return (allot_devptr){m->ranges[range].address + granule * GRANULE};
}

static uint8_t *bytes_of(const model *m, const memory *one, uint64_t granule)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): host addresses are pointers */
    return (uint8_t *)(uintptr_t)address_of(m, one->range, one->place + granule).address;
}

static bool is_taken(const model *m, unsigned range, uint64_t place, uint64_t granules)
{
    for (unsigned i = 0; i < MEMORIES; i++) {
        const memory *const one = &m->memories[i];
        if (one->is_mapped && one->range == range && one->place < place + granules &&
            place < one->place + one->granules) {
            return true;
        }
    }
    return false;
}

static void write_marks(model *m, memory *one)
{
    for (uint64_t i = 0; i < one->granules; i++) {
        one->marks[i] = (uint8_t)draw(m, 1, 255);
        memset(bytes_of(m, one, i), one->marks[i], GRANULE);
    }
}

static bool check_marks(const model *m, const memory *one)
{
    for (uint64_t i = 0; i < one->granules; i++) {
        const uint8_t *const bytes = bytes_of(m, one, i);
        if (!CHECK_EQ(bytes[0], one->marks[i]) ||
            !CHECK(memcmp(bytes, bytes + 1, GRANULE - 1) == 0)) {
            return false;
        }
    }
    return true;
}

static void create_or_release(model *m, memory *one)
{
    if (one->handle.value == 0) {
        *one = (memory){.granules = draw(m, 1, GRANULES_MAX)};
        CHECK_OK(allot_device_memory_create(m->device, one->granules * GRANULE, &one->handle));
        return;
    }
    const allot_status status =
        allot_device_memory_release(m->device, one->handle, one->granules * GRANULE);
    CHECK_EQ(status, one->is_mapped ? ALLOT_STATUS_BUSY : ALLOT_STATUS_OK);
    if (status == ALLOT_STATUS_OK) {
        one->handle.value = 0;
    }
}

static void map(model *m, memory *one)
{
    const unsigned range = (unsigned)draw(m, 0, RANGES - 1);
    const uint64_t place = draw(m, 0, GRANULES - one->granules);
    const bool is_busy = one->is_mapped || is_taken(m, range, place, one->granules);
    const allot_status status = allot_device_map(m->device, address_of(m, range, place),
                                                 one->handle, one->granules * GRANULE);
    CHECK_EQ(status, is_busy ? ALLOT_STATUS_BUSY : ALLOT_STATUS_OK);
    if (status == ALLOT_STATUS_OK) {
        one->is_mapped = true;
        one->range = range;
        one->place = place;
    }
}

static void unmap(model *m, memory *one)
{
    CHECK_OK(allot_device_unmap(m->device, address_of(m, one->range, one->place),
                                one->granules * GRANULE));
    one->is_mapped = false;
}

/** Bytes change places by a move; the source is written anew. */
static void move(model *m, memory *to, memory *from)
{
    const uint64_t granules = to->granules < from->granules ? to->granules : from->granules;
    const allot_stream stream = {0};
    CHECK_OK(allot_device_move(m->device, stream, address_of(m, to->range, to->place),
                               address_of(m, from->range, from->place), granules * GRANULE));
    memcpy(to->marks, from->marks, (size_t)granules);
    (void)check_marks(m, to);
    write_marks(m, from);
}

/** Addresses without memory go and others come. */
static void renew_range(model *m)
{
    const unsigned range = (unsigned)draw(m, 0, RANGES - 1);
    const bool is_busy = is_taken(m, range, 0, GRANULES);
    const allot_status status =
        allot_device_unreserve(m->device, m->ranges[range], GRANULES * GRANULE);
    CHECK_EQ(status, is_busy ? ALLOT_STATUS_BUSY : ALLOT_STATUS_OK);
    if (status == ALLOT_STATUS_OK) {
        CHECK_OK(allot_device_reserve(m->device, GRANULES * GRANULE, &m->ranges[range]));
    }
}

static void step(model *m)
{
    memory *const one = &m->memories[draw(m, 0, MEMORIES - 1)];
    memory *const other = &m->memories[draw(m, 0, MEMORIES - 1)];
    const uint64_t choice = draw(m, 0, 9);
    if (choice == 9) {
        renew_range(m);
    } else if (one->handle.value == 0 || choice == 0) {
        create_or_release(m, one);
    } else if (choice <= 4) {
        map(m, one);
    } else if (one->is_mapped && choice <= 6) {
        unmap(m, one);
    } else if (one->is_mapped && other->is_mapped && other != one) {
        move(m, one, other);
    } else if (one->is_mapped) {
        write_marks(m, one);
    }
}

static bool check_all(const model *m)
{
    for (unsigned i = 0; i < MEMORIES; i++) {
        if (m->memories[i].is_mapped && !check_marks(m, &m->memories[i])) {
            return false;
        }
    }
    return true;
}

static void run(const char *text)
{
    model m = {.state = check_seed()};
    if (allot_device_open(text, &m.device) == ALLOT_STATUS_UNSUPPORTED) {
        printf("     %s: %s\n", text, allot_error_detail());
        return;
    }
    REQUIRE(m.device != NULL);
    for (unsigned i = 0; i < RANGES; i++) {
        REQUIRE_OK(allot_device_reserve(m.device, GRANULES * GRANULE, &m.ranges[i]));
    }
    for (int i = 0; i < STEPS; i++) {
        step(&m);
        if (!check_all(&m)) {
            printf("     %s: step %d\n", text, i);
            break;
        }
    }
    allot_device_destroy(m.device);
}

static void copied_memory_keeps_its_bytes(void)
{
    run("host,granule:16KiB,memory:64MiB,move:copy");
    run("host,granule:16KiB,memory:64MiB,move:copy,guard:true");
}

static void remapped_memory_keeps_its_bytes(void)
{
    run("host,granule:16KiB,memory:64MiB,move:mremap");
    run("host,granule:16KiB,memory:64MiB,move:mremap,guard:true");
}

static void moved_memory_keeps_its_bytes(void)
{
    run("host,granule:16KiB,memory:64MiB,move:uffd");
    run("host,granule:16KiB,memory:64MiB,move:uffd,guard:true");
}

static const check_test TESTS[] = {
    {"copied_memory_keeps_its_bytes", copied_memory_keeps_its_bytes},
    {"remapped_memory_keeps_its_bytes", remapped_memory_keeps_its_bytes},
    {"moved_memory_keeps_its_bytes", moved_memory_keeps_its_bytes},
};

CHECK_MAIN(TESTS)
