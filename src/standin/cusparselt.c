/* SPDX-License-Identifier: MIT */
/*
 * cuSPARSELt: sizes that programs allocate by. The compressed form of a matrix is the caller's to
 * know; the workspaces of real hardware are in the user's table or not known.
 */
#include "standin/abi.h"
#include "standin/report.h"

CUDA_ENTRY(int, cusparseLtMatmulGetWorkspace)(const void *handle, const void *plan, size_t *size)
{
    static report_size asked = {.name = "cusparseLtMatmulGetWorkspace",
                                .workspace = ALLOT_WORKSPACE_cusparse};
    (void)handle;
    (void)plan;
    uint64_t bytes = 0;
    const bool is_answered = report_size_by_table(&asked, REPORT_UNKNOWN, &bytes, 0);
    *size = (size_t)bytes;
    return is_answered ? 0 : CUDA_NOT_SUPPORTED;
}

CUDA_ENTRY(int, cusparseLtSpMMACompressedSize2)
(const void *handle, const void *matrix, size_t *size, size_t *buffer_size)
{
    static report_size asked = {.name = "cusparseLtSpMMACompressedSize2",
                                .workspace = ALLOT_WORKSPACE_COUNT};
    (void)handle;
    (void)matrix;
    *size = 0;
    *buffer_size = 0;
    return report_size_call(&asked, REPORT_UNKNOWN, 0, 0) ? 0 : CUDA_NOT_SUPPORTED;
}
