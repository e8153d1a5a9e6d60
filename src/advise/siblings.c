/* SPDX-License-Identifier: MIT */
#include "advise/siblings.h"

#include <stdlib.h>

#include "core/array.h"

/** Of the stacks that repeat in an unfinished pass, one in so many keeps its memory in training. */
enum { KEEPS_ONE_IN = 10 };

struct alloti_stack_fate {
    uint64_t ended[ALLOT_CATEGORY_COUNT]; /**< Bytes whose end was seen, by what they were for. */
    uint32_t unfinished_count;
    uint32_t unfinished_live;
};

allot_status alloti_siblings_init(uint32_t stack_count, alloti_siblings *out)
{
    *out = (alloti_siblings){.stack_count = stack_count};
    out->fates = alloti_calloc_array(stack_count + UINT64_C(1), sizeof *out->fates);
    return out->fates != NULL ? ALLOT_STATUS_OK
                              : alloti_fail_memory(stack_count * sizeof *out->fates);
}

void alloti_siblings_fini(alloti_siblings *siblings)
{
    free(siblings->fates);
    *siblings = (alloti_siblings){0};
}

void alloti_siblings_add(alloti_siblings *siblings, uint32_t stack, allot_category category,
                         uint64_t size)
{
    if (stack < siblings->stack_count) {
        siblings->fates[stack].ended[category] += size;
    }
}

void alloti_siblings_add_unfinished(alloti_siblings *siblings, uint32_t stack, bool is_live)
{
    if (stack < siblings->stack_count) {
        siblings->fates[stack].unfinished_count++;
        siblings->fates[stack].unfinished_live += is_live;
    }
}

allot_category alloti_siblings_category(const alloti_siblings *siblings, uint32_t stack,
                                        allot_category otherwise)
{
    if (stack >= siblings->stack_count) {
        return otherwise;
    }
    const uint64_t *const ended = siblings->fates[stack].ended;
    allot_category best = otherwise;
    uint64_t most = 0;
    for (int c = 0; c < ALLOT_CATEGORY_COUNT; c++) {
        if (ended[c] > most) {
            most = ended[c];
            best = (allot_category)c;
        }
    }
    return best;
}

bool alloti_siblings_are_kept(const alloti_siblings *siblings)
{
    uint32_t repeated = 0;
    uint32_t kept = 0;
    for (uint32_t s = 0; s < siblings->stack_count; s++) {
        const alloti_stack_fate *const fate = &siblings->fates[s];
        if (fate->unfinished_count >= 2) {
            repeated++;
            kept += fate->unfinished_live == fate->unfinished_count;
        }
    }
    return repeated == 0 || kept >= (repeated + KEEPS_ONE_IN - 1) / KEEPS_ONE_IN;
}
