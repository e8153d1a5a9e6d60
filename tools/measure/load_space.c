/* SPDX-License-Identifier: MIT */
#include "measure/load.h"

static bool release(allot_space *space, uint32_t id)
{
    return id == ALLOT_NONE || allot_space_free(space, id) == ALLOT_STATUS_OK;
}

uint64_t load_space(allot_space *space, const load_part *part, uint32_t *ids)
{
    uint64_t refused = 0;
    for (uint64_t i = 0; i < part->op_count; i++) {
        const workload_op op = part->w->ops[i];
        if (op.units != 0) {
            allot_range range;
            const allot_status status = allot_space_alloc(space, load_size(part, op), 0, 0, &range);
            refused += status != ALLOT_STATUS_OK;
            ids[op.slot] = status == ALLOT_STATUS_OK ? range.id : ALLOT_NONE;
        } else if (!release(space, ids[op.slot])) {
            return UINT64_MAX;
        }
    }
    return refused;
}

uint64_t load_space_top(allot_space *space, const load_part *part, uint32_t *ids, uint64_t *top)
{
    uint64_t refused = 0;
    *top = 0;
    for (uint64_t i = 0; i < part->op_count; i++) {
        const load_part one = {
            .w = &(workload){.ops = &part->w->ops[i]}, .op_count = 1, .shift = part->shift};
        const uint64_t now = load_space(space, &one, ids);
        if (now == UINT64_MAX) {
            return now;
        }
        refused += now;
        const uint32_t id = ids[part->w->ops[i].slot];
        allot_range range;
        if (part->w->ops[i].units != 0 && id != ALLOT_NONE &&
            allot_space_get(space, id, &range) == ALLOT_STATUS_OK) {
            *top = range.offset + range.size > *top ? range.offset + range.size : *top;
        }
    }
    return refused;
}
