/* SPDX-License-Identifier: MIT */
#include "standin/values.h"

#include <stdlib.h>
#include <string.h>

/* Launches after which a page, and a page written by a collective, is no longer believed. */
enum { LIFE = 256, LIFE_COLLECTED = 16 };

/* A large read looks up every page of it: beyond this it is not about values. */
static const uint64_t READ_MAX = UINT64_C(64) << 20;

static size_t bucket_of(uint64_t number)
{
    return (size_t)((number * UINT64_C(0x9E3779B97F4A7C15)) >> 52);
}

static value_page *find(const value_state *values, uint64_t number)
{
    value_page *page = values->buckets[bucket_of(number)];
    while (page != NULL && page->number != number) {
        page = page->next;
    }
    return page;
}

static value_page *find_or_make(value_state *values, uint64_t number)
{
    value_page *page = find(values, number);
    if (page == NULL && (page = calloc(1, sizeof *page)) != NULL) {
        value_page **const bucket = &values->buckets[bucket_of(number)];
        page->number = number;
        page->next = *bucket;
        *bucket = page;
    }
    return page;
}

static bool is_alive(const value_state *values, uint64_t stamp, uint64_t life)
{
    return stamp != 0 && values->launches + 1 - stamp < life;
}

static uint64_t piece(uint64_t address, uint64_t size)
{
    const uint64_t room = VALUE_PAGE - address % VALUE_PAGE;
    return size < room ? size : room;
}

static void write_piece(value_state *values, uint64_t address, const unsigned char *from,
                        uint64_t size)
{
    value_page *const page = find_or_make(values, address / VALUE_PAGE);
    if (page == NULL) {
        return; /* without host memory it is simply not known */
    }
    if (!is_alive(values, page->written, LIFE)) {
        memset(page->bytes, 0, sizeof page->bytes);
    }
    memcpy(page->bytes + address % VALUE_PAGE, from, (size_t)size);
    page->written = values->launches + 1;
    if (values->is_collective) {
        page->collected = values->launches + 1;
    }
}

void value_note_upload(value_state *values, uint64_t address, uint64_t size)
{
    if (values->uploads_at != values->launches) {
        values->uploads_at = values->launches;
        values->upload_count = 0;
    }
    values->uploads[values->upload_count++ % VALUE_UPLOADS] = (value_range){address, size};
}

static uint64_t upload_count(const value_state *values)
{
    if (values->uploads_at != values->launches) {
        return 0;
    }
    return values->upload_count < VALUE_UPLOADS ? values->upload_count : VALUE_UPLOADS;
}

bool value_is_uploaded(const value_state *values, uint64_t address, uint64_t size)
{
    const uint64_t count = upload_count(values);
    for (uint64_t i = 0; i < count; i++) {
        const value_range *const range = &values->uploads[i];
        if (address >= range->address && address - range->address <= range->size &&
            size <= range->size - (address - range->address)) {
            return true;
        }
    }
    return false;
}

/** Something else than the host wrote a range. */
static void drop_uploads(value_state *values, uint64_t address, uint64_t size)
{
    const uint64_t count = upload_count(values);
    for (uint64_t i = 0; i < count; i++) {
        value_range *const range = &values->uploads[i];
        if (range->address < address + size && address < range->address + range->size) {
            range->size = 0;
        }
    }
}

static void keep(value_state *values, uint64_t address, const void *from, uint64_t size)
{
    const unsigned char *at = from;
    while (size != 0) {
        const uint64_t step = piece(address, size);
        write_piece(values, address, at, step);
        address += step;
        at += step;
        size -= step;
    }
}

void value_write(value_state *values, uint64_t address, const void *from, uint64_t size)
{
    if (size > VALUE_SIZE_MAX) {
        value_forget(values, address, size);
        return;
    }
    keep(values, address, from, size);
    value_note_upload(values, address, size);
}

void value_read(const value_state *values, uint64_t address, void *to, uint64_t size)
{
    unsigned char *at = to;
    const bool is_sure = values->is_collective || value_is_uploaded(values, address, size);
    while (size != 0 && size <= READ_MAX) {
        const uint64_t step = piece(address, size);
        const value_page *const page = find(values, address / VALUE_PAGE);
        if (page != NULL && is_alive(values, page->written, LIFE) &&
            (is_sure || is_alive(values, page->collected, LIFE_COLLECTED))) {
            memcpy(at, page->bytes + address % VALUE_PAGE, (size_t)step);
        }
        address += step;
        at += step;
        size -= step;
    }
}

static bool is_zero(const unsigned char *bytes, uint64_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0;
}

bool value_is_known(const value_state *values, uint64_t address, uint64_t size)
{
    if (value_is_uploaded(values, address, size)) {
        return true;
    }
    bool has_value = false;
    while (size != 0) {
        const uint64_t step = piece(address, size);
        const value_page *const page = find(values, address / VALUE_PAGE);
        if (page == NULL || !is_alive(values, page->collected, LIFE_COLLECTED)) {
            return false;
        }
        has_value = has_value || !is_zero(page->bytes + address % VALUE_PAGE, step);
        address += step;
        size -= step;
    }
    return has_value;
}

void value_copy(value_state *values, uint64_t to, uint64_t from, uint64_t size)
{
    if (size > VALUE_SIZE_MAX) {
        value_forget(values, to, size);
        return;
    }
    unsigned char *const buffer = calloc(1, (size_t)size);
    if (buffer == NULL) {
        return;
    }
    value_read(values, from, buffer, size);
    bool is_known = false;
    for (uint64_t i = 0; i < size && !is_known; i++) {
        is_known = buffer[i] != 0;
    }
    const bool before = values->is_collective;
    values->is_collective = before || is_known;
    keep(values, to, buffer, size);
    values->is_collective = before;
    if (value_is_uploaded(values, from, size)) {
        value_note_upload(values, to, size);
    } else {
        drop_uploads(values, to, size);
    }
    free(buffer);
}

void value_collect(value_state *values, uint64_t to, uint64_t from, uint64_t size)
{
    values->is_collective = true;
    value_copy(values, to, from, size);
    values->is_collective = false;
}

void value_offer(value_state *values, uint64_t address, void *to, uint64_t size)
{
    values->is_collective = true;
    value_read(values, address, to, size);
    values->is_collective = false;
}

void value_receive(value_state *values, uint64_t address, const void *from, uint64_t size)
{
    values->is_collective = true;
    value_write(values, address, from, size);
    values->is_collective = false;
}

void value_forget(value_state *values, uint64_t address, uint64_t size)
{
    drop_uploads(values, address, size);
    if (size > READ_MAX) {
        return; /* its pages, if any, grow old by themselves */
    }
    for (uint64_t number = address / VALUE_PAGE; number <= (address + size - 1) / VALUE_PAGE;
         number++) {
        value_page *const page = find(values, number);
        if (page != NULL) {
            page->written = 0;
            page->collected = 0;
        }
    }
}
