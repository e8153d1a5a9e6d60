/* SPDX-License-Identifier: MIT */
/** The word that was meant by a mistyped one: offer every candidate, then read `best`. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

typedef struct cli_suggestion {
    const char *typed;
    const char *best; /**< NULL: none is near. Borrowed from the candidates. */
    unsigned edits;   /**< From `typed` to `best`. */
} cli_suggestion;

/** `typed` is borrowed. */
cli_suggestion cli_suggestion_begin(const char *typed);
void cli_suggestion_offer(cli_suggestion *suggestion, const char *candidate);

#endif /* CLI_SUGGEST_H */
