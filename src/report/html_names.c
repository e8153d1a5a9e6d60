/* SPDX-License-Identifier: MIT */
/* Renumbering what a page uses of a trace's names. */
#include "report/html_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"

enum {
    FRAME_BUDGET = 1 << 20, /* frames in all stacks of a page */
    FRAMES_PER_STACK = 100, /* innermost frames kept of a stack */
    STRING_BYTES = 500,     /* longer names are cut */
};

static bool renumbering_init(alloti_renumbering *self, uint64_t total)
{
    self->page = alloti_alloc_array(total + 1, sizeof *self->page);
    self->list = alloti_alloc_array(total + 1, sizeof *self->list);
    if (self->page == NULL || self->list == NULL) {
        return false;
    }
    memset(self->page, 0xff, (total + 1) * sizeof *self->page);
    return true;
}

/** Page number of `item`; *is_new tells whether it was given just now. */
static uint32_t renumber(alloti_renumbering *self, uint32_t item, bool *is_new)
{
    *is_new = self->page[item] == ALLOT_NONE;
    if (*is_new) {
        self->page[item] = self->count;
        self->list[self->count++] = item;
    }
    return self->page[item];
}

static uint32_t name_string(alloti_names *names, uint32_t string)
{
    bool is_new = false;
    return string == ALLOT_NONE ? 0 : renumber(&names->strings, string, &is_new) + 1;
}

static void name_frame(alloti_names *names, uint32_t id)
{
    bool is_new = false;
    renumber(&names->frames, id, &is_new);
    if (is_new) {
        const allot_frame *const frame = allot_trace_frame(names->trace, id);
        name_string(names, frame->name);
        name_string(names, frame->filename);
    }
}

/** A file with one line that is the user's is the user's: its other frames are shown as such. */
static void find_user_files(alloti_names *names)
{
    const uint32_t count = allot_lines_count(names->lines);
    for (uint32_t i = 0; i < count; i++) {
        const allot_line *const line = allot_lines_get(names->lines, i);
        if (line->kind == ALLOT_LINE_USER && line->filename != ALLOT_NONE) {
            names->is_user_file[line->filename] = 1;
        }
    }
}

allot_status alloti_names_init(alloti_names *names, const allot_trace *trace,
                               const allot_lines *lines)
{
    const uint64_t stack_count = allot_trace_stack_count(trace);
    const uint64_t string_count = allot_trace_string_count(trace);
    *names = (alloti_names){.trace = trace, .lines = lines, .frame_budget = FRAME_BUDGET};
    names->frame_counts = alloti_alloc_array(stack_count + 1, sizeof *names->frame_counts);
    names->is_user_file = alloti_calloc_array(string_count + 1, 1);
    if (!renumbering_init(&names->stacks, stack_count) ||
        !renumbering_init(&names->frames, allot_trace_frame_count(trace)) ||
        !renumbering_init(&names->strings, string_count) || names->frame_counts == NULL ||
        names->is_user_file == NULL) {
        return alloti_fail_memory((stack_count + string_count) * sizeof(uint32_t));
    }
    find_user_files(names);
    return ALLOT_STATUS_OK;
}

static void renumbering_fini(alloti_renumbering *self)
{
    free(self->page);
    free(self->list);
}

void alloti_names_fini(alloti_names *names)
{
    renumbering_fini(&names->stacks);
    renumbering_fini(&names->frames);
    renumbering_fini(&names->strings);
    free(names->frame_counts);
    free(names->is_user_file);
    *names = (alloti_names){0};
}

uint32_t alloti_names_stack(alloti_names *names, uint32_t stack)
{
    if (stack == ALLOT_NONE) {
        return 0;
    }
    bool is_new = false;
    const uint32_t page = renumber(&names->stacks, stack, &is_new);
    if (is_new) {
        uint32_t count = 0;
        const uint32_t *const frames = allot_trace_stack(names->trace, stack, &count);
        count = count < FRAMES_PER_STACK ? count : FRAMES_PER_STACK;
        count = count <= names->frame_budget ? count : 0;
        names->frame_budget -= count;
        names->frame_counts[page] = count;
        for (uint32_t i = 0; i < count; i++) {
            name_frame(names, frames[i]);
        }
    }
    return page + 1;
}

static void write_string(alloti_json *json, const char *text)
{
    char cut[STRING_BYTES + 4];
    const size_t length = strlen(text);
    if (length > STRING_BYTES) {
        snprintf(cut, sizeof cut, "%.*s...", STRING_BYTES, text);
        text = cut;
    }
    alloti_json_put_string(json, NULL, text);
}

static void write_strings(const alloti_names *names, alloti_json *json)
{
    alloti_json_array_begin(json, "strings");
    alloti_json_put_string(json, NULL, "");
    for (uint32_t i = 0; i < names->strings.count; i++) {
        write_string(json, allot_trace_string(names->trace, names->strings.list[i], NULL));
    }
    alloti_json_array_end(json);
}

/** Number of a string in the page: 0 is "". */
static uint64_t page_string(const alloti_names *names, uint32_t string)
{
    return string == ALLOT_NONE ? 0 : (uint64_t)names->strings.page[string] + 1;
}

static void write_frames(const alloti_names *names, alloti_json *json, alloti_pack *pack)
{
    static const char *const KEYS[] = {"name", "file", "line", "internal"};
    alloti_json_object_begin(json, "frames");
    for (unsigned k = 0; k < sizeof KEYS / sizeof KEYS[0]; k++) {
        alloti_pack_column column = alloti_pack_begin(pack, false);
        for (uint32_t i = 0; i < names->frames.count; i++) {
            const allot_frame *const frame = allot_trace_frame(names->trace, names->frames.list[i]);
            const bool is_user =
                frame->filename != ALLOT_NONE && names->is_user_file[frame->filename] != 0;
            const uint64_t values[] = {page_string(names, frame->name),
                                       page_string(names, frame->filename), frame->line,
                                       is_user ? 0 : 1};
            alloti_pack_put(&column, values[k]);
        }
        alloti_pack_end(&column, json, KEYS[k]);
    }
    alloti_json_object_end(json);
}

static void write_stacks(const alloti_names *names, alloti_json *json, alloti_pack *pack)
{
    const alloti_renumbering *const stacks = &names->stacks;
    alloti_json_object_begin(json, "stacks");
    alloti_pack_column size = alloti_pack_begin(pack, false);
    alloti_pack_put(&size, 0);
    for (uint32_t i = 0; i < stacks->count; i++) {
        alloti_pack_put(&size, names->frame_counts[i]);
    }
    alloti_pack_end(&size, json, "size");
    alloti_pack_column frames = alloti_pack_begin(pack, false);
    for (uint32_t i = 0; i < stacks->count; i++) {
        uint32_t count = 0;
        const uint32_t *const ids = allot_trace_stack(names->trace, stacks->list[i], &count);
        for (uint32_t f = 0; f < names->frame_counts[i]; f++) {
            alloti_pack_put(&frames, names->frames.page[ids[f]]);
        }
    }
    alloti_pack_end(&frames, json, "frames");
    alloti_pack_column line = alloti_pack_begin(pack, false);
    alloti_pack_put(&line, allot_lines_of(names->lines, ALLOT_NONE));
    for (uint32_t i = 0; i < stacks->count; i++) {
        alloti_pack_put(&line, allot_lines_of(names->lines, stacks->list[i]));
    }
    alloti_pack_end(&line, json, "line");
    alloti_json_object_end(json);
}

void alloti_names_write(const alloti_names *names, alloti_json *json, alloti_pack *pack)
{
    write_strings(names, json);
    write_frames(names, json, pack);
    write_stacks(names, json, pack);
    alloti_json_array_begin(json, "lines");
    const uint32_t count = allot_lines_count(names->lines);
    for (uint32_t i = 0; i < count; i++) {
        write_string(json, allot_lines_text(names->lines, i));
    }
    alloti_json_array_end(json);
}
