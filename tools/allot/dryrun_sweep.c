/* SPDX-License-Identifier: MIT */
/*
 * Runs cost seconds, so few of them are made. The smallest value comes first; then each value that
 * fitted without pressure gives a point of a line, memory over value, which tells where the card is
 * full. The search around that is dryrun_boundary's, and ends with two neighbours of which one fits
 * and one does not.
 */
#include "dryrun_sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dryrun_boundary.h"

/* ---- the values ---- */

static uint64_t value_at(const dryrun_sweep_range *range, int64_t index)
{
    return range->is_list ? range->list[index] : range->first + (uint64_t)index * range->step;
}

/** Index of the largest value up to `value`, which is not below the first. */
static int64_t index_of(const dryrun_sweep_range *range, double value)
{
    int64_t low = 0;
    int64_t high = (int64_t)range->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if ((double)value_at(range, middle) <= value) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/** Read digits; *text is moved behind them. */
static bool read_number(const char **text, uint64_t *out)
{
    char *end = NULL;
    if (strchr("0123456789", **text) == NULL || **text == '\0') {
        return false;
    }
    errno = 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *out < INT64_MAX;
}

static bool read_range(const char *text, dryrun_sweep_range *out)
{
    uint64_t last = 0;
    out->step = 1;
    if (!read_number(&text, &out->first) || strncmp(text, "..", 2) != 0) {
        return false;
    }
    text += 2;
    if (!read_number(&text, &last)) {
        return false;
    }
    if (strncmp(text, "..", 2) == 0) {
        text += 2;
        if (!read_number(&text, &out->step)) {
            return false;
        }
    }
    if (*text != '\0' || last < out->first || out->step == 0) {
        return false;
    }
    out->count = (last - out->first) / out->step + 1;
    return true;
}

static bool read_list(const char *text, dryrun_sweep_range *out)
{
    out->is_list = true;
    do {
        if (out->count == DRYRUN_SWEEP_LIST_MAX || !read_number(&text, &out->list[out->count]) ||
            (out->count != 0 && out->list[out->count] <= out->list[out->count - 1])) {
            return false;
        }
        out->count++;
    } while (*text++ == ',');
    return text[-1] == '\0';
}

bool dryrun_sweep_parse(const char *text, dryrun_sweep_range *out)
{
    const size_t length = strcspn(text, "=");
    *out = (dryrun_sweep_range){0};
    if (length == 0 || length >= sizeof out->name || text[length] == '\0' ||
        strcspn(text, "{}") < length) {
        (void)cli_usage("--sweep %s: want a name and its values, for example batch=1..64", text);
        return false;
    }
    snprintf(out->name, sizeof out->name, "%.*s", (int)length, text);
    const char *const values = text + length + 1;
    if (strstr(values, "..") != NULL ? read_range(values, out) : read_list(values, out)) {
        return true;
    }
    (void)cli_usage("--sweep %s: want rising whole numbers: 1..64, 8..64..8 (in steps of 8) or "
                    "1,2,4,8 (up to %d)",
                    text, DRYRUN_SWEEP_LIST_MAX);
    return false;
}

/* ---- the command line ---- */

typedef struct marker {
    char text[DRYRUN_SWEEP_NAME_MAX + 2];
} marker;

static marker marker_of(const dryrun_sweep_range *range)
{
    marker result;
    snprintf(result.text, sizeof result.text, "{%s}", range->name);
    return result;
}

bool dryrun_sweep_is_used(const dryrun_sweep_range *range, char *const *command)
{
    const marker wanted = marker_of(range);
    for (size_t i = 0; command[i] != NULL; i++) {
        if (strstr(command[i], wanted.text) != NULL) {
            return true;
        }
    }
    (void)cli_usage("--sweep %s: the command has no %s for its value, as in: --batch %s",
                    range->name, wanted.text, wanted.text);
    return false;
}

/** `text` with the number in place of each marker; NULL without memory. */
static char *fill_in(const char *text, const char *wanted, uint64_t value)
{
    char *result = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&result, &size);
    if (out == NULL) {
        return NULL;
    }
    const char *at = NULL;
    while ((at = strstr(text, wanted)) != NULL) {
        fprintf(out, "%.*s%" PRIu64, (int)(at - text), text, value);
        text = at + strlen(wanted);
    }
    fputs(text, out);
    return fclose(out) == 0 ? result : NULL;
}

static void destroy_command(char **command)
{
    for (size_t i = 0; command != NULL && command[i] != NULL; i++) {
        free(command[i]);
    }
    free(command);
}

/** The command with the value filled in; NULL without memory. */
static char **make_command(char *const *command, const dryrun_sweep_range *range, uint64_t value)
{
    const marker wanted = marker_of(range);
    size_t count = 0;
    while (command[count] != NULL) {
        count++;
    }
    char **const made = calloc(count + 1, sizeof *made);
    for (size_t i = 0; made != NULL && i < count; i++) {
        made[i] = fill_in(command[i], wanted.text, value);
        if (made[i] == NULL) {
            destroy_command(made);
            return NULL;
        }
    }
    return made;
}

/* ---- the search ---- */

typedef struct sweep_search {
    dryrun_series *series;
    const dryrun_request *request;
    dryrun_sweep *out;
    const dryrun_attempt *points[2]; /**< The last two that fitted without pressure; or NULL. */
} sweep_search;

static cli_exit try_value(sweep_search *s, int64_t index, dryrun_attempt **out)
{
    const uint64_t value = value_at(&s->out->range, index);
    dryrun_request request = *s->request;
    char **const command = make_command(s->request->command, &s->out->range, value);
    char label[DRYRUN_LABEL_MAX];
    if (command == NULL) {
        fputs("allot: no memory for a command line\n", stderr);
        return CLI_FAILED;
    }
    request.command = command;
    snprintf(label, sizeof label, "%s=%" PRIu64, s->out->range.name, value);
    const cli_exit code = dryrun_series_run(s->series, &request, DRYRUN_PURPOSE_SWEEP, label, out);
    destroy_command(command);
    if (code == CLI_OK) {
        (*out)->value = value;
    }
    return code;
}

/** Keep what a run says; whether it says anything. */
static bool learn(sweep_search *s, dryrun_attempt *attempt)
{
    if (dryrun_attempt_is_useless(attempt)) {
        s->out->failed = attempt;
        return false;
    }
    if (!dryrun_attempt_is_good(attempt)) {
        s->out->beyond = attempt;
        return true;
    }
    dryrun_attempt_keep(attempt, s->out->largest);
    s->out->largest = attempt;
    if (attempt->result.retries == 0) {
        s->out->calm = attempt; /* good values only rise */
        s->points[0] = s->points[1];
        s->points[1] = attempt;
    }
    return true;
}

/** Where the device would be full, on a line through the points; false where they give none. */
static bool guess(const sweep_search *s, int64_t *out)
{
    const dryrun_attempt *const a = s->points[0];
    const dryrun_attempt *const b = s->points[1];
    if (b == NULL || b->result.device_peak == 0) {
        return false;
    }
    /* One point: on a line through zero, which lies above the real one. */
    const double value = (double)b->value;
    const double peak = (double)b->result.device_peak;
    const double run = a == NULL ? value : value - (double)a->value;
    const double rise = a == NULL ? peak : peak - (double)a->result.device_peak;
    if (rise <= 0 || run <= 0) {
        return false;
    }
    const double room = (double)b->result.device_total - peak;
    *out = index_of(&s->out->range, value + room * run / rise);
    return true;
}

cli_exit dryrun_sweep_run(dryrun_series *series, const dryrun_request *request, dryrun_sweep *out)
{
    sweep_search s = {.series = series, .request = request, .out = out};
    dryrun_boundary boundary = dryrun_boundary_init(0, (int64_t)out->range.count);
    dryrun_attempt *attempt = NULL;
    cli_exit code = try_value(&s, 0, &attempt);
    if (code != CLI_OK || !learn(&s, attempt) || out->largest == NULL) {
        out->is_finished = code == CLI_OK && out->failed == NULL;
        return code;
    }
    while (!dryrun_boundary_is_found(&boundary)) {
        int64_t guessed = 0;
        const int64_t index =
            dryrun_boundary_next(&boundary, guess(&s, &guessed) ? &guessed : NULL);
        code = try_value(&s, index, &attempt);
        if (code != CLI_OK || !learn(&s, attempt)) {
            return code;
        }
        dryrun_boundary_put(&boundary, index, dryrun_attempt_is_good(attempt));
    }
    out->is_finished = true;
    return CLI_OK;
}
