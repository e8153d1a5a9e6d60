/* SPDX-License-Identifier: MIT */
/**
 * Checks for tests. A test program is a table of named functions given to check_main(), which
 * prints one line per test and ends with "N passed, N failed". CHECK continues after a failure,
 * REQUIRE leaves the function. Both print file, line and the two values.
 *
 * Options: --seed N for random tests (check_seed()), NAME to run the tests whose name contains it.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct check_test {
    const char *name; /**< States the behaviour: "free_merges_with_both_neighbours". */
    void (*run)(void);
} check_test;

int check_main(int argc, char **argv, const check_test *tests, size_t count);
#define CHECK_MAIN(tests)                                                                          \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return check_main(argc, argv, tests, sizeof(tests) / sizeof((tests)[0]));                  \
    }

/** Seed of this run: from --seed, else a fixed one. */
uint64_t check_seed(void);

/** Small deterministic generator (splitmix64): next number; advances *state. */
uint64_t check_random(uint64_t *state);
/** Number in [low, high]. */
uint64_t check_random_range(uint64_t *state, uint64_t low, uint64_t high);

/**
 * Path of a file below the shared data folder ("oracle/x.pickle.gz"), in a static buffer; NULL if
 * the data is not there: the test then calls check_skip() and returns.
 */
const char *check_data(const char *relative);
void check_skip(const char *why);

/** Checks of the test that runs which have failed so far. */
int check_failures(void);

bool check_that(bool ok, const char *file, int line, const char *text);
bool check_equal_u64(uint64_t a, uint64_t b, const char *file, int line, const char *text_a,
                     const char *text_b);
bool check_equal_str(const char *a, const char *b, const char *file, int line, const char *text_a,
                     const char *text_b);
bool check_contains(const char *text, const char *part, const char *file, int line);
/** Fails with the library's detail text if status is not zero. */
bool check_ok(int status, const char *file, int line, const char *text);

#define CHECK(condition) check_that((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ(a, b) check_equal_u64((uint64_t)(a), (uint64_t)(b), __FILE__, __LINE__, #a, #b)
#define CHECK_STR(a, b) check_equal_str((a), (b), __FILE__, __LINE__, #a, #b)
#define CHECK_CONTAINS(text, part) check_contains((text), (part), __FILE__, __LINE__)
#define CHECK_OK(call) check_ok((int)(call), __FILE__, __LINE__, #call)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!CHECK(condition)) {                                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)
#define REQUIRE_OK(call)                                                                           \
    do {                                                                                           \
        if (!CHECK_OK(call)) {                                                                     \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#endif /* CHECK_H */
