/* SPDX-License-Identifier: MIT */
/* The reader of Umpire's older logs on any bytes. */
#include "support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(ALLOT_TRACE_FORMAT_UMPIRE_CSV, data, size);
}
