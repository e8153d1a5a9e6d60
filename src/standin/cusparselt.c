/* SPDX-License-Identifier: MIT */
/*
 * cuSPARSELt: sizes that programs allocate by. The compressed form of a matrix is the caller's to
 * know; the workspaces of real hardware are not known here, and the report says so.
 */
#include "standin/abi.h"
#include "standin/report.h"

static int no_bytes(size_t *size)
{
    static report_guess guess = {.name = "cuSPARSELt GetWorkspace and compressed sizes"};
    *size = 0;
    return report_guess_call(&guess) ? 0 : CUDA_NOT_SUPPORTED;
}

CUDA_ENTRY(int, cusparseLtMatmulGetWorkspace)(const void *handle, const void *plan, size_t *size)
{
    (void)handle;
    (void)plan;
    return no_bytes(size);
}

CUDA_ENTRY(int, cusparseLtSpMMACompressedSize2)
(const void *handle, const void *matrix, size_t *size, size_t *buffer_size)
{
    (void)handle;
    (void)matrix;
    *buffer_size = 0;
    return no_bytes(size);
}
