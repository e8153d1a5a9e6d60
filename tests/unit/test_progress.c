/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

#include "core/status.h"
#include "support/check.h"

typedef struct listener {
    const char *stage;
    uint64_t done;
    uint64_t total;
    bool goes_on;
} listener;

static bool listen(void *context, const char *stage, uint64_t done, uint64_t total)
{
    listener *const heard = context;
    heard->stage = stage;
    heard->done = done;
    heard->total = total;
    return heard->goes_on;
}

static void nobody_needs_to_listen(void)
{
    const alloti_progress silent = {.stage = "reading"};
    CHECK_OK(alloti_progress_tell(NULL, 1, 2));
    CHECK_OK(alloti_progress_tell(&silent, 1, 2));
}

static void the_listener_hears_stage_and_numbers(void)
{
    listener heard = {.goes_on = true};
    const alloti_progress progress = {.report = listen, .context = &heard, .stage = "reading"};
    CHECK_OK(alloti_progress_tell(&progress, 3, 10));
    CHECK_STR(heard.stage, "reading");
    CHECK_EQ(heard.done, 3);
    CHECK_EQ(heard.total, 10);
}

static void the_listener_can_cancel(void)
{
    listener heard = {.goes_on = false};
    const alloti_progress progress = {.report = listen, .context = &heard, .stage = "reading"};
    CHECK_EQ(alloti_progress_tell(&progress, 3, 10), ALLOT_STATUS_CANCELLED);
    CHECK_STR(allot_error_detail(), "reading was cancelled");
}

static const check_test TESTS[] = {
    {"nobody_needs_to_listen", nobody_needs_to_listen},
    {"the_listener_hears_stage_and_numbers", the_listener_hears_stage_and_numbers},
    {"the_listener_can_cancel", the_listener_can_cancel},
};
CHECK_MAIN(TESTS)
