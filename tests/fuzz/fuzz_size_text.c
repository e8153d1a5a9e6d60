/* SPDX-License-Identifier: MIT */
/* allot_size_parse() on any text; what it accepts can be written and read again. */
#include <allot/base.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = calloc(1, size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    uint64_t bytes = 0;
    if (allot_size_parse(text, &bytes) == ALLOT_STATUS_OK) {
        char written[ALLOT_SIZE_TEXT_MAX];
        uint64_t again = 0;
        /* UINT64_MAX is written as 16.00 EiB, one above what can be read. */
        if (allot_size_parse(allot_size_format(bytes, written), &again) != ALLOT_STATUS_OK &&
            bytes < UINT64_MAX / 1024 * 1023) {
            abort();
        }
    } else if (allot_error_detail()[0] == '\0') {
        abort();
    }
    free(text);
    return 0;
}
