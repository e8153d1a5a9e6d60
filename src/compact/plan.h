/* SPDX-License-Identifier: MIT */
/**
 * What is behind an allot_compact_plan: a copy of the heap's state and moves over it, in the order
 * in which they are to be made. When a move is made its destination is free: it was from the
 * beginning, or moves before it made it so.
 */
#ifndef ALLOTI_COMPACT_PLAN_H
#define ALLOTI_COMPACT_PLAN_H

#include <allot/compact.h>

#include "compact/layout.h"

typedef struct plan_move {
    uint32_t block; /**< ALLOT_NONE: left out after all. */
    uint32_t from_area;
    uint32_t to_area;
    bool is_inbound; /**< From outside of the layout into it. */
    uint64_t from;   /**< Offsets in areas. */
    uint64_t to;
    uint32_t previous; /**< Move of the same block before; ALLOT_NONE: none. */
    uint64_t stage; /**< Of one that overlaps itself: free bytes elsewhere to copy through, or 0. */
    uint32_t below; /**< Block that lies below the destination then; ALLOT_NONE: not known. */
} plan_move;

struct allot_compact_plan {
    const allot_heap *heap; /**< That it is for; only compared. */
    allot_compact_plan_options options;
    compact_state state;
    compact_place *places; /**< After all moves. [state.block_count] */
    plan_move *moves;
    uint64_t moves_capacity;
    uint64_t move_count; /**< Those left out included, until alloti_plan_settle(). */
    uint64_t made_count; /**< Without them. */
    uint64_t bytes;
    uint64_t bytes_copied; /**< More where bytes go through a stage. */
    uint64_t cost_ns;
    uint64_t began_ns; /**< Clock of the host. */
    allot_compact_forecast forecast;
};

/** The host's clock. */
uint64_t alloti_plan_now_ns(void);

/** Time of moving `size` bytes from one address to another; 0 where the device tells no rate. */
uint64_t alloti_plan_cost_ns(const allot_device_info *info, uint64_t from, uint64_t to,
                             uint64_t size);

/** Whether a move is to where the block overlaps itself, at lower addresses. */
bool alloti_plan_is_slide(const allot_compact_plan *plan, const plan_move *move);

/**
 * Time of sliding `size` bytes by `distance`.
 *
 * @param[in,out] stage  In: the largest free range elsewhere; out: how much of it to copy through,
 *                       0 where that takes longer. NULL: none.
 */
uint64_t alloti_plan_slide_ns(const allot_device_info *info, uint64_t distance, uint64_t size,
                              uint64_t *stage);

/** Predicted time of a move. */
uint64_t alloti_plan_move_ns(const allot_compact_plan *plan, const plan_move *move);

/** Whether the budgets allow for `count` more moves of `bytes` in `cost_ns`. */
bool alloti_plan_affords(const allot_compact_plan *plan, uint64_t bytes, uint64_t count,
                         uint64_t cost_ns);

/**
 * A block goes from where it was to where its place says now. `before`: what that said. A move of
 * the same block before is replaced if it was one from outside of the layout; any other one may
 * have made room for others since, and stays.
 */
ALLOT_NODISCARD allot_status alloti_plan_move(allot_compact_plan *plan, uint32_t block,
                                              const compact_place *before);

/** Take the last move of a block back; its place becomes the one before. */
void alloti_plan_unmove(allot_compact_plan *plan, uint32_t block);

/** Forget all moves from `count` on. */
void alloti_plan_truncate(allot_compact_plan *plan, uint64_t count);

/** The moves so far stay: others may be planned to where a block was that came from outside. */
void alloti_plan_conclude(allot_compact_plan *plan);

/** Close the gaps that moves left out make. */
void alloti_plan_settle(allot_compact_plan *plan);

/** Pack the areas [first, first + count) of one arena: goal FULL. */
ALLOT_NODISCARD allot_status alloti_plan_pack(allot_compact_plan *plan, uint32_t first,
                                              uint32_t count);

/** Clear a window for a request of an arena, of which [first, first + count) are the areas.
 * ALLOT_STATUS_FRAGMENTED if none can be. */
ALLOT_NODISCARD allot_status alloti_plan_make_room(allot_compact_plan *plan, uint32_t first,
                                                   uint32_t count, uint64_t size, uint64_t align);

/** Whether the moves within the areas [first, first + count) of one arena make less memory free to
 * give back, or as much and the largest free range smaller. */
ALLOT_NODISCARD allot_status alloti_plan_is_worse(const allot_compact_plan *plan, uint32_t first,
                                                  uint32_t count, bool *out);

/** Fill in plan->forecast. */
ALLOT_NODISCARD allot_status alloti_plan_forecast(allot_compact_plan *plan);

/** Make the moves on a copy of the state and see whether each can be: ALLOT_STATUS_MISMATCH with
 * the first one that cannot. Knows nothing of how plans are made. */
ALLOT_NODISCARD allot_status alloti_plan_simulate(const allot_compact_plan *plan);

#endif /* ALLOTI_COMPACT_PLAN_H */
