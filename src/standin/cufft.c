/* SPDX-License-Identifier: MIT */
/*
 * cuFFT: the work areas of plans. The documentation gives the work area in complex elements of
 * the batch: as low as one for each, eight in the worst case. Without an entry in the user's table
 * the low end is answered, and the report carries the other.
 */
#include "core/size_math.h"
#include "standin/abi.h"
#include "standin/report.h"

enum { WORST = 8 };

/** Bytes of a complex number of a cudaDataType. */
static uint64_t complex_size(int type)
{
    switch (type) {
    case 2:  /* CUDA_R_16F */
    case 6:  /* CUDA_C_16F */
    case 14: /* CUDA_R_16BF */
    case 15: /* CUDA_C_16BF */
        return 4;
    case 1: /* CUDA_R_64F */
    case 5: /* CUDA_C_64F */
        return 16;
    default:
        return 8;
    }
}

/** All complex numbers of a batch; 0 for lengths that make no sense. */
static uint64_t batch_size(int rank, const long long *lengths, long long batch, int type)
{
    uint64_t size = complex_size(type);
    bool is_valid = batch > 0 && alloti_mul(size, (uint64_t)batch, &size);
    for (int i = 0; i < rank && is_valid; i++) {
        is_valid = lengths[i] > 0 && alloti_mul(size, (uint64_t)lengths[i], &size);
    }
    return is_valid && size <= UINT64_MAX / WORST ? size : 0;
}

CUDA_ENTRY(int, cufftXtMakePlanMany)
(int plan, int rank, long long *lengths, long long *input, long long input_stride,
 long long input_distance, int input_type, long long *output, long long output_stride,
 long long output_distance, int output_type, long long batch, size_t *work_size, int type)
{
    static report_size asked = {.name = "cufftXtMakePlanMany",
                                .source = "the documented least of cuFFT; up to 8 times as much",
                                .workspace = ALLOT_WORKSPACE_cufft};
    (void)plan;
    (void)input;
    (void)input_stride;
    (void)input_distance;
    (void)input_type;
    (void)output;
    (void)output_stride;
    (void)output_distance;
    (void)output_type;
    const uint64_t least = batch_size(rank, lengths, batch, type);
    uint64_t bytes = least;
    if (!report_size_by_table(&asked, REPORT_RULE, &bytes, least * WORST)) {
        return CUDA_NOT_SUPPORTED;
    }
    *work_size = (size_t)bytes;
    return 0;
}
