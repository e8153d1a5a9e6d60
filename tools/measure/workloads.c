/* SPDX-License-Identifier: MIT */
#include "measure/workloads.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

uint64_t workload_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint64_t workload_below(uint64_t *state, uint64_t n)
{
    return (workload_random(state) >> 32) * n >> 32;
}

static uint32_t units_of(uint64_t bytes)
{
    return (uint32_t)((bytes + WORKLOAD_GRANULE - 1) / WORKLOAD_GRANULE);
}

uint32_t workload_units(uint64_t *state, unsigned low, unsigned high)
{
    const unsigned octave = low + (unsigned)workload_below(state, high - low);
    const uint64_t rest = workload_random(state) & ((UINT64_C(1) << octave) - 1);
    return units_of((UINT64_C(1) << octave) + rest);
}

/* ---- writing down ---- */

/** A workload while it is made. */
typedef struct maker {
    workload *w;
    uint64_t capacity; /**< Of w->ops. */
    uint64_t random;
    uint64_t live;   /**< Bytes. */
    uint32_t *units; /**< [slot] of the live ones */
    uint32_t *spare; /**< Released slots, the last one is reused first. */
    uint32_t spare_count;
    uint32_t slot_capacity;
} maker;

static void *grow(void *data, uint64_t count, size_t size)
{
    void *const got = realloc(data, count * size);
    if (got == NULL) {
        fputs("workloads: out of memory\n", stderr);
        exit(4);
    }
    return got;
}

static void put(maker *m, uint32_t slot, uint32_t units)
{
    if (m->w->count == m->capacity) {
        m->capacity = m->capacity == 0 ? 4096 : 2 * m->capacity;
        m->w->ops = grow(m->w->ops, m->capacity, sizeof *m->w->ops);
    }
    m->w->ops[m->w->count++] = (workload_op){slot, units};
}

static uint32_t take_slot(maker *m)
{
    if (m->spare_count != 0) {
        return m->spare[--m->spare_count];
    }
    if (m->w->slot_count >= m->slot_capacity) {
        m->slot_capacity = m->slot_capacity == 0 ? 1024 : 2 * m->slot_capacity;
        m->units = grow(m->units, m->slot_capacity, sizeof *m->units);
        m->spare = grow(m->spare, m->slot_capacity, sizeof *m->spare);
    }
    return m->w->slot_count++;
}

static uint32_t request_units(maker *m, uint32_t units)
{
    const uint32_t slot = take_slot(m);
    m->units[slot] = units;
    m->live += (uint64_t)units * WORKLOAD_GRANULE;
    m->w->peak = m->live > m->w->peak ? m->live : m->w->peak;
    m->w->alloc_count++;
    put(m, slot, units);
    return slot;
}

static uint32_t request(maker *m, uint64_t bytes)
{
    return request_units(m, units_of(bytes));
}

static void release(maker *m, uint32_t slot)
{
    m->live -= (uint64_t)m->units[slot] * WORKLOAD_GRANULE;
    m->spare[m->spare_count++] = slot;
    put(m, slot, 0);
}

/* ---- the four ---- */

static void make_churn(maker *m, const workload_churn *rule)
{
    const uint64_t low = rule->capacity * rule->low_percent;
    const uint64_t high = rule->capacity * rule->high_percent;
    uint32_t *list = NULL;
    uint64_t list_capacity = 0;
    uint64_t count = 0;
    bool is_filling = true;
    m->random = rule->seed;
    m->w->capacity = rule->capacity;
    for (uint64_t step = 0; step < rule->steps;) {
        const bool is_prologue = step == 0 && m->live * 100 < low;
        bool is_request = is_prologue;
        if (!is_prologue) {
            step++;
            if (m->live * 100 >= high) {
                is_filling = false;
            } else if (m->live * 100 <= low) {
                is_request = is_filling = true;
            } else {
                is_request = workload_below(&m->random, 100) < (is_filling ? 60 : 40);
            }
        }
        if (is_request) {
            if (count == list_capacity) {
                list_capacity = list_capacity == 0 ? 1024 : 2 * list_capacity;
                list = grow(list, list_capacity, sizeof *list);
            }
            list[count++] =
                request_units(m, workload_units(&m->random, rule->octave_low, rule->octave_high));
        } else {
            const uint64_t at = workload_below(&m->random, count);
            /* NOLINTNEXTLINE(clang-analyzer-core.*): some are live above the low mark */
            release(m, list[at]);
            list[at] = list[--count];
        }
    }
    free(list);
}

static void make_small_set(maker *m)
{
    enum { LIVE = 1000, STEPS = 500000 };
    m->random = 23456;
    m->w->capacity = 16 * GIB;
    for (uint32_t i = 0; i < LIVE; i++) {
        request_units(m, workload_units(&m->random, 9, 26));
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        release(m, (uint32_t)workload_below(&m->random, LIVE));
        request_units(m, workload_units(&m->random, 9, 26));
    }
}

enum { LAYERS = 48 };

/** What the forward pass of a layer keeps. */
typedef struct layer {
    uint32_t a0, a1, a2, a3;
    uint32_t gradient, bias_gradient;
} layer;

static void forward(maker *m, layer *l, uint64_t b, uint64_t s)
{
    const uint64_t t = b * s;
    l->a0 = request(m, 256 * t);
    const uint32_t t1 = request(m, 768 * t);
    l->a1 = request(m, 64 * t);
    const uint32_t t2 = request(m, 64 * b * s + 1024 * b);
    release(m, t1);
    l->a2 = request(m, 512 * t);
    release(m, t2);
    l->a3 = request(m, 4 * t);
}

static uint32_t backward(maker *m, layer *l, uint64_t t, uint32_t g)
{
    const uint32_t inner = request(m, 512 * t);
    release(m, l->a2);
    const uint32_t workspace = request(m, MIB + 4096 * workload_below(&m->random, 1024));
    release(m, l->a3);
    const uint32_t g2 = request(m, 256 * t);
    release(m, inner);
    release(m, workspace);
    release(m, l->a1);
    release(m, l->a0);
    release(m, g);
    l->gradient = request(m, 16 * MIB);
    l->bias_gradient = request(m, 8 * KIB);
    return g2;
}

static void train(maker *m, layer *layers)
{
    const uint64_t b = 24 + workload_below(&m->random, 17);
    const uint64_t s = (160 + workload_below(&m->random, 97)) * 8;
    const uint64_t t = b * s;
    for (int i = 0; i < LAYERS; i++) {
        forward(m, &layers[i], b, s);
    }
    const uint32_t loss = request(m, 16 * t);
    uint32_t g = request(m, 256 * t);
    for (int i = LAYERS - 1; i >= 0; i--) {
        g = backward(m, &layers[i], t, g);
    }
    release(m, g);
    release(m, loss);
    for (int i = 0; i < LAYERS; i++) {
        const uint32_t temporary = request(m, 16 * MIB);
        release(m, layers[i].gradient);
        release(m, layers[i].bias_gradient);
        release(m, temporary);
    }
}

static void evaluate(maker *m)
{
    const uint64_t k = (4 + workload_below(&m->random, 5)) * 4096;
    for (int i = 0; i < LAYERS; i++) {
        const uint32_t wide = request(m, 768 * k);
        const uint32_t narrow = request(m, 256 * k);
        release(m, wide);
        release(m, narrow);
    }
}

static void make_training(maker *m)
{
    enum { ITERATIONS = 400 };
    static const uint64_t weights[] = {4 * MIB, 12 * MIB, 16 * MIB, 16 * MIB,
                                       8 * KIB, 8 * KIB,  12 * KIB};
    layer layers[LAYERS];
    m->random = 45678;
    for (int i = 0; i < LAYERS; i++) {
        for (size_t j = 0; j < sizeof weights / sizeof weights[0]; j++) {
            request(m, weights[j]);
        }
    }
    for (int i = 0; i < ITERATIONS; i++) {
        train(m, layers);
        if (i % 8 == 7) {
            evaluate(m);
        }
    }
}

/** W1 and W3. */
static const workload_churn CHURN_LARGE = {12345, 16 * GIB, 9, 26, 70, 90, 1000000};
static const workload_churn CHURN_SMALL = {34567, 4 * GIB, 8, 16, 70, 90, 1000000};

void workload_init(workload *w, unsigned number)
{
    static const char *const names[] = {"W1", "W2", "W3", "W4"};
    *w = (workload){.name = names[number - 1]};
    maker m = {.w = w};
    switch (number) {
    case 1:
        make_churn(&m, &CHURN_LARGE);
        break;
    case 2:
        make_small_set(&m);
        break;
    case 3:
        make_churn(&m, &CHURN_SMALL);
        break;
    default:
        make_training(&m);
        break;
    }
    free(m.units);
    free(m.spare);
}

void workload_init_churn(workload *w, const char *name, const workload_churn *rule)
{
    *w = (workload){.name = name};
    maker m = {.w = w};
    make_churn(&m, rule);
    free(m.units);
    free(m.spare);
}

void workload_fini(workload *w)
{
    free(w->ops);
    w->ops = NULL;
}

uint64_t workload_check(const workload *w)
{
    uint64_t sum = UINT64_C(1469598103934665603);
    for (uint64_t i = 0; i < w->count; i++) {
        sum = (sum ^ w->ops[i].slot) * UINT64_C(1099511628211);
        sum = (sum ^ w->ops[i].units) * UINT64_C(1099511628211);
    }
    return sum;
}

uint64_t workload_expected(unsigned number)
{
    static const uint64_t expected[] = {UINT64_C(0xed5d92e20106befa), UINT64_C(0x08d6407f699a52cc),
                                        UINT64_C(0xe32585a9bfd01901), UINT64_C(0xce7900528aa99da1)};
    return expected[number - 1];
}
