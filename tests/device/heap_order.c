/* SPDX-License-Identifier: MIT */
/* Random programs that read what a heap gave away too early, and that they would see it. */
#include <stdlib.h>

#include "device/blind_device.h"
#include "device/heap_suite.h"
#include "device/order_program.h"

enum { PROGRAMS = 3, STEPS = 300 };

/** Pieces that programs with one kind of heap found wrong. */
static uint64_t run_programs(const subject *s, allot_device *under, order_options options)
{
    uint64_t wrong = 0;
    options.heap.struct_size = sizeof options.heap;
    options.heap.reserve_size = 64 * MIB;
    options.steps = STEPS;
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        options.seed = check_seed() * PROGRAMS + i;
        wrong += order_run(s->device, under, &options);
    }
    return wrong;
}

static void run_in_mode(allot_heap_mode mode, order_options options)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    options.heap.mode = mode;
    CHECK_EQ(run_programs(&s, s.device, options), 0);
    subject_end(&s);
}

static void run_plain(allot_heap_mode mode)
{
    run_in_mode(mode, (order_options){.heap = {.segment_size = MIB}});
    run_in_mode(mode, (order_options){.heap = {.segment_size = MIB, .front_size = MIB}});
    run_in_mode(mode, (order_options){.heap = {.segment_size = MIB,
                                               .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE}});
}

void programs_read_their_own_bytes(void)
{
    each_mode(run_plain);
}

static void run_moving(allot_heap_mode mode)
{
    run_in_mode(mode,
                (order_options){.heap = {.segment_size = MIB, .limit = 3 * MIB}, .compacts = true});
    run_in_mode(mode, (order_options){.heap = {.segment_size = 2 * MIB,
                                               .limit = 4 * MIB,
                                               .strategy = ALLOT_SPACE_STRATEGY_BEST_FIT},
                                      .compacts = true});
}

void programs_that_move_blocks_read_their_own_bytes(void)
{
    each_mode(run_moving);
}

/** One segment for all streams: each asks for what another one has just freed. */
static void run_short(allot_heap_mode mode)
{
    run_in_mode(mode, (order_options){.heap = {.segment_size = 2 * MIB, .limit = 2 * MIB}});
}

void programs_short_of_memory_read_their_own_bytes(void)
{
    each_mode(run_short);
}

static void run_scrubbing(allot_heap_mode mode)
{
    run_in_mode(mode, (order_options){.heap = {.segment_size = MIB,
                                               .limit = 4 * MIB,
                                               .scrub = ALLOT_HEAP_SCRUB_REUSE}});
    run_in_mode(
        mode, (order_options){
                  .heap = {.segment_size = MIB, .limit = 4 * MIB, .scrub = ALLOT_HEAP_SCRUB_FREE}});
    run_in_mode(mode,
                (order_options){.heap = {.segment_size = MIB, .limit = 4 * MIB, .is_debug = true}});
}

void programs_that_scrub_read_their_own_bytes(void)
{
    each_mode(run_scrubbing);
}

/** A heap over a blind device gives memory away too early, and the programs see it. */
static void find_out(blindness kind, order_options options)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    check_skip("the races of these programs are what the thread sanitizer reports");
    return;
#endif
#endif
    if (getenv("ALLOT_STANDIN") == NULL) {
        check_skip("only the stand-in puts work off for certain");
        return;
    }
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    allot_device *blind = NULL;
    options.heap.mode = ALLOT_HEAP_MODE_SEGMENTS;
    REQUIRE_OK(blind_device_open(s.device, kind, &blind));
    CHECK(run_programs(&s, blind, options) > 0);
    allot_device_destroy(blind);
    subject_end(&s);
}

void a_heap_that_does_not_wait_is_found_out(void)
{
    find_out(BLIND_TO_WAITS, (order_options){.heap = {.segment_size = 2 * MIB, .limit = 2 * MIB}});
}

void a_heap_that_takes_every_event_as_reached_is_found_out(void)
{
    find_out(BLIND_TO_EVENTS, (order_options){.heap = {.segment_size = 16 * MIB}});
}
