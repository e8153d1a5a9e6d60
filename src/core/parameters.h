/* SPDX-License-Identifier: MIT */
/** Settings in one text: "initial=1GiB,maximum=8GiB", "memory:4GiB,huge:false". */
#ifndef ALLOTI_CORE_PARAMETERS_H
#define ALLOTI_CORE_PARAMETERS_H

#include "core/status.h"

typedef enum alloti_parameter_type {
    ALLOTI_PARAMETER_SIZE,     /**< uint64_t: bytes, with an optional unit. */
    ALLOTI_PARAMETER_SIZE_SET, /**< The same, above 0: where 0 stands for "not given". */
    ALLOTI_PARAMETER_FRACTION, /**< double: above 0 to 1. */
    ALLOTI_PARAMETER_CHOICE,   /**< uint32_t: index into `choices`. */
    ALLOTI_PARAMETER_TEXT,     /**< char [ALLOTI_PARAMETER_TEXT_MAX]. */
} alloti_parameter_type;

/** Room for a value, the final NUL included. */
enum { ALLOTI_PARAMETER_TEXT_MAX = 64 };

typedef struct alloti_parameter {
    const char *name;
    alloti_parameter_type type;
    void *value;                /**< Where the value goes; left alone if the text is silent. */
    const char *const *choices; /**< CHOICE: spellings, ended by NULL. */
} alloti_parameter;

/** How a text is written. */
typedef struct alloti_parameter_syntax {
    char separator; /**< Between name and value. */
    size_t begin;   /**< Where the settings begin in the text. */
} alloti_parameter_syntax;

/**
 * Read settings: names and values, separated by commas, each name once at most.
 *
 * @param[in] text        "" and NULL give nothing.
 * @param[in] parameters  [count] Those that there are, up to 64.
 * @return ALLOT_STATUS_INVALID with the position in `text` for an unknown name, one that is given
 *         twice or a bad value, and with what would be right. Values before it are set by then.
 */
ALLOT_NODISCARD allot_status alloti_parameters_read(const char *text,
                                                    const alloti_parameter_syntax *syntax,
                                                    const alloti_parameter *parameters,
                                                    uint32_t count);

/** The same for "name=value,name=value" from the first character on. */
ALLOT_NODISCARD allot_status alloti_parameters_parse(const char *text,
                                                     const alloti_parameter *parameters,
                                                     uint32_t count);

#endif /* ALLOTI_CORE_PARAMETERS_H */
