/* SPDX-License-Identifier: MIT */
/**
 * What the two modes of the "space:..." models share (model_space.c): segments (space_segments.c)
 * and virtual memory (space_vm.c).
 */
#ifndef ALLOTI_REPLAY_MODEL_SPACE_H
#define ALLOTI_REPLAY_MODEL_SPACE_H

#include "replay/comparison.h"
#include "replay/space_areas.h"

/** Memory comes in multiples of this: granules of virtual memory, sizes of segments. */
#define ALLOTI_SPACE_GRANULE ALLOTI_UPSTREAM_ALIGN

typedef struct alloti_space_model {
    alloti_comparison base;
    allot_space_strategy strategy;
    uint32_t is_segmented; /**< Mode: segments, else virtual memory. */
    uint32_t is_apart;     /**< Each stream has areas of its own. */
    uint64_t segment;      /**< Least size of a segment. */
    alloti_space_areas areas;
} alloti_space_model;

/** The stream that an area is chosen by: one for all where streams are not apart. */
static inline uint64_t alloti_space_stream(const alloti_space_model *self, uint64_t stream)
{
    return self->is_apart != 0 ? stream : 0;
}

/**
 * Give memory back that holds nothing, from the highest address down, until `bytes` more can be
 * taken or nothing is left that could go.
 */
ALLOT_NODISCARD allot_status alloti_space_segments_release(alloti_space_model *self,
                                                           uint64_t bytes);
ALLOT_NODISCARD allot_status alloti_space_vm_release(alloti_space_model *self, uint64_t bytes);

/** Whether `bytes` more can be taken from the driver. */
static inline bool alloti_space_has_room(const alloti_space_model *self, uint64_t bytes)
{
    const alloti_upstream *const up = &self->base.upstream;
    return up->reserved <= up->limit && bytes <= up->limit - up->reserved;
}

extern const alloti_placement alloti_space_segments;
extern const alloti_placement alloti_space_vm;

#endif /* ALLOTI_REPLAY_MODEL_SPACE_H */
