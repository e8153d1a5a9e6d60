/* SPDX-License-Identifier: MIT */
/* Virtual memory: addresses and memory apart from each other. */
#include "device/conformance.h"

/** A device with virtual memory, and a reservation of four granules there. */
typedef struct place {
    subject s;
    uint64_t granule;
    allot_devptr range;
} place;

static uint64_t range_size(const place *p)
{
    return 4 * p->granule;
}

/** Nothing is open where `granule` is 0: the test returns. */
static place place_begin(void)
{
    place p = {.s = subject_begin()};
    if (p.s.device == NULL) {
        return p;
    }
    if (p.s.info.granule == 0) {
        check_skip("the device has no virtual memory");
        subject_end(&p.s);
        return p;
    }
    p.granule = p.s.info.granule;
    p.range = must_reserve(p.s.device, range_size(&p));
    CHECK_EQ(p.range.address % p.granule, 0);
    return p;
}

static void place_end(place *p)
{
    CHECK_OK(allot_device_unreserve(p->s.device, p->range, range_size(p)));
    subject_end(&p->s);
}

/** Address of granule `i` of the reservation. */
static allot_devptr at(const place *p, uint64_t i)
{
    return offset_by(p->range, i * p->granule);
}

static allot_memory map_new(const place *p, uint64_t i, uint64_t count)
{
    const allot_memory memory = must_create_memory(p->s.device, count * p->granule);
    CHECK_OK(allot_device_map(p->s.device, at(p, i), memory, count * p->granule));
    return memory;
}

static void drop(const place *p, uint64_t i, allot_memory memory, uint64_t count)
{
    CHECK_OK(allot_device_unmap(p->s.device, at(p, i), count * p->granule));
    CHECK_OK(allot_device_memory_release(p->s.device, memory, count * p->granule));
}

void mapped_memory_keeps_its_bytes(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t g = p.granule;
    const allot_memory a = map_new(&p, 0, 1);
    const allot_memory b = map_new(&p, 1, 1);
    write_pattern(&p.s, DEFAULT_STREAM, at(&p, 0), 1, g);
    write_pattern(&p.s, DEFAULT_STREAM, at(&p, 1), 2, g);
    for (uint64_t round = 0; round < 4; round++) {
        CHECK_OK(allot_device_unmap(p.s.device, at(&p, 0), g));
        CHECK_OK(allot_device_unmap(p.s.device, at(&p, 1), g));
        const bool is_swapped = round % 2 == 0;
        CHECK_OK(allot_device_map(p.s.device, at(&p, 0), is_swapped ? b : a, g));
        CHECK_OK(allot_device_map(p.s.device, at(&p, 1), is_swapped ? a : b, g));
        CHECK(holds_pattern(&p.s, DEFAULT_STREAM, at(&p, 0), is_swapped ? 2 : 1, g));
        CHECK(holds_pattern(&p.s, DEFAULT_STREAM, at(&p, 1), is_swapped ? 1 : 2, g));
    }
    drop(&p, 0, a, 1);
    drop(&p, 1, b, 1);
    place_end(&p);
}

void copies_cross_mappings(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t g = p.granule;
    allot_memory memories[4];
    for (uint64_t i = 0; i < 4; i++) {
        memories[i] = map_new(&p, 3 - i, 1);
    }
    const allot_devptr plain = must_alloc(p.s.device, 4 * g);
    write_pattern(&p.s, DEFAULT_STREAM, plain, 9, 4 * g);
    CHECK_OK(allot_device_copy(p.s.device, DEFAULT_STREAM, p.range, plain, 4 * g));
    CHECK(holds_pattern(&p.s, DEFAULT_STREAM, p.range, 9, 4 * g));
    CHECK_OK(allot_device_fill(p.s.device, DEFAULT_STREAM, offset_by(p.range, g / 2), 4, 2 * g));
    CHECK(holds_value(&p.s, DEFAULT_STREAM, offset_by(p.range, g / 2), 4, 2 * g));
    CHECK_OK(allot_device_copy(p.s.device, DEFAULT_STREAM, offset_by(p.range, 5),
                               offset_by(plain, 2 * g), 2 * g - 5));
    CHECK_OK(
        allot_device_copy(p.s.device, DEFAULT_STREAM, plain, offset_by(p.range, 5), 2 * g - 5));
    CHECK_OK(allot_device_copy(p.s.device, DEFAULT_STREAM, offset_by(p.range, 2 * g), plain, g));
    must_free(p.s.device, plain, 4 * g);
    for (uint64_t i = 0; i < 4; i++) {
        drop(&p, 3 - i, memories[i], 1);
    }
    place_end(&p);
}

void memory_of_many_granules_maps(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t size = 3 * p.granule;
    const allot_memory memory = map_new(&p, 1, 3);
    write_pattern(&p.s, DEFAULT_STREAM, at(&p, 1), 3, size);
    CHECK_OK(allot_device_unmap(p.s.device, at(&p, 1), size));
    CHECK_OK(allot_device_map(p.s.device, at(&p, 0), memory, size));
    CHECK(holds_pattern(&p.s, DEFAULT_STREAM, at(&p, 0), 3, size));
    drop(&p, 0, memory, 3);
    place_end(&p);
}

void virtual_memory_is_counted(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const allot_memory memory = map_new(&p, 0, 2);
    allot_device_counts counts;
    allot_device_get_counts(p.s.device, &counts);
    CHECK_EQ(counts.size_reserved, 4 * p.granule);
    CHECK_EQ(counts.size_created, 2 * p.granule);
    CHECK_EQ(counts.size_allocated, 0);
    CHECK_EQ(counts.live_count, 2);
    drop(&p, 0, memory, 2);
    place_end(&p);
}

void wrong_virtual_sizes_are_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t wrong[] = {0, 1, p.granule - 1, p.granule + 1};
    const allot_memory memory = must_create_memory(p.s.device, p.granule);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        allot_devptr range = {7};
        allot_memory made = {7};
        CHECK_EQ(allot_device_reserve(p.s.device, wrong[i], &range), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_memory_create(p.s.device, wrong[i], &made), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_map(p.s.device, p.range, memory, wrong[i]), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_unmap(p.s.device, p.range, wrong[i]), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_memory_release(p.s.device, memory, wrong[i]), ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_unreserve(p.s.device, p.range, wrong[i]), ALLOT_STATUS_INVALID);
        CHECK_EQ(range.address, 7);
        CHECK_EQ(made.value, 7);
    }
    CHECK_EQ(allot_device_memory_release(p.s.device, memory, 2 * p.granule), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unreserve(p.s.device, p.range, p.granule), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_memory_release(p.s.device, memory, p.granule));
    CHECK_EQ(allot_device_memory_release(p.s.device, memory, p.granule), ALLOT_STATUS_INVALID);
    place_end(&p);
}

void mapping_elsewhere_is_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t g = p.granule;
    const allot_memory memory = must_create_memory(p.s.device, 2 * g);
    const allot_devptr plain = must_alloc(p.s.device, 4 * g);
    const allot_devptr inside = {(plain.address + g) / g * g};
    CHECK_EQ(allot_device_map(p.s.device, inside, memory, 2 * g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(p.s.device, offset_by(p.range, g / 2), memory, 2 * g),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(p.s.device, (allot_devptr){0}, memory, 2 * g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 3), memory, 2 * g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 0), memory, g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 0), (allot_memory){0}, 2 * g),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_map(p.s.device, at(&p, 2), memory, 2 * g));
    must_free(p.s.device, plain, 4 * g);
    drop(&p, 2, memory, 2);
    place_end(&p);
}

void mapping_twice_is_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t g = p.granule;
    const allot_memory first = map_new(&p, 1, 1);
    const allot_memory second = must_create_memory(p.s.device, 2 * g);
    write_pattern(&p.s, DEFAULT_STREAM, at(&p, 1), 8, g);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 2), first, g), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 0), second, 2 * g), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_map(p.s.device, at(&p, 1), second, 2 * g), ALLOT_STATUS_BUSY);
    CHECK(allot_error_detail()[0] != '\0');
    CHECK(holds_pattern(&p.s, DEFAULT_STREAM, at(&p, 1), 8, g));
    CHECK_OK(allot_device_map(p.s.device, at(&p, 2), second, 2 * g));
    drop(&p, 1, first, 1);
    drop(&p, 2, second, 2);
    place_end(&p);
}

void giving_back_what_is_used_is_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const allot_memory memory = map_new(&p, 3, 1);
    CHECK_EQ(allot_device_memory_release(p.s.device, memory, p.granule), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_unreserve(p.s.device, p.range, range_size(&p)), ALLOT_STATUS_BUSY);
    CHECK_EQ(allot_device_unreserve(p.s.device, p.range, p.granule), ALLOT_STATUS_INVALID);
    write_pattern(&p.s, DEFAULT_STREAM, at(&p, 3), 4, p.granule);
    CHECK(holds_pattern(&p.s, DEFAULT_STREAM, at(&p, 3), 4, p.granule));
    drop(&p, 3, memory, 1);
    place_end(&p);
}

void unmapping_in_part_is_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t g = p.granule;
    const allot_memory first = map_new(&p, 0, 2);
    const allot_memory second = map_new(&p, 2, 1);
    CHECK_EQ(allot_device_unmap(p.s.device, at(&p, 0), g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unmap(p.s.device, at(&p, 1), g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unmap(p.s.device, at(&p, 0), 3 * g), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_unmap(p.s.device, at(&p, 3), g), ALLOT_STATUS_INVALID);
    drop(&p, 0, first, 2);
    drop(&p, 2, second, 1);
    CHECK_EQ(allot_device_unmap(p.s.device, at(&p, 2), g), ALLOT_STATUS_INVALID);
    place_end(&p);
}

void too_much_memory_is_refused(void)
{
    place p = place_begin();
    if (p.granule == 0) {
        return;
    }
    const uint64_t size = (p.s.info.memory_total / p.granule + 1) * p.granule;
    allot_memory memory = {3};
    CHECK_EQ(allot_device_memory_create(p.s.device, size, &memory), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(memory.value, 3);
    place_end(&p);
}

void a_device_without_virtual_memory_says_so(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    if (s.info.granule != 0) {
        check_skip("the device has virtual memory");
        subject_end(&s);
        return;
    }
    allot_devptr range = {1};
    allot_memory memory = {1};
    CHECK_EQ(allot_device_reserve(s.device, 1 << 21, &range), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(allot_device_memory_create(s.device, 1 << 21, &memory), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(allot_device_map(s.device, range, memory, 1 << 21), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(allot_device_unmap(s.device, range, 1 << 21), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(allot_device_memory_release(s.device, memory, 1 << 21), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(allot_device_unreserve(s.device, range, 1 << 21), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(range.address, 1);
    subject_end(&s);
}
