/* SPDX-License-Identifier: MIT */
#include "core/options.h"

#include <string.h>

/* No struct of options is that large: the size was never set. */
enum { SIZE_LIMIT = 4096 };

allot_status alloti_options_take(const void *given, size_t size, void *out)
{
    size_t given_size = size;
    if (given != NULL) {
        memcpy(&given_size, given, sizeof given_size);
    }
    if (given_size < sizeof given_size || given_size > SIZE_LIMIT) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "options: struct_size is %zu; set it to the size of the struct",
                           given_size);
    }
    const uint8_t *const bytes = given;
    for (size_t i = size; i < given_size; i++) {
        if (bytes[i] != 0) {
            return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                               "options: byte %zu is set; this version of the library knows %zu", i,
                               size);
        }
    }
    memset(out, 0, size);
    if (given != NULL) {
        memcpy(out, given, given_size < size ? given_size : size);
    }
    memcpy(out, &size, sizeof size);
    return ALLOT_STATUS_OK;
}
