/* SPDX-License-Identifier: MIT */
/*
 * What memory is used for, from the frames that asked for it and from how long it lives relative to
 * the steps of training. docs/categories.md has the rules in prose; the order of the tests in
 * infer() is the order there.
 *
 * A life that an out-of-memory or the end of the trace cuts off says nothing about the plan.
 * Whether forward code keeps its memory for a backward pass, which it does not under no_grad(), is
 * then known from what became of other memory of the same stack; siblings.c has these rules.
 */
#include <stdlib.h>
#include <string.h>

#include <allot/explain.h>

#include "advise/siblings.h"
#include "advise/stack_facts.h"
#include "advise/steps.h"
#include "core/array.h"
#include "core/map64.h"

struct allot_categories {
    uint8_t *all; /**< [allocations] */
    bool is_inferred;
    alloti_steps steps;
};

typedef struct inference {
    const allot_history *history;
    allot_allocations table;
    allot_events events;
    const alloti_steps *steps;
    uint8_t *facts; /**< [stacks] */
    uint32_t stack_count;
    bool has_stacks;         /**< Some stack has Python frames. */
    bool has_model;          /**< Some stack runs a forward pass. */
    uint32_t horizon;        /**< The last oom: an end after it says nothing. */
    bool is_kept;            /**< Forward code of a pass that never ended keeps what it makes. */
    uint32_t *backward_next; /**< [events + 1] First backward allocation at or after an event. */
    uint32_t *forward_next;  /**< [events + 1] Likewise, of forward(). */
    alloti_map64 parameter_sizes;
} inference;

static unsigned facts_of(const inference *in, uint32_t row)
{
    const uint32_t stack = in->table.stack[row];
    return stack < in->stack_count ? in->facts[stack] : 0;
}

/* Nobody saw it begin, and the file says nothing of where. */
static bool is_from_before(const inference *in, uint32_t row)
{
    return in->table.alloc_event[row] == ALLOT_NONE && facts_of(in, row) == 0;
}

/* Memory of a thread that has no Python frames, in a trace that records them, or of backward(). */
static bool is_backward(const inference *in, uint32_t row)
{
    const uint32_t stack = in->table.stack[row];
    const unsigned facts = facts_of(in, row);
    if (stack == ALLOT_NONE || !in->has_stacks || is_from_before(in, row) ||
        (facts & ALLOTI_STACK_IS_WORKSPACE) != 0) {
        return false;
    }
    return (facts & ALLOTI_STACK_IN_BACKWARD) != 0 || (facts & ALLOTI_STACK_HAS_PYTHON) == 0;
}

/* Event at which its owner lets an allocation go; ALLOT_NONE if the trace does not have it. */
static uint32_t last_event_of(const inference *in, uint32_t row)
{
    return in->table.free_requested_event[row] != ALLOT_NONE ? in->table.free_requested_event[row]
                                                             : in->table.free_completed_event[row];
}

/* Event at which an allocation ends, ALLOT_NONE if it never does as far as anyone can tell. */
static uint32_t end_of(const inference *in, uint32_t row)
{
    const uint32_t end = last_event_of(in, row);
    return end == ALLOT_NONE || end > in->horizon ? ALLOT_NONE : end;
}

/* Ends of steps during a life. */
static uint32_t steps_in_life(const inference *in, uint32_t row)
{
    const uint32_t begin = in->table.alloc_event[row];
    const uint32_t end = end_of(in, row);
    const uint32_t first = begin == ALLOT_NONE ? 0 : alloti_steps_index(in->steps, begin);
    const uint32_t last = end == ALLOT_NONE ? in->steps->count : alloti_steps_index(in->steps, end);
    return last > first ? last - first : 0;
}

static bool is_long_lived(const inference *in, uint32_t row)
{
    return end_of(in, row) == ALLOT_NONE || steps_in_life(in, row) >= 2;
}

/* Made after the last step, so that nobody can say whether it would have outlived the next. */
static bool is_of_unfinished_step(const inference *in, uint32_t row)
{
    const uint32_t begin = in->table.alloc_event[row];
    return in->steps->count >= 2 && begin != ALLOT_NONE &&
           alloti_steps_index(in->steps, begin) == in->steps->count;
}

/* Whether forward code runs while the allocation lives, before any backward pass. */
static bool feeds_forward(const inference *in, uint32_t row)
{
    const uint32_t begin = in->table.alloc_event[row];
    const uint32_t forward = in->forward_next[begin == ALLOT_NONE ? 0 : begin];
    const uint32_t backward = in->backward_next[begin == ALLOT_NONE ? 0 : begin];
    const uint32_t end = end_of(in, row);
    return forward != ALLOT_NONE && (end == ALLOT_NONE || forward < end) &&
           (backward == ALLOT_NONE || forward < backward);
}

/* Whether a backward pass allocates while the allocation lives. */
static bool meets_backward(const inference *in, uint32_t row)
{
    const uint32_t begin = in->table.alloc_event[row];
    const uint32_t end = last_event_of(in, row);
    const uint32_t next = in->backward_next[begin == ALLOT_NONE ? 0 : begin];
    return next != ALLOT_NONE && (end == ALLOT_NONE || next < end);
}

/* Whether its category hangs on how long it lives, and nobody saw it end. */
static bool is_cut_off(const inference *in, uint32_t row)
{
    const unsigned facts = facts_of(in, row);
    const unsigned by_frames =
        ALLOTI_STACK_IS_WORKSPACE | ALLOTI_STACK_MOVES_MODULE | ALLOTI_STACK_MOVES_DATA;
    if (end_of(in, row) != ALLOT_NONE || (facts & ALLOTI_STACK_HAS_PYTHON) == 0 ||
        is_backward(in, row)) {
        return false;
    }
    if ((facts & ALLOTI_STACK_IN_OPTIMIZER) != 0) {
        return steps_in_life(in, row) == 0;
    }
    return (facts & by_frames) == 0 && !meets_backward(in, row);
}

/* Whether an allocation of a backward pass that nobody saw end is more than scratch of that pass.
 */
static bool outlives_backward(const inference *in, uint32_t row)
{
    const bool is_from_earlier_pass =
        in->table.alloc_event[row] == ALLOT_NONE && in->forward_next[0] != ALLOT_NONE;
    return is_from_earlier_pass ||
           alloti_map64_get(&in->parameter_sizes, in->table.requested[row]) != ALLOT_NONE;
}

static allot_category infer_backward(const inference *in, uint32_t row)
{
    const bool is_kept = steps_in_life(in, row) >= 1 ||
                         (end_of(in, row) == ALLOT_NONE && outlives_backward(in, row));
    return is_kept ? ALLOT_CATEGORY_GRADIENT : ALLOT_CATEGORY_TEMPORARY;
}

static allot_category infer(const inference *in, uint32_t row)
{
    const unsigned facts = facts_of(in, row);
    if ((facts & ALLOTI_STACK_IN_OPTIMIZER) != 0) {
        return is_long_lived(in, row) || steps_in_life(in, row) >= 1
                   ? ALLOT_CATEGORY_OPTIMIZER_STATE
                   : ALLOT_CATEGORY_TEMPORARY;
    }
    if (is_from_before(in, row)) {
        const bool is_kept = in->has_model && is_long_lived(in, row);
        return is_kept ? ALLOT_CATEGORY_PARAMETER : ALLOT_CATEGORY_UNKNOWN;
    }
    if (is_backward(in, row)) {
        return infer_backward(in, row);
    }
    if ((facts & ALLOTI_STACK_IS_WORKSPACE) != 0) {
        return ALLOT_CATEGORY_UNKNOWN;
    }
    if ((facts & ALLOTI_STACK_MOVES_MODULE) != 0) {
        return is_long_lived(in, row) ? ALLOT_CATEGORY_PARAMETER : ALLOT_CATEGORY_TEMPORARY;
    }
    if ((facts & ALLOTI_STACK_MOVES_DATA) != 0) {
        return ALLOT_CATEGORY_INPUT;
    }
    if ((facts & ALLOTI_STACK_IN_FORWARD) != 0) {
        const bool is_kept = is_cut_off(in, row) ? in->is_kept : meets_backward(in, row);
        return is_kept ? ALLOT_CATEGORY_ACTIVATION : ALLOT_CATEGORY_TEMPORARY;
    }
    if ((facts & ALLOTI_STACK_HAS_PYTHON) == 0 ||
        (is_long_lived(in, row) && !is_of_unfinished_step(in, row))) {
        return ALLOT_CATEGORY_UNKNOWN;
    }
    if ((facts & ALLOTI_STACK_IS_PLAIN) != 0 && feeds_forward(in, row)) {
        return ALLOT_CATEGORY_INPUT;
    }
    return meets_backward(in, row) ? ALLOT_CATEGORY_ACTIVATION : ALLOT_CATEGORY_TEMPORARY;
}

static allot_status find_facts(inference *in)
{
    const allot_trace *const trace = allot_history_trace(in->history);
    in->stack_count = allot_trace_stack_count(trace);
    in->facts = alloti_alloc_array(in->stack_count + UINT64_C(1), sizeof *in->facts);
    const uint32_t frame_count = allot_trace_frame_count(trace);
    uint8_t *const of_frames = alloti_alloc_array(frame_count + UINT64_C(1), sizeof *of_frames);
    if (in->facts == NULL || of_frames == NULL) {
        free(of_frames);
        return alloti_fail_memory(in->stack_count + (uint64_t)frame_count);
    }
    for (uint32_t f = 0; f < frame_count; f++) {
        of_frames[f] = alloti_frame_facts(trace, f);
    }
    for (uint32_t s = 0; s < in->stack_count; s++) {
        in->facts[s] = alloti_stack_facts(trace, s, of_frames);
        in->has_stacks = in->has_stacks || (in->facts[s] & ALLOTI_STACK_HAS_PYTHON) != 0;
        in->has_model = in->has_model || (in->facts[s] & ALLOTI_STACK_IN_FORWARD) != 0;
    }
    free(of_frames);
    return ALLOT_STATUS_OK;
}

static allot_status find_passes(inference *in)
{
    const uint64_t count = in->events.count;
    in->backward_next = alloti_alloc_array(count + 1, sizeof *in->backward_next);
    in->forward_next = alloti_alloc_array(count + 1, sizeof *in->forward_next);
    if (in->backward_next == NULL || in->forward_next == NULL) {
        return alloti_fail_memory(count * 2 * sizeof *in->backward_next);
    }
    in->backward_next[count] = ALLOT_NONE;
    in->forward_next[count] = ALLOT_NONE;
    in->horizon = ALLOT_NONE - 1;
    for (uint64_t i = count; i-- > 0;) {
        const uint32_t row = allot_history_allocation_of(in->history, (uint32_t)i);
        const bool is_alloc = in->events.kind[i] == ALLOT_EVENT_ALLOC && row != ALLOT_NONE;
        const bool is_back = is_alloc && is_backward(in, row);
        const bool is_forward =
            is_alloc && !is_back && (facts_of(in, row) & ALLOTI_STACK_IN_FORWARD) != 0;
        in->backward_next[i] = is_back ? (uint32_t)i : in->backward_next[i + 1];
        in->forward_next[i] = is_forward ? (uint32_t)i : in->forward_next[i + 1];
        if (in->events.kind[i] == ALLOT_EVENT_OOM && in->horizon == ALLOT_NONE - 1) {
            in->horizon = (uint32_t)i;
        }
    }
    return ALLOT_STATUS_OK;
}

/* Forget a rhythm whose repetitions have no backward pass each: that of layers, not of steps. */
static void check_rhythm(const inference *in, alloti_steps *steps)
{
    uint32_t trained = 0;
    for (uint32_t i = 0; i + 1 < steps->count; i++) {
        trained += in->backward_next[steps->events[i]] < steps->events[i + 1];
    }
    if (steps->source == ALLOT_STEPS_RHYTHM && trained * UINT64_C(2) < steps->count) {
        alloti_steps_fini(steps);
    }
}

/* Sizes of what certainly are parameters, by which a gradient of an unfinished step is known. */
static allot_status find_parameter_sizes(inference *in)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t row = 0; status == ALLOT_STATUS_OK && row < in->table.count; row++) {
        const unsigned facts = facts_of(in, row);
        if ((facts & ALLOTI_STACK_MOVES_MODULE) != 0 && is_long_lived(in, row)) {
            status = alloti_map64_set(&in->parameter_sizes, in->table.requested[row], row);
        }
    }
    return status;
}

/* What became of memory of each stack, once that is known. */
static void learn_from_ends(const inference *in, const uint8_t *all, alloti_siblings *siblings)
{
    for (uint32_t row = 0; row < in->table.count; row++) {
        const uint32_t begin = in->table.alloc_event[row];
        if (begin == ALLOT_NONE || begin > in->horizon) {
            continue;
        }
        const bool is_forward = (facts_of(in, row) & ALLOTI_STACK_IN_FORWARD) != 0;
        if (is_forward && in->backward_next[begin] == ALLOT_NONE) {
            alloti_siblings_add_unfinished(siblings, in->table.stack[row],
                                           end_of(in, row) == ALLOT_NONE);
        }
        if (end_of(in, row) != ALLOT_NONE) {
            alloti_siblings_add(siblings, in->table.stack[row], (allot_category)all[row],
                                in->table.requested[row]);
        }
    }
}

/* Categories of lives that were cut off: as the ends of others of their stack tell, else guessed.
 */
static allot_status infer_cut_off(inference *in, uint8_t *all)
{
    alloti_siblings siblings;
    const allot_status status = alloti_siblings_init(in->stack_count, &siblings);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    learn_from_ends(in, all, &siblings);
    in->is_kept = alloti_siblings_are_kept(&siblings);
    for (uint32_t row = 0; row < in->table.count; row++) {
        if (is_cut_off(in, row)) {
            all[row] =
                (uint8_t)alloti_siblings_category(&siblings, in->table.stack[row], infer(in, row));
        }
    }
    alloti_siblings_fini(&siblings);
    return ALLOT_STATUS_OK;
}

static allot_status infer_all(const allot_history *history, allot_categories *categories)
{
    inference in = {.history = history, .steps = &categories->steps};
    allot_history_get_allocations(history, &in.table);
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &in.events);
    allot_status status = find_facts(&in);
    if (status == ALLOT_STATUS_OK) {
        status = find_passes(&in);
    }
    if (status == ALLOT_STATUS_OK) {
        check_rhythm(&in, &categories->steps);
    }
    if (status == ALLOT_STATUS_OK) {
        status = find_parameter_sizes(&in);
    }
    for (uint32_t row = 0; status == ALLOT_STATUS_OK && row < in.table.count; row++) {
        categories->all[row] = (uint8_t)infer(&in, row);
    }
    if (status == ALLOT_STATUS_OK) {
        status = infer_cut_off(&in, categories->all);
    }
    free(in.facts);
    free(in.backward_next);
    free(in.forward_next);
    alloti_map64_fini(&in.parameter_sizes);
    return status;
}

static bool has_any_category(const allot_allocations *table)
{
    for (uint32_t row = 0; row < table->count; row++) {
        if (table->category[row] != ALLOT_CATEGORY_UNKNOWN) {
            return true;
        }
    }
    return false;
}

static allot_status fill(const allot_history *history, allot_categories *categories)
{
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    categories->all = alloti_alloc_array(table.count + UINT64_C(1), sizeof *categories->all);
    if (categories->all == NULL) {
        return alloti_fail_memory(table.count);
    }
    const allot_status status = alloti_steps_init(history, &categories->steps);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    categories->is_inferred = !has_any_category(&table);
    if (categories->is_inferred) {
        return infer_all(history, categories);
    }
    memcpy(categories->all, table.category, table.count);
    return ALLOT_STATUS_OK;
}

allot_status allot_categories_create(const allot_history *history, allot_categories **out)
{
    allot_categories *const categories = calloc(1, sizeof *categories);
    if (categories == NULL) {
        return alloti_fail_memory(sizeof *categories);
    }
    const allot_status status = fill(history, categories);
    if (status != ALLOT_STATUS_OK) {
        allot_categories_destroy(categories);
        return status;
    }
    *out = categories;
    return ALLOT_STATUS_OK;
}

void allot_categories_destroy(allot_categories *categories)
{
    if (categories == NULL) {
        return;
    }
    free(categories->all);
    alloti_steps_fini(&categories->steps);
    free(categories);
}

bool allot_categories_are_inferred(const allot_categories *categories)
{
    return categories->is_inferred;
}

const uint8_t *allot_categories_all(const allot_categories *categories)
{
    return categories->all;
}

const uint32_t *allot_categories_steps(const allot_categories *categories, uint32_t *count)
{
    *count = categories->steps.count;
    return categories->steps.events;
}
