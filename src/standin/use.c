/* SPDX-License-Identifier: MIT */
#include "standin/use.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/state.h"

cuda_status use_begin(standin *state, uint32_t index)
{
    use_state *const uses = &state->uses;
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    if (index >= uses->count) {
        if (alloti_array_reserve(&uses->records, &uses->capacity, index + 1,
                                 sizeof *uses->records) != ALLOT_STATUS_OK) {
            return CUDA_OUT_OF_MEMORY;
        }
        memset(uses->records + uses->count, 0,
               (size_t)(index + 1 - uses->count) * sizeof *uses->records);
        uses->count = index + 1;
    }
    uses->records[index].used.count = 0;
    uses->records[index].has_birth = false;
    return CUDA_OK;
}

cuda_status use_set_birth(standin *state, uint32_t index, const standin_stream *stream)
{
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    use_record *const record = &state->uses.records[index];
    const cuda_status status = point_copy(&record->born, &stream->now);
    record->has_birth = status == CUDA_OK;
    return status;
}

/** Whether work `number` of a slot comes before what follows on a stream, or on the host. */
static bool is_before(const standin *state, uint64_t slot, uint64_t number,
                      const standin_stream *stream)
{
    return number <= state->streams.observed[slot] ||
           (stream != NULL && slot < stream->now.clock.count &&
            number <= stream->now.clock.numbers[slot]);
}

/** The first slot of a clock that is not before; UINT64_MAX for none. */
static uint64_t first_after(const standin *state, const stream_clock *clock,
                            const standin_stream *stream)
{
    for (uint64_t i = 0; i < clock->count; i++) {
        if (!is_before(state, i, clock->numbers[i], stream)) {
            return i;
        }
    }
    return UINT64_MAX;
}

bool use_is_born(const standin *state, uint32_t index, const standin_stream *stream)
{
    const use_record *const record = &state->uses.records[index];
    return !record->has_birth || first_after(state, &record->born.clock, stream) == UINT64_MAX;
}

void use_mark(standin *state, uint32_t index, const standin_stream *stream)
{
    stream_clock *const used = &state->uses.records[index].used;
    if (clock_grow(used, stream->slot + 1)) {
        used->numbers[stream->slot] = stream->now.clock.numbers[stream->slot];
    }
}

bool use_is_over(const standin *state, uint32_t index, const standin_stream *stream, uint32_t *slot)
{
    const uint64_t after = first_after(state, &state->uses.records[index].used, stream);
    if (after == UINT64_MAX) {
        return true;
    }
    *slot = (uint32_t)after;
    return false;
}
