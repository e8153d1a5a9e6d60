/* SPDX-License-Identifier: MIT */
#include "advise/sizes.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/compare.h"
#include "core/size_math.h"

enum { MIB_SHIFT = 20 };

/** Roundup interval of a size, as PyTorch chooses it. */
static uint32_t interval_of(uint64_t size)
{
    const uint64_t mib = size >> MIB_SHIFT;
    const uint32_t interval = mib == 0 ? 0 : alloti_log2(mib);
    return interval < ALLOT_TORCH_INTERVALS ? interval : ALLOT_TORCH_INTERVALS - 1;
}

static int by_mib(const void *a, const void *b)
{
    return alloti_order(((const alloti_size_class *)a)->mib, ((const alloti_size_class *)b)->mib);
}

/** Sort classes and add up equal ones; returns how many are left. */
static uint32_t classes_merge(alloti_size_class *classes, uint32_t count)
{
    uint32_t kept = 0;
    qsort(classes, count, sizeof *classes, by_mib);
    for (uint32_t i = 0; i < count; i++) {
        if (kept > 0 && classes[kept - 1].mib == classes[i].mib) {
            classes[kept - 1].bytes += classes[i].bytes;
            classes[kept - 1].count += classes[i].count;
        } else {
            classes[kept++] = classes[i];
        }
    }
    return kept;
}

allot_status alloti_sizes_init(alloti_sizes *sizes, const allot_trace *trace, uint32_t device)
{
    *sizes = (alloti_sizes){.large = NULL};
    allot_events events = {0};
    allot_trace_get_events(trace, device, &events);
    alloti_size_class *const classes = alloti_calloc_array(events.count + 1, sizeof *classes);
    if (classes == NULL) {
        return alloti_fail_memory(events.count * sizeof *classes);
    }
    uint32_t count = 0;
    for (uint64_t i = 0; i < events.count; i++) {
        if (events.kind[i] != ALLOT_EVENT_ALLOC && events.kind[i] != ALLOT_EVENT_OOM) {
            continue;
        }
        const uint64_t size = events.size[i];
        sizes->interval_bytes[interval_of(size)] += size;
        const uint64_t mib = (size >> MIB_SHIFT) + (size % (UINT64_C(1) << MIB_SHIFT) != 0);
        if (mib + 1 >= ALLOTI_MAX_SPLIT_MIB_MIN) {
            classes[count] = (alloti_size_class){.mib = mib, .bytes = size, .count = 1};
            count++;
        }
    }
    sizes->large = classes;
    sizes->large_count = classes_merge(classes, count);
    return ALLOT_STATUS_OK;
}

void alloti_sizes_fini(alloti_sizes *sizes)
{
    free(sizes->large);
    *sizes = (alloti_sizes){.large = NULL};
}

uint64_t alloti_sizes_threshold_mib(const alloti_sizes *sizes, uint32_t index)
{
    return sizes->large[index].mib + 1;
}

uint32_t alloti_sizes_spread(const alloti_sizes *sizes, uint32_t max, uint32_t *chosen)
{
    double total = 0.0;
    for (uint32_t i = 0; i < sizes->large_count; i++) {
        total += (double)sizes->large[i].bytes;
    }
    double seen = 0.0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizes->large_count && count < max; i++) {
        /* The class in which the next of `max` equal shares ends; the last one always. */
        seen += (double)sizes->large[i].bytes;
        const double share = total * (double)count / (double)(max - 1);
        if (seen >= share || i + 1 == sizes->large_count) {
            chosen[count++] = i;
        }
    }
    return count;
}

uint32_t alloti_sizes_intervals(const alloti_sizes *sizes, uint32_t max, uint32_t *intervals)
{
    bool taken[ALLOT_TORCH_INTERVALS] = {false};
    uint32_t count = 0;
    while (count < max) {
        uint32_t best = ALLOT_NONE;
        for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
            const uint64_t bytes = sizes->interval_bytes[i];
            if (!taken[i] && bytes > 0 &&
                (best == ALLOT_NONE || bytes > sizes->interval_bytes[best])) {
                best = i;
            }
        }
        if (best == ALLOT_NONE) {
            break;
        }
        taken[best] = true;
        intervals[count++] = best;
    }
    return count;
}
