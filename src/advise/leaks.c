/* SPDX-License-Identifier: MIT */
/*
 * Growth per stack per step.
 *
 * What a stack holds at the end of each step is the sum of what its allocations that live then
 * asked for. Sizes of blocks would not do: a block may be larger by a rest too small to split,
 * which depends on where it was placed, and so differs from step to step although nothing grew.
 *
 * The first steps grow for good reason (parameters, optimizer state, workspaces), so growth is
 * measured from the end of the warm-up. A leak gains in nearly every step; a buffer that is
 * replaced holds the same after each, and one that grows once is not a leak.
 *
 * A rhythm may be that of the steps or that of the layers in one pass, whose activations are meant
 * to stay. Growth from one repetition to the next is reported then, but it proves no leak.
 */
#include <stdlib.h>

#include <allot/compare.h>

#include "advise/steps.h"
#include "core/array.h"
#include "core/options.h"

/** Steps that pass before growth counts (one in short traces), and the fewest that are compared. */
enum { WARMUP = 2, WARMUP_MIN = 1, STEPS_MIN = 4 };
/** Share of the compared steps in which a leak has to grow. */
static const double GROWN_SHARE = 0.8;

const char *allot_steps_source_name(allot_steps_source source)
{
    switch (source) {
#define STEPS_NAME(name, value, spelling)                                                          \
    case ALLOT_STEPS_##name:                                                                       \
        return spelling;
        ALLOT_STEPS_LIST(STEPS_NAME)
#undef STEPS_NAME
    }
    return "unknown";
}

/** What a stack holds more (or less) of at the end of one step than at the end of the one before.
 */
typedef struct change {
    uint32_t slot; /**< Stack, or the number of stacks for ALLOT_NONE. */
    uint32_t step;
    uint64_t size; /**< Modulo 2^64. */
} change;

typedef struct finder {
    const allot_history *history;
    const allot_lines *lines;
    allot_allocations table;
    const alloti_steps *steps;
    uint32_t stack_count;
    change *changes;
    uint64_t change_count;
    allot_leaks *out;
} finder;

static uint32_t slot_of(const finder *f, uint32_t row)
{
    const uint32_t stack = f->table.stack[row];
    return stack < f->stack_count ? stack : f->stack_count;
}

/* Index of the first step at whose end an event has happened. */
static uint32_t step_of(const finder *f, uint32_t event)
{
    return event == ALLOT_NONE ? 0 : alloti_steps_index(f->steps, event);
}

/* Every allocation that lives at the end of a step adds there and is taken away where it is gone.
 */
static allot_status collect_changes(finder *f)
{
    f->changes = alloti_alloc_array(UINT64_C(2) * f->table.count + 1, sizeof *f->changes);
    if (f->changes == NULL) {
        return alloti_fail_memory(f->table.count * UINT64_C(2) * sizeof *f->changes);
    }
    for (uint32_t row = 0; row < f->table.count; row++) {
        const uint32_t begin = step_of(f, f->table.alloc_event[row]);
        const uint32_t freed = f->table.free_completed_event[row];
        const uint32_t end = freed == ALLOT_NONE ? f->steps->count : step_of(f, freed);
        if (begin >= end) {
            continue;
        }
        const uint32_t slot = slot_of(f, row);
        const uint64_t size = f->table.requested[row];
        f->changes[f->change_count++] = (change){slot, begin, size};
        if (end < f->steps->count) {
            f->changes[f->change_count++] = (change){slot, end, UINT64_C(0) - size};
        }
    }
    return ALLOT_STATUS_OK;
}

static int compare_change(const void *a, const void *b)
{
    const change *const left = a;
    const change *const right = b;
    if (left->slot != right->slot) {
        return left->slot < right->slot ? -1 : 1;
    }
    return (left->step > right->step) - (left->step < right->step);
}

/* Growth of one stack from its changes [count], sorted by step. */
static allot_leak measure(const finder *f, const change *changes, uint64_t count)
{
    const uint32_t stack = changes[0].slot < f->stack_count ? changes[0].slot : ALLOT_NONE;
    allot_leak leak = {
        .stack = stack, .line = allot_lines_of(f->lines, stack), .example = ALLOT_NONE};
    const uint32_t warmup = f->out->warmup_count;
    uint64_t now = 0;
    uint64_t at_warmup = 0;
    uint32_t shrunk = 0;
    for (uint64_t i = 0; i < count;) {
        const uint32_t step = changes[i].step;
        uint64_t sum = 0;
        for (; i < count && changes[i].step == step; i++) {
            sum += changes[i].size;
        }
        now += sum;
        if (step < warmup) {
            at_warmup = now;
        } else {
            leak.grown_steps += sum != 0 && (int64_t)sum > 0;
            shrunk += (int64_t)sum < 0;
        }
    }
    const uint32_t steps = f->out->step_count;
    leak.size_per_step = steps != 0 && now > at_warmup ? (now - at_warmup) / steps : 0;
    leak.is_growing = steps >= STEPS_MIN && leak.grown_steps >= GROWN_SHARE * steps &&
                      shrunk * 4 <= leak.grown_steps && leak.size_per_step != 0;
    return leak;
}

/* Add what was never freed to the stacks' leaks. */
static void add_unfreed(const finder *f, const uint32_t *leak_of)
{
    for (uint32_t row = f->table.initial_count; row < f->table.count; row++) {
        const uint32_t index = leak_of[slot_of(f, row)];
        if (index == ALLOT_NONE || f->table.free_completed_event[row] != ALLOT_NONE) {
            continue;
        }
        allot_leak *const leak = &f->out->items[index];
        leak->count++;
        leak->size += f->table.requested[row];
        if (leak->example == ALLOT_NONE ||
            f->table.requested[row] > f->table.requested[leak->example]) {
            leak->example = row;
        }
    }
}

static int compare_leak(const void *a, const void *b)
{
    const allot_leak *const left = a;
    const allot_leak *const right = b;
    if (left->is_growing != right->is_growing) {
        return left->is_growing ? -1 : 1;
    }
    if (left->size_per_step != right->size_per_step) {
        return left->size_per_step < right->size_per_step ? 1 : -1;
    }
    if (left->size != right->size) {
        return left->size < right->size ? 1 : -1;
    }
    return (left->stack > right->stack) - (left->stack < right->stack);
}

/* Drop what neither grew nor stayed, and put what grows first. */
static void rank(finder *f, uint64_t size_min)
{
    allot_leaks *const out = f->out;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        allot_leak *const leak = &out->items[i];
        leak->is_growing = leak->is_growing && leak->size_per_step >= size_min;
        leak->is_leak = leak->is_growing && out->source != ALLOT_STEPS_RHYTHM;
        if (leak->is_growing || leak->size != 0) {
            out->growing_count += leak->is_growing;
            out->leak_count += leak->is_leak;
            out->items[kept++] = *leak;
        }
    }
    out->count = kept;
    qsort(out->items, out->count, sizeof *out->items, compare_leak);
}

static allot_status measure_all(finder *f, uint64_t size_min)
{
    allot_leaks *const out = f->out;
    const uint64_t slots = f->stack_count + UINT64_C(1);
    uint32_t *const leak_of = alloti_alloc_array(slots, sizeof *leak_of);
    out->items = alloti_alloc_array(slots, sizeof *out->items);
    if (leak_of == NULL || out->items == NULL) {
        free(leak_of);
        return alloti_fail_memory(slots * (sizeof *leak_of + sizeof *out->items));
    }
    for (uint64_t s = 0; s < slots; s++) {
        leak_of[s] = ALLOT_NONE;
    }
    qsort(f->changes, f->change_count, sizeof *f->changes, compare_change);
    for (uint64_t i = 0; i < f->change_count;) {
        uint64_t end = i;
        while (end < f->change_count && f->changes[end].slot == f->changes[i].slot) {
            end++;
        }
        leak_of[f->changes[i].slot] = out->count;
        out->items[out->count++] = measure(f, &f->changes[i], end - i);
        i = end;
    }
    add_unfreed(f, leak_of);
    free(leak_of);
    rank(f, size_min);
    return ALLOT_STATUS_OK;
}

static allot_status copy_steps(finder *f, alloti_steps *steps)
{
    allot_leaks *const out = f->out;
    out->source = steps->source;
    const uint32_t warmup = steps->count >= WARMUP + STEPS_MIN ? WARMUP : WARMUP_MIN;
    out->warmup_count = steps->count < warmup ? steps->count : warmup;
    out->step_count = steps->count - out->warmup_count;
    out->is_judged = out->step_count >= STEPS_MIN;
    out->active = alloti_alloc_array(steps->count + UINT64_C(1), sizeof *out->active);
    out->steps = alloti_alloc_array(steps->count + UINT64_C(1), sizeof *out->steps);
    if (out->active == NULL || out->steps == NULL) {
        return alloti_fail_memory(steps->count * (sizeof *out->active + sizeof *out->steps));
    }
    for (uint32_t i = 0; i < steps->count; i++) {
        out->steps[i] = steps->events[i];
        out->active[i] = allot_history_value(f->history, ALLOT_MEASURE_ACTIVE, steps->events[i]);
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_leaks_init(const allot_history *history, const allot_lines *lines,
                              const allot_leaks_options *options, allot_leaks *out)
{
    allot_leaks_options o;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t size_min = o.size_min == 0 ? 1 : o.size_min;
    allot_leaks leaks = {0};
    alloti_steps steps;
    status = o.step_count != 0 ? alloti_steps_init_equal(history, o.step_count, &steps)
                               : alloti_steps_init(history, &steps);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    finder f = {.history = history, .lines = lines, .steps = &steps, .out = &leaks};
    f.stack_count = allot_trace_stack_count(allot_history_trace(history));
    allot_history_get_allocations(history, &f.table);
    status = copy_steps(&f, &steps);
    if (status == ALLOT_STATUS_OK) {
        status = collect_changes(&f);
    }
    if (status == ALLOT_STATUS_OK) {
        status = measure_all(&f, size_min);
    }
    free(f.changes);
    alloti_steps_fini(&steps);
    if (status != ALLOT_STATUS_OK) {
        allot_leaks_fini(&leaks);
        return status;
    }
    *out = leaks;
    return ALLOT_STATUS_OK;
}

void allot_leaks_fini(allot_leaks *leaks)
{
    free(leaks->steps);
    free(leaks->active);
    free(leaks->items);
    *leaks = (allot_leaks){0};
}
