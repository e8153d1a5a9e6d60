/* SPDX-License-Identifier: MIT */
/**
 * Writes Python's pickle format, protocol 4: plain data, and a memo, so that what occurs often is
 * written once. Calls follow the order of the unpickler's stack: a list is list_begin, items,
 * list_end; a dict is dict_begin, key and value in turn, dict_end.
 */
#ifndef ALLOTI_TRACE_PICKLE_OUT_H
#define ALLOTI_TRACE_PICKLE_OUT_H

#include "trace/writer.h"

typedef struct alloti_pickle {
    alloti_output *output;
    uint32_t memo_count; /**< Values remembered so far. */
} alloti_pickle;

void alloti_pickle_begin(alloti_pickle *pickle, alloti_output *output);
/** One value must have been written. */
void alloti_pickle_end(alloti_pickle *pickle);

void alloti_pickle_list_begin(alloti_pickle *pickle);
/**
 * Before item `index` of a list that may be long: lets the unpickler take the items so far, every
 * thousand. PyTorch's viewer hands them to one function call, and a browser's stack is small.
 */
void alloti_pickle_list_item(alloti_pickle *pickle, uint64_t index);
void alloti_pickle_list_end(alloti_pickle *pickle);
void alloti_pickle_empty_list(alloti_pickle *pickle);
void alloti_pickle_dict_begin(alloti_pickle *pickle);
void alloti_pickle_dict_end(alloti_pickle *pickle);

void alloti_pickle_none(alloti_pickle *pickle);
void alloti_pickle_bool(alloti_pickle *pickle, bool value);
void alloti_pickle_i64(alloti_pickle *pickle, int64_t value);
void alloti_pickle_u64(alloti_pickle *pickle, uint64_t value);
void alloti_pickle_double(alloti_pickle *pickle, double value);
/** UTF-8 of `length` bytes. */
void alloti_pickle_string(alloti_pickle *pickle, const char *text, size_t length);
/** Make a tuple of the two values written last. */
void alloti_pickle_pair(alloti_pickle *pickle);

/** Remember the value written last; returns its number. */
uint32_t alloti_pickle_remember(alloti_pickle *pickle);
/** Write the value remembered as `number` again. */
void alloti_pickle_recall(alloti_pickle *pickle, uint32_t number);

#endif /* ALLOTI_TRACE_PICKLE_OUT_H */
