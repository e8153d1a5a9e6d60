/* SPDX-License-Identifier: MIT */
/* The pickle reader on any bytes. */
#include "support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(ALLOT_TRACE_FORMAT_TORCH_PICKLE, data, size);
}
