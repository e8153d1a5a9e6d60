/* SPDX-License-Identifier: MIT */
/* "rmm:pool", "rmm:arena" and "rmm:binning": models of the memory resources of RAPIDS RMM. */
#include "replay/model_rmm.h"

#include <string.h>

#include "core/status.h"

static const alloti_model_ops *const RESOURCES[] = {
    &alloti_model_rmm_pool,
    &alloti_model_rmm_arena,
    &alloti_model_rmm_binning,
};

enum { RESOURCE_COUNT = sizeof RESOURCES / sizeof RESOURCES[0], PREFIX = 4 /* "rmm:" */ };

/** "rmm" alone is the pool. The model made says by its own table which resource it is. */
static allot_status rmm_create(const alloti_model_params *params, alloti_model **out)
{
    const char *const argument = *params->argument != '\0' ? params->argument : "pool";
    const size_t length = strcspn(argument, ":");
    for (size_t i = 0; i < RESOURCE_COUNT; i++) {
        const char *const name = RESOURCES[i]->info.name + PREFIX;
        if (strlen(name) == length && strncmp(name, argument, length) == 0) {
            alloti_model_params inner = *params;
            inner.argument = argument + length;
            inner.argument += *inner.argument == ':' ? 1 : 0;
            const allot_status status = RESOURCES[i]->create(&inner, out);
            return status == ALLOT_STATUS_INVALID ? alloti_fail_prefix(status, "%s: ", name)
                                                  : status;
        }
    }
    return alloti_fail(ALLOT_STATUS_INVALID,
                       "want rmm:pool, rmm:arena or rmm:binning, not \"%.40s\"", params->argument);
}

const alloti_model_ops alloti_model_rmm = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "rmm",
             .argument = "pool[:initial=SIZE,maximum=SIZE], arena[:size=SIZE] or "
                         "binning[:min=SIZE,max=SIZE,blocks=N,upstream=pool|cuda]",
             .summary = "a memory resource of RAPIDS RMM"},
    .create = rmm_create,
};
