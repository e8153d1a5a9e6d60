/* SPDX-License-Identifier: MIT */
/** What an allocator's calls of the driver cost, by the stated model. */
#include "replay/model.h"

void allot_cost_model_init(allot_cost_model *cost)
{
    *cost = (allot_cost_model){.struct_size = sizeof(*cost),
                               .hit_ns = 1000,
                               .segment_alloc_ns = 200000,
                               .segment_free_ns = 300000,
                               .page_map_ns = 10000,
                               .page_unmap_ns = 10000,
                               .range_ns = 30000,
                               .alloc_ns_per_gib = 300000,
                               .sync_ns = 50000};
}

uint64_t alloti_cost_of(const allot_cost_model *cost, const alloti_model_stats *stats,
                        uint64_t alloc_count)
{
    const double gib = (double)stats->bytes_taken / (double)(1ull << 30);
    return alloc_count * cost->hit_ns + stats->segment_alloc_count * cost->segment_alloc_ns +
           stats->segment_free_count * cost->segment_free_ns + stats->range_count * cost->range_ns +
           stats->page_map_count * cost->page_map_ns +
           stats->page_unmap_count * cost->page_unmap_ns + stats->sync_count * cost->sync_ns +
           (uint64_t)(gib * (double)cost->alloc_ns_per_gib);
}
