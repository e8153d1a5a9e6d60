/* SPDX-License-Identifier: MIT */
/* Every value of every enumeration has a name of its own, and no other value has one. */
#include <allot/advise.h>
#include <allot/compare.h>
#include <allot/explain.h>
#include <allot/history.h>
#include <allot/replay.h>
#include <allot/torchsim.h>
#include <string.h>

#include "support/check.h"

enum { VALUES_MAX = 64 };

/* Names of 0, 1, 2 ... up to the first value without one; `none` is what such a value is called. */
static void check_names(const char *(*name)(unsigned value), const char *none, unsigned at_least)
{
    const char *names[VALUES_MAX] = {NULL};
    unsigned count = 0;
    while (count < VALUES_MAX && strcmp(name(count), none) != 0) {
        names[count] = name(count);
        CHECK(names[count][0] != '\0');
        for (unsigned i = 0; i < count; i++) {
            CHECK(strcmp(names[i], names[count]) != 0);
        }
        count++;
    }
    CHECK(count >= at_least && count < VALUES_MAX);
    CHECK_STR(name(1000), none);
}

#define NAME_OF(type, call)                                                                        \
    static const char *name_of_##type(unsigned value)                                              \
    {                                                                                              \
        return call((type)value);                                                                  \
    }
NAME_OF(allot_status, allot_status_name)
NAME_OF(allot_trace_format, allot_trace_format_name)
NAME_OF(allot_event_kind, allot_event_kind_name)
NAME_OF(allot_measure, allot_measure_name)
NAME_OF(allot_oom_verdict, allot_oom_verdict_name)
NAME_OF(allot_steps_source, allot_steps_source_name)
NAME_OF(allot_limit_source, allot_limit_source_name)
NAME_OF(allot_advice_verdict, allot_advice_verdict_name)
NAME_OF(allot_torch_note_kind, allot_torch_note_kind_name)
#undef NAME_OF

static void every_value_has_a_name_of_its_own(void)
{
    check_names(name_of_allot_status, "UNKNOWN", ALLOT_STATUS_MISMATCH + 1);
    check_names(name_of_allot_trace_format, "unknown", ALLOT_TRACE_FORMAT_FOLDED + 1);
    check_names(name_of_allot_event_kind, "unknown", ALLOT_EVENT_KIND_COUNT);
    check_names(name_of_allot_measure, "unknown", 3);
    check_names(name_of_allot_oom_verdict, "unknown", 2);
    check_names(name_of_allot_steps_source, "unknown", 2);
    check_names(name_of_allot_limit_source, "unknown", 2);
    check_names(name_of_allot_advice_verdict, "unknown", 2);
    check_names(name_of_allot_torch_note_kind, "unknown", 2);
}

static const check_test TESTS[] = {
    {"every_value_has_a_name_of_its_own", every_value_has_a_name_of_its_own},
};
CHECK_MAIN(TESTS)
