/* SPDX-License-Identifier: MIT */
#include "replay/strategy.h"

#include <string.h>

static const allot_space_strategy ALL[] = {
#define STRATEGY_VALUE(name, value, spelling) ALLOT_SPACE_STRATEGY_##name,
    ALLOT_SPACE_STRATEGY_LIST(STRATEGY_VALUE)
#undef STRATEGY_VALUE
};

allot_status alloti_strategy_take(const char *model, const char *argument,
                                  allot_space_strategy *strategy, const char **rest)
{
    const char *const text = *argument != '\0' ? argument : "first-fit";
    const size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; i++) {
        const char *const name = allot_space_strategy_name(ALL[i]);
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            *strategy = ALL[i];
            *rest = text + length + (text[length] == ':' ? 1 : 0);
            return ALLOT_STATUS_OK;
        }
    }
    return alloti_fail(ALLOT_STATUS_INVALID,
                       "want %s:first-fit, best-fit, buddy, tlsf, tiered or adaptive, not "
                       "\"%.40s\"",
                       model, argument);
}
