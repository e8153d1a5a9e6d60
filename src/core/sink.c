/* SPDX-License-Identifier: MIT */
/* Sinks over what a program already has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"

static allot_status stdio_write(void *context, const void *data, size_t size)
{
    FILE *const file = context;
    if (fwrite(data, 1, size, file) != size) {
        return alloti_fail(ALLOT_STATUS_IO, "cannot write: %s", strerror(errno));
    }
    return ALLOT_STATUS_OK;
}

allot_sink allot_sink_stdio(void *file)
{
    return (allot_sink){.write = stdio_write, .context = file};
}
