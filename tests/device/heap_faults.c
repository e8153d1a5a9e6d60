/* SPDX-License-Identifier: MIT */
/*
 * A driver that fails, call after call: each step of a program either works or leaves the heap as
 * it was, and nothing is left in the end. Only the stand-in fails on request.
 */
#include <allot/compact.h>
#include <dlfcn.h>
#include <string.h>

#include "device/heap_suite.h"

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };

/** A function of the driver that is loaded; false if it has none of this name. */
static bool find(const char *name, void *place)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *const symbol = library == NULL ? NULL : dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol);
    return symbol != NULL;
}

/** What must be as before after a step that failed. Free memory may have been given back. */
typedef struct figures {
    uint64_t allocated;
    uint64_t allocated_bytes;
    uint64_t requested_bytes;
} figures;

static figures figures_of(scene *s)
{
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(s->heap, &stats));
    return (figures){stats.allocation.current, stats.allocated_bytes.current,
                     stats.requested_bytes.current};
}

/** The program: blocks of two streams, of which all but the pointer may move. */
typedef struct blocks {
    allot_handle first;
    allot_handle second;
    allot_handle third;
    allot_devptr pointer;
} blocks;

static allot_status get(scene *s, uint64_t size, int stream, allot_handle *out)
{
    const allot_request request = request_of(size, s->streams[stream]);
    return allot_heap_alloc(s->heap, &request, out);
}

static allot_status get_first(scene *s, blocks *b)
{
    return get(s, 3 * MIB, 1, &b->first);
}

static allot_status get_second(scene *s, blocks *b)
{
    return get(s, MIB, 1, &b->second);
}

static allot_status get_third(scene *s, blocks *b)
{
    return get(s, 2 * MIB, 1, &b->third);
}

static allot_status get_pointer(scene *s, blocks *b)
{
    const allot_request request = request_of(5 * MIB, s->streams[2]);
    return allot_heap_alloc_pointer(s->heap, &request, &b->pointer);
}

static allot_status use_first(scene *s, blocks *b)
{
    return allot_heap_use(s->heap, b->first, s->streams[2]);
}

static allot_status grow_second(scene *s, blocks *b)
{
    return allot_heap_resize(s->heap, b->second, 2 * MIB);
}

static allot_status grow_first(scene *s, blocks *b)
{
    return allot_heap_resize(s->heap, b->first, 4 * MIB);
}

static allot_status free_second(scene *s, blocks *b)
{
    return allot_heap_free(s->heap, b->second);
}

static allot_status make_room(scene *s, blocks *b)
{
    const allot_request request = request_of(3 * MIB, s->streams[1]);
    (void)b;
    const allot_status status = allot_compact_make_room(s->heap, &request, NULL);
    return status == ALLOT_STATUS_FRAGMENTED ? ALLOT_STATUS_OK : status;
}

static allot_status free_first(scene *s, blocks *b)
{
    return allot_heap_free(s->heap, b->first);
}

static allot_status free_pointer(scene *s, blocks *b)
{
    return allot_heap_free_pointer(s->heap, b->pointer);
}

static allot_status free_third(scene *s, blocks *b)
{
    return allot_heap_free(s->heap, b->third);
}

static allot_status (*const STEPS[])(scene *s, blocks *b) = {
    get_first,  get_second,  get_third, get_pointer, use_first,    grow_second,
    grow_first, free_second, make_room, free_first,  free_pointer, free_third,
};

typedef void (*fail_fn)(uint64_t nth, int code);

/** Whether a status is one that a failing call of the driver may lead to. */
static bool is_expected(allot_status status, int code)
{
    return code == LAUNCH_FAILED
               ? status == ALLOT_STATUS_BACKEND
               : status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_HOST_MEMORY ||
                     status == ALLOT_STATUS_FRAGMENTED;
}

/** Run the program with the n-th call of the driver failing; a step that fails is run again. False
 * if none failed. */
static bool run(allot_heap_mode mode, fail_fn fail, uint64_t n, int code)
{
    scene s = scene_begin((allot_heap_options){
        .mode = mode, .segment_size = 8 * MIB, .reserve_size = 64 * MIB, .is_debug = n % 2 == 1});
    blocks b = {.first = {0}};
    bool has_failed = false;
    if (s.heap == NULL) {
        return false;
    }
    fail(n, code);
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        const figures before = figures_of(&s);
        allot_status status = STEPS[i](&s, &b);
        if (status != ALLOT_STATUS_OK) {
            const figures after = figures_of(&s);
            CHECK(is_expected(status, code));
            CHECK_EQ(memcmp(&before, &after, sizeof before), 0);
            has_failed = true;
            CHECK_OK(STEPS[i](&s, &b));
        }
        CHECK_OK(allot_heap_check(s.heap));
    }
    fail(0, 0);
    scene_end(&s);
    return has_failed;
}

/** Until so many calls one after the other may fail and nothing does: the program makes no more.
 * Some failures are made good by the next rung of the ladder. */
static void sweep(allot_heap_mode mode)
{
    enum { QUIET = 12, FEWEST = 8 };
    static const int codes[] = {OUT_OF_MEMORY, LAUNCH_FAILED};
    fail_fn fail = NULL;
    REQUIRE(find("allot_standin_fail", &fail));
    for (size_t i = 0; i < 2; i++) {
        unsigned failures = 0;
        unsigned quiet = 0;
        for (uint64_t n = 1; quiet < QUIET; n++) {
            const bool has_failed = run(mode, fail, n, codes[i]);
            failures += has_failed;
            quiet = has_failed ? 0 : quiet + 1;
        }
        CHECK(failures >= FEWEST);
    }
}

void every_failure_of_the_driver_is_undone(void)
{
    fail_fn fail = NULL;
    if (find("allot_standin_fail", &fail)) {
        each_mode(sweep);
    } else {
        check_skip("only the stand-in fails on request");
    }
}

void no_rule_of_the_driver_was_broken(void)
{
    uint64_t (*broken)(void) = NULL;
    if (find("allot_standin_rules_broken", &broken)) {
        CHECK_EQ(broken(), 0);
    } else {
        check_skip("only the stand-in counts broken rules");
    }
}
