/* SPDX-License-Identifier: MIT */
#include "measure/load.h"

static bool is_no_room(allot_status status)
{
    return status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_DEVICE_MEMORY ||
           status == ALLOT_STATUS_BUDGET;
}

static allot_status release(allot_heap *heap, allot_handle *handle)
{
    const allot_handle old = *handle;
    *handle = (allot_handle){0};
    return old.value == 0 ? ALLOT_STATUS_OK : allot_heap_free(heap, old);
}

allot_status load_heap(allot_heap *heap, allot_stream stream, const load_part *part,
                       allot_handle *handles, uint64_t *refused)
{
    allot_request request = {.struct_size = sizeof request, .stream = stream};
    for (uint64_t i = 0; i < part->op_count; i++) {
        const workload_op op = part->w->ops[i];
        allot_status status = ALLOT_STATUS_OK;
        if (op.units == 0) {
            status = release(heap, &handles[op.slot]);
        } else {
            request.size = load_size(part, op);
            status = allot_heap_alloc(heap, &request, &handles[op.slot]);
        }
        if (op.units != 0 && is_no_room(status)) {
            ++*refused;
        } else if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status load_heap_end(allot_heap *heap, const load_part *part, allot_handle *handles)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < part->w->slot_count && status == ALLOT_STATUS_OK; i++) {
        status = release(heap, &handles[i]);
    }
    return status;
}
