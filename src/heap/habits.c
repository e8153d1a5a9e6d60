/* SPDX-License-Identifier: MIT */
#include "heap/habits.h"

#include "core/size_math.h"

enum {
    SAMPLES_MIN = 2, /**< Before that neither a kind nor a size is judged. */
    WEIGHT_LOG2 = 2, /**< A new sample counts 1/4 in the mean of a size. */
    PART = 4,        /**< A segment for several requests is at most such a part of the pool. */
    SOONER_LOG2 = 4, /**< Clearly sooner: in a sixteenth of the time. */
};

static heap_habits *habits_of(const allot_heap *heap, uint32_t arena)
{
    return heap->pools[heap->arenas[arena]->pool]->habits;
}

bool alloti_habits_are_learned(const allot_heap *heap, allot_space_strategy strategy)
{
    return strategy == ALLOT_SPACE_STRATEGY_ADAPTIVE && !heap->is_virtual;
}

uint32_t alloti_habits_tag(const allot_heap *heap, uint32_t arena, uint32_t tag)
{
    return habits_of(heap, arena) == NULL ? tag
                                          : tag ^ lifetime_place(heap->arenas[arena]->stream) << 20;
}

/** Up to what drivers of GPUs round allocations to, or the usual segment where that is less. */
static uint64_t round_up(const allot_heap *heap, uint64_t size)
{
    const uint64_t usual = heap->options.segment_size;
    const uint64_t step = usual < UINT64_C(2) << 20 ? usual : UINT64_C(2) << 20;
    return (size + step - 1) / step * step;
}

/** Sizes that are alike: an eighth of a power of two. */
static uint32_t class_of(const allot_heap *heap, uint32_t arena, uint64_t size)
{
    const uint64_t rounded = round_up(heap, size);
    const unsigned log2 = alloti_log2(rounded);
    const uint64_t eighth = log2 < 3 ? 0 : rounded >> (log2 - 3) & 7;
    const uint64_t size_class = (uint64_t)log2 << 3 | eighth;
    return lifetime_place((uint64_t)alloti_habits_tag(heap, arena, 0) << 9 | size_class);
}

/** Bytes of a segment for a size that nothing is known of. */
static uint64_t usual_size(const allot_heap *heap, uint32_t arena)
{
    const uint64_t held = heap->pools[heap->arenas[arena]->pool]->held;
    const uint64_t part = round_up(heap, held < PART ? 1 : held / PART);
    return part < heap->options.segment_size ? part : heap->options.segment_size;
}

uint64_t alloti_habits_segment_size(const allot_heap *heap, uint32_t arena, uint64_t size)
{
    const heap_habits *const habits = habits_of(heap, arena);
    if (habits == NULL) {
        return size < heap->options.segment_size ? heap->options.segment_size : size;
    }
    const uint64_t usual = usual_size(heap, arena);
    if (size >= usual) {
        return round_up(heap, size);
    }
    const uint64_t whole = round_up(heap, usual / size * size);
    return whole < usual && habits->has_grown[class_of(heap, arena, size)] ? whole : usual;
}

void alloti_habits_note_growth(allot_heap *heap, uint32_t arena, uint64_t size)
{
    heap_habits *const habits = habits_of(heap, arena);
    if (habits != NULL) {
        habits->has_grown[class_of(heap, arena, size)] = true;
    }
}

bool alloti_habits_spare(const allot_heap *heap, uint32_t index, uint64_t size, uint32_t tag)
{
    const heap_segment *const segment = &heap->segments[index];
    const heap_habits *const habits = habits_of(heap, segment->arena);
    if (habits == NULL || segment->active_count != 0 ||
        segment->size - segment->size / 3 <=
            alloti_habits_segment_size(heap, segment->arena, size)) {
        return false;
    }
    const lifetime *const kind = &habits->lifetimes.kinds[lifetime_kind(size, tag)];
    const lifetime *const wait = &habits->waits[class_of(heap, segment->arena, segment->size)];
    return kind->samples < SAMPLES_MIN || wait->samples < SAMPLES_MIN ||
           !lifetime_is_shorter(kind, wait, SOONER_LOG2);
}

void alloti_habits_begin(allot_heap *heap, heap_block *block)
{
    heap_habits *const habits = habits_of(heap, block->arena);
    if (habits == NULL) {
        return;
    }
    const uint32_t class = class_of(heap, block->arena, block->size);
    const uint32_t now = habits->lifetimes.clock++;
    if (habits->is_empty[class]) {
        lifetime_learn(&habits->waits[class], now - habits->emptied_at[class], WEIGHT_LOG2);
        habits->is_empty[class] = false;
    }
    block->asked_at = now;
    block->is_learned = true;
}

void alloti_habits_end(allot_heap *heap, const heap_block *block)
{
    if (block->is_learned) {
        alloti_lifetimes *const learned = &habits_of(heap, block->arena)->lifetimes;
        const uint32_t tag = alloti_habits_tag(heap, block->arena, block->tag);
        lifetimes_learn(learned, lifetime_kind(block->size, tag),
                        learned->clock - 1 - block->asked_at);
    }
}

void alloti_habits_note_empty(allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    heap_habits *const habits = habits_of(heap, segment->arena);
    if (habits == NULL) {
        return;
    }
    /* If smaller ones were in it in between, it is as long ago as before. */
    const uint32_t class = class_of(heap, segment->arena, segment->size);
    if (!habits->is_empty[class]) {
        habits->emptied_at[class] = habits->lifetimes.clock;
        habits->is_empty[class] = true;
    }
}
