/* SPDX-License-Identifier: MIT */
/* Moving pages on the host: whatever way is taken, bytes arrive and nothing else changes. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/host_machine.h"
#include "device/host_pages.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)

/** Memory under test and what it must hold. */
typedef struct arena {
    host_mover mover;
    uint64_t begin;
    uint64_t size;
    unsigned char *model;
} arena;

static bool arena_init(arena *a, host_way way, uint64_t size, bool is_huge)
{
    *a = (arena){.size = size};
    if (!alloti_host_way_find(way)->works || (is_huge && !alloti_host_machine()->has_huge)) {
        return false;
    }
    if (!CHECK_OK(alloti_host_mover_init(&a->mover, way))) {
        return false;
    }
    a->mover.page_min = a->mover.page;
    a->mover.is_huge_cheap = is_huge;
    const host_mapping mapping = {.size = size, .align = HOST_HUGE_PAGE, .is_huge = is_huge};
    a->begin = alloti_host_pages_map(&mapping);
    a->model = malloc((size_t)size);
    if (!CHECK(a->begin != 0) || !CHECK(a->model != NULL)) {
        exit(1);
    }
    alloti_host_mover_adopt(&a->mover, a->begin, size);
    return true;
}

static void arena_fini(arena *a)
{
    CHECK(alloti_host_pages_unmap(a->begin, a->size));
    alloti_host_mover_fini(&a->mover, false);
    free(a->model);
}

/** Different bytes everywhere, in memory and model. */
static void arena_fill(arena *a, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < a->size; i += sizeof state) {
        const uint64_t word = check_random(&state);
        memcpy(a->model + i, &word, sizeof word);
    }
    memcpy(alloti_host_pointer(a->begin), a->model, (size_t)a->size);
}

/** After a move: `dst` has the bytes, `src` any, and the rest is as it was. */
static bool arrives(arena *a, uint64_t dst, uint64_t src, uint64_t size)
{
    memcpy(a->model + dst, a->model + src, (size_t)size);
    alloti_host_move(&a->mover, a->begin + dst, a->begin + src, size);
    unsigned char *const memory = alloti_host_pointer(a->begin);
    if (!CHECK(memcmp(memory + dst, a->model + dst, (size_t)size) == 0)) {
        return false;
    }
    memcpy(a->model + src, memory + src, (size_t)size);
    return CHECK(memcmp(memory, a->model, (size_t)a->size) == 0);
}

static uint64_t moved(const arena *a)
{
    return atomic_load(&a->mover.size_moved);
}

static uint64_t copied(const arena *a)
{
    return atomic_load(&a->mover.size_copied);
}

/** Call `run` with an arena of each way that works, of small pages and of huge ones. */
static void each_arena(uint64_t size, void (*run)(arena *a))
{
    for (unsigned way = 0; way < HOST_WAY_COUNT; way++) {
        for (int is_huge = 0; is_huge < 2; is_huge++) {
            arena a;
            if (arena_init(&a, (host_way)way, size, is_huge != 0)) {
                run(&a);
                arena_fini(&a);
            }
        }
    }
}

static void move_sizes_around_pages(arena *a)
{
    const uint64_t page = a->mover.page;
    const uint64_t sizes[] = {1,
                              page - 1,
                              page,
                              page + 1,
                              3 * page,
                              16 * page + 5,
                              HOST_HUGE_PAGE - page,
                              HOST_HUGE_PAGE,
                              HOST_HUGE_PAGE + page,
                              HOST_HUGE_PAGE + page + 1};
    const uint64_t shifts[] = {0, 1, page - 1, page, 5 * page + 64};
    arena_fill(a, check_seed());
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t s = 0; s < sizeof shifts / sizeof shifts[0]; s++) {
            for (size_t d = 0; d < sizeof shifts / sizeof shifts[0]; d++) {
                if (!arrives(a, 2 * HOST_HUGE_PAGE + shifts[d], shifts[s], sizes[i])) {
                    return;
                }
            }
        }
    }
}

static void bytes_arrive_at_every_size_and_edge(void)
{
    each_arena(8 * MIB, move_sizes_around_pages);
}

static void move_at_random(arena *a)
{
    uint64_t state = check_seed();
    arena_fill(a, state);
    for (int i = 0; i < 150; i++) {
        const uint64_t unit = check_random_range(&state, 0, 3) == 0 ? 1 : a->mover.page;
        uint64_t size = check_random_range(&state, 1, 4 * MIB / unit) * unit;
        if (check_random_range(&state, 0, 1) == 0) {
            size = size % (64 * a->mover.page) + 1;
        }
        const uint64_t low = check_random_range(&state, 0, (a->size - 2 * size) / unit) * unit;
        const uint64_t high =
            low + size + check_random_range(&state, 0, (a->size - low - 2 * size) / unit) * unit;
        const bool is_up = check_random_range(&state, 0, 1) == 0;
        if (!arrives(a, is_up ? high : low, is_up ? low : high, size)) {
            return;
        }
    }
    CHECK((moved(a) != 0) == (a->mover.way != HOST_WAY_COPY));
}

static void bytes_arrive_at_random(void)
{
    each_arena(12 * MIB, move_at_random);
}

static void relocate_and_look(arena *a)
{
    arena_fill(a, check_seed());
    const uint64_t size = 2 * HOST_HUGE_PAGE;
    alloti_host_relocate(&a->mover, a->begin + size, a->begin, size);
    const unsigned char *const memory = alloti_host_pointer(a->begin);
    CHECK(memcmp(memory + size, a->model, (size_t)size) == 0);
    unsigned char resident[1024] = {0};
    CHECK_EQ(
        mincore(alloti_host_pointer(a->begin), (size_t)(sizeof resident * a->mover.page), resident),
        0);
    for (size_t i = 0; i < sizeof resident; i++) {
        if (!CHECK_EQ(resident[i] & 1, 0)) {
            break;
        }
    }
    CHECK_EQ(memory[0], 0);
    CHECK_EQ(memory[size - 1], 0);
}

static void relocation_leaves_no_pages(void)
{
    each_arena(8 * MIB, relocate_and_look);
}

/** The mover's counter of bytes that were moved says so for every page. */
static void aligned_huge_pages_are_not_copied(void)
{
    arena a;
    if (!arena_init(&a, HOST_WAY_UFFD, 8 * MIB, true)) {
        check_skip("no UFFDIO_MOVE or no huge pages here");
        return;
    }
    arena_fill(&a, check_seed());
    CHECK(arrives(&a, 4 * MIB, 0, 4 * MIB));
    CHECK_EQ(moved(&a), 4 * MIB);
    CHECK_EQ(copied(&a), 0);
    arena_fini(&a);
}

static void move_zero_pages(arena *a)
{
    unsigned char *const memory = alloti_host_pointer(a->begin);
    memset(memory + 4 * MIB, 7, (size_t)(4 * MIB));
    unsigned sum = 0;
    for (uint64_t i = 0; i < MIB; i += a->mover.page) {
        sum += *(volatile unsigned char *)(memory + i); /* maps the page of zeros */
    }
    CHECK_EQ(sum, 0);
    memset(a->model, 0, (size_t)(4 * MIB));
    memset(a->model + 4 * MIB, 7, (size_t)(4 * MIB));
    CHECK(arrives(a, 4 * MIB, 0, 3 * MIB));
}

static void memory_that_was_never_written_moves_as_zeros(void)
{
    each_arena(8 * MIB, move_zero_pages);
}

/** A child that only waits shares every page until it ends. */
static void move_while_forked(arena *a)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    arena_fill(a, check_seed());
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) < 0);
    }
    REQUIRE(child > 0);
    (void)close(ends[0]);
    CHECK(arrives(a, 4 * MIB, 0, 3 * MIB + 100));
    if (a->mover.way == HOST_WAY_UFFD) {
        CHECK(copied(a) != 0); /* such pages cannot be moved this way */
    }
    (void)close(ends[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(arrives(a, 0, 4 * MIB, 3 * MIB + 100));
}

static void pages_shared_with_a_child_are_copied(void)
{
    each_arena(8 * MIB, move_while_forked);
}

static void move_locked(arena *a)
{
    arena_fill(a, check_seed());
    if (mlock(alloti_host_pointer(a->begin), (size_t)(64 * a->mover.page)) != 0) {
        check_skip("mlock is not allowed");
        return;
    }
    CHECK(arrives(a, 4 * MIB, 0, 3 * MIB));
    CHECK(arrives(a, 0, 4 * MIB, 3 * MIB));
    CHECK_EQ(munlock(alloti_host_pointer(a->begin), (size_t)(64 * a->mover.page)), 0);
}

static void locked_pages_keep_their_bytes(void)
{
    each_arena(8 * MIB, move_locked);
}

/** What another program did not tell the mover of. */
static void unknown_memory_is_copied(void)
{
    arena a;
    if (!arena_init(&a, HOST_WAY_UFFD, 4 * MIB, false)) {
        check_skip("no UFFDIO_MOVE here");
        return;
    }
    arena_fill(&a, check_seed());
    const host_mapping mapping = {.size = 2 * MIB, .align = HOST_HUGE_PAGE};
    const uint64_t other = alloti_host_pages_map(&mapping);
    REQUIRE(other != 0);
    alloti_host_move(&a.mover, other, a.begin, MIB);
    CHECK(memcmp(alloti_host_pointer(other), a.model, (size_t)MIB) == 0);
    CHECK_EQ(moved(&a), 0);
    CHECK_EQ(copied(&a), MIB);
    CHECK(alloti_host_pages_unmap(other, mapping.size));
    arena_fini(&a);
}

static void figures_of_the_machine_make_sense(void)
{
    const host_machine *const machine = alloti_host_machine();
    CHECK(machine == alloti_host_machine());
    CHECK(machine->memory > 64 * MIB);
    CHECK(machine->copy_bytes_per_s > MIB);
    CHECK(machine->copy_latency_ns > 0);
    CHECK_EQ(alloti_host_way_min(HOST_WAY_COPY, true), HOST_NEVER);
    for (unsigned way = 0; way < HOST_WAY_COUNT; way++) {
        const host_way_found *const found = alloti_host_way_find((host_way)way);
        CHECK(found->works == (found->reason[0] == '\0'));
        CHECK(found->works || alloti_host_way_min((host_way)way, true) == HOST_NEVER);
    }
}

static const check_test TESTS[] = {
    {"figures_of_the_machine_make_sense", figures_of_the_machine_make_sense},
    {"bytes_arrive_at_every_size_and_edge", bytes_arrive_at_every_size_and_edge},
    {"bytes_arrive_at_random", bytes_arrive_at_random},
    {"relocation_leaves_no_pages", relocation_leaves_no_pages},
    {"aligned_huge_pages_are_not_copied", aligned_huge_pages_are_not_copied},
    {"memory_that_was_never_written_moves_as_zeros", memory_that_was_never_written_moves_as_zeros},
    {"pages_shared_with_a_child_are_copied", pages_shared_with_a_child_are_copied},
    {"locked_pages_keep_their_bytes", locked_pages_keep_their_bytes},
    {"unknown_memory_is_copied", unknown_memory_is_copied},
};

CHECK_MAIN(TESTS)
