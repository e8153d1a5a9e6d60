/* SPDX-License-Identifier: MIT */
#include "trace/umpire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map64.h"
#include "core/number_text.h"
#include "core/status.h"

/** A memory resource or an allocator. */
typedef struct owner {
    uint64_t reference;
    uint32_t name; /**< String. */
    uint32_t device;
    uint32_t pool;
} owner;

/** The size of the block at an address that is in use; 0 where none is. */
typedef struct live {
    uint64_t address;
    uint64_t size;
} live;

struct alloti_umpire {
    alloti_builder *builder;
    owner *owners;
    uint64_t owner_count;
    uint64_t owner_capacity;
    alloti_map64 references; /**< Of owners. */
    alloti_map64 names;      /**< Of owners by string; the first of a name. */
    live *lives;
    uint64_t live_count;
    uint64_t live_capacity;
    alloti_map64 addresses; /**< Of lives. */
    uint32_t stream;
    uint64_t event_count;
};

static void umpire_destroy(alloti_umpire *umpire)
{
    if (umpire == NULL) {
        return;
    }
    alloti_map64_fini(&umpire->references);
    alloti_map64_fini(&umpire->names);
    alloti_map64_fini(&umpire->addresses);
    free(umpire->owners);
    free(umpire->lives);
    free(umpire);
}

static allot_status umpire_create(alloti_builder *builder, alloti_umpire **out)
{
    alloti_umpire *const umpire = calloc(1, sizeof *umpire);
    if (umpire == NULL) {
        return alloti_fail_memory(sizeof *umpire);
    }
    umpire->builder = builder;
    const allot_status status = alloti_builder_intern_stream(builder, 0, &umpire->stream);
    if (status != ALLOT_STATUS_OK) {
        umpire_destroy(umpire);
        return status;
    }
    *out = umpire;
    return ALLOT_STATUS_OK;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Device of a resource by its name. */
static allot_status resource_device(alloti_umpire *umpire, uint32_t name, uint32_t *out)
{
    const char *const text = alloti_builder_get_string(umpire->builder, name);
    allot_memory_kind memory = ALLOT_MEMORY_DEVICE;
    uint64_t index = 0;
    if (has_prefix(text, "HOST") || has_prefix(text, "FILE")) {
        memory = ALLOT_MEMORY_CPU;
    } else if (has_prefix(text, "PINNED")) {
        memory = ALLOT_MEMORY_PINNED;
    } else if (has_prefix(text, "DEVICE::")) {
        const char *const digits = text + strlen("DEVICE::");
        if (!alloti_number_u64(digits, strlen(digits), &index) || index >= ALLOT_NONE) {
            index = 0;
        }
    }
    return alloti_builder_device(umpire->builder, memory, (uint32_t)index, out);
}

/* The pool of the n-th owner, and its name among the settings. */
static allot_status make_pool(alloti_umpire *umpire, uint32_t name, uint32_t *out)
{
    const uint64_t number = umpire->owner_count + 1;
    allot_status status = alloti_builder_intern_pool(
        umpire->builder, (allot_pool_id){.first = number, .second = 0}, out);
    if (status != ALLOT_STATUS_OK || name == ALLOT_NONE) {
        return status;
    }
    char key[40];
    const int length = snprintf(key, sizeof key, "allocator.%" PRIu64, number);
    allot_setting setting = {.type = ALLOT_SETTING_STRING, .string = name};
    status = alloti_builder_intern_string(umpire->builder, key, (size_t)length, &setting.key);
    return status != ALLOT_STATUS_OK ? status
                                     : alloti_builder_add_setting(umpire->builder, &setting);
}

static allot_status add_owner(alloti_umpire *umpire, const owner *added)
{
    allot_status status = alloti_array_reserve(&umpire->owners, &umpire->owner_capacity,
                                               umpire->owner_count + 1, sizeof *umpire->owners);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint32_t index = (uint32_t)umpire->owner_count;
    umpire->owners[umpire->owner_count++] = *added;
    status = alloti_map64_set(&umpire->references, added->reference, index);
    if (status == ALLOT_STATUS_OK && added->name != ALLOT_NONE &&
        alloti_map64_get(&umpire->names, added->name) == ALLOT_NONE) {
        status = alloti_map64_set(&umpire->names, added->name, index);
    }
    return status;
}

allot_status alloti_umpire_make(alloti_umpire *umpire, uint64_t reference, uint32_t name,
                                uint32_t parent)
{
    const uint32_t below =
        parent == ALLOT_NONE ? ALLOT_NONE : alloti_map64_get(&umpire->names, parent);
    owner made = {.reference = reference, .name = name};
    allot_status status = ALLOT_STATUS_OK;
    if (below != ALLOT_NONE) {
        made.device = umpire->owners[below].device;
    } else {
        status = resource_device(umpire, parent != ALLOT_NONE ? parent : name, &made.device);
    }
    if (status == ALLOT_STATUS_OK) {
        status = make_pool(umpire, name, &made.pool);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint32_t old = alloti_map64_get(&umpire->references, reference);
    if (old != ALLOT_NONE) { /* the allocator that had this reference is gone */
        umpire->owners[old] = made;
        return ALLOT_STATUS_OK;
    }
    return add_owner(umpire, &made);
}

/* Owner of a reference; one whose making the log does not show is made now, without a name. */
static allot_status get_owner(alloti_umpire *umpire, uint64_t reference, const owner **out)
{
    uint32_t index = alloti_map64_get(&umpire->references, reference);
    if (index == ALLOT_NONE) {
        const allot_status status = alloti_umpire_make(umpire, reference, ALLOT_NONE, ALLOT_NONE);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        index = alloti_map64_get(&umpire->references, reference);
    }
    *out = &umpire->owners[index];
    return ALLOT_STATUS_OK;
}

static allot_status get_live(alloti_umpire *umpire, uint64_t address, live **out)
{
    uint32_t index = alloti_map64_get(&umpire->addresses, address);
    if (index == ALLOT_NONE) {
        allot_status status = alloti_array_reserve(&umpire->lives, &umpire->live_capacity,
                                                   umpire->live_count + 1, sizeof *umpire->lives);
        index = (uint32_t)umpire->live_count;
        if (status == ALLOT_STATUS_OK) {
            status = alloti_map64_set(&umpire->addresses, address, index);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        umpire->lives[umpire->live_count++] = (live){.address = address};
    }
    *out = &umpire->lives[index];
    return ALLOT_STATUS_OK;
}

static allot_status add_event(alloti_umpire *umpire, uint64_t reference, alloti_event *event)
{
    const owner *by = NULL;
    const allot_status status = get_owner(umpire, reference, &by);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    event->pool = by->pool;
    event->stream = umpire->stream;
    umpire->event_count++;
    return alloti_builder_add_event(umpire->builder, by->device, event);
}

allot_status alloti_umpire_allocate(alloti_umpire *umpire, uint64_t reference, uint64_t address,
                                    uint64_t size, int64_t time_ns)
{
    live *block = NULL;
    const allot_status status = get_live(umpire, address, &block);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    block->size = size;
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = ALLOT_EVENT_ALLOC;
    event.addr = address;
    event.size = size;
    event.time_ns = time_ns;
    return add_event(umpire, reference, &event);
}

allot_status alloti_umpire_deallocate(alloti_umpire *umpire, uint64_t reference, uint64_t address,
                                      int64_t time_ns)
{
    live *block = NULL;
    const allot_status status = get_live(umpire, address, &block);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = ALLOT_EVENT_FREE_COMPLETED;
    event.addr = address;
    event.size = block->size;
    event.time_ns = time_ns;
    block->size = 0; /* an empty block may share its address with the one that follows it */
    return add_event(umpire, reference, &event);
}

/* Refuse a log of `line_count` lines without any allocation, else set what the log can tell. */
static allot_status umpire_finish(alloti_umpire *umpire, uint64_t line_count)
{
    if (umpire->event_count == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "line %" PRIu64 ": the log holds no allocation",
                           line_count);
    }
    alloti_builder_set_trait(umpire->builder, ALLOT_TRACE_HAS_ADDRESSES);
    alloti_builder_set_trait(umpire->builder, ALLOT_TRACE_HAS_REQUESTED);
    return ALLOT_STATUS_OK;
}

allot_status alloti_umpire_read(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder, alloti_umpire_line_fn read_line)
{
    alloti_lines lines = {.source = source, .progress = progress};
    alloti_umpire *umpire = NULL;
    allot_status status = umpire_create(builder, &umpire);
    while (status == ALLOT_STATUS_OK) {
        status = alloti_lines_next(&lines);
        if (status != ALLOT_STATUS_OK || lines.is_end) {
            break;
        }
        status = read_line(&lines, builder, umpire);
    }
    if (status == ALLOT_STATUS_OK) {
        status = umpire_finish(umpire, lines.number);
    }
    umpire_destroy(umpire);
    return status;
}
