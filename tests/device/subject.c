/* SPDX-License-Identifier: MIT */
/* The device under test, and what its tests share. */
#include "device/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *subject_text;

/** Open "WRAPPER(TEXT)". */
static allot_status open_wrapped(const char *wrapper, const char *text, subject *out)
{
    char inner[128];
    snprintf(inner, sizeof inner, "%.*s", (int)strcspn(text, ")"), text);
    allot_status status = allot_device_open(inner, &out->inner);
    if (status == ALLOT_STATUS_OK) {
        status = strcmp(wrapper, "failing") == 0
                     ? allot_device_open_failing(out->inner, NULL, &out->device)
                     : allot_device_open_tracing(out->inner, &out->device);
    }
    return status;
}

allot_status subject_open(const char *text, subject *out)
{
    static const char *const wrappers[] = {"failing", "tracing"};
    subject s = {.device = NULL};
    allot_status status = ALLOT_STATUS_OK;
    bool is_wrapped = false;
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0] && !is_wrapped; i++) {
        const size_t length = strlen(wrappers[i]);
        is_wrapped = strncmp(text, wrappers[i], length) == 0 && text[length] == '(';
        if (is_wrapped) {
            status = open_wrapped(wrappers[i], text + length + 1, &s);
        }
    }
    if (!is_wrapped) {
        status = allot_device_open(text, &s.device);
    }
    if (status != ALLOT_STATUS_OK) {
        allot_device_destroy(s.inner);
        return status;
    }
    allot_device_get_info(s.device, &s.info);
    *out = s;
    return ALLOT_STATUS_OK;
}

subject subject_begin(void)
{
    subject s = {.device = NULL};
    CHECK_OK(subject_open(subject_text, &s));
    return s;
}

void subject_end(subject *s)
{
    allot_device_counts counts;
    allot_device_get_counts(s->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    CHECK_EQ(counts.size_allocated, 0);
    CHECK_EQ(counts.size_created, 0);
    CHECK_EQ(counts.size_reserved, 0);
    allot_device_destroy(s->device);
    allot_device_destroy(s->inner);
}

allot_devptr must_alloc(allot_device *device, uint64_t size)
{
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc(device, size, &ptr));
    return ptr;
}

void must_free(allot_device *device, allot_devptr ptr, uint64_t size)
{
    CHECK_OK(allot_device_free(device, ptr, size));
}

allot_stream must_create_stream(allot_device *device)
{
    allot_stream stream = {0};
    CHECK_OK(allot_device_stream_create(device, &stream));
    return stream;
}

void must_destroy_stream(allot_device *device, allot_stream stream)
{
    CHECK_OK(allot_device_stream_destroy(device, stream));
}

allot_event must_record(allot_device *device, allot_stream stream)
{
    allot_event event = {0};
    CHECK_OK(allot_device_event_create(device, &event));
    CHECK_OK(allot_device_event_record(device, event, stream));
    return event;
}

void must_destroy_event(allot_device *device, allot_event event)
{
    CHECK_OK(allot_device_event_destroy(device, event));
}

allot_devptr must_reserve(allot_device *device, uint64_t size)
{
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_reserve(device, size, &ptr));
    return ptr;
}

allot_memory must_create_memory(allot_device *device, uint64_t size)
{
    allot_memory memory = {0};
    CHECK_OK(allot_device_memory_create(device, size, &memory));
    return memory;
}

/** Bytes of a range once the stream is done; the caller frees them. */
static uint8_t *read_all(const subject *s, allot_stream stream, allot_devptr ptr, uint64_t size)
{
    uint8_t *const bytes = calloc(1, (size_t)size);
    if (CHECK(bytes != NULL)) {
        CHECK_OK(allot_device_read(s->device, stream, bytes, ptr, size));
        CHECK_OK(allot_device_stream_synchronize(s->device, stream));
    }
    return bytes;
}

bool holds_value(const subject *s, allot_stream stream, allot_devptr ptr, uint8_t value,
                 uint64_t size)
{
    uint8_t *const bytes = read_all(s, stream, ptr, size);
    const bool is_equal =
        bytes != NULL && (!s->info.has_bytes ||
                          (bytes[0] == value && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0));
    free(bytes);
    return is_equal;
}

/**
 * Random bytes, repeated: making all of them anew takes long under sanitizers. The period, 8 times
 * a prime, is no whole number of pages for a long way, so bytes that are pages off are seen.
 */
static uint8_t *make_pattern(uint64_t seed, uint64_t size)
{
    enum { PERIOD = 8 * 8179 };
    uint8_t *const bytes = malloc((size_t)size + PERIOD);
    CHECK(bytes != NULL);
    if (bytes == NULL) {
        return NULL;
    }
    uint64_t state = seed;
    for (size_t i = 0; i < PERIOD; i += 8) {
        const uint64_t word = check_random(&state);
        memcpy(bytes + i, &word, 8);
    }
    for (uint64_t done = PERIOD; done < size; done += PERIOD) {
        memcpy(bytes + done, bytes, PERIOD);
    }
    return bytes;
}

void write_pattern(const subject *s, allot_stream stream, allot_devptr ptr, uint64_t seed,
                   uint64_t size)
{
    uint8_t *const bytes = make_pattern(seed, size);
    CHECK_OK(allot_device_write(s->device, stream, ptr, bytes, size));
    CHECK_OK(allot_device_stream_synchronize(s->device, stream));
    free(bytes);
}

bool holds_pattern(const subject *s, allot_stream stream, allot_devptr ptr, uint64_t seed,
                   uint64_t size)
{
    uint8_t *const bytes = read_all(s, stream, ptr, size);
    uint8_t *const pattern = make_pattern(seed, size);
    const bool is_equal = bytes != NULL && pattern != NULL &&
                          (!s->info.has_bytes || memcmp(bytes, pattern, (size_t)size) == 0);
    free(bytes);
    free(pattern);
    return is_equal;
}

static bool is_absent(allot_status status)
{
    return status == ALLOT_STATUS_UNSUPPORTED || status == ALLOT_STATUS_NOT_FOUND ||
           status == ALLOT_STATUS_VERSION;
}

int subject_main(int argc, char **argv, const check_test *tests, size_t count)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s DEVICE [--seed N] [TEST]\n", argv[0]);
        return 2;
    }
    subject_text = argv[1];
    subject s = {.device = NULL};
    if (is_absent(subject_open(subject_text, &s))) {
        printf("  skipped: %s\n", allot_error_detail());
        return 77;
    }
    allot_device_destroy(s.device);
    allot_device_destroy(s.inner);
    argv[1] = argv[0];
    return check_main(argc - 1, argv + 1, tests, count);
}
