/* SPDX-License-Identifier: MIT */
/*
 * Stacks folded to one line of code each.
 *
 * Every frame is classified once; every stack then takes its first frame of the best class. Texts
 * name a file with as many of its last folders as tell it from the other files among the lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <allot/explain.h>

#include "advise/stack_facts.h"
#include "core/array.h"
#include "core/map64.h"
#include "core/options.h"

/* A text shows at most PART_MAX bytes of a path and of a name: a stranger's file may give a million
 * lines one name of a megabyte. */
enum { DEPTH_MAX = 6, PART_MAX = 200 };

struct allot_lines {
    const allot_trace *trace;
    allot_line *lines;
    uint64_t count;
    uint64_t capacity;
    uint32_t *line_of; /**< [stack_count] */
    uint32_t stack_count;
    uint32_t none; /**< Line of ALLOT_NONE. */
    char *text;    /**< All texts, each followed by a NUL. */
    uint64_t text_size;
    uint64_t text_capacity;
    uint64_t *text_start; /**< [count] */
};

typedef struct folder {
    allot_lines *lines;
    uint8_t *owner;      /**< [frames] alloti_frame_owner. */
    uint32_t *line_of;   /**< [frames] Line of a frame, or ALLOT_NONE. */
    alloti_map64 by_key; /**< Hash of a line's fields to the line. */
    uint32_t empty;      /**< Line of stacks without frames, or ALLOT_NONE. */
} folder;

static uint64_t key_of(const allot_line *line)
{
    const uint32_t fields[] = {(uint32_t)line->kind, line->filename, line->name, line->line};
    return XXH3_64bits(fields, sizeof fields);
}

static allot_status add_line(folder *f, const allot_line *line, uint32_t *out)
{
    allot_lines *const lines = f->lines;
    const uint64_t key = key_of(line);
    *out = alloti_map64_get(&f->by_key, key);
    if (*out != ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    allot_status status =
        alloti_array_reserve(&lines->lines, &lines->capacity, lines->count + 1, sizeof *line);
    if (status == ALLOT_STATUS_OK) {
        *out = (uint32_t)lines->count;
        lines->lines[lines->count++] = *line;
        status = alloti_map64_set(&f->by_key, key, *out);
    }
    return status;
}

static allot_status line_of_frame(folder *f, uint32_t frame, allot_line_kind kind, uint32_t *out)
{
    if (f->line_of[frame] == ALLOT_NONE) {
        const allot_frame *const from = allot_trace_frame(f->lines->trace, frame);
        const allot_line line = {
            .kind = kind, .filename = from->filename, .name = from->name, .line = from->line};
        const allot_status status = add_line(f, &line, &f->line_of[frame]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = f->line_of[frame];
    return ALLOT_STATUS_OK;
}

static allot_status fold_stack(folder *f, uint32_t stack, uint32_t *out)
{
    static const allot_line_kind KINDS[] = {ALLOT_LINE_USER, ALLOT_LINE_LIBRARY, ALLOT_LINE_NATIVE,
                                            ALLOT_LINE_NATIVE};
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(f->lines->trace, stack, &count);
    uint32_t best = ALLOT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t owner = f->owner[frames[i]];
        if (owner != ALLOTI_FRAME_UNWINDER && (best == ALLOT_NONE || owner < f->owner[best])) {
            best = frames[i];
        }
        if (owner == ALLOTI_FRAME_USER) {
            break;
        }
    }
    if (best != ALLOT_NONE) {
        return line_of_frame(f, best, KINDS[f->owner[best]], out);
    }
    if (f->empty == ALLOT_NONE) {
        const allot_line line = {
            .kind = ALLOT_LINE_EMPTY, .filename = ALLOT_NONE, .name = ALLOT_NONE};
        const allot_status status = add_line(f, &line, &f->empty);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = f->empty;
    return ALLOT_STATUS_OK;
}

static allot_status fold_all(folder *f, const allot_lines_options *options)
{
    allot_lines *const lines = f->lines;
    const uint32_t frame_count = allot_trace_frame_count(lines->trace);
    f->owner = alloti_alloc_array(frame_count + UINT64_C(1), sizeof *f->owner);
    f->line_of = alloti_alloc_array(frame_count + UINT64_C(1), sizeof *f->line_of);
    lines->line_of = alloti_alloc_array(lines->stack_count + UINT64_C(1), sizeof *lines->line_of);
    if (f->owner == NULL || f->line_of == NULL || lines->line_of == NULL) {
        return alloti_fail_memory(frame_count * UINT64_C(5));
    }
    for (uint32_t i = 0; i < frame_count; i++) {
        f->owner[i] = (uint8_t)alloti_frame_owner_of(lines->trace, i, options);
        f->line_of[i] = ALLOT_NONE;
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; status == ALLOT_STATUS_OK && s < lines->stack_count; s++) {
        status = fold_stack(f, s, &lines->line_of[s]);
    }
    const allot_line none = {.kind = ALLOT_LINE_NONE, .filename = ALLOT_NONE, .name = ALLOT_NONE};
    return status == ALLOT_STATUS_OK ? add_line(f, &none, &lines->none) : status;
}

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* The last `depth` components of a path, at most PART_MAX bytes. */
static const char *tail_of(const allot_trace *trace, uint32_t file, unsigned depth)
{
    size_t length = 0;
    const char *const path = allot_trace_string(trace, file, &length);
    const char *at = path + length;
    const char *const least = length > PART_MAX ? at - PART_MAX : path;
    while (at > least) {
        if (is_separator(at[-1]) && --depth == 0) {
            break;
        }
        at--;
    }
    return at;
}

/* What follows site-packages or dist-packages in a path; NULL if it is not in one. */
static const char *package_path(const char *path)
{
    static const char PARTS[][16] = {"site-packages", "dist-packages"};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        const char *const found = strstr(path, PARTS[i]);
        if (found != NULL && is_separator(found[sizeof "site-packages" - 1])) {
            return found + sizeof "site-packages";
        }
    }
    return NULL;
}

/** Files among the lines, and how much of their paths is shown. */
typedef struct naming {
    uint32_t *files; /**< [count] Strings. */
    uint8_t *depth;  /**< [count] Last components shown. */
    uint32_t count;
    uint32_t *file_of;  /**< [lines] Index in files. */
    const char **shown; /**< [count] What is shown of each path. */
} naming;

static void naming_fini(naming *names)
{
    free(names->files);
    free(names->depth);
    free(names->file_of);
    free((void *)names->shown);
}

static allot_status collect_files(const allot_lines *lines, naming *names)
{
    names->files = alloti_alloc_array(lines->count + 1, sizeof *names->files);
    names->depth = alloti_alloc_array(lines->count + 1, sizeof *names->depth);
    names->file_of = alloti_alloc_array(lines->count + 1, sizeof *names->file_of);
    names->shown = (const char **)alloti_alloc_array(lines->count + 1, sizeof(const char *));
    if (names->files == NULL || names->depth == NULL || names->file_of == NULL ||
        names->shown == NULL) {
        return alloti_fail_memory(lines->count * 17);
    }
    alloti_map64 seen = {0};
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < lines->count; i++) {
        const uint32_t filename = lines->lines[i].filename;
        names->file_of[i] = alloti_map64_get(&seen, filename);
        if (names->file_of[i] == ALLOT_NONE) {
            names->file_of[i] = names->count;
            names->depth[names->count] = 1;
            names->files[names->count] = filename;
            status = alloti_map64_set(&seen, filename, names->count++);
        }
    }
    alloti_map64_fini(&seen);
    return status;
}

/* Show one more component of every two files that look alike; *is_unique if none do. */
static allot_status deepen(const allot_trace *trace, naming *names, unsigned depth, bool *is_unique)
{
    alloti_map64 seen = {0};
    allot_status status = ALLOT_STATUS_OK;
    *is_unique = true;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < names->count; i++) {
        const char *const tail = tail_of(trace, names->files[i], names->depth[i]);
        const uint64_t hash = XXH3_64bits(tail, strlen(tail));
        const uint32_t other = alloti_map64_get(&seen, hash);
        if (other == ALLOT_NONE) {
            status = alloti_map64_set(&seen, hash, i);
        } else {
            names->depth[i] = names->depth[other] = (uint8_t)(depth + 1);
            *is_unique = false;
        }
    }
    alloti_map64_fini(&seen);
    return status;
}

static allot_status find_names(const allot_lines *lines, naming *names)
{
    allot_status status = collect_files(lines, names);
    bool is_unique = false;
    for (unsigned depth = 1; status == ALLOT_STATUS_OK && depth < DEPTH_MAX && !is_unique;
         depth++) {
        status = deepen(lines->trace, names, depth, &is_unique);
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < names->count; i++) {
        const char *const package =
            package_path(allot_trace_string(lines->trace, names->files[i], NULL));
        names->shown[i] =
            package != NULL ? package : tail_of(lines->trace, names->files[i], names->depth[i]);
    }
    return status;
}

/* Length of a C++ name without its template arguments and parameters. */
static int native_length(const char *name)
{
    enum { LENGTH_MAX = 60 };
    const size_t length = strcspn(name + (name[0] == '('), "<(") + (name[0] == '(');
    return length == 0 || length > LENGTH_MAX ? LENGTH_MAX : (int)length;
}

static int format_line(const allot_lines *lines, const allot_line *line, const char *path,
                       char *buffer, size_t size)
{
    const char *const name = allot_trace_string(lines->trace, line->name, NULL);
    switch (line->kind) {
    case ALLOT_LINE_EMPTY:
        return snprintf(buffer, size, "(no frames: autograd, C++ or before recording)");
    case ALLOT_LINE_NONE:
        return snprintf(buffer, size, "(no stack recorded)");
    case ALLOT_LINE_NATIVE:
        return snprintf(buffer, size, "%.*s (C++)", native_length(name),
                        name[0] != '\0' ? name : "??");
    default:
        return snprintf(buffer, size, "%.*s:%u (%.*s)", PART_MAX, path, line->line, PART_MAX, name);
    }
}

static allot_status write_texts(allot_lines *lines)
{
    naming names = {0};
    allot_status status = find_names(lines, &names);
    lines->text_start = alloti_alloc_array(lines->count + 1, sizeof *lines->text_start);
    if (lines->text_start == NULL) {
        status = alloti_fail_memory(lines->count * sizeof *lines->text_start);
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < lines->count; i++) {
        const char *const path = names.shown[names.file_of[i]];
        const int length = format_line(lines, &lines->lines[i], path, NULL, 0);
        const uint64_t room = length < 0 ? 1 : (uint64_t)length + 1;
        status =
            alloti_array_reserve(&lines->text, &lines->text_capacity, lines->text_size + room, 1);
        if (status == ALLOT_STATUS_OK) {
            char *const text = lines->text + lines->text_size;
            text[0] = '\0';
            format_line(lines, &lines->lines[i], path, text, (size_t)room);
            lines->text_start[i] = lines->text_size;
            lines->text_size += room;
        }
    }
    naming_fini(&names);
    return status;
}

allot_status allot_lines_create(const allot_trace *trace, const allot_lines_options *options,
                                allot_lines **out)
{
    allot_lines_options o;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_lines *const lines = calloc(1, sizeof *lines);
    if (lines == NULL) {
        return alloti_fail_memory(sizeof *lines);
    }
    lines->trace = trace;
    lines->stack_count = allot_trace_stack_count(trace);
    folder f = {.lines = lines, .empty = ALLOT_NONE};
    status = fold_all(&f, &o);
    if (status == ALLOT_STATUS_OK) {
        status = write_texts(lines);
    }
    free(f.owner);
    free(f.line_of);
    alloti_map64_fini(&f.by_key);
    if (status != ALLOT_STATUS_OK) {
        allot_lines_destroy(lines);
        return status;
    }
    *out = lines;
    return ALLOT_STATUS_OK;
}

void allot_lines_destroy(allot_lines *lines)
{
    if (lines == NULL) {
        return;
    }
    free(lines->lines);
    free(lines->line_of);
    free(lines->text);
    free(lines->text_start);
    free(lines);
}

uint32_t allot_lines_count(const allot_lines *lines)
{
    return (uint32_t)lines->count;
}

uint32_t allot_lines_of(const allot_lines *lines, uint32_t stack)
{
    return stack < lines->stack_count ? lines->line_of[stack] : lines->none;
}

const allot_line *allot_lines_get(const allot_lines *lines, uint32_t line)
{
    return &lines->lines[line];
}

const char *allot_lines_text(const allot_lines *lines, uint32_t line)
{
    return lines->text + lines->text_start[line];
}
