/* SPDX-License-Identifier: MIT */
/**
 * What a replay drives: one table of operations per model of an allocator. The exact model of
 * PyTorch and the models for comparison implement it alike; a new model is one file with a table
 * and one line in models.c.
 *
 * A model decides placement on invented addresses, without memory. `stats` is part of the model
 * and kept up to date, so that a replay can read peaks after every request at no cost.
 */
#ifndef ALLOTI_REPLAY_MODEL_H
#define ALLOTI_REPLAY_MODEL_H

#include <allot/replay.h>

struct alloti_torchsim_segment;

/** Sizes in bytes, the rest counts. Peaks are kept by alloti_model_note_peaks(). */
typedef struct alloti_model_stats {
    uint64_t reserved;
    uint64_t allocated; /**< After the model's rounding. */
    uint64_t active;    /**< Allocated or waiting for a stream. */
    uint64_t requested; /**< Active, before rounding. */
    uint64_t reserved_peak;
    uint64_t allocated_peak;
    uint64_t active_peak;
    uint64_t requested_peak;
    uint64_t segment_alloc_count; /**< Driver calls that took a segment. */
    uint64_t segment_free_count;
    uint64_t range_count;     /**< Driver calls that mapped or unmapped a range of pages. */
    uint64_t range_map_count; /**< Those of them that mapped. */
    uint64_t page_map_count;
    uint64_t page_unmap_count;
    uint64_t bytes_taken; /**< From the driver, all together. */
    uint64_t retry_count;
    uint64_t sync_count;
    uint64_t copy_count; /**< Copies that moved blocks. */
    uint64_t copy_bytes;
    uint64_t copy_ns; /**< What they take on the device. */
} alloti_model_stats;

/** Free memory in detail; costs a walk, so only for samples and the end. */
typedef struct alloti_model_survey {
    uint64_t free_bytes;   /**< Held from the driver, not handed out. */
    uint64_t free_largest; /**< Largest range of them that one request could get. */
} alloti_model_survey;

/** Head of every model; a model's own struct begins with it. */
typedef struct alloti_model {
    const struct alloti_model_ops *ops;
    alloti_model_stats stats;
    allot_heap *heap; /**< That the model drives, or NULL. */
    uint32_t site;    /**< Set before a request: where it comes from; 0: unknown. */
    /** Compactions so far; the replay sets `event`. [compaction_count] */
    allot_replay_compaction *compactions;
    uint64_t compactions_capacity;
    uint32_t compaction_count;
} alloti_model;

/** What a model is made from. Strings and pointers are borrowed for the call. */
typedef struct alloti_model_params {
    const char *argument;         /**< What followed the model's name and a colon; "" if nothing. */
    const allot_torch_conf *conf; /**< Settings instead of `argument`, or NULL (torch only). */
    uint64_t limit;               /**< Bytes of the device; UINT64_MAX: no limit. */
    double fraction;              /**< Share that may be used, 0 for none. */
    uint32_t version;             /**< PyTorch release. */
    uint32_t pool_count;          /**< Private pools that requests may name: 0 to pool_count - 1. */
    const struct alloti_request_pool *pools; /**< [pool_count] What is known of them; or NULL. */
} alloti_model_params;

typedef struct alloti_model_ops {
    size_t ops_size;
    allot_replay_model info; /**< Name, argument and summary for people. */

    /**
     * @return ALLOT_STATUS_INVALID for a wrong argument, with position and reason in the detail
     *         text; ALLOT_STATUS_HOST_MEMORY. `*out` gets the model, its `ops` set.
     */
    allot_status (*create)(const alloti_model_params *params, alloti_model **out);
    void (*destroy)(alloti_model *model);

    /** Write the canonical argument, "" if none, as in allot_replay_result::model. */
    void (*describe)(const alloti_model *model, char *buffer, size_t size);

    /**
     * Serve a request; *block names it until it is freed.
     *
     * @param[in] pool  Private pool, or ALLOT_NONE.
     * @return ALLOT_STATUS_OK; ALLOT_STATUS_DEVICE_MEMORY or ALLOT_STATUS_FRAGMENTED for an
     *         out-of-memory, after which the model goes on; another status ends the replay.
     */
    allot_status (*alloc)(alloti_model *model, uint64_t size, uint64_t stream, uint32_t pool,
                          uint64_t *block);

    /** Free. `is_shared`: another stream still uses the block; complete() follows later. */
    allot_status (*free)(alloti_model *model, uint64_t block, bool is_shared);

    /** (optional: nothing happens) The streams are done with a block freed as shared. */
    allot_status (*complete)(alloti_model *model, uint64_t block);

    /** (optional: nothing happens) The program asks to give cached memory back. */
    allot_status (*empty_cache)(alloti_model *model);

    void (*survey)(const alloti_model *model, alloti_model_survey *out);

    /**
     * (optional: live blocks are requested instead) Begin with a recorded state, which only
     * PyTorch's own allocator under the same settings can. `blocks` gets the name of each block.
     */
    allot_status (*load)(alloti_model *model, const struct alloti_torchsim_segment *segments,
                         uint32_t count, uint64_t *blocks);
} alloti_model_ops;

/** Raise the peaks to the present values; models call it after every change. */
static inline void alloti_model_note_peaks(alloti_model_stats *stats)
{
    stats->reserved_peak =
        stats->reserved > stats->reserved_peak ? stats->reserved : stats->reserved_peak;
    stats->allocated_peak =
        stats->allocated > stats->allocated_peak ? stats->allocated : stats->allocated_peak;
    stats->active_peak = stats->active > stats->active_peak ? stats->active : stats->active_peak;
    stats->requested_peak =
        stats->requested > stats->requested_peak ? stats->requested : stats->requested_peak;
}

/**
 * Make the model that a string names ("torch:max_split_size_mb:128", "bfc").
 * `params->argument` is ignored; `spec` may be NULL if `params->conf` is set.
 */
ALLOT_NODISCARD allot_status alloti_model_create(const char *spec,
                                                 const alloti_model_params *params,
                                                 alloti_model **out);

/** What a model's calls of the driver cost, `alloc_count` requests served (cost.c). */
uint64_t alloti_cost_of(const allot_cost_model *cost, const alloti_model_stats *stats,
                        uint64_t alloc_count);

/** NULL is allowed. */
void alloti_model_destroy(alloti_model *model);

/** Every table, ended by NULL (models.c). */
extern const alloti_model_ops *const ALLOTI_MODELS[];

extern const alloti_model_ops alloti_model_async;
extern const alloti_model_ops alloti_model_bfc;
extern const alloti_model_ops alloti_model_heap;
extern const alloti_model_ops alloti_model_rmm;
extern const alloti_model_ops alloti_model_space;
extern const alloti_model_ops alloti_model_torch;

#endif /* ALLOTI_REPLAY_MODEL_H */
