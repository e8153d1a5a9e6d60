/* SPDX-License-Identifier: MIT */
#include "core/parameters.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 256 };

/** One "name=value" of a text. */
typedef struct item {
    const char *name;
    size_t name_length;
    const char *value; /**< NULL: there is none. */
    size_t value_length;
} item;

static item item_at(const char *at, size_t length, char separator)
{
    const char *const mark = memchr(at, separator, length);
    if (mark == NULL) {
        return (item){.name = at, .name_length = length};
    }
    const size_t name_length = (size_t)(mark - at);
    return (item){.name = at,
                  .name_length = name_length,
                  .value = mark + 1,
                  .value_length = length - name_length - 1};
}

/** Names of a list or spellings of a choice as one text. */
typedef struct list_text {
    char text[LIST_MAX];
    size_t used;
} list_text;

static void list_add(list_text *list, const char *text)
{
    if (list->used < sizeof list->text) {
        const int n = snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                               list->used == 0 ? "" : ", ", text);
        list->used += n > 0 ? (size_t)n : 0;
    }
}

static uint32_t find(const alloti_parameter *parameters, uint32_t count, const item *found)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strlen(parameters[i].name) == found->name_length &&
            strncmp(parameters[i].name, found->name, found->name_length) == 0) {
            return i;
        }
    }
    return ALLOT_NONE;
}

static allot_status fail_unknown(const alloti_parameter *parameters, uint32_t count,
                                 const item *found)
{
    list_text known = {0};
    for (uint32_t i = 0; i < count; i++) {
        list_add(&known, parameters[i].name);
    }
    const size_t length = found->name_length;
    return alloti_fail(
        ALLOT_STATUS_INVALID, "\"%.*s\" is no parameter (%s)",
        (int)(length > ALLOTI_PARAMETER_TEXT_MAX ? ALLOTI_PARAMETER_TEXT_MAX : length), found->name,
        count == 0 ? "there are none" : known.text);
}

static allot_status set_fraction(const alloti_parameter *parameter, const char *value)
{
    char *end = NULL;
    const double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number > 0.0 && number <= 1.0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "\"%s\": want a number above 0, up to 1", value);
    }
    *(double *)parameter->value = number;
    return ALLOT_STATUS_OK;
}

static allot_status set_choice(const alloti_parameter *parameter, const char *value)
{
    list_text known = {0};
    for (uint32_t i = 0; parameter->choices[i] != NULL; i++) {
        if (strcmp(parameter->choices[i], value) == 0) {
            *(uint32_t *)parameter->value = i;
            return ALLOT_STATUS_OK;
        }
        list_add(&known, parameter->choices[i]);
    }
    return alloti_fail(ALLOT_STATUS_INVALID, "\"%s\": want one of %s", value, known.text);
}

static allot_status set_size(const alloti_parameter *parameter, const char *value)
{
    uint64_t size = 0;
    const allot_status status = allot_size_parse(value, &size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (size == 0 && parameter->type == ALLOTI_PARAMETER_SIZE_SET) {
        return alloti_fail(ALLOT_STATUS_INVALID, "\"%s\": want a size above 0", value);
    }
    *(uint64_t *)parameter->value = size;
    return ALLOT_STATUS_OK;
}

static allot_status set_value(const alloti_parameter *parameter, const char *value)
{
    switch (parameter->type) {
    case ALLOTI_PARAMETER_FRACTION:
        return set_fraction(parameter, value);
    case ALLOTI_PARAMETER_CHOICE:
        return set_choice(parameter, value);
    case ALLOTI_PARAMETER_TEXT:
        memcpy(parameter->value, value, strlen(value) + 1);
        return ALLOT_STATUS_OK;
    case ALLOTI_PARAMETER_SIZE:
    case ALLOTI_PARAMETER_SIZE_SET:
        break;
    }
    return set_size(parameter, value);
}

static allot_status set_item(const alloti_parameter *parameter, const item *found, char separator)
{
    if (found->value_length == 0 || found->value_length >= ALLOTI_PARAMETER_TEXT_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s needs a value of 1 to %d characters: %s%c...",
                           parameter->name, ALLOTI_PARAMETER_TEXT_MAX - 1, parameter->name,
                           separator);
    }
    char value[ALLOTI_PARAMETER_TEXT_MAX];
    memcpy(value, found->value, found->value_length);
    value[found->value_length] = '\0';
    const allot_status status = set_value(parameter, value);
    return status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "%s: ", parameter->name);
}

allot_status alloti_parameters_read(const char *text, const alloti_parameter_syntax *syntax,
                                    const alloti_parameter *parameters, uint32_t count)
{
    assert(count <= 64);
    uint64_t given = 0;
    const char *at = text == NULL ? "" : text + syntax->begin;
    while (*at != '\0') {
        const size_t length = strcspn(at, ",");
        const item found = item_at(at, length, syntax->separator);
        const uint32_t i = find(parameters, count, &found);
        allot_status status = ALLOT_STATUS_OK;
        if (i == ALLOT_NONE) {
            status = fail_unknown(parameters, count, &found);
        } else if ((given >> i & 1) != 0) {
            status =
                alloti_fail(ALLOT_STATUS_INVALID, "%s is given a second time", parameters[i].name);
        } else {
            status = set_item(&parameters[i], &found, syntax->separator);
            given |= UINT64_C(1) << i;
        }
        if (status != ALLOT_STATUS_OK) {
            return alloti_fail_prefix(status, "character %zu: ", (size_t)(at - text) + 1);
        }
        at += length;
        if (at[0] == ',' && at[1] == '\0') {
            return alloti_fail(ALLOT_STATUS_INVALID, "character %zu: nothing follows the comma",
                               (size_t)(at - text) + 1);
        }
        at += *at == ',' ? 1 : 0;
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_parameters_parse(const char *text, const alloti_parameter *parameters,
                                     uint32_t count)
{
    const alloti_parameter_syntax syntax = {.separator = '='};
    return alloti_parameters_read(text, &syntax, parameters, count);
}
