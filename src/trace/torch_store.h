/* SPDX-License-Identifier: MIT */
/**
 * What a PyTorch snapshot means, apart from how it is spelled: takes lists and dicts as they are
 * completed, recognises frames, stacks, trace entries, blocks and segments by their keys, and turns
 * the whole into a trace at the end. The pickle reader and the JSON reader both drive it.
 *
 * Messages have no position; the readers put it in front.
 */
#ifndef ALLOTI_TRACE_TORCH_STORE_H
#define ALLOTI_TRACE_TORCH_STORE_H

#include "trace/builder.h"
#include "trace/torch_value.h"

typedef struct alloti_store alloti_store;

/** The builder is borrowed until the store is destroyed. */
ALLOT_NODISCARD allot_status alloti_store_create(alloti_builder *builder, alloti_store **out);
void alloti_store_destroy(alloti_store *store);

/** What a value is called in messages: "a list of frames". */
const char *alloti_value_describe(alloti_value value);

/** Value of a number: magnitude and sign. */
ALLOT_NODISCARD allot_status alloti_store_integer(alloti_store *store, uint64_t magnitude,
                                                  bool is_negative, alloti_value *out);
ALLOT_NODISCARD allot_status alloti_store_float(alloti_store *store, double number,
                                                alloti_value *out);
ALLOT_NODISCARD allot_status alloti_store_string(alloti_store *store, const char *text,
                                                 size_t length, alloti_value *out);

/**
 * Append items [count] to the list in *cell, which changes in place. The items have been used
 * (alloti_store_use()). ALLOT_STATUS_FORMAT if *cell is no list or was used itself.
 */
ALLOT_NODISCARD allot_status alloti_store_extend_list(alloti_store *store, alloti_value *cell,
                                                      const alloti_value *items, uint64_t count);

/** The same for frame ids; the fast way to a stack. */
ALLOT_NODISCARD allot_status alloti_store_extend_frames(alloti_store *store, alloti_value *cell,
                                                        const uint32_t *frames, uint32_t count);

/** Put pairs [2 * count], key then value, into the dict in *cell, which changes in place. */
ALLOT_NODISCARD allot_status alloti_store_extend_dict(alloti_store *store, alloti_value *cell,
                                                      const alloti_value *pairs, uint64_t count);

/** A sequence that is complete: a tuple, or an array of JSON. */
ALLOT_NODISCARD allot_status alloti_store_tuple(alloti_store *store, const alloti_value *items,
                                                uint64_t count, alloti_value *out);

/**
 * The container in *cell is put into another one: it is complete, gets its final form, and can no
 * longer be extended. So no container can come to contain itself. Other values are left as they
 * are.
 */
ALLOT_NODISCARD allot_status alloti_store_use(alloti_store *store, alloti_value *cell);

/** Turn the outermost value into devices, events, segments, settings and annotations. */
ALLOT_NODISCARD allot_status alloti_store_finish(alloti_store *store, alloti_value root);

/** Lists and dicts ever made. */
uint64_t alloti_store_object_count(const alloti_store *store);

#endif /* ALLOTI_TRACE_TORCH_STORE_H */
