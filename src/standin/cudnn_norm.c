/* SPDX-License-Identifier: MIT */
/*
 * Sizes of cuDNN's batch normalisation. Its documentation: workspace and reserved space are for the
 * kernels that keep the values of a channel on the multiprocessors, which run on channels-last
 * tensors in the persistent mode. Everything else needs neither.
 */
#include "standin/cudnn.h"
#include "standin/handle.h"
#include "standin/report.h"

enum { PERSISTENT = 2, NOT_SUPPORTED = 3000 };
#define RULE "cuDNN's documentation: only persistent kernels on channels-last tensors need one"

/** Answer 0 where the documentation says so, else by the user's table. */
static int answer(report_size *size, int mode, void *tensor, size_t *out)
{
    const standin_handle *const input = handle_get(tensor);
    uint64_t bytes = 0;
    bool is_answered = false;
    if (mode == PERSISTENT && (input == NULL || input->values[CUDNN_TENSOR_STRIDE + 1] == 1)) {
        is_answered = report_size_by_table(size, REPORT_UNKNOWN, &bytes, 0);
    } else {
        is_answered = report_size_call(size, REPORT_RULE, 0, 0);
    }
    *out = (size_t)bytes;
    return is_answered ? 0 : NOT_SUPPORTED;
}

CUDA_ENTRY(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)
(void *handle, int mode, int operations, void *x, void *z, void *y, void *parameters,
 void *activation, size_t *out)
{
    static report_size size = {.name = "cuDNN workspaces of batch normalisation",
                               .source = RULE,
                               .workspace = ALLOT_WORKSPACE_cudnn};
    (void)handle;
    (void)operations;
    (void)z;
    (void)y;
    (void)parameters;
    (void)activation;
    return answer(&size, mode, x, out);
}

CUDA_ENTRY(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize)
(void *handle, int mode, int operations, void *x, void *y, void *dy, void *dz, void *dx,
 void *parameters, void *activation, size_t *out)
{
    static report_size size = {.name = "cuDNN workspaces of batch normalisation, backward",
                               .source = RULE,
                               .workspace = ALLOT_WORKSPACE_cudnn};
    (void)handle;
    (void)operations;
    (void)y;
    (void)dy;
    (void)dz;
    (void)dx;
    (void)parameters;
    (void)activation;
    return answer(&size, mode, x, out);
}

CUDA_ENTRY(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize)
(void *handle, int mode, int operations, void *activation, void *x, size_t *out)
{
    static report_size size = {.name = "what cuDNN keeps of batch normalisation",
                               .source = RULE,
                               .workspace = ALLOT_WORKSPACE_cudnn_reserve};
    (void)handle;
    (void)operations;
    (void)activation;
    return answer(&size, mode, x, out);
}
