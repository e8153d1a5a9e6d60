/* SPDX-License-Identifier: MIT */
/**
 * The state of a check, shared by check.c (what the program did), check_row.c (where that can be
 * read in several ways) and check_driver.c (what the driver did, and the comparison).
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

/* What the program did, done by the model; a difference is noted in the check. */

/** The free at the cursor; `is_shared`: another stream still uses the block. */
ALLOT_NODISCARD allot_status alloti_check_free(checker *check, bool is_shared);
/** The completed free at the cursor: the streams are done with the block. */
ALLOT_NODISCARD allot_status alloti_check_completed(checker *check);
/** The allocation, or the failure, recorded at event `at`. */
ALLOT_NODISCARD allot_status alloti_check_request(checker *check, uint64_t at);
/** A release of the cache that the program asked for. */
ALLOT_NODISCARD allot_status alloti_check_release(checker *check);

/* ---- check_row.c ---- */

/** The segment events from the cursor on, up to the request that they may belong to. */
ALLOT_NODISCARD allot_status alloti_check_row(checker *check);
/** One completed free at the cursor, with its request if that stands right before it; or all in a
 * row, where it is open whether they completed before the next request or on its way. */
ALLOT_NODISCARD allot_status alloti_check_completions(checker *check);

#endif /* ALLOTI_REPLAY_CHECK_H */
