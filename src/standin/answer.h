/* SPDX-License-Identifier: MIT */
/**
 * Answers to questions that a dry run cannot know: reads of one byte, which programs use as
 * booleans. Rules are tried in this order: those of a line that is on the program's stack, the one
 * for all lines, and without any what is likely: a reduction by "and" (`all()`, `equal()`,
 * `isfinite(x).all()`) and the `isfinite(x)` of one element are true, everything else false.
 */
#ifndef ALLOTI_STANDIN_ANSWER_H
#define ALLOTI_STANDIN_ANSWER_H

#include <allot/base.h>

enum { ANSWER_RULES_MAX = 16, ANSWER_LINE_SIZE = 256 };

typedef enum answer_kind {
    ANSWER_LIKELY,
    ANSWER_FALSE,
    ANSWER_TRUE,
    ANSWER_FLIP, /**< Every so many questions true. */
} answer_kind;

typedef struct answer_rule {
    char line[ANSWER_LINE_SIZE]; /**< "train.py:42": end of a path, and a line; "": all lines. */
    answer_kind kind;
    uint64_t every; /**< For ANSWER_FLIP. */
} answer_rule;

typedef struct answer_rules {
    answer_rule all;
    answer_rule lines[ANSWER_RULES_MAX];
    uint32_t line_count;
} answer_rules;

/**
 * Add a rule: "false", "true", "flip:N", "likely", or one of them after "LINE=".
 *
 * @return ALLOT_STATUS_INVALID with what was expected.
 */
ALLOT_NODISCARD allot_status answer_add_rule(answer_rules *rules, const char *text);

/**
 * Answer question number `question` (from 1 on). `kernel` is the name of what ran last before it,
 * NULL if that is not known. May ask Python: called without the process's lock.
 */
bool answer_choose(const answer_rules *rules, const char *kernel, uint64_t question);

/** How often the rule lines[rule] was the one. Any thread. */
uint64_t answer_rule_uses(uint32_t rule);

#endif /* ALLOTI_STANDIN_ANSWER_H */
