/* SPDX-License-Identifier: MIT */
/*
 * bench_device [RUNS]: what the host device costs, each figure beside that of copying in the same
 * run: copies beside memcpy(), moves of pages by every way that works here, and the calls of
 * virtual memory. Medians; the ratio of two medians is what goals are set for.
 */
#include <allot/device.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS_DEFAULT = 5, RUNS_MAX = 101, SAMPLES_MAX = 1 << 16, WAYS = 3 };

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define ARENA (128 * MIB) /* at each end: more than caches hold */
#define PAGE (4 * KIB)

static const allot_stream DEFAULT_STREAM = {0};
static const char *const WAY_NAMES[WAYS] = {"copy", "mremap", "uffd"};

/** Times of one kind, in nanoseconds. */
typedef struct samples {
    double values[SAMPLES_MAX];
    size_t count;
} samples;

/** What is moved: pieces so large, `shift` bytes further at the destination. */
typedef struct pattern {
    const char *name;
    uint64_t size;
    uint64_t shift;
    double goal; /**< How many times faster than copying; 0: none. */
} pattern;

static const pattern PATTERNS[] = {
    {"64 KiB", 64 * KIB, 0, 0}, {"512 KiB", 512 * KIB, 0, 0},
    {"2 MiB", 2 * MIB, 0, 20},  {"2 MiB, a page further", 2 * MIB, PAGE, 0},
    {"8 MiB", 8 * MIB, 0, 20},
};
enum { PATTERN_COUNT = sizeof PATTERNS / sizeof PATTERNS[0] };

static void require(allot_status status, const char *what)
{
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "bench_device: %s: %s\n", what, allot_error_detail());
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void add(samples *s, double value)
{
    if (s->count < SAMPLES_MAX) {
        s->values[s->count++] = value;
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(samples *s)
{
    if (s->count == 0) {
        return 0;
    }
    qsort(s->values, s->count, sizeof s->values[0], compare_doubles);
    return s->values[s->count / 2];
}

/** The device with some settings; NULL where this machine does not have it. */
static allot_device *open_host(const char *settings)
{
    char text[128];
    snprintf(text, sizeof text, "host,memory:2GiB,%s", settings);
    allot_device *device = NULL;
    const allot_status status = allot_device_open(text, &device);
    if (status == ALLOT_STATUS_UNSUPPORTED) {
        printf("%s\n", allot_error_detail());
        return NULL;
    }
    require(status, text);
    return device;
}

static void *pointer(allot_devptr ptr)
{
    return (void *)(uintptr_t)ptr.address; /* NOLINT(performance-no-int-to-ptr) */
}

static allot_devptr after(allot_devptr ptr, uint64_t offset)
{
    return (allot_devptr){ptr.address + offset};
}

/** Two arenas, one behind the other and with room for a shift, all of it written. */
static allot_devptr make_arenas(allot_device *device)
{
    allot_devptr arenas = {0};
    require(allot_device_alloc(device, 2 * ARENA + 2 * MIB, &arenas), "alloc");
    require(allot_device_fill(device, DEFAULT_STREAM, arenas, 1, 2 * ARENA + 2 * MIB), "fill");
    return arenas;
}

/** Copies of a whole arena, the device's and memcpy() in turns, each as often the first. */
static void bench_copies(int runs)
{
    static samples times[2]; /* memcpy(), the device */
    allot_device *const device = open_host("move:copy");
    const allot_devptr from = make_arenas(device);
    const allot_devptr to = after(from, ARENA);
    for (unsigned i = 0; i < 8 * (unsigned)runs + 2; i++) {
        const unsigned which = (i & 1) ^ (i >> 1 & 1);
        const double begin = now_ns();
        if (which == 0) {
            memcpy(pointer(to), pointer(from), ARENA);
        } else {
            require(allot_device_copy(device, DEFAULT_STREAM, to, from, ARENA), "copy");
        }
        if (i >= 2) {
            add(&times[which], now_ns() - begin);
        }
    }
    allot_device_destroy(device);
    const double plain_ns = median(&times[0]);
    const double ns = median(&times[1]);
    printf("\ncopy of 128 MiB: memcpy %.2f GiB/s, device %.2f GiB/s, ratio %.2f (goal 0.90)\n",
           (double)ARENA / plain_ns / 1.073741824, (double)ARENA / ns / 1.073741824, plain_ns / ns);
}

/** Every piece of one arena to the other and back. */
static void move_all(allot_device *device, allot_devptr arenas, const pattern *p, samples *s)
{
    for (uint64_t i = 0; i < ARENA; i += p->size) {
        const double begin = now_ns();
        require(allot_device_move(device, DEFAULT_STREAM, after(arenas, ARENA + p->shift + i),
                                  after(arenas, i), p->size),
                "move");
        add(s, now_ns() - begin);
    }
    for (uint64_t i = 0; i < ARENA; i += p->size) {
        const double begin = now_ns();
        require(allot_device_move(device, DEFAULT_STREAM, after(arenas, i),
                                  after(arenas, ARENA + p->shift + i), p->size),
                "move");
        add(s, now_ns() - begin);
    }
}

static double time_moves(const char *settings, const pattern *p, int runs)
{
    static samples s;
    s.count = 0;
    allot_device *const device = open_host(settings);
    if (device == NULL) {
        return 0;
    }
    const allot_devptr arenas = make_arenas(device);
    for (int run = 0; run < runs; run++) {
        move_all(device, arenas, p, &s);
    }
    allot_device_destroy(device);
    return median(&s);
}

/** A table of every pattern by every way, on huge or on small pages. */
static void bench_moves(const char *pages, int runs)
{
    printf("\nmoves, huge:%s%*s copy us", pages, 20 - (int)strlen(pages), "");
    for (int way = 1; way < WAYS; way++) {
        printf("   %6s us  times", WAY_NAMES[way]);
    }
    printf("   goal\n");
    for (int i = 0; i < PATTERN_COUNT; i++) {
        const pattern *const p = &PATTERNS[i];
        double ns[WAYS];
        for (int way = 0; way < WAYS; way++) {
            char settings[64];
            snprintf(settings, sizeof settings, "huge:%s,move:%s", pages, WAY_NAMES[way]);
            ns[way] = time_moves(settings, p, runs);
        }
        printf("%-32s %8.1f", p->name, ns[0] / 1e3);
        for (int way = 1; way < WAYS; way++) {
            if (ns[way] > 0) {
                printf("   %9.1f %6.1f", ns[way] / 1e3, ns[0] / ns[way]);
            } else {
                printf("   %9s %6s", "-", "-");
            }
        }
        if (p->goal > 0 && strcmp(pages, "true") == 0) {
            printf("   %4.0f", p->goal);
        }
        printf("\n");
    }
}

/** The calls of virtual memory, and what a granule costs that changes its address. */
static void bench_virtual(const char *settings, int runs)
{
    static samples create;
    static samples map;
    static samples unmap;
    static samples remap;
    static samples release;
    create.count = map.count = unmap.count = remap.count = release.count = 0;
    allot_device *const device = open_host(settings);
    if (device == NULL) {
        return;
    }
    const uint64_t size = 2 * MIB;
    const uint64_t granules = ARENA / size;
    allot_devptr range = {0};
    require(allot_device_reserve(device, 2 * ARENA, &range), "reserve");
    for (int run = 0; run < runs; run++) {
        for (uint64_t i = 0; i < granules; i++) {
            const allot_devptr here = after(range, 2 * i * size);
            const allot_devptr there = after(here, size);
            allot_memory memory = {0};
            const double begin = now_ns();
            require(allot_device_memory_create(device, size, &memory), "create");
            const double created = now_ns();
            require(allot_device_map(device, here, memory, size), "map");
            add(&create, created - begin);
            add(&map, now_ns() - created);
            require(allot_device_fill(device, DEFAULT_STREAM, here, 1, size), "fill");
            const double filled = now_ns();
            require(allot_device_unmap(device, here, size), "unmap");
            const double unmapped = now_ns();
            require(allot_device_map(device, there, memory, size), "map");
            add(&unmap, unmapped - filled);
            add(&remap, now_ns() - filled);
            require(allot_device_unmap(device, there, size), "unmap");
            const double left = now_ns();
            require(allot_device_memory_release(device, memory, size), "release");
            add(&release, now_ns() - left);
        }
    }
    allot_device_destroy(device);
    printf("%-24s %9.2f %9.2f %9.2f %16.2f %9.2f\n", settings, median(&create) / 1e3,
           median(&map) / 1e3, median(&unmap) / 1e3, median(&remap) / 1e3, median(&release) / 1e3);
}

int main(int argc, char **argv)
{
    const long runs = argc > 1 ? strtol(argv[1], NULL, 10) : RUNS_DEFAULT;
    if (runs < 1 || runs > RUNS_MAX) {
        fprintf(stderr, "usage: bench_device [RUNS]      1 to %d\n", RUNS_MAX);
        return 2;
    }
    const double begin = now_ns();
    allot_device *const device = open_host("move:auto");
    const double open_ns = now_ns() - begin;
    allot_device_info info;
    allot_device_get_info(device, &info);
    allot_device_destroy(device);
    printf("%s; opened and measured in %.1f ms; copies %.2f GiB/s\n", info.name, open_ns / 1e6,
           (double)info.copy_bytes_per_s / (double)(1024 * MIB));
    bench_copies((int)runs);
    bench_moves("true", (int)runs);
    bench_moves("false", (int)runs);
    printf(
        "\n2 MiB, us                   create       map     unmap  unmap, map again   release\n");
    for (int way = 0; way < WAYS; way++) {
        char settings[64];
        snprintf(settings, sizeof settings, "move:%s", WAY_NAMES[way]);
        bench_virtual(settings, (int)runs);
        snprintf(settings, sizeof settings, "move:%s,guard:true", WAY_NAMES[way]);
        bench_virtual(settings, (int)runs);
    }
    return 0;
}
