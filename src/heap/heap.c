/* SPDX-License-Identifier: MIT */
/* Making and releasing heaps. */
#include "heap/heap.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/fork.h"
#include "core/options.h"
#include "core/size_math.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/drop.h"
#include "heap/front.h"
#include "heap/granules.h"
#include "heap/pending.h"
#include "heap/pool.h"
#include "heap/record.h"
#include "heap/trim.h"

/* What the device refuses as often as RELEASE_ATTEMPTS stays with it: there is nobody to tell. */
enum { GRANULE_DEFAULT = 512, RELEASE_ATTEMPTS = 3 };

#define SEGMENT_SIZE_DEFAULT (UINT64_C(64) << 20)
/* Of the default: each granule of the addresses takes 16 bytes of a table. */
#define RESERVE_SIZE_MAX (UINT64_C(1) << 40)

allot_status alloti_heap_refuse_fork(void)
{
    return alloti_fail(ALLOT_STATUS_FORKED,
                       "the heap was made before fork(): make one anew in the child");
}

allot_status alloti_heap_enter(allot_heap *heap)
{
    const allot_status status = heap_check_fork(heap);
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_lock(&heap->mutex);
    }
    return status;
}

/* ---- options ---- */

static allot_status fill_sizes(allot_heap_options *options, const allot_device_info *info,
                               bool is_virtual)
{
    if (options->granule == 0) {
        options->granule = GRANULE_DEFAULT < info->align ? GRANULE_DEFAULT : info->align;
    }
    if (!alloti_is_pow2(options->granule)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "granule %" PRIu64 ": not a power of two",
                           options->granule);
    }
    if (options->granule > (is_virtual ? info->granule : info->align)) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "granule %" PRIu64 ": addresses of the device are not multiples of it",
                           options->granule);
    }
    if (options->segment_size == 0) {
        options->segment_size = SEGMENT_SIZE_DEFAULT;
    }
    if (options->reserve_size == 0) {
        options->reserve_size =
            info->memory_total < RESERVE_SIZE_MAX ? info->memory_total : RESERVE_SIZE_MAX;
    }
    const uint64_t step = is_virtual ? info->granule : options->granule;
    if (!alloti_align_up(options->segment_size, step, &options->segment_size) ||
        !alloti_align_up(options->reserve_size, step, &options->reserve_size) ||
        options->segment_size > UINT64_C(1) << 62 || options->reserve_size > UINT64_C(1) << 62) {
        return alloti_fail(ALLOT_STATUS_INVALID, "segments of %" PRIu64 " bytes: at most 2^62",
                           options->segment_size);
    }
    return ALLOT_STATUS_OK;
}

static allot_status take_options(allot_heap *heap, const allot_heap_options *given)
{
    allot_heap_options *const options = &heap->options;
    allot_status status = alloti_options_take(given, sizeof *options, options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const bool has_virtual = heap->info.granule != 0;
    if ((unsigned)options->mode > ALLOT_HEAP_MODE_VIRTUAL ||
        (unsigned)options->scrub > ALLOT_HEAP_SCRUB_FREE) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no mode %d, or no way to scrub %d",
                           (int)options->mode, (int)options->scrub);
    }
    if (options->mode == ALLOT_HEAP_MODE_VIRTUAL && !has_virtual) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "%s has no virtual memory", heap->info.name);
    }
    heap->is_virtual = has_virtual && options->mode != ALLOT_HEAP_MODE_SEGMENTS;
    status = fill_sizes(options, &heap->info, heap->is_virtual);
    if (status == ALLOT_STATUS_OK && options->limit_fraction != 0) {
        uint64_t limit = 0;
        status = alloti_limit_of_fraction(&heap->info, options->limit_fraction, &limit);
        options->limit = options->limit == 0 || limit < options->limit ? limit : options->limit;
    }
    if (options->is_debug || options->scrub != ALLOT_HEAP_SCRUB_NEVER) {
        options->front_size = 0; /* What passes through a front is neither checked nor scrubbed. */
    }
    heap->red_zone = options->is_debug ? options->granule : 0;
    return status;
}

/* ---- making ---- */

static allot_status init(allot_heap *heap, const allot_heap_options *options)
{
    alloti_blocks_init(heap);
    heap->uses_unused = heap->segment_unused = ALLOT_NONE;
    heap->give_back = ALLOT_NONE;
    heap->drop_line = ALLOTI_TREE_INIT;
    allot_status status = take_options(heap, options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_heap_pool_options first = {.struct_size = sizeof first,
                                           .strategy = heap->options.strategy};
    uint32_t index = 0;
    return alloti_pool_add(heap, &first, &index);
}

allot_status allot_heap_create(allot_device *device, const allot_heap_options *options,
                               allot_heap **out)
{
    if (device == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a heap needs a device");
    }
    allot_heap *const heap = calloc(1, sizeof *heap);
    if (heap == NULL) {
        return alloti_fail_memory(sizeof *heap);
    }
    heap->device = device;
    heap->fork_generation = alloti_fork_generation();
    allot_device_get_info(device, &heap->info);
    allot_status status = alloti_address_map_init(&heap->addresses);
    if (status != ALLOT_STATUS_OK) {
        free(heap);
        return status;
    }
    if (pthread_mutex_init(&heap->mutex, NULL) != 0) {
        alloti_address_map_fini(&heap->addresses);
        free(heap);
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a lock could not be made");
    }
    status = init(heap, options);
    if (status != ALLOT_STATUS_OK) {
        allot_heap_destroy(heap);
        return status;
    }
    *out = heap;
    return ALLOT_STATUS_OK;
}

/* ---- releasing ---- */

static void tell_leaks(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->blocks.count; i++) {
        const uint64_t word =
            atomic_load_explicit(&heap_block_at(heap, i)->word, memory_order_relaxed);
        if ((word & BLOCK_LIVE) != 0) {
            allot_block_info info;
            alloti_block_describe(heap, i, &info);
            heap->options.leak(heap->options.leak_context, &info);
        }
    }
}

static void keep_first(allot_status *first, allot_status status)
{
    *first = *first == ALLOT_STATUS_OK ? status : *first;
}

/** Give back what the heap has still. */
static allot_status release_memory(allot_heap *heap)
{
    allot_status first = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < heap->stream_count; i++) {
        keep_first(&first, alloti_stream_synchronize(heap, i));
        alloti_pending_forget(heap, i);
    }
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        if (heap->segments[i].address != 0) {
            const allot_status status = alloti_segment_abandon(heap, i);
            heap->segments[i].address = status == ALLOT_STATUS_OK ? 0 : heap->segments[i].address;
            keep_first(&first, status);
        }
    }
    keep_first(&first, alloti_granules_release_spares(heap));
    keep_first(&first, alloti_events_release(heap));
    return first;
}

void allot_heap_destroy(allot_heap *heap)
{
    if (heap == NULL) {
        return;
    }
    if (heap->fork_generation == alloti_fork_generation()) {
        if (heap->options.leak != NULL) {
            tell_leaks(heap);
        }
        for (int i = 0; i < RELEASE_ATTEMPTS && release_memory(heap) != ALLOT_STATUS_OK; i++) {
        }
    }
    alloti_record_fini(heap);
    alloti_drop_fini(heap);
    alloti_segments_fini(heap);
    alloti_arenas_fini(heap);
    alloti_streams_fini(heap);
    alloti_pools_fini(heap);
    alloti_blocks_fini(heap);
    alloti_address_map_fini(&heap->addresses);
    free(heap->uses);
    free(heap->events);
    free(heap->spares);
    free(heap->lent);
    pthread_mutex_destroy(&heap->mutex);
    free(heap);
}

allot_status allot_heap_get_failure(allot_heap *heap, allot_heap_failure *out)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status == ALLOT_STATUS_OK) {
        *out = heap->failure;
        out->struct_size = sizeof *out;
        pthread_mutex_unlock(&heap->mutex);
    }
    return status;
}
