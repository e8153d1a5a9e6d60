/* SPDX-License-Identifier: MIT */
/** What an allocator's calls of the driver cost, by the stated model. */
#include "core/driver_costs.h"
#include "replay/model.h"

void allot_cost_model_init(allot_cost_model *cost)
{
    *cost = (allot_cost_model){.struct_size = sizeof(*cost),
                               .hit_ns = 1000,
                               .segment_alloc_ns = DRIVER_COST_ALLOC_NS,
                               .segment_free_ns = DRIVER_COST_FREE_NS,
                               .page_map_ns = DRIVER_COST_PAGE_MAP_NS,
                               .page_unmap_ns = DRIVER_COST_PAGE_UNMAP_NS,
                               .range_ns = DRIVER_COST_RANGE_NS,
                               .alloc_ns_per_gib = DRIVER_COST_ALLOC_NS_PER_GIB,
                               .sync_ns = DRIVER_COST_SYNC_NS};
}

uint64_t alloti_cost_of(const allot_cost_model *cost, const alloti_model_stats *stats,
                        uint64_t alloc_count)
{
    const double gib = (double)stats->bytes_taken / (double)(1ull << 30);
    return alloc_count * cost->hit_ns + stats->segment_alloc_count * cost->segment_alloc_ns +
           stats->segment_free_count * cost->segment_free_ns + stats->range_count * cost->range_ns +
           stats->page_map_count * cost->page_map_ns +
           stats->page_unmap_count * cost->page_unmap_ns + stats->sync_count * cost->sync_ns +
           stats->copy_ns + (uint64_t)(gib * (double)cost->alloc_ns_per_gib);
}
