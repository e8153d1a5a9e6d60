/* SPDX-License-Identifier: MIT */
#include "standin/small.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"
#include "standin/bytes.h"
#include "standin/state.h"

_Static_assert(SMALL_UNITS == SMALL_WORDS * 64, "a bit for each unit");

enum { LOOKED_AT = 16 };

/* ---- units of one granule ---- */

static bool is_taken(const small_granule *granule, uint32_t unit)
{
    return (granule->taken[unit / 64] >> unit % 64 & 1) != 0;
}

/** First unit of the first run of `count` free ones; SMALL_UNITS if there is none. */
static uint32_t find_run(small_granule *granule, uint32_t count)
{
    uint32_t largest = 0;
    uint32_t run = 0;
    for (uint32_t unit = 0; unit < SMALL_UNITS;) {
        if (granule->taken[unit / 64] == UINT64_MAX && unit % 64 == 0) {
            run = 0;
            unit += 64;
            continue;
        }
        run = is_taken(granule, unit) ? 0 : run + 1;
        largest = run > largest ? run : largest;
        unit++;
        if (run == count) {
            return unit - count;
        }
    }
    granule->largest = largest;
    return SMALL_UNITS;
}

static void set_bits(uint64_t *words, uint32_t first, uint32_t count, bool is_set)
{
    for (uint32_t unit = first; unit < first + count; unit++) {
        const uint64_t bit = UINT64_C(1) << unit % 64;
        words[unit / 64] = is_set ? words[unit / 64] | bit : words[unit / 64] & ~bit;
    }
}

/* ---- the lists ---- */

static void open_granule(small_state *small, uint32_t at)
{
    small_granule *const granule = small->granules[at];
    uint32_t *const first = &small->open[granule->device];
    granule->previous = 0;
    granule->next = *first;
    if (*first != 0) {
        small->granules[*first - 1]->previous = at + 1;
    }
    *first = at + 1;
}

static void close_granule(small_state *small, uint32_t at)
{
    const small_granule *const granule = small->granules[at];
    if (granule->previous != 0) {
        small->granules[granule->previous - 1]->next = granule->next;
    } else {
        small->open[granule->device] = granule->next;
    }
    if (granule->next != 0) {
        small->granules[granule->next - 1]->previous = granule->previous;
    }
}

/** A place in the array, with memory for a granule; UINT32_MAX without host memory. */
static uint32_t take_place(small_state *small)
{
    if (small->free != 0) {
        const uint32_t first = small->free - 1;
        small->free = small->granules[first]->next;
        return first;
    }
    const uint32_t at = (uint32_t)small->count;
    if (alloti_array_reserve(&small->granules, &small->capacity, small->count + 1,
                             sizeof(small_granule *)) != ALLOT_STATUS_OK ||
        (small->granules[at] = calloc(1, sizeof(small_granule))) == NULL) {
        return UINT32_MAX;
    }
    small->count++;
    return at;
}

static void give_place(small_state *small, uint32_t at)
{
    small->granules[at]->address = 0;
    small->granules[at]->next = small->free;
    small->free = at + 1;
}

/** Take a granule from the device. */
static cuda_status add_granule(standin *state, uint32_t device, uint32_t *out)
{
    const uint32_t at = take_place(&state->small);
    uint64_t address = 0;
    const cuda_status status =
        at == UINT32_MAX ? CUDA_OUT_OF_MEMORY
                         : memory_allocate(state, device, STANDIN_GRANULE, MEMORY_SHARED, &address);
    if (status != CUDA_OK) {
        if (at != UINT32_MAX) {
            give_place(&state->small, at);
        }
        return status;
    }
    state->memory.blocks[address_owner(&state->space, address)].owner = at;
    small_granule *const granule = state->small.granules[at];
    granule->address = address;
    granule->device = device;
    granule->largest = SMALL_UNITS;
    open_granule(&state->small, at);
    *out = at;
    return CUDA_OK;
}

/** A granule with room among the first few; false if a new one is needed. */
static bool find_room(small_state *small, uint32_t device, uint32_t units, uint32_t *at,
                      uint32_t *first)
{
    uint32_t next = small->open[device];
    for (int i = 0; i < LOOKED_AT && next != 0; i++) {
        small_granule *const granule = small->granules[next - 1];
        *at = next - 1;
        if (granule->largest >= units && (*first = find_run(granule, units)) != SMALL_UNITS) {
            return true;
        }
        next = granule->next;
    }
    return false;
}

cuda_status small_allocate(standin *state, uint32_t device, uint64_t size, uint64_t *address)
{
    small_state *const small = &state->small;
    const uint32_t units = (uint32_t)((size + SMALL_UNIT - 1) / SMALL_UNIT);
    uint32_t at = 0;
    uint32_t first = 0;
    cuda_status status = CUDA_OK;
    if (find_room(small, device, units, &at, &first)) {
        status = state->broken != CUDA_OK ? state->broken : standin_may_fail(state);
    } else {
        status = add_granule(state, device, &at);
        first = 0;
    }
    if (status != CUDA_OK) {
        return status;
    }
    small_granule *const granule = small->granules[at];
    const memory_block block = {.address = granule->address + (uint64_t)first * SMALL_UNIT,
                                .size = size,
                                .extent = (uint64_t)units * SMALL_UNIT,
                                .device = device,
                                .owner = at,
                                .kind = MEMORY_PLAIN,
                                .is_part = true,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    uint32_t index = 0;
    status = memory_enter(state, &block, &index);
    if (status != CUDA_OK) {
        return status; /* a fresh granule stays for the next request */
    }
    set_bits(granule->taken, first, units, true);
    set_bits(granule->starts, first, 1, true);
    granule->owners[first] = index;
    granule->taken_count += units;
    if (granule->taken_count == SMALL_UNITS) {
        close_granule(small, at);
    }
    *address = block.address;
    return CUDA_OK;
}

void small_free(standin *state, uint32_t index)
{
    small_state *const small = &state->small;
    const memory_block block = state->memory.blocks[index];
    small_granule *const granule = small->granules[block.owner];
    const uint32_t units = (uint32_t)(block.extent / SMALL_UNIT);
    memory_forget(state, index);
    const uint32_t first = (uint32_t)((block.address - granule->address) / SMALL_UNIT);
    set_bits(granule->taken, first, units, false);
    set_bits(granule->starts, first, 1, false);
    if (granule->taken_count == SMALL_UNITS) {
        open_granule(small, block.owner);
    }
    granule->taken_count -= units;
    granule->largest = SMALL_UNITS; /* until a search finds less */
    if (granule->taken_count == 0) {
        close_granule(small, block.owner);
        (void)memory_release(state, granule->address, MEMORY_SHARED);
        give_place(small, block.owner);
    }
}

uint32_t small_find(const standin *state, uint32_t owner, uint64_t address)
{
    const small_granule *const granule = state->small.granules[owner];
    const uint32_t unit = (uint32_t)((address - granule->address) / SMALL_UNIT);
    if (!is_taken(granule, unit)) {
        return ALLOT_NONE;
    }
    /* The block begins with the last start up to here; a taken unit has one. */
    uint32_t word = unit / 64;
    uint64_t starts = granule->starts[word] & (UINT64_MAX >> (63 - unit % 64));
    while (starts == 0) {
        starts = granule->starts[--word];
    }
    return granule->owners[word * 64 + alloti_log2(starts)];
}
