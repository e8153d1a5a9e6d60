/* SPDX-License-Identifier: MIT */
/** The suite that every device passes. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "device/subject.h"

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
