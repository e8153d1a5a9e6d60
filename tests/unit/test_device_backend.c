/* SPDX-License-Identifier: MIT */
/* Devices of one's own: which tables are taken, what is made up for, and which answers are not
 * believed. */
#include <allot/device_backend.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)

static const allot_stream DEFAULT_STREAM = {0};

/** A device that answers as it is told, and remembers what it was asked. */
typedef struct own {
    uint64_t align;
    uint64_t granule;
    uint64_t page;
    uint64_t answer; /**< Of everything that hands out a number. */
    unsigned copies;
    unsigned synchronized;
    unsigned destroyed;
} own;

static void own_destroy(void *self, bool is_forked)
{
    CHECK(!is_forked);
    ((own *)self)->destroyed++;
}

static void own_get_info(void *self, allot_device_info *out)
{
    const own *const device = self;
    memcpy(out->name, "own", 4);
    memcpy(out->backend, "own", 4);
    out->memory_total = 64 * MIB;
    out->align = device->align;
    out->granule = device->granule;
    out->page = device->page;
}

static allot_status own_memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    (void)self;
    *size_free = 1;
    *size_total = 2;
    return ALLOT_STATUS_OK;
}

static allot_status own_give(void *self, uint64_t *out)
{
    *out = ((own *)self)->answer;
    return ALLOT_STATUS_OK;
}

static allot_status own_alloc(void *self, uint64_t size, uint64_t *address)
{
    (void)size;
    return own_give(self, address);
}

static allot_status own_range(void *self, uint64_t address, uint64_t size)
{
    (void)self;
    (void)address;
    (void)size;
    return ALLOT_STATUS_OK;
}

static allot_status own_handle(void *self, uint64_t handle)
{
    (void)self;
    (void)handle;
    return ALLOT_STATUS_OK;
}

static allot_status own_synchronize(void *self, uint64_t stream)
{
    (void)stream;
    ((own *)self)->synchronized++;
    return ALLOT_STATUS_OK;
}

static allot_status own_two(void *self, uint64_t a, uint64_t b)
{
    (void)self;
    (void)a;
    (void)b;
    return ALLOT_STATUS_OK;
}

static allot_status own_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    (void)memory;
    return own_range(self, address, size);
}

static allot_status own_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src, uint64_t size)
{
    (void)stream;
    (void)dst;
    (void)src;
    ((own *)self)->copies++;
    return size == 13 ? allot_backend_fail(ALLOT_STATUS_BACKEND, "%d is unlucky", 13)
                      : ALLOT_STATUS_OK;
}

static allot_status own_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                             uint64_t size)
{
    (void)stream;
    (void)value;
    return own_range(self, dst, size);
}

static allot_status own_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                              uint64_t size)
{
    (void)stream;
    (void)src;
    return own_range(self, dst, size);
}

static allot_status own_read(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size)
{
    (void)stream;
    (void)dst;
    return own_range(self, src, size);
}

/** Only what is required. */
static allot_device_ops required_ops(void)
{
    return (allot_device_ops){.struct_size = sizeof(allot_device_ops),
                              .destroy = own_destroy,
                              .get_info = own_get_info,
                              .memory_info = own_memory_info,
                              .alloc = own_alloc,
                              .free = own_range,
                              .stream_create = own_give,
                              .stream_destroy = own_handle,
                              .stream_wait = own_two,
                              .stream_synchronize = own_synchronize,
                              .event_create = own_give,
                              .event_destroy = own_handle,
                              .event_record = own_two,
                              .event_query = own_handle,
                              .event_synchronize = own_handle,
                              .copy = own_copy,
                              .fill = own_fill,
                              .write = own_write,
                              .read = own_read};
}

static allot_device_ops virtual_ops(void)
{
    allot_device_ops ops = required_ops();
    ops.reserve = own_alloc;
    ops.unreserve = own_range;
    ops.memory_create = own_alloc;
    ops.memory_release = own_range;
    ops.map = own_map;
    ops.unmap = own_range;
    return ops;
}

/** A table is refused, for this reason. */
static void refused(const allot_device_ops *ops, own *self, const char *reason)
{
    allot_device *device = NULL;
    CHECK_EQ(allot_device_create(ops, self, &device), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), reason);
    CHECK(device == NULL);
    CHECK_EQ(self->destroyed, 0);
}

static void incomplete_tables_are_refused(void)
{
    own self = {.align = 256};
    allot_device *device = NULL;
    CHECK_EQ(allot_device_create(NULL, &self, &device), ALLOT_STATUS_INVALID);
    allot_device_ops ops = required_ops();
    CHECK_EQ(allot_device_create(&ops, &self, NULL), ALLOT_STATUS_INVALID);
    ops.struct_size = 0;
    refused(&ops, &self, "struct_size");
    ops = required_ops();
    ops.alloc = NULL;
    refused(&ops, &self, "the backend lacks the operation alloc");
    ops = required_ops();
    ops.read = NULL;
    refused(&ops, &self, "the backend lacks the operation read");
    ops = required_ops();
    ops.free_async = own_map;
    refused(&ops, &self, "one of alloc_async and free_async");
    ops = virtual_ops();
    ops.unmap = NULL;
    refused(&ops, &self, "5 of the 6 operations of virtual memory");
}

static void tables_that_contradict_the_info_are_refused(void)
{
    const allot_device_ops required = required_ops();
    const allot_device_ops virtual = virtual_ops();
    refused(&required, &(own){.align = 0}, "alignment 0 is no power of 2");
    refused(&required, &(own){.align = 48}, "alignment 48");
    refused(&required, &(own){.align = 16, .granule = MIB}, "granule");
    refused(&virtual, &(own){.align = 16}, "granule");
    refused(&virtual, &(own){.align = 16, .granule = 3 * MIB}, "granule");
    refused(&required, &(own){.align = 16, .page = 5000}, "page");
}

static void a_small_table_is_completed(void)
{
    own self = {.align = 256, .answer = MIB};
    const allot_device_ops ops = required_ops();
    allot_device *device = NULL;
    REQUIRE_OK(allot_device_create(&ops, &self, &device));
    allot_device_info info;
    allot_device_get_info(device, &info);
    CHECK(!info.has_async_alloc && !info.has_batch_copy);
    CHECK_EQ(info.granule, 0);
    CHECK(allot_device_clock_ns(device) > 0);
    const allot_copy copies[3] = {{{8192}, {4096}, 10}, {{8292}, {4096}, 0}, {{8392}, {4096}, 30}};
    CHECK_OK(allot_device_copy_batch(device, DEFAULT_STREAM, copies, 3));
    CHECK_EQ(self.copies, 2);
    CHECK_OK(
        allot_device_move(device, DEFAULT_STREAM, (allot_devptr){8192}, (allot_devptr){4096}, 99));
    CHECK_EQ(self.copies, 3);
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc_async(device, DEFAULT_STREAM, 100, &ptr));
    CHECK_EQ(ptr.address, MIB);
    CHECK_OK(allot_device_free_async(device, DEFAULT_STREAM, ptr, 100));
    CHECK_EQ(self.synchronized, 1);
    CHECK_EQ(allot_device_copy(device, DEFAULT_STREAM, ptr, (allot_devptr){4096}, 13),
             ALLOT_STATUS_BACKEND);
    CHECK_CONTAINS(allot_error_detail(), "13 is unlucky");
    allot_device_counts counts;
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_COPY], 4);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_COPY], 1);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_FREE], 1);
    allot_device_destroy(device);
    CHECK_EQ(self.destroyed, 1);
}

static void answers_that_cannot_be_are_not_believed(void)
{
    own self = {.align = 256, .granule = MIB};
    const allot_device_ops ops = virtual_ops();
    allot_device *device = NULL;
    REQUIRE_OK(allot_device_create(&ops, &self, &device));
    /* None, misaligned, and so high that the range would not end. */
    static const uint64_t answers[] = {0, 128, UINT64_MAX - 255};
    for (size_t i = 0; i < 3; i++) {
        self.answer = answers[i];
        allot_devptr ptr = {7};
        CHECK_EQ(allot_device_alloc(device, 4 * MIB, &ptr), ALLOT_STATUS_BACKEND);
        CHECK_EQ(allot_device_reserve(device, 4 * MIB, &ptr), ALLOT_STATUS_BACKEND);
        CHECK_EQ(ptr.address, 7);
    }
    self.answer = 256; /* aligned as an allocation, not as a reservation */
    allot_devptr ptr = {7};
    CHECK_EQ(allot_device_reserve(device, MIB, &ptr), ALLOT_STATUS_BACKEND);
    CHECK_CONTAINS(allot_error_detail(), "reserve answered with 0x100");
    self.answer = 0;
    allot_stream stream = {7};
    allot_event event = {7};
    allot_memory memory = {7};
    CHECK_EQ(allot_device_stream_create(device, &stream), ALLOT_STATUS_BACKEND);
    CHECK_EQ(allot_device_event_create(device, &event), ALLOT_STATUS_BACKEND);
    CHECK_EQ(allot_device_memory_create(device, MIB, &memory), ALLOT_STATUS_BACKEND);
    CHECK(stream.value == 7 && event.value == 7 && memory.value == 7);
    allot_device_counts counts;
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.live_count, 0);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_ALLOC], 3);
    allot_device_destroy(device);
}

static void names_are_those_of_the_lists(void)
{
    CHECK_STR(allot_backend_name(ALLOT_BACKEND_HOST), "host");
    CHECK_STR(allot_backend_name(ALLOT_BACKEND_COUNT), "unknown");
    CHECK_STR(allot_backend_text(ALLOT_BACKEND_NULL), "addresses, no bytes, no cost");
    CHECK_STR(allot_device_call_name(ALLOT_DEVICE_CALL_COPY_BATCH), "copy_batch");
    CHECK_STR(allot_device_call_name(ALLOT_DEVICE_CALL_COUNT), "unknown");
    allot_device_destroy(NULL);
}

static allot_status create(void *context)
{
    const allot_device_ops ops = required_ops();
    allot_device *device = NULL;
    const allot_status status = allot_device_create(&ops, context, &device);
    allot_device_destroy(device);
    return status;
}

static void every_lack_of_host_memory_is_told(void)
{
    own self = {.align = 256};
    CHECK(alloc_fault_each(create, &self) >= 1);
    CHECK_EQ(self.destroyed, 1);
}

static const check_test TESTS[] = {
    {"incomplete_tables_are_refused", incomplete_tables_are_refused},
    {"tables_that_contradict_the_info_are_refused", tables_that_contradict_the_info_are_refused},
    {"a_small_table_is_completed", a_small_table_is_completed},
    {"answers_that_cannot_be_are_not_believed", answers_that_cannot_be_are_not_believed},
    {"names_are_those_of_the_lists", names_are_those_of_the_lists},
    {"every_lack_of_host_memory_is_told", every_lack_of_host_memory_is_told},
};

CHECK_MAIN(TESTS)
