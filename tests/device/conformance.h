/* SPDX-License-Identifier: MIT */
/**
 * The suite that every device passes. One program, told which device on its command line: a text
 * for allot_device_open(), or "failing(TEXT)" and "tracing(TEXT)" for a wrapper over one. Each test
 * opens the device anew and sees to it that nothing is left when it ends.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

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

#define CONFORMANCE_TESTS(X)                                                                       \
    X(info_is_sound)                                                                               \
    X(memory_info_is_sound)                                                                        \
    X(the_clock_does_not_run_backwards)                                                            \
    X(allocations_are_aligned_and_apart)                                                           \
    X(allocations_are_counted)                                                                     \
    X(odd_sizes_can_be_allocated)                                                                  \
    X(wrong_sizes_are_refused)                                                                     \
    X(a_full_device_recovers)                                                                      \
    X(what_was_not_allocated_is_not_freed)                                                         \
    X(stream_ordered_allocations_work)                                                             \
    X(streams_and_events_come_and_go)                                                              \
    X(events_are_reached)                                                                          \
    X(a_stream_waits_for_an_event)                                                                 \
    X(a_destroyed_stream_ends_its_work)                                                            \
    X(wrong_streams_and_events_are_refused)                                                        \
    X(written_bytes_are_read_back)                                                                 \
    X(fills_set_bytes)                                                                             \
    X(copies_copy_bytes)                                                                           \
    X(work_of_no_size_does_nothing)                                                                \
    X(overlapping_copies_are_refused)                                                              \
    X(batches_copy_all)                                                                            \
    X(wrong_batches_are_refused)                                                                   \
    X(moves_keep_bytes)                                                                            \
    X(what_was_moved_away_can_be_used)                                                             \
    X(streams_keep_their_order)                                                                    \
    X(mapped_memory_keeps_its_bytes)                                                               \
    X(copies_cross_mappings)                                                                       \
    X(memory_of_many_granules_maps)                                                                \
    X(virtual_memory_is_counted)                                                                   \
    X(wrong_virtual_sizes_are_refused)                                                             \
    X(mapping_elsewhere_is_refused)                                                                \
    X(mapping_twice_is_refused)                                                                    \
    X(giving_back_what_is_used_is_refused)                                                         \
    X(unmapping_in_part_is_refused)                                                                \
    X(too_much_memory_is_refused)                                                                  \
    X(a_device_without_virtual_memory_says_so)                                                     \
    X(threads_call_at_once)                                                                        \
    X(threads_map_at_once)                                                                         \
    X(of_threads_that_give_back_the_same_one_does)                                                 \
    X(a_forked_child_is_told)

#define CONFORMANCE_DECLARE(name) void name(void);
CONFORMANCE_TESTS(CONFORMANCE_DECLARE)
#undef CONFORMANCE_DECLARE

#endif /* CONFORMANCE_H */
