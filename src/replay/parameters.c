/* SPDX-License-Identifier: MIT */
#include "replay/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 64, LIST_MAX = 256 };

static const alloti_parameter *find(const alloti_parameter *parameters, uint32_t count,
                                    const char *name, size_t length)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strlen(parameters[i].name) == length &&
            strncmp(parameters[i].name, name, length) == 0) {
            return &parameters[i];
        }
    }
    return NULL;
}

static allot_status fail_unknown(const alloti_parameter *parameters, uint32_t count,
                                 const char *name, size_t length)
{
    char known[LIST_MAX] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof known; i++) {
        const int n = snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ",
                               parameters[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "\"%.*s\" is no parameter (%s)",
                       (int)(length > VALUE_MAX ? VALUE_MAX : length), name, known);
}

static allot_status set_fraction(const alloti_parameter *parameter, const char *value)
{
    char *end = NULL;
    const double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number > 0.0 && number <= 1.0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s=%s: want a number above 0, up to 1",
                           parameter->name, value);
    }
    *(double *)parameter->value = number;
    return ALLOT_STATUS_OK;
}

static allot_status set_choice(const alloti_parameter *parameter, const char *value)
{
    for (uint32_t i = 0; parameter->choices[i] != NULL; i++) {
        if (strcmp(parameter->choices[i], value) == 0) {
            *(uint32_t *)parameter->value = i;
            return ALLOT_STATUS_OK;
        }
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "%s=%s: want %s or %s", parameter->name, value,
                       parameter->choices[0], parameter->choices[1]);
}

static allot_status set_value(const alloti_parameter *parameter, const char *value)
{
    switch (parameter->type) {
    case ALLOTI_PARAMETER_FRACTION:
        return set_fraction(parameter, value);
    case ALLOTI_PARAMETER_CHOICE:
        return set_choice(parameter, value);
    case ALLOTI_PARAMETER_SIZE:
        break;
    }
    const allot_status status = allot_size_parse(value, (uint64_t *)parameter->value);
    return status == ALLOT_STATUS_OK ? status
                                     : alloti_fail_prefix(status, "%s=: ", parameter->name);
}

allot_status alloti_parameters_parse(const char *text, const alloti_parameter *parameters,
                                     uint32_t count)
{
    const char *at = text == NULL ? "" : text;
    while (*at != '\0') {
        const size_t length = strcspn(at, ",");
        const char *const equals = memchr(at, '=', length);
        const size_t name_length = equals == NULL ? length : (size_t)(equals - at);
        const alloti_parameter *const parameter = find(parameters, count, at, name_length);
        if (parameter == NULL) {
            return fail_unknown(parameters, count, at, name_length);
        }
        const size_t value_length = equals == NULL ? 0 : length - name_length - 1;
        if (value_length == 0 || value_length >= VALUE_MAX) {
            return alloti_fail(ALLOT_STATUS_INVALID, "%s needs a value: %s=...", parameter->name,
                               parameter->name);
        }
        char value[VALUE_MAX];
        memcpy(value, equals + 1, value_length);
        value[value_length] = '\0';
        const allot_status status = set_value(parameter, value);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        at += length;
        at += *at == ',' ? 1 : 0;
    }
    return ALLOT_STATUS_OK;
}
