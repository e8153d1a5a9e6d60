/* SPDX-License-Identifier: MIT */
#include "device/conformance.h"

int main(int argc, char **argv)
{
    static const check_test tests[] = {
#define CONFORMANCE_ENTRY(name) {#name, name},
        CONFORMANCE_TESTS(CONFORMANCE_ENTRY)
#undef CONFORMANCE_ENTRY
    };
    return subject_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
