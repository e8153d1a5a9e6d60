/* SPDX-License-Identifier: MIT */
/** All models, and making one from its string. */
#include "core/status.h"
#include "replay/model.h"

#include <stdlib.h>
#include <string.h>

const alloti_model_ops *const ALLOTI_MODELS[] = {
    &alloti_model_torch,
    &alloti_model_async,
    &alloti_model_bfc,
    &alloti_model_rmm,
    &alloti_model_space,
    &alloti_model_heap,
    NULL,
};

/** What PyTorch calls it: backend:cudaMallocAsync. */
static const char ASYNC_ALIAS[] = "cudaMallocAsync";

enum { MODEL_COUNT = sizeof(ALLOTI_MODELS) / sizeof(ALLOTI_MODELS[0]) - 1 };

const allot_replay_model *allot_replay_get_model(uint32_t index)
{
    return index < MODEL_COUNT ? &ALLOTI_MODELS[index]->info : NULL;
}

static const alloti_model_ops *find_model(const char *name, size_t length)
{
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        const char *other = ALLOTI_MODELS[i]->info.name;
        if (strlen(other) == length && memcmp(other, name, length) == 0) {
            return ALLOTI_MODELS[i];
        }
    }
    return NULL;
}

allot_status alloti_model_create(const char *spec, const alloti_model_params *params,
                                 alloti_model **out)
{
    const char *name = spec == NULL ? "torch" : spec;
    const size_t length = strcspn(name, ":");
    const bool is_alias = strlen(ASYNC_ALIAS) == length && strncmp(name, ASYNC_ALIAS, length) == 0;
    const alloti_model_ops *const ops = is_alias ? &alloti_model_async : find_model(name, length);
    if (ops == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "unknown model \"%.60s\": want torch, async (or cudaMallocAsync), bfc, "
                           "rmm:pool, rmm:arena, rmm:binning, space:STRATEGY or heap:STRATEGY",
                           name);
    }
    alloti_model_params own = *params;
    own.argument = name[length] == ':' ? name + length + 1 : "";
    const allot_status status = ops->create(&own, out);
    return status == ALLOT_STATUS_INVALID ? alloti_fail_prefix(status, "model %s: ", ops->info.name)
                                          : status;
}

void alloti_model_destroy(alloti_model *model)
{
    if (model != NULL) {
        free(model->compactions);
        model->ops->destroy(model);
    }
}
