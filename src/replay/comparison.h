/* SPDX-License-Identifier: MIT */
/**
 * What the models for comparison share: the driver, the table of blocks handed out, statistics, and
 * the operations of a model made from two of their own: take a piece, give a piece back.
 *
 * A model's struct begins with alloti_comparison. Its alloti_model_ops use the functions below.
 */
#ifndef ALLOTI_REPLAY_COMPARISON_H
#define ALLOTI_REPLAY_COMPARISON_H

#include "replay/model.h"
#include "replay/span_set.h"
#include "replay/upstream.h"

typedef struct alloti_comparison alloti_comparison;

/** Where a model for comparison puts things. */
typedef struct alloti_placement {
    /**
     * Find room for `size` bytes, 1 or more.
     * @return ALLOT_STATUS_DEVICE_MEMORY if there is none, ALLOT_STATUS_HOST_MEMORY.
     */
    allot_status (*take)(alloti_comparison *self, uint64_t size, uint64_t stream, alloti_span *out);
    /** Take back a piece that `take` gave, last used on `stream`. */
    allot_status (*give)(alloti_comparison *self, alloti_span piece, uint64_t stream);
    /** Free bytes held, and the largest range of them. */
    void (*survey)(const alloti_comparison *self, alloti_model_survey *out);
} alloti_placement;

/** A block handed out, or a slot for one. */
typedef struct alloti_handed {
    alloti_span span; /**< size 0: the slot is empty. */
    uint64_t requested;
    uint64_t stream;
    uint32_t next; /**< Of the empty slots, ALLOT_NONE at the end. */
    bool is_pending;
} alloti_handed;

struct alloti_comparison {
    alloti_model model; /**< First: a model is a pointer to this. */
    const alloti_placement *placement;
    alloti_upstream upstream;
    uint64_t page_size; /**< Above 0: the driver's work is counted in pages of this size. */
    alloti_handed *handed;
    uint64_t handed_capacity;
    uint32_t handed_count;
    uint32_t handed_spare;
};

/** Set up the shared part of a zeroed model. */
void alloti_comparison_init(alloti_comparison *self, const alloti_model_ops *ops,
                            const alloti_placement *placement, const alloti_model_params *params);
void alloti_comparison_fini(alloti_comparison *self);

/** Bring what the model shows of its driver up to date. */
void alloti_comparison_note(alloti_comparison *self);

/** Operations for an alloti_model_ops. */
allot_status alloti_comparison_alloc(alloti_model *model, uint64_t size, uint64_t stream,
                                     uint32_t pool, uint64_t *block);
allot_status alloti_comparison_free(alloti_model *model, uint64_t block, bool is_shared);
allot_status alloti_comparison_complete(alloti_model *model, uint64_t block);
void alloti_comparison_survey(const alloti_model *model, alloti_model_survey *out);

#endif /* ALLOTI_REPLAY_COMPARISON_H */
