/* SPDX-License-Identifier: MIT */
/*
 * A candidate is near if one letter in three, at most, has to be inserted, removed, replaced or
 * swapped with its neighbour to reach it (Damerau, 1964; each letter edited once), or if the typed
 * word is the beginning of it.
 */
#include "cli_suggest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { LENGTH_MAX = 32, BEGINNING_MIN = 3 };

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Both are at most LENGTH_MAX long. rows[i % 3][j]: edits from the first i of a to the first j of
 * b. */
static unsigned count_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][LENGTH_MAX + 1] = {{0}};
    for (unsigned j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned *const row = rows[i % 3];
        const unsigned *const above = rows[(i - 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            const bool is_same = a[i - 1] == b[j - 1];
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (is_same ? 0 : 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

cli_suggestion cli_suggestion_begin(const char *typed)
{
    const unsigned allowed = (unsigned)(strlen(typed) + 1) / 3;
    return (cli_suggestion){.typed = typed, .edits = allowed + 1};
}

void cli_suggestion_offer(cli_suggestion *suggestion, const char *candidate)
{
    const size_t typed_length = strlen(suggestion->typed);
    const size_t length = strlen(candidate);
    if (typed_length > LENGTH_MAX || length > LENGTH_MAX) {
        return;
    }
    const bool is_beginning =
        typed_length >= BEGINNING_MIN && strncmp(suggestion->typed, candidate, typed_length) == 0;
    const unsigned edits =
        is_beginning ? 0 : count_edits(suggestion->typed, typed_length, candidate, length);
    if (edits < suggestion->edits) {
        suggestion->best = candidate;
        suggestion->edits = edits;
    }
}
