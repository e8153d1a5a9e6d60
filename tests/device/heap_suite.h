/* SPDX-License-Identifier: MIT */
/**
 * The suite that a heap passes on every device, see device/subject.h. Work is queued and not waited
 * for wherever a program would do so; bytes are compared where the device has any.
 */
#ifndef HEAP_SUITE_H
#define HEAP_SUITE_H

#include <allot/heap.h>

#include "device/subject.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum { SCENE_STREAMS = 3 };

/** A heap over the device of the suite. */
typedef struct scene {
    subject device;
    allot_heap *heap; /**< NULL: it could not be made, and the test has failed. */
    allot_stream streams[SCENE_STREAMS]; /**< [0] is the default stream. */
} scene;

scene scene_begin(allot_heap_options options);

/** Check the heap, release it, and see to it that nothing is left. */
void scene_end(scene *s);

/** Run a test in each mode that the device has. */
void each_mode(void (*run)(allot_heap_mode mode));

allot_request request_of(uint64_t size, allot_stream stream);

/** @name Calls that are expected to work; zero where they do not, and the test has failed. @{ */
allot_handle must_get(scene *s, uint64_t size, allot_stream stream);
allot_devptr must_get_pointer(scene *s, uint64_t size, allot_stream stream);
allot_devptr must_pin(scene *s, allot_handle handle);
void must_unpin(scene *s, allot_handle handle);
/** @} */

/** Queue a fill of a block. */
void set_block(scene *s, allot_handle handle, uint8_t value, uint64_t size, allot_stream stream);

/** Whether a block holds a value once the stream is done; true without bytes. */
bool block_holds(scene *s, allot_handle handle, uint8_t value, uint64_t size, allot_stream stream);

/** Let `second` begin what it is given from now on after what `first` was given by now. */
void order_streams(allot_device *device, allot_stream first, allot_stream second);

#define HEAP_TESTS(X)                                                                              \
    X(handles_keep_their_bytes)                                                                    \
    X(pointers_keep_their_bytes)                                                                   \
    X(wrong_handles_are_refused)                                                                   \
    X(blocks_grow_and_shrink_where_they_are)                                                       \
    X(blocks_grow_by_moving)                                                                       \
    X(pools_are_apart)                                                                             \
    X(limits_hold)                                                                                 \
    X(temporary_blocks_make_room)                                                                  \
    X(what_is_free_goes_back_to_the_device)                                                        \
    X(a_full_device_is_told_and_recovers)                                                          \
    X(compaction_keeps_bytes_of_queued_work)                                                       \
    X(plans_come_about_as_foretold)                                                                \
    X(each_move_can_be_watched_and_refused)                                                        \
    X(plans_meet_a_heap_that_changed)                                                              \
    X(blocks_that_overlap_their_places_keep_their_bytes)                                           \
    X(steps_keep_bytes_of_queued_work)                                                             \
    X(plans_stay_within_their_budgets)                                                             \
    X(a_heap_is_a_snapshot)                                                                        \
    X(writing_behind_a_block_is_seen)                                                              \
    X(another_owner_reads_zeros)                                                                   \
    X(a_block_that_shrinks_leaves_zeros)                                                           \
    X(a_freed_block_waits_for_its_streams)                                                         \
    X(streams_share_memory_in_order)                                                               \
    X(a_block_may_shrink_while_another_stream_uses_it)                                             \
    X(a_block_keeps_its_streams_when_it_moves)                                                     \
    X(an_ended_stream_leaves_its_blocks)                                                           \
    X(a_heap_ends_with_work_queued)                                                                \
    X(programs_read_their_own_bytes)                                                               \
    X(programs_that_move_blocks_read_their_own_bytes)                                              \
    X(programs_short_of_memory_read_their_own_bytes)                                               \
    X(programs_that_scrub_read_their_own_bytes)                                                    \
    X(a_heap_that_does_not_wait_is_found_out)                                                      \
    X(a_heap_that_takes_every_event_as_reached_is_found_out)                                       \
    X(every_failure_of_the_driver_is_undone)                                                       \
    X(no_rule_of_the_driver_was_broken)

#define HEAP_DECLARE(name) void name(void);
HEAP_TESTS(HEAP_DECLARE)
#undef HEAP_DECLARE

#endif /* HEAP_SUITE_H */
