/* SPDX-License-Identifier: MIT */
/* The JSON reader of snapshots on any bytes. */
#include "support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(ALLOT_TRACE_FORMAT_TORCH_JSON, data, size);
}
