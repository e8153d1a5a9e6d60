/* SPDX-License-Identifier: MIT */
/**
 * The device that a suite runs on. It is told on the command line: a text for allot_device_open(),
 * or "failing(TEXT)" and "tracing(TEXT)" for a wrapper over one. Each test opens the device anew
 * and sees to it that nothing is left when it ends.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <allot/device.h>

#include "support/check.h"

/** A device that a test opened. */
typedef struct subject {
    allot_device *device; /**< NULL: it could not be opened, and the test has failed. */
    allot_device *inner;  /**< Below a wrapper, else NULL. */
    allot_device_info info;
} subject;

static const allot_stream DEFAULT_STREAM = {0};

/** Open a device by its text; the status of the failure if it cannot be. */
allot_status subject_open(const char *text, subject *out);

/** Open the device that the suite runs on. */
subject subject_begin(void);

/** Check that the device holds nothing any more, and close it. */
void subject_end(subject *s);

/** @name Calls that are expected to work; zero where they do not, and the test has failed. @{ */
allot_devptr must_alloc(allot_device *device, uint64_t size);
void must_free(allot_device *device, allot_devptr ptr, uint64_t size);
allot_stream must_create_stream(allot_device *device);
void must_destroy_stream(allot_device *device, allot_stream stream);
/** An event at the present end of a stream. */
allot_event must_record(allot_device *device, allot_stream stream);
void must_destroy_event(allot_device *device, allot_event event);
allot_devptr must_reserve(allot_device *device, uint64_t size);
allot_memory must_create_memory(allot_device *device, uint64_t size);
/** @} */

static inline allot_devptr offset_by(allot_devptr ptr, uint64_t bytes)
{
    return (allot_devptr){ptr.address + bytes};
}

/** Whether all bytes of a range have a value once the stream is done; true without bytes. */
bool holds_value(const subject *s, allot_stream stream, allot_devptr ptr, uint8_t value,
                 uint64_t size);

/** Write a pattern that a seed decides, and whether a range holds it; true without bytes. */
void write_pattern(const subject *s, allot_stream stream, allot_devptr ptr, uint64_t seed,
                   uint64_t size);
bool holds_pattern(const subject *s, allot_stream stream, allot_devptr ptr, uint64_t seed,
                   uint64_t size);

/** main() of a suite: takes the device's text out of the arguments; 77, and says why, if there is
 * no such device on this machine. */
int subject_main(int argc, char **argv, const check_test *tests, size_t count);

#endif /* SUBJECT_H */
