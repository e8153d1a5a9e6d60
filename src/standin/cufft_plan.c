/* SPDX-License-Identifier: MIT */
/*
 * cuFFT: plans, the stream of each, and executions, which are work of that stream: a node of the
 * graph while it captures. A plan's handle is a small number, not an address.
 */
#include <stdlib.h>

#include "core/array.h"
#include "standin/runtime.h"

enum { FFT_INVALID_PLAN = 1, FFT_ALLOC_FAILED = 2 };

typedef struct fft_plan {
    void *stream;
    bool is_live;
} fft_plan;

static struct {
    fft_plan *plans; /**< By handle - 1; all guarded by the process's lock. */
    uint64_t count;
    uint64_t capacity;
} known;

/** The plan of a handle, NULL for none; under the lock. */
static fft_plan *plan_of(int handle)
{
    return handle > 0 && (uint64_t)handle <= known.count && known.plans[handle - 1].is_live
               ? &known.plans[handle - 1]
               : NULL;
}

CUDA_ENTRY(int, cufftCreate)(int *handle)
{
    standin *const state = standin_open();
    const bool has_room = known.count < INT32_MAX &&
                          alloti_array_reserve(&known.plans, &known.capacity, known.count + 1,
                                               sizeof *known.plans) == ALLOT_STATUS_OK;
    if (has_room) {
        known.plans[known.count++] = (fft_plan){.is_live = true};
        *handle = (int)known.count;
    }
    standin_close(state);
    return has_room ? 0 : FFT_ALLOC_FAILED;
}

CUDA_ENTRY(int, cufftDestroy)(int handle)
{
    standin *const state = standin_open();
    fft_plan *const plan = plan_of(handle);
    if (plan != NULL) {
        plan->is_live = false;
    }
    standin_close(state);
    return plan == NULL ? FFT_INVALID_PLAN : 0;
}

CUDA_ENTRY(int, cufftSetStream)(int handle, void *stream)
{
    standin *const state = standin_open();
    fft_plan *const plan = plan_of(handle);
    if (plan != NULL) {
        plan->stream = stream;
    }
    standin_close(state);
    return plan == NULL ? FFT_INVALID_PLAN : 0;
}

static int execute(int handle)
{
    standin *const state = standin_open();
    const fft_plan *const plan = plan_of(handle);
    if (plan != NULL) {
        state->values.launches++;
        stream_work_on(state, plan->stream);
    }
    standin_close(state);
    return plan == NULL ? FFT_INVALID_PLAN : 0;
}

/* Plans of one call are created by it; their sizes do not matter. */
#define PLAN_ENTRY(name)                                                                           \
    CUDA_ENTRY(int, name)(int *handle)                                                             \
    {                                                                                              \
        return cufftCreate(handle);                                                                \
    }

PLAN_ENTRY(cufftPlan1d)
PLAN_ENTRY(cufftPlan2d)
PLAN_ENTRY(cufftPlan3d)
PLAN_ENTRY(cufftPlanMany)

/* What is transformed, and how, does not matter. */
#define EXECUTE_ENTRY(name)                                                                        \
    CUDA_ENTRY(int, name)(int handle)                                                              \
    {                                                                                              \
        return execute(handle);                                                                    \
    }

EXECUTE_ENTRY(cufftExecC2C)
EXECUTE_ENTRY(cufftExecC2R)
EXECUTE_ENTRY(cufftExecR2C)
EXECUTE_ENTRY(cufftExecZ2Z)
EXECUTE_ENTRY(cufftExecZ2D)
EXECUTE_ENTRY(cufftExecD2Z)
EXECUTE_ENTRY(cufftXtExec)
