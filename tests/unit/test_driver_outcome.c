/* SPDX-License-Identifier: MIT */
/* What is remembered of starting a driver, here and in children. */
#include "device/driver_outcome.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

/** What a child is told; its status is the exit status. */
static allot_status in_child(const driver_outcome *outcome)
{
    const pid_t pid = fork();
    if (pid == 0) {
        _exit((int)alloti_driver_check(outcome, "it"));
    }
    int ended = -1;
    CHECK_EQ(waitpid(pid, &ended, 0), pid);
    CHECK(WIFEXITED(ended));
    return (allot_status)WEXITSTATUS(ended);
}

static void a_started_driver_is_there_but_not_in_children(void)
{
    driver_outcome outcome = {0};
    CHECK(alloti_driver_begin(&outcome));
    alloti_driver_end(&outcome, ALLOT_STATUS_OK);
    CHECK_OK(alloti_driver_check(&outcome, "it"));
    CHECK_EQ(in_child(&outcome), ALLOT_STATUS_FORKED);
}

static void a_failure_is_kept_with_its_reason(void)
{
    driver_outcome outcome = {0};
    CHECK(alloti_driver_begin(&outcome));
    alloti_driver_end(&outcome, alloti_fail(ALLOT_STATUS_VERSION, "older than %d", 11));
    (void)alloti_fail(ALLOT_STATUS_BUSY, "something else");
    CHECK_EQ(alloti_driver_check(&outcome, "it"), ALLOT_STATUS_VERSION);
    CHECK_STR(allot_error_detail(), "older than 11");
    CHECK_EQ(in_child(&outcome), ALLOT_STATUS_VERSION);
}

/** As in a child that was forked while a thread of its parent started the driver. */
static void a_driver_is_not_started_twice(void)
{
    driver_outcome outcome = {0};
    CHECK(alloti_driver_begin(&outcome));
    CHECK(!alloti_driver_begin(&outcome));
    CHECK_EQ(alloti_driver_check(&outcome, "the driver"), ALLOT_STATUS_FORKED);
    CHECK_CONTAINS(allot_error_detail(), "the driver was started before fork()");
}

static const check_test TESTS[] = {
    {"a_started_driver_is_there_but_not_in_children",
     a_started_driver_is_there_but_not_in_children},
    {"a_failure_is_kept_with_its_reason", a_failure_is_kept_with_its_reason},
    {"a_driver_is_not_started_twice", a_driver_is_not_started_twice},
};

CHECK_MAIN(TESTS)
