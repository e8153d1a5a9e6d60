/* SPDX-License-Identifier: MIT */
#include "standin/answer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/number_text.h"
#include "core/status.h"
#include "standin/python.h"

static const char EXPECTED[] = "false, true, likely, flip:N or LINE=one of them";

static bool parse_kind(const char *text, answer_rule *rule)
{
    static const char *const words[] = {
        [ANSWER_LIKELY] = "likely", [ANSWER_FALSE] = "false", [ANSWER_TRUE] = "true"};
    static const char flip[] = "flip:";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            rule->kind = (answer_kind)i;
            return true;
        }
    }
    if (strncmp(text, flip, strlen(flip)) != 0) {
        return false;
    }
    const char *const number = text + strlen(flip);
    rule->kind = ANSWER_FLIP;
    return alloti_number_u64(number, strlen(number), &rule->every) && rule->every != 0;
}

allot_status answer_add_rule(answer_rules *rules, const char *text)
{
    const char *const equals = strrchr(text, '=');
    const size_t length = equals == NULL ? 0 : (size_t)(equals - text);
    answer_rule rule = {.kind = ANSWER_LIKELY};
    const bool is_line = equals != NULL;
    if (!parse_kind(is_line ? equals + 1 : text, &rule) || length >= sizeof rule.line ||
        (is_line && memchr(text, ':', length) == NULL)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "booleans:%s: expected %s", text, EXPECTED);
    }
    if (!is_line) {
        rules->all = rule;
        return ALLOT_STATUS_OK;
    }
    if (rules->line_count == ANSWER_RULES_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "booleans: at most %d lines", ANSWER_RULES_MAX);
    }
    memcpy(rule.line, text, length);
    rules->lines[rules->line_count++] = rule;
    return ALLOT_STATUS_OK;
}

static atomic_ullong uses[ANSWER_RULES_MAX];

uint64_t answer_rule_uses(uint32_t rule)
{
    return atomic_load_explicit(&uses[rule], memory_order_relaxed);
}

static const answer_rule *find(const answer_rules *rules)
{
    for (uint32_t i = 0; i < rules->line_count; i++) {
        if (python_is_at(rules->lines[i].line)) {
            (void)atomic_fetch_add_explicit(&uses[i], 1, memory_order_relaxed);
            return &rules->lines[i];
        }
    }
    return &rules->all;
}

/** PyTorch's kernel of `all()` is a reduction that is made by a function of this name. */
static bool is_all(const char *kernel)
{
    return kernel != NULL && strstr(kernel, "reduce_kernel") != NULL &&
           strstr(kernel, "15and_kernel_cuda") != NULL;
}

/** PyTorch's isfinite() ends with the product of two booleans: not NaN, and not infinite. */
static bool is_finite(const char *kernel)
{
    return kernel != NULL && strstr(kernel, "10MulFunctorIbE") != NULL;
}

bool answer_choose(const answer_rules *rules, const char *kernel, uint64_t question)
{
    const answer_rule *const rule = find(rules);
    switch (rule->kind) {
    case ANSWER_FALSE:
        return false;
    case ANSWER_TRUE:
        return true;
    case ANSWER_FLIP:
        return question % rule->every == 0;
    case ANSWER_LIKELY:
        break;
    }
    return is_all(kernel) || is_finite(kernel);
}
