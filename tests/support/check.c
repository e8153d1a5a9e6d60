/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <allot/base.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/random.h"

static atomic_int failures; /* of the test that runs */
static bool skipped;
static uint64_t seed = 0x5eed;

int check_failures(void)
{
    return atomic_load(&failures);
}

bool check_that(bool ok, const char *file, int line, const char *text)
{
    if (!ok) {
        atomic_fetch_add(&failures, 1);
        fprintf(stderr, "%s:%d: failed: %s (seed %" PRIu64 ")\n", file, line, text, seed);
    }
    return ok;
}

bool check_equal_u64(uint64_t a, uint64_t b, const char *file, int line, const char *text_a,
                     const char *text_b)
{
    if (a != b) {
        fprintf(stderr, "%s = %" PRIu64 ", %s = %" PRIu64 "\n", text_a, a, text_b, b);
    }
    return check_that(a == b, file, line, text_a);
}

bool check_equal_str(const char *a, const char *b, const char *file, int line, const char *text_a,
                     const char *text_b)
{
    const bool same = a != NULL && b != NULL && strcmp(a, b) == 0;
    if (!same) {
        fprintf(stderr, "%s = \"%s\", %s = \"%s\"\n", text_a, a == NULL ? "(null)" : a, text_b,
                b == NULL ? "(null)" : b);
    }
    return check_that(same, file, line, text_a);
}

bool check_contains(const char *text, const char *part, const char *file, int line)
{
    const bool found = text != NULL && strstr(text, part) != NULL;
    if (!found) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", part, text == NULL ? "(null)" : text);
    }
    return check_that(found, file, line, part);
}

bool check_ok(int status, const char *file, int line, const char *text)
{
    if (status != 0) {
        fprintf(stderr, "%s: %s\n", allot_status_name((allot_status)status), allot_error_detail());
    }
    return check_that(status == 0, file, line, text);
}

uint64_t check_seed(void)
{
    return seed;
}

uint64_t check_random(uint64_t *state)
{
    return alloti_random(state);
}

uint64_t check_random_range(uint64_t *state, uint64_t low, uint64_t high)
{
    const uint64_t count = high - low + 1;
    return count == 0 ? check_random(state) : low + check_random(state) % count;
}

const char *check_data(const char *relative)
{
    static char path[4096];
    const char *const root = getenv("ALLOT_TEST_DATA");
    snprintf(path, sizeof path, "%s/%s", root != NULL ? root : ALLOT_TEST_DATA_DEFAULT, relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

void check_skip(const char *why)
{
    printf("  skipped: %s\n", why);
    skipped = true;
}

int check_main(int argc, char **argv, const check_test *tests, size_t count)
{
    const char *filter = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 0);
        } else {
            filter = argv[i];
        }
    }
    size_t passed = 0;
    size_t failed = 0;
    size_t skips = 0;
    for (size_t i = 0; i < count; i++) {
        if (strstr(tests[i].name, filter) == NULL) {
            continue;
        }
        atomic_store(&failures, 0);
        skipped = false;
        tests[i].run();
        const bool ok = atomic_load(&failures) == 0;
        printf("%s %s\n", !ok ? "FAIL" : skipped ? "skip" : "ok  ", tests[i].name);
        failed += !ok;
        skips += ok && skipped;
        passed += ok && !skipped;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skips);
    return failed != 0 ? 1 : passed == 0 && skips != 0 ? 77 : 0;
}
