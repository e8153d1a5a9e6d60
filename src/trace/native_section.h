/* SPDX-License-Identifier: MIT */
/** Takes sections of allot's own format out of a source: checks, unpacks, reads values. */
#ifndef ALLOTI_TRACE_NATIVE_SECTION_H
#define ALLOTI_TRACE_NATIVE_SECTION_H

#include "core/bytes.h"
#include "core/progress.h"
#include "trace/native.h"
#include "trace/source.h"

typedef struct alloti_section_reader alloti_section_reader;

/** Reads magic and version. */
ALLOT_NODISCARD allot_status alloti_sections_begin(alloti_source *source,
                                                   const alloti_progress *progress,
                                                   alloti_section_reader **out);
void alloti_sections_end(alloti_section_reader *reader);

/**
 * The next section, which must be `section`: unpacked, its checksum compared. *out is valid until
 * the next call.
 */
ALLOT_NODISCARD allot_status alloti_sections_next(alloti_section_reader *reader,
                                                  alloti_native_section section,
                                                  alloti_cursor *out);

/** Sections taken so far. */
uint64_t alloti_sections_count(const alloti_section_reader *reader);

/** Refuse bytes after the last section. */
ALLOT_NODISCARD allot_status alloti_sections_finish(alloti_section_reader *reader);

/** "byte N: section TAG: ..." about the section taken last. */
allot_status alloti_section_fail(const alloti_section_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* ALLOTI_TRACE_NATIVE_SECTION_H */
