/* SPDX-License-Identifier: MIT */
/*
 * The older form of Umpire's replay log: lines that begin with "REPLAY,", between other output.
 *
 *   REPLAY,makeMemoryResource,NAME,REFERENCE
 *   REPLAY,makeAllocator,TYPE,INTROSPECTION,NAME,ARGUMENTS...,REFERENCE
 *   REPLAY,allocate,SIZE,REFERENCE,POINTER
 *   REPLAY,deallocate,POINTER,REFERENCE
 *
 * Other events (coalesce, release) move no block that a program holds. There are no times.
 */
#include <string.h>

#include "core/number_text.h"
#include "core/status.h"
#include "trace/lines.h"
#include "trace/reader.h"
#include "trace/umpire.h"

enum { FIELD_MAX = 32 };

static const char PREFIX[] = "REPLAY,";

static bool is_replay(const char *text, size_t length)
{
    return length >= sizeof PREFIX - 1 && memcmp(text, PREFIX, sizeof PREFIX - 1) == 0;
}

static bool detect(const uint8_t *head, size_t size)
{
    return alloti_head_any(head, size, is_replay);
}

static bool get_hex(const alloti_field *field, uint64_t *out)
{
    return alloti_number_hex(field->text, field->length, out);
}

static allot_status intern(alloti_builder *builder, const alloti_field *field, uint32_t *out)
{
    return alloti_builder_intern_string(builder, field->text, field->length, out);
}

/* The argument that names what an allocator stands on: the first that is no number. */
static const alloti_field *find_parent(const alloti_field *fields, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        uint64_t number = 0;
        if (!alloti_number_u64(fields[i].text, fields[i].length, &number)) {
            return &fields[i];
        }
    }
    return NULL;
}

static allot_status read_make(const alloti_lines *lines, alloti_builder *builder,
                              alloti_umpire *umpire, const alloti_field *fields, size_t count)
{
    enum { RESOURCE_NAME = 2, ALLOCATOR_NAME = 4, ARGUMENTS = 5 };
    const bool is_allocator = alloti_field_is(&fields[1], "makeAllocator");
    const size_t name_index = is_allocator ? ALLOCATOR_NAME : RESOURCE_NAME;
    uint64_t reference = 0;
    if (count < name_index + 2 || !get_hex(&fields[count - 1], &reference)) {
        return alloti_lines_fail(lines, "a name and, last, a reference were expected");
    }
    const alloti_field *const parent =
        is_allocator ? find_parent(fields, ARGUMENTS, count - 1) : NULL;
    uint32_t name = ALLOT_NONE;
    uint32_t parent_name = ALLOT_NONE;
    allot_status status = intern(builder, &fields[name_index], &name);
    if (status == ALLOT_STATUS_OK && parent != NULL) {
        status = intern(builder, parent, &parent_name);
    }
    return status != ALLOT_STATUS_OK ? status
                                     : alloti_umpire_make(umpire, reference, name, parent_name);
}

static allot_status read_allocate(const alloti_lines *lines, alloti_umpire *umpire,
                                  const alloti_field *fields, size_t count)
{
    uint64_t size = 0;
    uint64_t reference = 0;
    uint64_t address = 0;
    if (count != 5 || !alloti_number_u64(fields[2].text, fields[2].length, &size) ||
        !get_hex(&fields[3], &reference) || !get_hex(&fields[4], &address)) {
        return alloti_lines_fail(lines, "allocate: size, reference and pointer were expected");
    }
    return alloti_umpire_allocate(umpire, reference, address, size, ALLOT_TIME_NONE);
}

static allot_status read_deallocate(const alloti_lines *lines, alloti_umpire *umpire,
                                    const alloti_field *fields, size_t count)
{
    uint64_t reference = 0;
    uint64_t address = 0;
    if (count != 4 || !get_hex(&fields[2], &address) || !get_hex(&fields[3], &reference)) {
        return alloti_lines_fail(lines, "deallocate: pointer and reference were expected");
    }
    return alloti_umpire_deallocate(umpire, reference, address, ALLOT_TIME_NONE);
}

static allot_status read_line(const alloti_lines *lines, alloti_builder *builder,
                              alloti_umpire *umpire)
{
    alloti_field fields[FIELD_MAX];
    if (!is_replay(lines->text, lines->length)) {
        return ALLOT_STATUS_OK;
    }
    const size_t count = alloti_fields_split(lines->text, lines->length, fields, FIELD_MAX);
    if (count > FIELD_MAX) {
        return alloti_lines_fail(lines, "more than %d fields", FIELD_MAX);
    }
    if (alloti_field_is(&fields[1], "allocate")) {
        return read_allocate(lines, umpire, fields, count);
    }
    if (alloti_field_is(&fields[1], "deallocate")) {
        return read_deallocate(lines, umpire, fields, count);
    }
    if (alloti_field_is(&fields[1], "makeAllocator") ||
        alloti_field_is(&fields[1], "makeMemoryResource")) {
        return read_make(lines, builder, umpire, fields, count);
    }
    return ALLOT_STATUS_OK;
}

static allot_status read_umpire(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    return alloti_umpire_read(source, progress, builder, read_line);
}

const alloti_reader alloti_reader_umpire_csv = {
    .format = ALLOT_TRACE_FORMAT_UMPIRE_CSV, .detect = detect, .read = read_umpire};
