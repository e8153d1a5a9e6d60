/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzzer's entry without libFuzzer, in every build: over no bytes, over each file of its
 * corpus, and over variants of each: cut short, with bits flipped, with a part repeated. The
 * variants are the same in every run; --seed N gives others. A crash or a sanitizer's report is the
 * failure; the file is printed before it is run.
 *
 * usage: replay_NAME [--seed N] [CORPUS_FOLDER | FILE]...
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A corpus is meant to be small; VARIANTS_BYTES bounds the work on what is not. */
enum { VARIANTS_MAX = 400, VARIANTS_BYTES = 32 << 20, FLIPS_MAX = 4 };

static uint64_t seed = 0x5eed;
static size_t passed;

/* Exactly sized copies let the address sanitizer see the first byte read past the end. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *const copy = calloc(size == 0 ? 1 : size, 1);
    if (copy == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    if (size != 0) {
        memcpy(copy, data, size);
    }
    LLVMFuzzerTestOneInput(size == 0 ? copy + 1 : copy, size);
    free(copy);
}

static void flip_bits(uint8_t *data, size_t size, uint64_t *state)
{
    const uint64_t flips = check_random_range(state, 1, FLIPS_MAX);
    for (uint64_t i = 0; i < flips; i++) {
        const uint64_t bit = check_random_range(state, 0, 8 * (uint64_t)size - 1);
        data[bit / 8] = (uint8_t)(data[bit / 8] ^ (1u << (bit % 8)));
    }
}

static void repeat_part(uint8_t *data, size_t size, uint64_t *state)
{
    const size_t length = (size_t)check_random_range(state, 1, size);
    const size_t from = (size_t)check_random_range(state, 0, size - length);
    const size_t to = (size_t)check_random_range(state, 0, size - length);
    memmove(data + to, data + from, length);
}

static void run_variants(const uint8_t *data, size_t size, uint8_t *scratch)
{
    uint64_t state = seed;
    size_t count = VARIANTS_BYTES / size;
    count = count > VARIANTS_MAX ? VARIANTS_MAX : count;
    for (size_t i = 0; i < count; i++) {
        memcpy(scratch, data, size);
        size_t length = size;
        switch (i % 4) {
        case 0:
            length = size <= VARIANTS_MAX / 4 ? i / 4 % size
                                              : (size_t)check_random_range(&state, 0, size - 1);
            break;
        case 1:
            repeat_part(scratch, size, &state);
            break;
        default:
            flip_bits(scratch, size, &state);
            break;
        }
        run_copy(scratch, length);
    }
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *const file = fopen(path, "rb");
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(2);
    }
    *size = (size_t)info.st_size;
    uint8_t *const data = malloc(*size + 1);
    if (data == NULL || fread(data, 1, *size, file) != *size) {
        perror(path);
        exit(2);
    }
    fclose(file);
    return data;
}

static void run_file(const char *path)
{
    printf("%s\n", path);
    fflush(stdout);
    size_t size = 0;
    uint8_t *const data = read_file(path, &size);
    uint8_t *const scratch = malloc(size + 1);
    if (scratch == NULL) {
        perror(path);
        exit(2);
    }
    run_copy(data, size);
    if (size != 0) {
        run_variants(data, size, scratch);
    }
    free(scratch);
    free(data);
    passed++;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_folder(const char *path)
{
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0) {
        perror(path);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        run_file(file);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    run_copy(NULL, 0);
    passed++;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 0);
        } else if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            run_folder(argv[i]);
        } else {
            run_file(argv[i]);
        }
    }
    printf("seed %" PRIu64 "\n%zu passed, 0 failed\n", seed, passed);
    return 0;
}
