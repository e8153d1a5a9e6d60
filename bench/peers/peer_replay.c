/* SPDX-License-Identifier: MIT */
/*
 * peer_replay ADAPTER CONFIG WORKLOAD OPERATIONS LIMIT: one allocator (peer.h) on one workload, W1
 * to W4 as 1 to 4, cut after OPERATIONS (0: not). Answers each line of standard input with a line,
 * all of them on a new allocator:
 *
 *   check  -> "check REFUSED RESERVED LIVE FAULT": untimed; blocks of the first operations must
 *             begin at a multiple of 256, lie within the region and not overlap; FAULT says what is
 *             wrong, or is empty. LIVE: the most bytes that the workload has live.
 *          -> "slow DONE SECONDS" after LIMIT seconds of CPU time
 *   time   -> "time NANOSECONDS OPERATIONS": CPU time of this thread
 *
 * Exit code 1 with the reason on standard error if the allocator cannot be used.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "live_set.h"
#include "measure/workloads.h"
#include "peer.h"

enum { CHECKED_OPERATIONS = 60000, LIMIT_PERIOD = 1024, FAULT_MAX = 256 };

static const uint64_t CAPACITY_DEFAULT = UINT64_C(16) << 30;

static _Noreturn void die(const char *text, const char *why)
{
    fprintf(stderr, "%s%s%s\n", text, why == NULL ? "" : ": ", why == NULL ? "" : why);
    exit(1);
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const peer_ops *load(const char *path, const char *config)
{
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        die(dlerror(), NULL);
    }
    /* ISO C has no conversion from an object pointer to a function pointer. */
    void *const symbol = dlsym(handle, "peer_open");
    const peer_ops *(*open)(const char *, const char **) = NULL;
    memcpy(&open, &symbol, sizeof symbol);
    const char *reason = "it has no peer_open()";
    const peer_ops *const ops = symbol == NULL ? NULL : open(config, &reason);
    if (ops == NULL) {
        die(path, reason);
    }
    return ops;
}

/** What a replay works with. */
typedef struct run {
    const peer_ops *ops;
    void *self;
    uint64_t *blocks; /**< [slot] PEER_REFUSED: none. */
    uint64_t capacity;
} run;

static void begin(run *r)
{
    r->self = r->ops->create(r->capacity);
    if (r->self == NULL) {
        die("it cannot be made", NULL);
    }
}

/** Free what is left, which is no part of the workload. */
static void end(run *r, const workload *w)
{
    for (uint32_t slot = 0; slot < w->slot_count; slot++) {
        if (r->blocks[slot] != PEER_REFUSED) {
            r->ops->free(r->self, r->blocks[slot]);
            r->blocks[slot] = PEER_REFUSED;
        }
    }
    r->ops->destroy(r->self);
}

static void measure(run *r, const workload *w)
{
    const peer_ops ops = *r->ops;
    begin(r);
    const double first = cpu_ns();
    for (uint64_t i = 0; i < w->count; i++) {
        const workload_op op = w->ops[i];
        if (op.units != 0) {
            r->blocks[op.slot] = ops.alloc(r->self, (uint64_t)op.units * WORKLOAD_GRANULE);
        } else if (r->blocks[op.slot] != PEER_REFUSED) {
            ops.free(r->self, r->blocks[op.slot]);
            r->blocks[op.slot] = PEER_REFUSED;
        }
    }
    const double took = cpu_ns() - first;
    end(r, w);
    printf("time %.0f %" PRIu64 "\n", took, w->count);
}

/* ---- check ---- */

typedef struct check {
    live_set live;
    uint64_t refused;
    uint64_t high; /**< End of the highest block. */
    char fault[FAULT_MAX];
} check;

static void check_block(check *c, const run *r, live_range block, uint64_t operation)
{
    live_range other;
    const char *fault = NULL;
    if (block.begin % PEER_ALIGN != 0) {
        fault = "does not begin at a multiple of 256";
    } else if (r->ops->reserved == NULL && block.end > r->capacity) {
        fault = "ends outside of the region";
    } else if (!live_set_add(&c->live, block, &other)) {
        if (other.end == 0) {
            die("out of memory", NULL);
        }
        fault = "overlaps one that is in use";
    }
    if (fault != NULL) {
        snprintf(c->fault, sizeof c->fault,
                 "operation %" PRIu64 ": the block of %" PRIu64 " bytes at %" PRIu64 " %s",
                 operation, block.end - block.begin, block.begin, fault);
    }
}

static void check_alloc(check *c, run *r, workload_op op, uint64_t operation)
{
    const uint64_t size = (uint64_t)op.units * WORKLOAD_GRANULE;
    const uint64_t block = r->ops->alloc(r->self, size);
    r->blocks[op.slot] = block;
    if (block == PEER_REFUSED) {
        c->refused++;
        return;
    }
    const uint64_t at = r->ops->offset(r->self, block);
    c->high = at + size > c->high ? at + size : c->high;
    if (operation < CHECKED_OPERATIONS) {
        check_block(c, r, (live_range){at, at + size}, operation);
    }
}

static void check_free(check *c, run *r, workload_op op, uint64_t operation)
{
    const uint64_t block = r->blocks[op.slot];
    if (block == PEER_REFUSED) {
        return;
    }
    if (operation < CHECKED_OPERATIONS) {
        live_set_remove(&c->live, r->ops->offset(r->self, block));
    }
    r->ops->free(r->self, block);
    r->blocks[op.slot] = PEER_REFUSED;
}

/** Stops at the first fault; the process must not go on then. */
static bool check_all(run *r, const workload *w, double limit_s)
{
    check c = {.refused = 0};
    const double first = cpu_ns();
    begin(r);
    for (uint64_t i = 0; i < w->count && c.fault[0] == '\0'; i++) {
        const workload_op op = w->ops[i];
        (op.units != 0 ? check_alloc : check_free)(&c, r, op, i);
        const uint64_t done = i + 1;
        const double took_s = done % LIMIT_PERIOD != 0 ? 0 : (cpu_ns() - first) / 1e9;
        if (took_s > limit_s) {
            printf("slow %" PRIu64 " %.3f\n", done, took_s);
            return false;
        }
    }
    const uint64_t reserved = r->ops->reserved == NULL ? c.high : r->ops->reserved(r->self);
    printf("check %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", c.refused, reserved, w->peak, c.fault);
    free(c.live.ranges);
    if (c.fault[0] != '\0') {
        return false;
    }
    end(r, w);
    return true;
}

/** Keep the first operations only; 0: all. */
static void cut(workload *w, uint64_t count)
{
    uint32_t *const units = calloc(w->slot_count, sizeof *units);
    uint64_t live = 0;
    if (units == NULL) {
        die("out of memory", NULL);
    }
    w->count = count != 0 && count < w->count ? count : w->count;
    w->peak = 0;
    for (uint64_t i = 0; i < w->count; i++) {
        const workload_op op = w->ops[i];
        live = live - units[op.slot] + op.units;
        units[op.slot] = op.units;
        w->peak = live > w->peak ? live : w->peak;
    }
    w->peak *= WORKLOAD_GRANULE;
    free(units);
}

int main(int argc, char **argv)
{
    if (argc != 6 || strlen(argv[3]) != 1 || argv[3][0] < '1' || argv[3][0] > '4') {
        die("usage: peer_replay ADAPTER CONFIG WORKLOAD OPERATIONS LIMIT", NULL);
    }
    run r = {.ops = load(argv[1], argv[2])};
    const unsigned number = (unsigned)(argv[3][0] - '0');
    const double limit_s = strtod(argv[5], NULL);
    workload w;
    workload_init(&w, number);
    if (workload_check(&w) != workload_expected(number)) {
        die(w.name, "not the workload it should be");
    }
    cut(&w, strtoull(argv[4], NULL, 10));
    r.capacity = w.capacity != 0 ? w.capacity : CAPACITY_DEFAULT;
    r.blocks = malloc(w.slot_count * sizeof *r.blocks);
    if (r.blocks == NULL) {
        die("out of memory", NULL);
    }
    memset(r.blocks, 0xff, w.slot_count * sizeof *r.blocks); /* PEER_REFUSED */

    char line[16];
    bool is_usable = true;
    while (is_usable && fgets(line, sizeof line, stdin) != NULL) {
        if (strcmp(line, "check\n") == 0) {
            is_usable = check_all(&r, &w, limit_s);
        } else if (strcmp(line, "time\n") == 0) {
            measure(&r, &w);
        } else {
            die("check or time", NULL);
        }
        fflush(stdout);
    }
    workload_fini(&w);
    free(r.blocks);
    return 0;
}
