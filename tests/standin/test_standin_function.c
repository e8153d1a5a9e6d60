/* SPDX-License-Identifier: MIT */
/*
 * What is known of a kernel: its registers, shared memory and launch bounds are read from the code
 * that the program registers, and decide how many of its blocks a multiprocessor holds. The code
 * here is made up: an ELF file with nothing but the sections that are read.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "support/check.h"
#include "support/standin.h"

enum { FILE_SIZE = 4096, KIB = 1024, INVALID_FUNCTION = 98 };

typedef struct attributes {
    size_t shared_size;
    size_t constant_size;
    size_t local_size;
    int max_threads;
    int registers;
    int ptx_version;
    int binary_version;
    int rest[26];
} attributes;

static void **(*register_binary)(const void *);
static void (*register_function)(void **, const char *, char *, const char *, int, void *, void *,
                                 void *, void *, int *);
static int (*get_attributes)(attributes *, const void *);
static int (*get_blocks)(int *, const void *, int, size_t);

static void load(void)
{
    standin_load("gpu:a100-80");
    *(void **)&register_binary = standin_symbol("libcuda.so.1", "__cudaRegisterFatBinary");
    *(void **)&register_function = standin_symbol("libcuda.so.1", "__cudaRegisterFunction");
    *(void **)&get_attributes = standin_symbol("libcuda.so.1", "cudaFuncGetAttributes");
    *(void **)&get_blocks =
        standin_symbol("libcuda.so.1", "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

/** A file that is being written: bytes, and the sections so far. */
typedef struct file {
    unsigned char bytes[FILE_SIZE];
    size_t size;
    Elf64_Shdr sections[8];
    unsigned count;
} file;

static size_t put(file *out, const void *bytes, size_t size)
{
    const size_t at = out->size;
    memcpy(out->bytes + at, bytes, size);
    out->size += (size + 7) / 8 * 8;
    return at;
}

static void add_section(file *out, uint32_t name, const void *bytes, size_t size, uint32_t link)
{
    out->sections[out->count++] = (Elf64_Shdr){
        .sh_name = name, .sh_offset = put(out, bytes, size), .sh_size = size, .sh_link = link};
}

/** A cubin with one kernel, "kernel". */
static file make_cubin(uint32_t registers, uint32_t threads, size_t shared_size)
{
    static const char names[] = "\0.strtab\0.symtab\0.nv.info\0.nv.info.kernel\0.nv.shared.kernel";
    static const char texts[] = "\0other\0kernel";
    enum { STRTAB = 1, SYMTAB = 9, INFO = 17, INFO_KERNEL = 26, SHARED_KERNEL = 42, KERNEL = 7 };
    const Elf64_Sym symbols[3] = {{0}, {.st_name = 1}, {.st_name = KERNEL}};
    /* Format, number, size of the value; the value. Of another kernel first. */
    const uint32_t info[] = {0x00082f04, 1, 99, 0x00082f04, 2, registers};
    const uint32_t own[] = {0x00001703, 0x000c0504, threads, 1, 1};
    file out = {.size = sizeof(Elf64_Ehdr), .count = 1};
    add_section(&out, 0, names, sizeof names, 0);
    add_section(&out, STRTAB, texts, sizeof texts, 0);
    add_section(&out, SYMTAB, symbols, sizeof symbols, 2);
    add_section(&out, INFO, info, sizeof info, 0);
    add_section(&out, INFO_KERNEL, own, threads == 0 ? 0 : sizeof own, 0);
    add_section(&out, SHARED_KERNEL, "", 0, 0);
    out.sections[6].sh_size = shared_size;
    Elf64_Ehdr head = {.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 7, .e_shstrndx = 1};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_shoff = put(&out, out.sections, 7 * sizeof(Elf64_Shdr));
    memcpy(out.bytes, &head, sizeof head);
    return out;
}

/* A fat binary with one entry, and the wrapper that points to it. */
typedef struct binary {
    struct {
        uint32_t magic;
        uint16_t version;
        uint16_t header_size;
        uint64_t size;
    } head;
    struct {
        uint16_t kind;
        uint16_t attributes;
        uint32_t header_size;
        uint64_t size;
        uint32_t size_compressed;
        uint32_t options;
        uint16_t minor;
        uint16_t major;
        uint32_t architecture;
        uint64_t unused;
        uint64_t flags;
        uint64_t unused_too;
        uint64_t full_size;
    } entry;
    unsigned char code[FILE_SIZE];
} binary;

typedef struct wrapper {
    uint32_t magic;
    uint32_t version;
    const void *binary;
    void *unused;
} wrapper;

enum { FUNCTIONS = 16 };

/** Register a kernel with this code; the address of its host function. */
static const char *add_kernel(const file *cubin, bool is_compressed)
{
    static binary binaries[FUNCTIONS];
    static wrapper wrappers[FUNCTIONS];
    static char functions[FUNCTIONS];
    static char name[] = "kernel";
    static int count;
    binary *const made = &binaries[count];
    made->head.magic = 0xBA55ED50u;
    made->head.version = 1;
    made->head.header_size = sizeof made->head;
    made->entry.kind = 2;
    made->entry.architecture = 80;
    made->entry.header_size = sizeof made->entry;
    made->entry.size = cubin->size;
    memcpy(made->code, cubin->bytes, cubin->size);
    if (is_compressed) {
        const size_t size =
            ZSTD_compress(made->code, sizeof made->code, cubin->bytes, cubin->size, 1);
        made->entry.flags = 0x8011;
        made->entry.full_size = cubin->size;
        made->entry.size = size;
        made->entry.size_compressed = (uint32_t)size;
    }
    made->head.size = sizeof made->entry + made->entry.size;
    wrappers[count] = (wrapper){0x466243b1, 1, made, NULL};
    register_function(register_binary(&wrappers[count]), &functions[count], name, name, -1, NULL,
                      NULL, NULL, NULL, NULL);
    return &functions[count++];
}

static int blocks(const void *function, int threads, size_t dynamic_size)
{
    int got = -1;
    CHECK_EQ(get_blocks(&got, function, threads, dynamic_size), 0);
    return got;
}

static void registers_decide(void)
{
    load();
    static const struct {
        uint32_t registers;
        int threads;
        int blocks;
    } rows[] = {{32, 256, 8},  {33, 256, 6}, {64, 256, 4},  {128, 256, 2},
                {255, 256, 1}, {32, 32, 32}, {64, 1024, 1}, {40, 96, 16}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const file cubin = make_cubin(rows[i].registers, 0, 0);
        const char *const kernel = add_kernel(&cubin, i % 2 == 0);
        attributes got = {0};
        CHECK_EQ(get_attributes(&got, kernel), 0);
        CHECK_EQ(got.registers, rows[i].registers);
        CHECK_EQ(got.binary_version, 80);
        CHECK_EQ(blocks(kernel, rows[i].threads, 0), rows[i].blocks);
    }
}

static void shared_memory_and_launch_bounds_decide_too(void)
{
    load();
    const file cubin = make_cubin(32, 256, 40 * KIB);
    const char *const kernel = add_kernel(&cubin, true);
    attributes got = {0};
    CHECK_EQ(get_attributes(&got, kernel), 0);
    CHECK_EQ(got.shared_size, 40 * KIB);
    CHECK_EQ(got.max_threads, 256);
    CHECK_EQ(blocks(kernel, 256, 0), 4); /* 41 KiB with what the system keeps, of 164 */
    CHECK_EQ(blocks(kernel, 256, 1), 3);
    CHECK_EQ(blocks(kernel, 256, 41 * KIB), 2);
    CHECK_EQ(blocks(kernel, 257, 0), 0);
    const file large = make_cubin(255, 0, 0);
    CHECK_EQ(get_attributes(&got, add_kernel(&large, false)), 0);
    CHECK_EQ(got.max_threads, 256); /* the registers of a block */
}

static void code_that_is_not_sound_leaves_a_guess(void)
{
    load();
    const file cubin = make_cubin(200, 0, 0);
    attributes got = {0};
    for (size_t size = 0; size < cubin.size - 8; size += cubin.size / 3) {
        file cut = cubin;
        cut.size = size;
        if (size == 0) {
            memset(cut.bytes, 0, sizeof cut.bytes);
            cut.size = 64;
        }
        const char *const kernel = add_kernel(&cut, false);
        CHECK_EQ(get_attributes(&got, kernel), 0);
        CHECK_EQ(got.registers, 32);
    }
    static char unknown;
    CHECK_EQ(get_attributes(&got, &unknown), 0);
    CHECK_EQ(got.registers, 32);
}

static const check_test TESTS[] = {
    {"registers_decide", registers_decide},
    {"shared_memory_and_launch_bounds_decide_too", shared_memory_and_launch_bounds_decide_too},
    {"code_that_is_not_sound_leaves_a_guess", code_that_is_not_sound_leaves_a_guess},
};
CHECK_MAIN(TESTS)
