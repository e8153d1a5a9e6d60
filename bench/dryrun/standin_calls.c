/* SPDX-License-Identifier: MIT */
/*
 * standin_calls FOLDER [SETTINGS]: nanoseconds of the calls that a dry run makes most, on the
 * stand-in of that folder: a kernel launch, an event recorded and asked, a copy, an allocation
 * freed again while 10,000 others live; beside malloc() and free() of the same number of blocks.
 * Median, fastest and slowest of the runs, as JSON.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 7, LIVE = 10000, PAIRS = 20000, LAUNCHES = 200000 };

typedef struct dimensions {
    unsigned x, y, z;
} dimensions;

static struct {
    int (*allocate)(void **address, size_t size);
    int (*release)(void *address);
    int (*launch)(const void *kernel, dimensions grid, dimensions block, void **arguments,
                  size_t shared_size, void *stream);
    int (*copy)(void *to, const void *from, size_t size, int kind, void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*synchronize)(void);
} cuda;

static void *live[LIVE];
static void *event;
static char bytes[64];

static void die(const char *text)
{
    fprintf(stderr, "standin_calls: %s\n", text);
    exit(1);
}

static void find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);
    if (symbol == NULL) {
        die(dlerror());
    }
    memcpy(place, &symbol, sizeof symbol);
}

static void load(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    void *const library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        die(dlerror());
    }
    find(library, "cudaMalloc", &cuda.allocate);
    find(library, "cudaFree", &cuda.release);
    find(library, "cudaLaunchKernel", &cuda.launch);
    find(library, "cudaMemcpyAsync", &cuda.copy);
    find(library, "cudaEventCreateWithFlags", &cuda.event_create);
    find(library, "cudaEventRecord", &cuda.event_record);
    find(library, "cudaEventQuery", &cuda.event_query);
    find(library, "cudaDeviceSynchronize", &cuda.synchronize);
}

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void check(int status)
{
    if (status != 0) {
        die("a call failed");
    }
}

/* ---- what is measured; each returns how many operations it did ---- */

static uint64_t launches(void)
{
    const dimensions one = {1, 1, 1};
    for (int i = 0; i < LAUNCHES; i++) {
        check(cuda.launch(bytes, one, one, NULL, 0, NULL));
        if (i % 1000 == 999) {
            check(cuda.synchronize());
        }
    }
    return LAUNCHES;
}

static uint64_t events(void)
{
    for (int i = 0; i < LAUNCHES; i++) {
        check(cuda.event_record(event, NULL));
        (void)cuda.event_query(event);
    }
    return LAUNCHES;
}

static uint64_t copies(void)
{
    for (int i = 0; i < LAUNCHES; i++) {
        check(cuda.copy(live[0], bytes, sizeof bytes, 1, NULL));
    }
    return LAUNCHES;
}

static uint64_t pairs(void)
{
    uint64_t random = 1;
    for (int i = 0; i < PAIRS; i++) {
        void **const one = &live[next(&random) % LIVE];
        check(cuda.release(*one));
        check(cuda.allocate(one, (size_t)(next(&random) % (8 << 20)) + 1));
    }
    return PAIRS;
}

static uint64_t host_pairs(void)
{
    static void *blocks[LIVE];
    uint64_t random = 1;
    for (int i = 0; i < PAIRS; i++) {
        void **const one = &blocks[next(&random) % LIVE];
        free(*one);
        *one = malloc((size_t)(next(&random) % (64 << 10)) + 1);
    }
    return PAIRS;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, uint64_t (*run)(void), const char *end)
{
    double ns[RUNS];
    run();
    for (int i = 0; i < RUNS; i++) {
        struct timespec begin;
        struct timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        const uint64_t count = run();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        ns[i] =
            ((double)(now.tv_sec - begin.tv_sec) * 1e9 + (double)(now.tv_nsec - begin.tv_nsec)) /
            (double)count;
    }
    qsort(ns, RUNS, sizeof ns[0], by_value);
    printf("  \"%s\": {\"median\": %.1f, \"fastest\": %.1f, \"slowest\": %.1f}%s\n", name,
           ns[RUNS / 2], ns[0], ns[RUNS - 1], end);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        die("usage: standin_calls FOLDER [SETTINGS]");
    }
    setenv("ALLOT_STANDIN", argc > 2 ? argv[2] : "limit:1TiB", 1);
    load(argv[1]);
    uint64_t random = 7;
    for (int i = 0; i < LIVE; i++) {
        check(cuda.allocate(&live[i], (size_t)(next(&random) % (8 << 20)) + 1));
    }
    check(cuda.event_create(&event, 2));
    puts("{");
    measure("launch", launches, ",");
    measure("event", events, ",");
    measure("copy", copies, ",");
    measure("malloc_free_pair", pairs, ",");
    measure("host_malloc_free_pair", host_pairs, "");
    puts("}");
    return 0;
}
