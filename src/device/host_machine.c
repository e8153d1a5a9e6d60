/* SPDX-License-Identifier: MIT */
/*
 * Every figure is the least of a few runs: what else the machine does only adds to a time. Copies
 * are timed with nothing of them in a cache, as memory that is worth moving was not used just now;
 * moves with both ends full of pages, as in a heap, where a destination was used before.
 */
#include "device/host_machine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "device/host_pages.h"

enum {
    RUNS = 3,
    SMALL_COPY = 64,
    SMALL_COPIES = 256,
    CACHE_LINE = 64,
};

#define ROOM HOST_HUGE_PAGE            /* at each end of a timed copy or move */
#define PART (UINT64_C(256) << 10)     /* of a huge page, to see what splitting it costs */
#define TRIED (4 * alloti_host_page()) /* moved to see whether a way works */
/* Bytes per second: what is slower was not measured. */
#define SLOWEST_COPY (UINT64_C(100) << 20)

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** Two ends of `ROOM` bytes each, one behind the other, full of pages; 0 on failure. */
static uint64_t ends_map(const host_mover *mover, bool is_huge)
{
    const host_mapping mapping = {.size = 2 * ROOM, .align = HOST_HUGE_PAGE, .is_huge = is_huge};
    const uint64_t ends = alloti_host_pages_map(&mapping);
    if (ends != 0) {
        alloti_host_mover_adopt(mover, ends, mapping.size);
        memset(alloti_host_pointer(ends), 1, (size_t)mapping.size);
    }
    return ends;
}

static void ends_unmap(uint64_t ends)
{
    (void)alloti_host_pages_unmap(ends, 2 * ROOM);
}

static uint64_t time_small_copy(uint64_t ends)
{
    const uint64_t begin = now_ns();
    for (uint64_t i = 0; i < SMALL_COPIES; i++) {
        memcpy(alloti_host_pointer(ends + ROOM + i * SMALL_COPY),
               alloti_host_pointer(ends + i * SMALL_COPY), SMALL_COPY);
    }
    return (now_ns() - begin) / SMALL_COPIES + 1;
}

/** Take a range out of the caches. Does nothing on processors where it is not known how: copies
 * then seem faster, and less is moved. */
static void flush(uint64_t address, uint64_t size)
{
#ifdef __SSE2__
    for (uint64_t i = 0; i < size; i += CACHE_LINE) {
        _mm_clflush(alloti_host_pointer(address + i));
    }
    _mm_mfence();
#else
    (void)address;
    (void)size;
#endif
}

static uint64_t time_copy(uint64_t ends)
{
    flush(ends, ROOM);
    flush(ends + ROOM, ROOM);
    const uint64_t begin = now_ns();
    memcpy(alloti_host_pointer(ends + ROOM), alloti_host_pointer(ends), ROOM);
    return now_ns() - begin + 1;
}

static void measure_copies(host_machine *machine)
{
    const host_mover none = {.uffd = -1};
    const uint64_t ends = ends_map(&none, machine->has_huge);
    uint64_t time_ns = ROOM * 1000000000u / SLOWEST_COPY;
    uint64_t small_ns = SMALL_COPY;
    for (int run = 0; ends != 0 && run < RUNS; run++) {
        time_ns = least(time_ns, time_copy(ends));
        small_ns = least(small_ns, time_small_copy(ends));
    }
    if (ends != 0) {
        ends_unmap(ends);
    }
    machine->copy_bytes_per_s = ROOM * 1000000000u / time_ns;
    machine->copy_latency_ns = small_ns;
}

static uint64_t copy_ns(const host_machine *machine, uint64_t size)
{
    return machine->copy_latency_ns + size * 1000000000u / machine->copy_bytes_per_s;
}

/** Least time of moves to and fro; HOST_NEVER if pages had to be copied. */
static uint64_t time_move(host_mover *mover, uint64_t ends, uint64_t size, int runs)
{
    uint64_t time_ns = HOST_NEVER;
    for (int run = 0; run < runs; run++) {
        const uint64_t src = ends + (run % 2 == 0 ? 0 : ROOM);
        const uint64_t dst = ends + (run % 2 == 0 ? ROOM : 0);
        const uint64_t begin = now_ns();
        alloti_host_move(mover, dst, src, size);
        time_ns = least(time_ns, now_ns() - begin);
    }
    const bool is_copied = atomic_load_explicit(&mover->size_copied, memory_order_relaxed) != 0;
    return is_copied ? HOST_NEVER : time_ns;
}

/** Smallest doubling of the page from which on moving wins, where it costs `extra_ns` more. */
static uint64_t find_page_min(const host_machine *machine, host_mover *mover, uint64_t ends,
                              uint64_t extra_ns)
{
    uint64_t page_min = HOST_NEVER;
    for (uint64_t size = ROOM; size >= mover->page; size /= 2) {
        const uint64_t time_ns = time_move(mover, ends, size, RUNS);
        if (time_ns >= HOST_NEVER - extra_ns || time_ns + extra_ns >= copy_ns(machine, size)) {
            break;
        }
        page_min = size;
    }
    return page_min;
}

/** What it costs to split a huge page, beyond moving a part of it; HOST_NEVER: unknown. */
static uint64_t measure_split(const host_machine *machine, host_mover *mover, host_way_found *found)
{
    const uint64_t ends = ends_map(mover, true);
    if (ends == 0) {
        return HOST_NEVER;
    }
    found->is_huge_cheap =
        time_move(mover, ends, HOST_HUGE_PAGE, RUNS) < copy_ns(machine, HOST_HUGE_PAGE);
    /* The first time splits, on both ends; from then on the pages are small. */
    const uint64_t split_ns = time_move(mover, ends, PART, 1);
    const uint64_t whole_ns = time_move(mover, ends, PART, RUNS);
    ends_unmap(ends);
    return split_ns == HOST_NEVER || whole_ns == HOST_NEVER ? HOST_NEVER
           : split_ns > whole_ns                            ? split_ns - whole_ns
                                                            : 0;
}

static void measure_way(const host_machine *machine, host_mover *mover, host_way_found *found)
{
    const uint64_t ends = ends_map(mover, false);
    if (ends == 0) {
        return;
    }
    found->page_min[0] = find_page_min(machine, mover, ends, 0);
    if (machine->has_huge) {
        const uint64_t extra_ns = measure_split(machine, mover, found);
        found->page_min[1] =
            extra_ns == HOST_NEVER ? HOST_NEVER : find_page_min(machine, mover, ends, extra_ns);
    }
    ends_unmap(ends);
}

/** Whether bytes arrive, and without copying. */
static allot_status try_way(host_mover *mover)
{
    const uint64_t size = TRIED;
    const host_mapping mapping = {.size = 2 * size, .align = mover->page};
    const uint64_t ends = alloti_host_pages_map(&mapping);
    if (ends == 0) {
        return alloti_fail_memory(mapping.size);
    }
    alloti_host_mover_adopt(mover, ends, mapping.size);
    memset(alloti_host_pointer(ends), 1, (size_t)size);
    alloti_host_move(mover, ends + size, ends, size);
    const unsigned char *const arrived = alloti_host_pointer(ends + size);
    bool is_there = atomic_load_explicit(&mover->size_moved, memory_order_relaxed) == size;
    for (uint64_t i = 0; i < size; i++) {
        is_there = is_there && arrived[i] == 1;
    }
    (void)alloti_host_pages_unmap(ends, mapping.size);
    return is_there ? ALLOT_STATUS_OK
                    : alloti_fail(ALLOT_STATUS_UNSUPPORTED, "the kernel refuses %s, which %s has",
                                  alloti_host_way_text(mover->way),
                                  mover->way == HOST_WAY_UFFD ? "Linux 6.8" : "Linux 5.7");
}

/* Each filled once, by measure(), and only read after that. */
static host_way_found ways[HOST_WAY_COUNT];

static void measure(host_way way)
{
    host_way_found *const found = &ways[way];
    *found = (host_way_found){.works = way == HOST_WAY_COPY, .page_min = {HOST_NEVER, HOST_NEVER}};
    if (way == HOST_WAY_COPY) {
        return;
    }
    host_mover mover;
    allot_status status = alloti_host_mover_init(&mover, way);
    if (status == ALLOT_STATUS_OK) {
        status = try_way(&mover);
        found->works = status == ALLOT_STATUS_OK;
        if (found->works) {
            measure_way(alloti_host_machine(), &mover, found);
        }
        alloti_host_mover_fini(&mover, false);
    }
    if (!found->works) {
        snprintf(found->reason, sizeof found->reason, "%s", allot_error_detail());
    }
}

/* Filled once, by look_around(), and only read after that. */
static host_machine this_machine;

static void look_around(void)
{
    this_machine.page = alloti_host_page();
    this_machine.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * this_machine.page;
    this_machine.has_huge = alloti_host_has_huge_pages();
    measure_copies(&this_machine);
}

const host_machine *alloti_host_machine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_around);
    return &this_machine;
}

#define MEASURE_WAY(name, spelling, text)                                                          \
    static void measure_##name(void)                                                               \
    {                                                                                              \
        measure(HOST_WAY_##name);                                                                  \
    }
HOST_WAY_LIST(MEASURE_WAY)
#undef MEASURE_WAY

const host_way_found *alloti_host_way_find(host_way way)
{
    /* No lock, which would stay locked in a child that is forked while one thread measures: there
     * pthread_once() begins anew. */
    static struct {
        pthread_once_t once;
        void (*measure)(void);
    } looks[HOST_WAY_COUNT] = {
#define LOOK(name, spelling, text) {PTHREAD_ONCE_INIT, measure_##name},
        HOST_WAY_LIST(LOOK)
#undef LOOK
    };
    pthread_once(&looks[way].once, looks[way].measure);
    return &ways[way];
}

uint64_t alloti_host_way_min(host_way way, bool is_huge)
{
    const host_way_found *const found = alloti_host_way_find(way);
    const uint64_t page_min = found->page_min[is_huge ? 1 : 0];
    return is_huge && found->is_huge_cheap ? least(page_min, HOST_HUGE_PAGE) : page_min;
}

host_way alloti_host_way_best(bool is_huge)
{
    if (alloti_host_way_min(HOST_WAY_UFFD, is_huge) != HOST_NEVER) {
        return HOST_WAY_UFFD;
    }
    return alloti_host_way_min(HOST_WAY_MREMAP, is_huge) != HOST_NEVER ? HOST_WAY_MREMAP
                                                                       : HOST_WAY_COPY;
}
