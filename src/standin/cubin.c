/* SPDX-License-Identifier: MIT */
#include "standin/cubin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    FORMAT_SIZED = 4, /* an attribute whose value has a size of its own */
    MAX_THREADS = 0x05,
    REGISTER_COUNT = 0x2f,
    NAME_MAX_SIZE = 4096,
};
static const uint64_t FULL_SIZE_MAX = UINT64_C(256) << 20;

/** A part of the file. */
typedef struct part {
    const unsigned char *bytes;
    uint64_t size;
} part;

static bool take(part file, uint64_t offset, uint64_t size, part *out)
{
    if (offset > file.size || size > file.size - offset) {
        return false;
    }
    *out = (part){file.bytes + offset, size};
    return true;
}

static bool read_at(part from, uint64_t offset, void *out, size_t size)
{
    part found;
    if (!take(from, offset, size, &found)) {
        return false;
    }
    memcpy(out, found.bytes, size);
    return true;
}

/** The file's table of sections. */
typedef struct sections {
    part file;
    uint64_t offset;
    unsigned count;
    part names;
} sections;

static bool get_header(const sections *table, unsigned index, Elf64_Shdr *out)
{
    return index < table->count &&
           read_at(table->file, table->offset + (uint64_t)index * sizeof *out, out, sizeof *out);
}

static bool get_part(const sections *table, const Elf64_Shdr *header, part *out)
{
    return take(table->file, header->sh_offset, header->sh_size, out);
}

static bool open_file(part file, sections *table)
{
    Elf64_Ehdr head;
    Elf64_Shdr names;
    if (!read_at(file, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    *table = (sections){.file = file, .offset = head.e_shoff, .count = head.e_shnum};
    return get_header(table, head.e_shstrndx, &names) && get_part(table, &names, &table->names);
}

/** Whether the text at an offset of a part is this one. */
static bool is_text(part texts, uint64_t offset, const char *text)
{
    part found;
    const size_t size = strlen(text) + 1;
    return take(texts, offset, size, &found) && memcmp(found.bytes, text, size) == 0;
}

static bool find_section(const sections *table, const char *name, Elf64_Shdr *out)
{
    for (unsigned i = 0; i < table->count && get_header(table, i, out); i++) {
        if (is_text(table->names, out->sh_name, name)) {
            return true;
        }
    }
    return false;
}

/** Find the section that a kernel has of its own: ".nv.shared." and its name. */
static bool find_own(const sections *table, const char *prefix, const char *kernel, Elf64_Shdr *out)
{
    char name[NAME_MAX_SIZE];
    const int length = snprintf(name, sizeof name, "%s%s", prefix, kernel);
    return length > 0 && (size_t)length < sizeof name && find_section(table, name, out);
}

/** The next attribute with a value of its own; false at the end. */
static bool next_attribute(part info, uint64_t *at, unsigned *number, part *value)
{
    unsigned char head[4];
    while (read_at(info, *at, head, sizeof head)) {
        *at += sizeof head;
        if (head[0] != FORMAT_SIZED) {
            continue;
        }
        const uint64_t size = (uint64_t)head[2] | (uint64_t)head[3] << 8;
        if (!take(info, *at, size, value)) {
            return false;
        }
        *at += size;
        *number = head[1];
        return true;
    }
    return false;
}

/** Whether symbol `index` has this name. */
static bool is_symbol(const sections *table, uint32_t index, const char *name)
{
    Elf64_Shdr symbols;
    Elf64_Shdr texts;
    Elf64_Sym symbol;
    part all;
    part names;
    return find_section(table, ".symtab", &symbols) && get_part(table, &symbols, &all) &&
           get_header(table, symbols.sh_link, &texts) && get_part(table, &texts, &names) &&
           read_at(all, (uint64_t)index * sizeof symbol, &symbol, sizeof symbol) &&
           is_text(names, symbol.st_name, name);
}

static bool read_registers(const sections *table, const char *name, uint32_t *out)
{
    Elf64_Shdr header;
    part info;
    part value = {0};
    unsigned number = 0;
    if (!find_section(table, ".nv.info", &header) || !get_part(table, &header, &info)) {
        return false;
    }
    for (uint64_t at = 0; next_attribute(info, &at, &number, &value);) {
        uint32_t pair[2]; /* symbol, count */
        if (number == REGISTER_COUNT && read_at(value, 0, pair, sizeof pair) &&
            is_symbol(table, pair[0], name)) {
            *out = pair[1];
            return true;
        }
    }
    return false;
}

static uint32_t read_threads(const sections *table, const char *name)
{
    Elf64_Shdr header;
    part info;
    part value = {0};
    unsigned number = 0;
    if (!find_own(table, ".nv.info.", name, &header) || !get_part(table, &header, &info)) {
        return 0;
    }
    for (uint64_t at = 0; next_attribute(info, &at, &number, &value);) {
        uint32_t sides[3];
        if (number == MAX_THREADS && read_at(value, 0, sides, sizeof sides)) {
            return sides[0] * sides[1] * sides[2];
        }
    }
    return 0;
}

bool cubin_read(const void *cubin, uint64_t size, const char *name, cubin_kernel *out)
{
    sections table;
    Elf64_Shdr shared;
    *out = (cubin_kernel){0};
    if (!open_file((part){cubin, size}, &table) || !read_registers(&table, name, &out->registers)) {
        return false;
    }
    out->threads_max = read_threads(&table, name);
    if (find_own(&table, ".nv.shared.", name, &shared)) {
        out->shared_size = shared.sh_size;
    }
    return true;
}

bool cubin_read_compressed(const void *bytes, uint64_t size, uint64_t full_size, const char *name,
                           cubin_kernel *out)
{
    void *const full = full_size == 0 || full_size > FULL_SIZE_MAX ? NULL : malloc(full_size);
    bool is_read = false;
    if (full != NULL) {
        const size_t got = ZSTD_decompress(full, (size_t)full_size, bytes, (size_t)size);
        is_read = !ZSTD_isError(got) && cubin_read(full, got, name, out);
    }
    free(full);
    return is_read;
}
