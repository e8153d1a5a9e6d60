/* SPDX-License-Identifier: MIT */
#include "dryrun_boundary.h"

#include <stddef.h>

/** After so many guesses that did not close the interval, the guesses are no good. */
enum { GUESSES_MAX = 4 };

dryrun_boundary dryrun_boundary_init(int64_t good, int64_t bad)
{
    return (dryrun_boundary){.good = good, .bad = bad, .step = 1};
}

static int64_t gap(const dryrun_boundary *b)
{
    return b->bad > b->good ? b->bad - b->good : b->good - b->bad;
}

bool dryrun_boundary_is_found(const dryrun_boundary *b)
{
    return gap(b) <= 1;
}

static int64_t middle(const dryrun_boundary *b)
{
    return b->good + (b->bad - b->good) / 2;
}

/** How far `at` is beyond good, towards bad. */
static int64_t distance(const dryrun_boundary *b, int64_t at)
{
    return b->bad > b->good ? at - b->good : b->good - at;
}

int64_t dryrun_boundary_next(dryrun_boundary *b, const int64_t *guess)
{
    const int64_t towards_bad = b->bad > b->good ? 1 : -1;
    b->is_step = false;
    if (guess == NULL || b->step == 0 || b->step >= gap(b)) {
        return middle(b);
    }
    const int64_t inside = distance(b, *guess);
    if (inside > 0 && inside < gap(b)) {
        return b->guesses++ < GUESSES_MAX ? *guess : middle(b);
    }
    b->is_step = true;
    b->is_forward = inside <= 0;
    return b->is_forward ? b->good + towards_bad * b->step : b->bad - towards_bad * b->step;
}

void dryrun_boundary_put(dryrun_boundary *b, int64_t tested, bool is_good)
{
    if (is_good) {
        b->good = tested;
    } else {
        b->bad = tested;
    }
    if (b->is_step) {
        b->step = is_good == b->is_forward ? b->step * 2 : 0;
    }
}
