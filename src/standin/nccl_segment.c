/* SPDX-License-Identifier: MIT */
#include "standin/nccl_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/status.h"
#include "standin/nccl.h"

/* There is a ring for each pair, so rings are small where there are many: all together take 16 MiB
 * for 16 ranks and at most 33 MiB for more, some KiB for each pair down to half of one. */
enum { RING_LARGE = 1 << 16, RING_SMALL = 1 << 13, FEW_RANKS = 16, RINGS_MAX = 1 << 25 };
enum { RING_SMALLEST = RINGS_MAX / SEGMENT_RANKS_MAX / SEGMENT_RANKS_MAX, RING_UNIT = 64 };
_Static_assert(RING_SMALLEST >= 2 * sizeof(nccl_record), "a ring takes whole records");

typedef enum fault_state { FAULT_NONE, FAULT_WRITING, FAULT_TOLD } fault_state;

typedef struct segment_head {
    atomic_uint size;
    atomic_uint fault; /**< fault_state: `text` may be read once it is told. */
    char text[SEGMENT_TEXT_MAX];
} segment_head;

typedef struct segment_rank {
    atomic_uint state;  /**< segment_state, or ENTERING. */
    atomic_uint device; /**< Valid once joined, as the two below. */
    atomic_long process;
    atomic_uint_least64_t start; /**< Of the process, in clock ticks since the machine started. */
    atomic_uint_least64_t calls;
} segment_rank;

typedef struct segment_ring {
    atomic_uint_least64_t written; /**< Bytes so far; only the writer changes it. */
    atomic_uint_least64_t read;    /**< Bytes so far; only the reader changes it. */
} segment_ring;                    /* the bytes follow */

struct nccl_segment {
    unsigned char *map;
    uint64_t map_size;
    uint64_t ring_size;
    unsigned size;
    unsigned rank;
    bool has_name;
    char path[SEGMENT_PATH_MAX];
};

static const unsigned ENTERING = 0x100;

static segment_head *head_of(const nccl_segment *segment)
{
    return (segment_head *)(void *)segment->map;
}

static segment_rank *rank_of(const nccl_segment *segment, unsigned rank)
{
    return (segment_rank *)(void *)(segment->map + sizeof(segment_head)) + rank;
}

static segment_ring *ring_of(const nccl_segment *segment, unsigned from, unsigned to)
{
    const uint64_t number = (uint64_t)from * segment->size + to;
    unsigned char *const first =
        segment->map + sizeof(segment_head) + segment->size * sizeof(segment_rank);
    return (segment_ring *)(void *)(first + number * (sizeof(segment_ring) + segment->ring_size));
}

/* ---- processes ---- */

/** State letter and start of a process, from /proc; false if there is no such process. */
static bool process_read(long process, char *state, uint64_t *start)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *const file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    const size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    /* The name, in parentheses, may hold anything; the state follows, the start is 19 fields on. */
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') {
        return false;
    }
    *state = at[2];
    for (int i = 0; i < 20 && at != NULL; i++) {
        at = strchr(at + 1, ' ');
    }
    *start = at == NULL ? 0 : strtoull(at, NULL, 10);
    return at != NULL;
}

bool segment_is_dead(const nccl_segment *segment, unsigned rank)
{
    segment_rank *const other = rank_of(segment, rank);
    const long process = atomic_load(&other->process);
    char state = 0;
    uint64_t start = 0;
    if (segment_state_of(segment, rank) != SEGMENT_JOINED || process == (long)getpid()) {
        return false;
    }
    return !process_read(process, &state, &start) || state == 'Z' || state == 'X' ||
           start != atomic_load(&other->start);
}

/* ---- meeting ---- */

allot_status segment_invite(const char *folder, char *path, size_t size)
{
    if (snprintf(path, size, "%s/allot-nccl-XXXXXX", folder) >= (int)size) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: too long a path for a meeting place", folder);
    }
    const int file = mkstemp(path);
    if (file < 0) {
        return alloti_fail(ALLOT_STATUS_BACKEND, "%s: %s", path, strerror(errno));
    }
    close(file);
    return ALLOT_STATUS_OK;
}

/** Map the file, as large as it has to be; its space is taken now rather than in a fault later. */
static allot_status map_file(nccl_segment *segment, bool may_create)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (may_create ? O_CREAT : 0);
    const int file = open(segment->path, flags, 0600);
    if (file < 0) {
        return alloti_fail(errno == ENOENT ? ALLOT_STATUS_NOT_FOUND : ALLOT_STATUS_BACKEND,
                           "%s: %s", segment->path, strerror(errno));
    }
    void *map = MAP_FAILED;
    const int error = posix_fallocate(file, 0, (off_t)segment->map_size);
    if (error == 0) {
        map = mmap(NULL, (size_t)segment->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (map == MAP_FAILED) {
        return alloti_fail(ALLOT_STATUS_BACKEND, "%s: %s", segment->path,
                           strerror(error != 0 ? error : errno));
    }
    segment->map = map;
    return ALLOT_STATUS_OK;
}

static allot_status enter(nccl_segment *segment, unsigned device)
{
    segment_head *const head = head_of(segment);
    segment_rank *const own = rank_of(segment, segment->rank);
    unsigned expected = 0;
    if (!atomic_compare_exchange_strong(&head->size, &expected, segment->size) &&
        expected != segment->size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "rank %u says that the communicator has %u ranks, another one said %u",
                           segment->rank, segment->size, expected);
    }
    expected = SEGMENT_ABSENT;
    if (!atomic_compare_exchange_strong(&own->state, &expected, ENTERING)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "there are two of rank %u", segment->rank);
    }
    char state = 0;
    uint64_t start = 0;
    (void)process_read((long)getpid(), &state, &start);
    atomic_store(&own->device, device);
    atomic_store(&own->process, (long)getpid());
    atomic_store(&own->start, start);
    atomic_store(&own->state, SEGMENT_JOINED);
    return ALLOT_STATUS_OK;
}

static void unmap(nccl_segment *segment)
{
    if (segment->map != NULL) {
        munmap(segment->map, (size_t)segment->map_size);
    }
    free(segment);
}

static uint64_t ring_size_for(unsigned ranks)
{
    if (ranks <= FEW_RANKS) {
        return RING_LARGE;
    }
    const uint64_t share = RINGS_MAX / ((uint64_t)ranks * ranks);
    return share < RING_SMALL ? share / RING_UNIT * RING_UNIT : RING_SMALL;
}

allot_status segment_join(const char *path, bool may_create, unsigned size, unsigned rank,
                          unsigned device, nccl_segment **out)
{
    if (size == 0 || size > SEGMENT_RANKS_MAX || rank >= size || strlen(path) >= SEGMENT_PATH_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "rank %u of %u: there can be %d ranks", rank, size,
                           SEGMENT_RANKS_MAX);
    }
    nccl_segment *const segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        return alloti_fail_memory(sizeof *segment);
    }
    segment->size = size;
    segment->rank = rank;
    segment->has_name = true;
    segment->ring_size = ring_size_for(size);
    segment->map_size = sizeof(segment_head) + size * sizeof(segment_rank) +
                        (uint64_t)size * size * (sizeof(segment_ring) + segment->ring_size);
    memcpy(segment->path, path, strlen(path) + 1);
    allot_status status = map_file(segment, may_create);
    if (status == ALLOT_STATUS_OK) {
        status = enter(segment, device);
    }
    if (status != ALLOT_STATUS_OK) {
        unmap(segment);
        return status;
    }
    *out = segment;
    return ALLOT_STATUS_OK;
}

void segment_leave(nccl_segment *segment)
{
    if (segment == NULL) {
        return;
    }
    atomic_store(&rank_of(segment, segment->rank)->state, SEGMENT_LEFT);
    unmap(segment);
}

bool segment_is_complete(nccl_segment *segment)
{
    for (unsigned i = 0; i < segment->size; i++) {
        if (segment_state_of(segment, i) == SEGMENT_ABSENT) {
            return false;
        }
    }
    segment_unlink(segment);
    segment->has_name = false;
    return true;
}

void segment_unlink(const nccl_segment *segment)
{
    if (segment->has_name) {
        (void)unlink(segment->path); /* another rank may have been first */
    }
}

/* ---- questions ---- */

const char *segment_path(const nccl_segment *segment)
{
    return segment->path;
}

segment_state segment_state_of(const nccl_segment *segment, unsigned rank)
{
    const unsigned state = atomic_load(&rank_of(segment, rank)->state);
    return state == ENTERING ? SEGMENT_ABSENT : (segment_state)state;
}

unsigned segment_device_of(const nccl_segment *segment, unsigned rank)
{
    return atomic_load(&rank_of(segment, rank)->device);
}

long segment_process_of(const nccl_segment *segment, unsigned rank)
{
    return atomic_load(&rank_of(segment, rank)->process);
}

void segment_set_calls(nccl_segment *segment, uint64_t calls)
{
    atomic_store(&rank_of(segment, segment->rank)->calls, calls);
}

uint64_t segment_calls_of(const nccl_segment *segment, unsigned rank)
{
    return atomic_load(&rank_of(segment, rank)->calls);
}

/* ---- rings ---- */

static uint64_t filled(segment_ring *ring)
{
    /* Acquire: whoever sees the count sees the bytes, or that they are no longer needed. */
    const uint64_t read = atomic_load_explicit(&ring->read, memory_order_acquire);
    return atomic_load_explicit(&ring->written, memory_order_acquire) - read;
}

uint64_t segment_room(const nccl_segment *segment, unsigned to)
{
    return segment->ring_size - filled(ring_of(segment, segment->rank, to));
}

uint64_t segment_ready(const nccl_segment *segment, unsigned from)
{
    return filled(ring_of(segment, from, segment->rank));
}

/** Copy between a ring, from byte number `at` on, and `bytes`; at most once around. */
static void copy_ring(const nccl_segment *segment, segment_ring *ring, uint64_t at,
                      unsigned char *bytes, uint64_t size, bool is_write)
{
    unsigned char *const data = (unsigned char *)(ring + 1);
    uint64_t done = 0;
    while (done < size) {
        const uint64_t place = (at + done) % segment->ring_size;
        const uint64_t left = segment->ring_size - place;
        const size_t step = (size_t)(size - done < left ? size - done : left);
        if (is_write) {
            memcpy(data + place, bytes + done, step);
        } else {
            memcpy(bytes + done, data + place, step);
        }
        done += step;
    }
}

uint64_t segment_write(nccl_segment *segment, unsigned to, const void *bytes, uint64_t size)
{
    segment_ring *const ring = ring_of(segment, segment->rank, to);
    const uint64_t room = segment_room(segment, to);
    const uint64_t step = size < room ? size : room;
    const uint64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
    copy_ring(segment, ring, at, (unsigned char *)(uintptr_t)bytes, step, true);
    /* Release: the bytes come before the count. */
    atomic_store_explicit(&ring->written, at + step, memory_order_release);
    return step;
}

uint64_t segment_read(nccl_segment *segment, unsigned from, void *bytes, uint64_t size)
{
    segment_ring *const ring = ring_of(segment, from, segment->rank);
    const uint64_t ready = segment_ready(segment, from);
    const uint64_t step = size < ready ? size : ready;
    const uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
    copy_ring(segment, ring, at, bytes, step, false);
    atomic_store_explicit(&ring->read, at + step, memory_order_release);
    return step;
}

/* ---- faults ---- */

bool segment_break(nccl_segment *segment, const char *text)
{
    segment_head *const head = head_of(segment);
    unsigned expected = FAULT_NONE;
    if (!atomic_compare_exchange_strong(&head->fault, &expected, FAULT_WRITING)) {
        return false;
    }
    snprintf(head->text, sizeof head->text, "%s", text);
    atomic_store(&head->fault, FAULT_TOLD);
    return true;
}

const char *segment_fault(const nccl_segment *segment)
{
    const segment_head *const head = head_of(segment);
    return atomic_load(&head->fault) == FAULT_TOLD ? head->text : NULL;
}
