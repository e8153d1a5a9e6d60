/* SPDX-License-Identifier: MIT */
/**
 * The table of readers. A reader recognises its format by the first bytes and turns a source into a
 * trace through the builder. Its messages say "byte N: what is wrong" (or "line N: ..."); read.c
 * puts the file's name in front.
 */
#ifndef ALLOTI_TRACE_READER_H
#define ALLOTI_TRACE_READER_H

#include "core/progress.h"
#include "trace/builder.h"
#include "trace/source.h"

typedef struct alloti_reader {
    allot_trace_format format;
    /** Whether these first bytes [size] (up to 64 KiB of the file) can be of this format. */
    bool (*detect)(const uint8_t *head, size_t size);
    /** Read all of the source into the builder. */
    allot_status (*read)(alloti_source *source, const alloti_progress *progress,
                         alloti_builder *builder);
} alloti_reader;

extern const alloti_reader alloti_reader_chrome;
extern const alloti_reader alloti_reader_csv;
extern const alloti_reader alloti_reader_native;
extern const alloti_reader alloti_reader_rmm_csv;
extern const alloti_reader alloti_reader_timeline;
extern const alloti_reader alloti_reader_torch_json;
extern const alloti_reader alloti_reader_torch_pickle;
extern const alloti_reader alloti_reader_umpire_csv;
extern const alloti_reader alloti_reader_umpire_json;
extern const alloti_reader alloti_reader_vma_json;

#endif /* ALLOTI_TRACE_READER_H */
