/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's graph interface. Descriptors keep what they are told; when a program asks which engines
 * could run a graph, a real cuDNN answers if the settings name one, else one engine is proposed
 * whose workspace is that of the user's table or not known.
 */
#include <string.h>

#include "standin/cudnn_oracle.h"
#include "standin/handle.h"
#include "standin/runtime.h"

CUDA_ENTRY(int, cudnnBackendCreateDescriptor)(int type, void **out)
{
    *out = cudnn_descriptor_create(type);
    return *out == NULL ? CUDNN_NO_HOST_MEMORY : CUDNN_OK;
}

CUDA_ENTRY(int, cudnnBackendDestroyDescriptor)(void *descriptor)
{
    cudnn_descriptor_release(cudnn_descriptor_get(descriptor));
    return CUDNN_OK;
}

CUDA_ENTRY(int, cudnnBackendSetAttribute)
(void *pointer, int name, int type, int64_t count, const void *values)
{
    cudnn_descriptor *const descriptor = cudnn_descriptor_get(pointer);
    if (descriptor == NULL || count < 0 || count > UINT16_MAX || (count != 0 && values == NULL) ||
        cudnn_value_size(type) == 0) {
        return CUDNN_BAD_PARAMETER;
    }
    return cudnn_descriptor_set(descriptor, name, type, (uint32_t)count, values)
               ? CUDNN_OK
               : CUDNN_NO_HOST_MEMORY;
}

/** The caller made the descriptors that are filled in. */
static int give_descriptors(const cudnn_attribute *attribute, uint32_t count, void *const *out)
{
    cudnn_descriptor *const *const children = attribute->values;
    for (uint32_t i = 0; i < count; i++) {
        cudnn_descriptor *const to = cudnn_descriptor_get(out[i]);
        if (to == NULL || children[i] == NULL) {
            return CUDNN_BAD_PARAMETER;
        }
        if (!cudnn_descriptor_assign(to, children[i])) {
            return CUDNN_NO_HOST_MEMORY;
        }
    }
    return CUDNN_OK;
}

/** An attribute that was never set is one zero, or a descriptor that stays as the caller made it.
 */
static int give_nothing(int type, int64_t room, void *out)
{
    if (out != NULL && room > 0 && type != CUDNN_TYPE_HANDLE && type != CUDNN_TYPE_POINTER &&
        type != CUDNN_TYPE_DESCRIPTOR && type != CUDNN_TYPE_CHAR) {
        memset(out, 0, cudnn_value_size(type));
    }
    return CUDNN_OK;
}

/** The count is that of all values where none is asked for, else of those given. */
CUDA_ENTRY(int, cudnnBackendGetAttribute)
(void *pointer, int name, int type, int64_t room, int64_t *count, void *out)
{
    const cudnn_descriptor *const descriptor = cudnn_descriptor_get(pointer);
    const cudnn_attribute *const attribute =
        descriptor == NULL ? NULL : cudnn_descriptor_find(descriptor, name);
    if (attribute != NULL && attribute->type != type) {
        return CUDNN_BAD_PARAMETER;
    }
    const uint32_t all = attribute == NULL ? 1 : attribute->count;
    const uint32_t given = room > 0 && room < (int64_t)all ? (uint32_t)room : all;
    if (count != NULL) {
        *count = given;
    }
    if (attribute == NULL) {
        return give_nothing(type, room, out);
    }
    if (out == NULL || room <= 0) {
        return CUDNN_OK;
    }
    if (type == CUDNN_TYPE_DESCRIPTOR) {
        return give_descriptors(attribute, given, out);
    }
    memcpy(out, attribute->values, given * cudnn_value_size(type));
    return CUDNN_OK;
}

/* ---- heuristics ---- */

static report_size workspaces = {.name = "cuDNN workspaces",
                                 .source = "the first that cuDNN proposes; with "
                                           "torch.backends.cudnn.benchmark the fastest is taken",
                                 .workspace = ALLOT_WORKSPACE_cudnn};

/** What is proposed without a real cuDNN. */
static cudnn_choice assumed_choice(report_basis *basis)
{
    const allot_workspaces *const table = &standin_settings()->workspaces;
    *basis = table->is_set[ALLOT_WORKSPACE_cudnn] ? REPORT_TABLE : REPORT_UNKNOWN;
    return (cudnn_choice){.workspace = table->size[ALLOT_WORKSPACE_cudnn]};
}

static cudnn_descriptor *make_engine(const cudnn_choice *choice)
{
    const int64_t index = (int64_t)choice->engine;
    cudnn_descriptor *const engine = cudnn_descriptor_create(CUDNN_ENGINE);
    if (engine != NULL &&
        cudnn_descriptor_set(engine, CUDNN_ENGINE_INDEX, CUDNN_TYPE_INT64, 1, &index) &&
        cudnn_descriptor_set(engine, CUDNN_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             choice->numerical_count, choice->numerical) &&
        cudnn_descriptor_set(engine, CUDNN_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                             choice->behavior_count, choice->behavior)) {
        return engine;
    }
    cudnn_descriptor_release(engine);
    return NULL;
}

/** An engine configuration: no knobs, a workspace. NULL without host memory. */
static cudnn_descriptor *make_config(const cudnn_choice *choice)
{
    const int64_t workspace = (int64_t)choice->workspace;
    cudnn_descriptor *const engine = make_engine(choice);
    cudnn_descriptor *const config = cudnn_descriptor_create(CUDNN_ENGINE_CONFIG);
    const bool is_made =
        engine != NULL && config != NULL &&
        cudnn_descriptor_set(config, CUDNN_CONFIG_ENGINE, CUDNN_TYPE_DESCRIPTOR, 1, &engine) &&
        cudnn_descriptor_set(config, CUDNN_CONFIG_KNOBS, CUDNN_TYPE_DESCRIPTOR, 0, NULL) &&
        cudnn_descriptor_set(config, CUDNN_CONFIG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
    cudnn_descriptor_release(engine);
    if (!is_made) {
        cudnn_descriptor_release(config);
        return NULL;
    }
    config->status = choice->status;
    return config;
}

/** Give the heuristics its results. */
static int propose(cudnn_descriptor *heuristics, cudnn_answer *answer)
{
    report_basis basis = REPORT_LIBRARY;
    const cudnn_choice assumed = assumed_choice(&basis);
    const cudnn_choice *const choices = answer == NULL ? &assumed : answer->choices;
    const uint32_t count = answer == NULL ? 1 : answer->count;
    cudnn_descriptor *configs[WIRE_CHOICES_MAX];
    uint32_t made = 0;
    while (made < count && (configs[made] = make_config(&choices[made])) != NULL) {
        configs[made]->basis = answer == NULL ? basis : REPORT_LIBRARY;
        configs[made]->answer = answer;
        configs[made]->choice = made;
        made++;
    }
    const bool is_set =
        made == count && cudnn_descriptor_set(heuristics, CUDNN_HEURISTICS_RESULTS,
                                              CUDNN_TYPE_DESCRIPTOR, count, configs);
    for (uint32_t i = 0; i < made; i++) {
        cudnn_descriptor_release(configs[i]);
    }
    return is_set ? CUDNN_OK : CUDNN_NO_HOST_MEMORY;
}

static int finalize_heuristics(cudnn_descriptor *heuristics)
{
    const cudnn_descriptor *const graph =
        cudnn_descriptor_child(heuristics, CUDNN_HEURISTICS_GRAPH);
    const int64_t mode = cudnn_descriptor_number(heuristics, CUDNN_HEURISTICS_MODE, 0);
    cudnn_answer *const answer = graph == NULL ? NULL : cudnn_oracle_ask(graph, (int)mode);
    if (answer != NULL && answer->status != CUDNN_OK) {
        return answer->status;
    }
    return propose(heuristics, answer);
}

/* ---- plans ---- */

/** A plan's workspace is that of its engine configuration, which a program can also make itself. */
static int finalize_plan(cudnn_descriptor *plan)
{
    const cudnn_descriptor *const config = cudnn_descriptor_child(plan, CUDNN_PLAN_CONFIG);
    if (config != NULL && config->status != CUDNN_OK) {
        return config->status;
    }
    const cudnn_choice assumed = assumed_choice(&plan->basis);
    int64_t size = (int64_t)assumed.workspace;
    if (config != NULL && cudnn_descriptor_find(config, CUDNN_CONFIG_WORKSPACE_SIZE) != NULL) {
        size = cudnn_descriptor_number(config, CUDNN_CONFIG_WORKSPACE_SIZE, 0);
        plan->basis = config->basis;
        plan->answer = config->answer;
        plan->choice = config->choice;
    }
    return cudnn_descriptor_set(plan, CUDNN_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &size)
               ? CUDNN_OK
               : CUDNN_NO_HOST_MEMORY;
}

CUDA_ENTRY(int, cudnnBackendFinalize)(void *pointer)
{
    cudnn_descriptor *const descriptor = cudnn_descriptor_get(pointer);
    if (descriptor == NULL) {
        return CUDNN_BAD_PARAMETER;
    }
    if (descriptor->type == CUDNN_HEURISTICS) {
        return finalize_heuristics(descriptor);
    }
    return descriptor->type == CUDNN_PLAN ? finalize_plan(descriptor) : CUDNN_OK;
}

/** Whether a program tries several engines for one graph, to take the one that is fastest. */
static bool is_chosen_by_time(const cudnn_descriptor *plan)
{
    enum { SEVERAL = -1 };
    const int own = (int)plan->choice + 1;
    int before = 0;
    if (plan->answer == NULL ||
        atomic_compare_exchange_strong(&plan->answer->executed, &before, own) || before == own) {
        return false;
    }
    atomic_store(&plan->answer->executed, SEVERAL);
    return true;
}

CUDA_ENTRY(int, cudnnBackendExecute)(void *handle, void *pointer, void *variant)
{
    (void)variant;
    const cudnn_descriptor *const plan = cudnn_descriptor_get(pointer);
    bool is_known = true;
    if (plan != NULL) {
        const uint64_t size = (uint64_t)cudnn_descriptor_number(plan, CUDNN_PLAN_WORKSPACE_SIZE, 0);
        is_known = is_chosen_by_time(plan)
                       ? report_size_call(&workspaces, REPORT_RULE, size, plan->answer->largest)
                       : report_size_call(&workspaces, plan->basis, size, size);
    }
    if (!is_known) {
        return CUDNN_NOT_SUPPORTED;
    }
    handle_work(handle);
    return CUDNN_OK;
}
