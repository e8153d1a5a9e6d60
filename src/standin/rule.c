/* SPDX-License-Identifier: MIT */
#include "standin/rule.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "standin/state.h"

void rule_here(rule_place *place)
{
    place->count = backtrace(place->frames, RULE_FRAMES);
}

cuda_status rule_broken(standin *state, const rule_place *place, cuda_status status,
                        const char *format, ...)
{
    if (!state->config.has_bytes) {
        return status;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    state->rules_broken++;
    fprintf(stderr, "allot: a rule of CUDA is broken: %s\n", text);
    if (state->config.is_strict) {
        rule_place here;
        if (place == NULL) {
            rule_here(&here);
            place = &here;
        }
        fprintf(stderr, "allot: by the work that was given here:\n");
        backtrace_symbols_fd(place->frames, place->count, STDERR_FILENO);
        abort();
    }
    return status;
}
