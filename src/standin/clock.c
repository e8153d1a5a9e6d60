/* SPDX-License-Identifier: MIT */
/* Vector clocks and points of streams; described in stream.h. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/state.h"

bool clock_grow(stream_clock *clock, uint64_t count)
{
    if (count <= clock->count) {
        return true;
    }
    if (alloti_array_reserve(&clock->numbers, &clock->capacity, count, sizeof *clock->numbers) !=
        ALLOT_STATUS_OK) {
        return false;
    }
    memset(clock->numbers + clock->count, 0, (size_t)(count - clock->count) * sizeof(uint64_t));
    clock->count = count;
    return true;
}

static bool clock_merge(stream_clock *into, const stream_clock *from)
{
    if (!clock_grow(into, from->count)) {
        return false;
    }
    for (uint64_t i = 0; i < from->count; i++) {
        if (from->numbers[i] > into->numbers[i]) {
            into->numbers[i] = from->numbers[i];
        }
    }
    return true;
}

bool point_merge(stream_point *into, const stream_point *from)
{
    if (from->tick > into->tick) {
        into->tick = from->tick;
    }
    return clock_merge(&into->clock, &from->clock);
}

cuda_status point_copy(stream_point *to, const stream_point *from)
{
    if (!clock_grow(&to->clock, from->clock.count)) {
        return CUDA_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < from->clock.count; i++) {
        to->clock.numbers[i] = from->clock.numbers[i];
    }
    to->clock.count = from->clock.count;
    to->tick = from->tick;
    return CUDA_OK;
}

void point_fini(stream_point *point)
{
    free(point->clock.numbers);
    *point = (stream_point){0};
}

bool point_is_finished(const standin *state, const stream_point *point)
{
    if (state->config.events == STANDIN_EVENTS_INSTANT ||
        (state->config.events == STANDIN_EVENTS_LAG &&
         state->streams.tick - point->tick >= state->config.lag)) {
        return true;
    }
    for (uint64_t i = 0; i < point->clock.count; i++) {
        if (point->clock.numbers[i] > state->streams.finished[i]) {
            return false;
        }
    }
    return true;
}

bool point_is_before(const stream_point *point, const standin_stream *stream)
{
    for (uint64_t i = 0; i < point->clock.count; i++) {
        const uint64_t known = i < stream->now.clock.count ? stream->now.clock.numbers[i] : 0;
        if (point->clock.numbers[i] > known) {
            return false;
        }
    }
    return true;
}
