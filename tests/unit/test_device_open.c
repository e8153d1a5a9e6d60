/* SPDX-License-Identifier: MIT */
/* The text that opens a device, and what is said of backends. */
#include <allot/device.h>
#include <string.h>

#include "support/check.h"

/** Each text is refused, and the detail has this in it. */
static void refused(const char *text, const char *detail)
{
    allot_device *device = NULL;
    CHECK_EQ(allot_device_open(text, &device), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), detail);
    CHECK(device == NULL);
}

static void wrong_backends_are_refused(void)
{
    refused("", "character 1: no such backend");
    refused("hosts", "character 1: no such backend; there are host simulated null opencl cuda");
    refused("hos", "character 1");
    refused("Host", "character 1");
    refused(" host", "character 1");
    refused(",memory:1GiB", "character 1");
    refused(":0", "character 1");
    allot_device *device = NULL;
    CHECK_EQ(allot_device_open(NULL, &device), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_open("host", NULL), ALLOT_STATUS_INVALID);
}

static void wrong_numbers_are_refused(void)
{
    refused("cuda:", "character 6: the number of a device");
    refused("cuda:x", "character 6");
    refused("cuda:-1", "character 6");
    refused("cuda:1:2", "character 6");
    refused("cuda:4294967296", "character 6");
    refused("host:memory:1GiB", "character 6");
}

static void wrong_settings_are_refused(void)
{
    refused("host,", "character 5: nothing follows the comma");
    refused("host,memory:1GiB,", "character 17: nothing follows the comma");
    refused("host,,memory:1GiB", "character 6: \"\" is no parameter");
    refused("host,memory", "character 6: memory needs a value");
    refused("host,memory:", "character 6: memory needs a value");
    refused("host,memory:0", "character 6: memory: \"0\": want a size above 0");
    refused("host,memory:4 zoll", "character 6: memory: size \"4 zoll\": character 3");
    refused("host,memory:1GiB,memory:1GiB", "character 18: memory is given a second time");
    refused("host,huge:yes", "character 6: huge: \"yes\": want one of false, true");
    refused("host,move:fly", "want one of auto, copy, mremap, uffd");
    refused("host,color:red", "\"color\" is no parameter (memory, granule, huge, move, guard)");
    refused("host,memory=1GiB", "\"memory=1GiB\" is no parameter");
    refused("simulated,gpu:0123456789012345678901234567890123456789012345678901234567890123456789",
            "gpu needs a value of 1 to 63 characters");
}

static void a_long_text_leaves_room_for_the_reason(void)
{
    enum { LENGTH = 5000 };
    char text[LENGTH + 1];
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    refused(text, "xxx...\": character 1: no such backend");
    memcpy(text, "host,", strlen("host,"));
    refused(text, "is no parameter (memory, granule, huge, move, guard)");
    memcpy(text, "host,memory:", strlen("host,memory:"));
    refused(text, "character 6: memory needs a value of 1 to 63 characters");
}

static void keys_of_other_backends_are_refused(void)
{
    refused("host,gpu:t4", "\"gpu\" is no parameter");
    refused("simulated,huge:true", "\"huge\" is no parameter (memory, granule, gpu)");
    refused("null,gpu:t4", "\"gpu\" is no parameter (memory, granule)");
    refused("opencl,granule:2MiB", "\"granule\" is no parameter (memory)");
    refused("cuda,memory:1GiB", "\"memory\" is no parameter (there are none)");
}

static void a_probe_always_gives_a_reason(void)
{
    for (unsigned i = 0; i <= ALLOT_BACKEND_COUNT; i++) {
        allot_backend_probe_result found = {0};
        const allot_status status = allot_backend_probe((allot_backend)i, &found);
        CHECK_EQ(found.struct_size, sizeof found);
        CHECK(found.reason[0] != '\0');
        CHECK((status == ALLOT_STATUS_OK) == (found.device_count > 0));
        if (status != ALLOT_STATUS_OK) {
            CHECK_CONTAINS(allot_error_detail(), found.reason);
        }
    }
}

static const check_test TESTS[] = {
    {"wrong_backends_are_refused", wrong_backends_are_refused},
    {"wrong_numbers_are_refused", wrong_numbers_are_refused},
    {"wrong_settings_are_refused", wrong_settings_are_refused},
    {"a_long_text_leaves_room_for_the_reason", a_long_text_leaves_room_for_the_reason},
    {"keys_of_other_backends_are_refused", keys_of_other_backends_are_refused},
    {"a_probe_always_gives_a_reason", a_probe_always_gives_a_reason},
};

CHECK_MAIN(TESTS)
