/* SPDX-License-Identifier: MIT */
/** Parameters of the comparison models: "initial=1GiB,maximum=8GiB". */
#ifndef ALLOTI_REPLAY_PARAMETERS_H
#define ALLOTI_REPLAY_PARAMETERS_H

#include "core/status.h"

typedef enum alloti_parameter_type {
    ALLOTI_PARAMETER_SIZE,     /**< uint64_t: bytes, with an optional unit. */
    ALLOTI_PARAMETER_FRACTION, /**< double: above 0 to 1. */
    ALLOTI_PARAMETER_CHOICE,   /**< uint32_t: index into `choices`. */
} alloti_parameter_type;

typedef struct alloti_parameter {
    const char *name;
    alloti_parameter_type type;
    void *value;                /**< Where the value goes; left alone if the text is silent. */
    const char *const *choices; /**< CHOICE: spellings, ended by NULL. */
} alloti_parameter;

/**
 * Read "name=value,name=value"; "" and NULL give nothing.
 *
 * @return ALLOT_STATUS_INVALID for an unknown name or a bad value, with what would be right.
 */
ALLOT_NODISCARD allot_status alloti_parameters_parse(const char *text,
                                                     const alloti_parameter *parameters,
                                                     uint32_t count);

#endif /* ALLOTI_REPLAY_PARAMETERS_H */
