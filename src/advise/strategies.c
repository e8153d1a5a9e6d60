/* SPDX-License-Identifier: MIT */
/* What allot's own strategies do with the requests: beside the settings, never among them. */
#include <stdlib.h>
#include <string.h>

#include <allot/space.h>

#include "advise/search.h"
#include "advise/words.h"
#include "core/array.h"

static const char *const STRATEGIES[] = {
#define STRATEGY_SPELLING(name, value, spelling) spelling,
    ALLOT_SPACE_STRATEGY_LIST(STRATEGY_SPELLING)
#undef STRATEGY_SPELLING
};
static const char *const MODES[] = {"vm", "segments"};

enum {
    STRATEGY_COUNT = sizeof STRATEGIES / sizeof STRATEGIES[0],
    MODE_COUNT = sizeof MODES / sizeof MODES[0],
};

static allot_status add_all(alloti_search *search)
{
    const uint32_t count = STRATEGY_COUNT * MODE_COUNT;
    search->strategies = alloti_calloc_array(count, sizeof *search->strategies);
    if (search->strategies == NULL) {
        return alloti_fail_memory(count * sizeof *search->strategies);
    }
    for (uint32_t i = 0; i < count; i++) {
        alloti_candidate *const candidate = &search->strategies[search->strategy_count++];
        candidate->text = alloti_words_format("space:%s:mode=%s", STRATEGIES[i % STRATEGY_COUNT],
                                              MODES[i / STRATEGY_COUNT]);
        candidate->change = strdup("");
        candidate->model = candidate->text;
        if (candidate->text == NULL || candidate->change == NULL) {
            return alloti_fail_memory(ALLOT_TORCH_CONF_TEXT_MAX);
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_search_strategies(alloti_search *search)
{
    const allot_status status = add_all(search);
    return status == ALLOT_STATUS_OK
               ? alloti_search_measure(search, search->strategies, search->strategy_count)
               : status;
}
