/* SPDX-License-Identifier: MIT */
/**
 * The state of a check, shared by check.c (what the program did) and check_driver.c (what the
 * driver did, and the comparison).
 *
 * The model runs in step with the recording: `cursor` is the first recorded event that the model
 * has not made yet. Whatever the model does is compared with the event at the cursor at once; the
 * driver answers by looking at that event.
 */
#ifndef ALLOTI_REPLAY_CHECK_H
#define ALLOTI_REPLAY_CHECK_H

#include "replay/requests.h"

typedef struct checker {
    const allot_requests *requests;
    const allot_events *events;
    allot_torchsim *sim;
    uint64_t limit; /**< UINT64_MAX: refusals come from the recording. */
    uint64_t held;  /**< Bytes that the driver has given out. */
    uint64_t cursor;
    uint8_t *matched; /**< [events] What the model made in another order: completed frees, pools
                         given back. */
    uint32_t *blocks; /**< [slots] The model's name of each slot's block. */
    bool has_failed;
    allot_replay_check_result *result;
} checker;

/** The driver's table with `check` as its context. */
allot_torch_driver alloti_check_driver(checker *check);

/** Compare what the model did with the event at the cursor. `context` is a checker. */
void alloti_check_event(void *context, const allot_torch_event *event);

/** Pass over events that are nobody's doing (snapshots, marks) and those already matched. */
void alloti_check_skip(checker *check);

/** Note the first difference, at the cursor. `expected` may be NULL. */
void alloti_check_fail(checker *check, const allot_torch_event *expected, const char *what);

#endif /* ALLOTI_REPLAY_CHECK_H */
