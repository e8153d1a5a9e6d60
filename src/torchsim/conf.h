/* SPDX-License-Identifier: MIT */
/** The settings as a table: one row per key, for reading, writing and comparing alike. */
#ifndef ALLOTI_TORCHSIM_CONF_H
#define ALLOTI_TORCHSIM_CONF_H

#include <allot/torchsim.h>

#define CONF_MIB (1ull << 20)
#define CONF_LARGE_BUFFER (20ull << 20) /**< Default of several sizes, and their minimum. */

typedef enum conf_type {
    CONF_BOOL,      /**< bool */
    CONF_MEBIBYTES, /**< uint64_t of bytes, written in MiB. */
    CONF_SHARE,     /**< double */
    CONF_COUNT,     /**< uint32_t, a power of two. */
    CONF_BACKEND,
    CONF_ROUNDUP,
    CONF_RESERVE,  /**< expandable_reserve_*: a share, or GiB with a G. */
    CONF_BY_CLASS, /**< A list that concerns tagged streams only: read and passed over. */
} conf_type;

typedef struct conf_key {
    const char *name;
    conf_type type;
    size_t offset;     /**< Of the field in allot_torch_conf. */
    double low;        /**< Smallest value, in the unit of the string. */
    double high;       /**< Largest value. */
    bool is_open;      /**< `low` and `high` themselves are refused. */
    const char *alias; /**< Another spelling, or NULL. */
} conf_key;

/** Every key, in the order in which they are written. */
extern const conf_key ALLOTI_CONF_KEYS[];
extern const size_t ALLOTI_CONF_KEY_COUNT;

/** Add a note; `position` may be ALLOT_NONE. NULL notes are allowed. */
void alloti_conf_note(allot_torch_notes *notes, allot_torch_note_kind kind, uint32_t position,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif /* ALLOTI_TORCHSIM_CONF_H */
