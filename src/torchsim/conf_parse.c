/* SPDX-License-Identifier: MIT */
/**
 * Reading a settings string as PyTorch does: "key:value,key:[a:b,c:d]", spaces without meaning,
 * later keys over earlier ones. Errors name the offset in the string.
 */
#include "torchsim/conf.h"

#include "core/number_text.h"
#include "core/size_math.h"
#include "core/status.h"

#include <stdio.h>
#include <string.h>

/** One word or one of the marks ",:[]"; empty at the end. */
typedef struct token {
    const char *text;
    size_t size;
    uint32_t position;
} token;

/** Up to this release `>` fills from the interval before it on, and sizes that must not be below a
 * segment must be above it. */
static const uint32_t LAST_GREEDY_LIST = 209;

typedef struct parser {
    const char *start;
    const char *at;
    uint32_t version;
    token max_split; /**< Values that are judged at the end, empty where not given. */
    token rounding;
    allot_torch_notes *notes;
    allot_torch_conf *conf;
} parser;

static bool is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/** Next token; *at moves behind it. */
static token next_token(const char *start, const char **at)
{
    while (is_space(**at)) {
        (*at)++;
    }
    const char *begin = *at;
    if (is_mark(**at)) {
        (*at)++;
    } else {
        while (**at != '\0' && !is_mark(**at) && !is_space(**at)) {
            (*at)++;
        }
    }
    return (token){begin, (size_t)(*at - begin), (uint32_t)(begin - start)};
}

static token take(parser *in)
{
    return next_token(in->start, &in->at);
}

static token peek(const parser *in)
{
    const char *at = in->at;
    return next_token(in->start, &at);
}

static bool is_text(token word, const char *text)
{
    return word.size == strlen(text) && memcmp(word.text, text, word.size) == 0;
}

static allot_status fail_syntax(token found, const char *wanted)
{
    if (found.size == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "position %u: expected %s, the settings end",
                           (unsigned)found.position, wanted);
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "position %u: expected %s, found \"%.*s\"",
                       (unsigned)found.position, wanted, (int)(found.size < 40 ? found.size : 40),
                       found.text);
}

static allot_status expect(parser *in, const char *mark)
{
    const token found = take(in);
    return is_text(found, mark) ? ALLOT_STATUS_OK : fail_syntax(found, mark);
}

/** A value that PyTorch refuses: a failure, or a note and the value is passed over. */
static allot_status refuse(const parser *in, token value, const char *key, const char *rule)
{
    const int size = (int)(value.size < 40 ? value.size : 40);
    if (in->notes == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "position %u: %s must be %s, not \"%.*s\"",
                           (unsigned)value.position, key, rule, size, value.text);
    }
    alloti_conf_note(in->notes, ALLOT_TORCH_NOTE_OUT_OF_RANGE, value.position,
                     "%s must be %s, not \"%.*s\": PyTorch refuses it", key, rule, size,
                     value.text);
    return ALLOT_STATUS_OK;
}

/** A number with a fraction, independent of the locale. */
static bool read_double(token word, double *out)
{
    int64_t billionths = 0;
    if (!alloti_number_fixed(word.text, word.size, 9, &billionths)) {
        return false;
    }
    *out = (double)billionths / 1e9;
    return true;
}

/** The field that a key sets; its type goes with the key's. */
static void *field_of(const parser *in, const conf_key *key)
{
    return (char *)in->conf + key->offset;
}

static allot_status parse_bool(parser *in, const conf_key *key, token value)
{
    bool *const field = field_of(in, key);
    if (!is_text(value, "True") && !is_text(value, "False")) {
        return refuse(in, value, key->name, "True or False");
    }
    *field = is_text(value, "True");
    return ALLOT_STATUS_OK;
}

static allot_status parse_mebibytes(parser *in, const conf_key *key, token value)
{
    uint64_t number = 0;
    if (!alloti_number_u64(value.text, value.size, &number) || (double)number < key->low) {
        return refuse(in, value, key->name, key->low > 1 ? "more than 10" : "at least 1");
    }
    const uint64_t most = (uint64_t)key->high;
    uint64_t *const field = field_of(in, key);
    *field = (number < most ? number : most) * CONF_MIB;
    if (field == &in->conf->max_split_size) {
        in->max_split = value;
    } else if (field == &in->conf->max_non_split_rounding) {
        in->rounding = value;
    }
    return ALLOT_STATUS_OK;
}

static allot_status parse_share(parser *in, const conf_key *key, token value)
{
    double number = 0;
    const bool ok =
        read_double(value, &number) && (key->is_open ? number > key->low && number < key->high
                                                     : number >= key->low && number <= key->high);
    if (!ok) {
        return refuse(in, value, key->name,
                      key->is_open ? "between 0 and 1, both excluded" : "between 0 and 1");
    }
    double *const field = field_of(in, key);
    *field = number;
    return ALLOT_STATUS_OK;
}

static allot_status parse_count(parser *in, const conf_key *key, token value)
{
    uint64_t number = 0;
    if (!alloti_number_u64(value.text, value.size, &number) || !alloti_is_pow2(number) ||
        (double)number > key->high) {
        return refuse(in, value, key->name, "a power of two up to 128");
    }
    uint32_t *const field = field_of(in, key);
    *field = (uint32_t)number;
    return ALLOT_STATUS_OK;
}

static allot_status parse_backend(parser *in, const conf_key *key, token value)
{
    const bool is_async = is_text(value, "cudaMallocAsync") || is_text(value, "hipMallocAsync");
    if (!is_async && !is_text(value, "native")) {
        return refuse(in, value, key->name, "native or cudaMallocAsync");
    }
    in->conf->backend = is_async ? ALLOT_TORCH_BACKEND_ASYNC : ALLOT_TORCH_BACKEND_NATIVE;
    return ALLOT_STATUS_OK;
}

/** A share of the device or "40G"; PyTorch warns of anything else and goes on. */
static allot_status parse_reserve(parser *in, const conf_key *key, token value)
{
    token number = value;
    const char last = value.size > 0 ? value.text[value.size - 1] : '\0';
    const bool is_gib = last == 'G' || last == 'g';
    number.size -= is_gib;
    double amount = 0;
    if (!read_double(number, &amount) || !(amount > 0)) {
        alloti_conf_note(in->notes, ALLOT_TORCH_NOTE_IGNORED, value.position,
                         "%s must be a share or a size such as 40G: PyTorch ignores it", key->name);
        return ALLOT_STATUS_OK;
    }
    in->conf->expandable_reserve_share = is_gib ? 0 : amount;
    in->conf->expandable_reserve_size = is_gib ? alloti_to_u64(amount * (double)(1ull << 30)) : 0;
    return ALLOT_STATUS_OK;
}

static bool read_divisions(token word, uint32_t *out)
{
    uint64_t number = 0;
    if (!alloti_number_u64(word.text, word.size, &number) ||
        (number != 0 && !alloti_is_pow2(number)) || number > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

/** Intervals of a list as they are filled in. */
typedef struct roundup {
    uint32_t divisions[ALLOT_TORCH_INTERVALS];
    uint32_t last;
    bool has_first;
} roundup;

/** One "boundary:divisions" of a list; the first also counts for all intervals below it. */
static allot_status apply_interval(parser *in, roundup *state, token boundary, token value)
{
    uint32_t divisions = 0;
    if (!read_divisions(value, &divisions)) {
        return refuse(in, value, "roundup_power2_divisions", "0 or a power of two");
    }
    if (is_text(boundary, ">")) {
        /* Without an entry before it the first interval keeps its value, as after one for it. */
        const uint32_t first = state->last + (in->version > LAST_GREEDY_LIST);
        for (uint32_t i = first; i < ALLOT_TORCH_INTERVALS; i++) {
            state->divisions[i] = divisions;
        }
        return ALLOT_STATUS_OK;
    }
    uint64_t mebibytes = 0;
    if (!alloti_number_u64(boundary.text, boundary.size, &mebibytes) ||
        !alloti_is_pow2(mebibytes)) {
        return refuse(in, boundary, "an interval of roundup_power2_divisions",
                      "a power of two or >");
    }
    uint32_t index = alloti_log2(mebibytes);
    index = index < ALLOT_TORCH_INTERVALS ? index : ALLOT_TORCH_INTERVALS - 1;
    for (uint32_t i = 0; !state->has_first && i < index; i++) {
        state->divisions[i] = divisions;
    }
    state->divisions[index] = divisions;
    state->last = index;
    state->has_first = true;
    return ALLOT_STATUS_OK;
}

/** "[a:b,c:d]" after its bracket; `state` NULL: any names and values, to be passed over. */
static allot_status parse_list(parser *in, roundup *state)
{
    if (is_text(peek(in), "]")) {
        take(in);
        return ALLOT_STATUS_OK;
    }
    for (;;) {
        const token name = take(in);
        if (name.size == 0 || is_mark(name.text[0])) {
            return fail_syntax(name, "an entry of a list");
        }
        allot_status status = expect(in, ":");
        const token value = status == ALLOT_STATUS_OK ? take(in) : name;
        if (status == ALLOT_STATUS_OK && (value.size == 0 || is_mark(value.text[0]))) {
            status = fail_syntax(value, "a value");
        }
        if (status == ALLOT_STATUS_OK && state != NULL) {
            status = apply_interval(in, state, name, value);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        const token mark = take(in);
        if (is_text(mark, "]")) {
            return ALLOT_STATUS_OK;
        }
        if (!is_text(mark, ",")) {
            return fail_syntax(mark, "\",\" or \"]\"");
        }
    }
}

static allot_status parse_roundup(parser *in, token value)
{
    roundup state = {.last = 0};
    memcpy(state.divisions, in->conf->roundup_power2_divisions, sizeof(state.divisions));
    if (is_text(value, "[")) {
        const allot_status status = parse_list(in, &state);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    } else {
        uint32_t divisions = 0;
        if (!read_divisions(value, &divisions) || divisions == 0) {
            return refuse(in, value, "roundup_power2_divisions", "a power of two or a list");
        }
        for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
            state.divisions[i] = divisions;
        }
    }
    memcpy(in->conf->roundup_power2_divisions, state.divisions, sizeof(state.divisions));
    return ALLOT_STATUS_OK;
}

static allot_status parse_value(parser *in, const conf_key *key, token value)
{
    const bool is_list = is_text(value, "[");
    if (is_list && key->type != CONF_ROUNDUP && key->type != CONF_BY_CLASS) {
        return fail_syntax(value, "a single value");
    }
    switch (key->type) {
    case CONF_BOOL:
        return parse_bool(in, key, value);
    case CONF_MEBIBYTES:
        return parse_mebibytes(in, key, value);
    case CONF_SHARE:
        return parse_share(in, key, value);
    case CONF_COUNT:
        return parse_count(in, key, value);
    case CONF_BACKEND:
        return parse_backend(in, key, value);
    case CONF_ROUNDUP:
        return parse_roundup(in, value);
    case CONF_RESERVE:
        return parse_reserve(in, key, value);
    case CONF_BY_CLASS:
        return is_list ? parse_list(in, NULL) : fail_syntax(value, "[");
    }
    return ALLOT_STATUS_OK;
}

static const conf_key *find_key(token word)
{
    for (size_t i = 0; i < ALLOTI_CONF_KEY_COUNT; i++) {
        if (is_text(word, ALLOTI_CONF_KEYS[i].name) ||
            (ALLOTI_CONF_KEYS[i].alias != NULL && is_text(word, ALLOTI_CONF_KEYS[i].alias))) {
            return &ALLOTI_CONF_KEYS[i];
        }
    }
    return NULL;
}

static allot_status parse_entry(parser *in)
{
    const token name = take(in);
    if (name.size == 0 || is_mark(name.text[0])) {
        return fail_syntax(name, "a setting");
    }
    const conf_key *key = find_key(name);
    if (key == NULL && in->notes == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "position %u: unknown setting \"%.*s\"",
                           (unsigned)name.position, (int)(name.size < 60 ? name.size : 60),
                           name.text);
    }
    const allot_status status = expect(in, ":");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const token value = take(in);
    if (value.size == 0 || (is_mark(value.text[0]) && value.text[0] != '[')) {
        return fail_syntax(value, "a value");
    }
    if (key != NULL) {
        return parse_value(in, key, value);
    }
    alloti_conf_note(in->notes, ALLOT_TORCH_NOTE_UNKNOWN_KEY, name.position,
                     "PyTorch does not know the setting \"%.*s\"",
                     (int)(name.size < 60 ? name.size : 60), name.text);
    return is_text(value, "[") ? parse_list(in, NULL) : ALLOT_STATUS_OK;
}

/** A size that must not be below a segment; *field becomes `otherwise` where it is. */
static allot_status judge_size(const parser *in, token value, const char *key, uint64_t *field,
                               uint64_t otherwise)
{
    const uint64_t segment = in->conf->large_segment_size;
    if (value.size == 0 ||
        (in->version > LAST_GREEDY_LIST ? *field >= segment : *field > segment)) {
        return ALLOT_STATUS_OK;
    }
    char rule[64];
    (void)snprintf(rule, sizeof(rule), "%s %llu (large_segment_size_mb)",
                   in->version > LAST_GREEDY_LIST ? "at least" : "more than",
                   (unsigned long long)(segment / CONF_MIB));
    *field = otherwise;
    return refuse(in, value, key, rule);
}

static allot_status judge_sizes(parser *in)
{
    allot_torch_conf *const conf = in->conf;
    const allot_status status = judge_size(in, in->max_split, "max_split_size_mb",
                                           &conf->max_split_size, ALLOT_TORCH_UNLIMITED);
    return status != ALLOT_STATUS_OK
               ? status
               : judge_size(in, in->rounding, "max_non_split_rounding_mb",
                            &conf->max_non_split_rounding, conf->large_segment_size);
}

allot_status allot_torch_conf_parse(const char *text, allot_torch_conf *conf,
                                    allot_torch_notes *notes)
{
    return allot_torch_conf_parse_for(text, 0, conf, notes);
}

allot_status allot_torch_conf_parse_for(const char *text, uint32_t version, allot_torch_conf *conf,
                                        allot_torch_notes *notes)
{
    if (strlen(text) >= UINT32_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "settings of %zu bytes", strlen(text));
    }
    allot_torch_conf result;
    allot_torch_conf_init(&result);
    parser in = {.start = text,
                 .at = text,
                 .version = version == 0 ? ALLOT_TORCH_VERSION_NEWEST : version,
                 .notes = notes,
                 .conf = &result};
    while (peek(&in).size > 0) {
        allot_status status = parse_entry(&in);
        if (status == ALLOT_STATUS_OK && peek(&in).size > 0) {
            status = expect(&in, ",");
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if (in.rounding.size == 0) {
        result.max_non_split_rounding = result.large_segment_size;
    }
    const allot_status status = judge_sizes(&in);
    if (status == ALLOT_STATUS_OK) {
        *conf = result;
    }
    return status;
}
