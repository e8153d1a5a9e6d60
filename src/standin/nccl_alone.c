/* SPDX-License-Identifier: MIT */
/*
 * One rank of a communicator alone, under the rule that every rank holds the same data as this one.
 * Small values follow the collectives (values.h), so that shapes and counts which ranks exchange
 * agree. Nothing is sent anywhere and nobody is waited for. A sum is not multiplied by the ranks:
 * values are for control, not for arithmetic.
 */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/nccl.h"
#include "standin/nccl_type.h"

/* Broadcasts inside a group stand for one exchange: what this rank sends, others send as well. */
enum { GROUP_MAX = 4096 };
typedef struct group_part {
    const void *from;
    void *to;
    uint64_t size;
    bool is_own;
} group_part;
static _Thread_local group_part group[GROUP_MAX];
static _Thread_local int group_count;
static _Thread_local bool is_in_group;

/** Copy what is known of `from` to `count` places one after another. */
static void spread(standin *state, void *to, const void *from, uint64_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count && size <= VALUE_SIZE_MAX && to != NULL; i++) {
        /* In place too: from now on the values are what the collective left there. */
        value_collect(&state->values, (uintptr_t)to + i * size, (uintptr_t)from, size);
    }
}

static void broadcast(standin *state, const nccl_call *call, uint64_t size)
{
    const bool is_own = call->root == call->comm->rank;
    if (is_in_group && group_count < GROUP_MAX) {
        group[group_count++] = (group_part){call->from, call->to, size, is_own};
    }
    if (is_own) {
        spread(state, call->to, call->from, size, 1);
    } else if (!is_in_group) {
        /* What is in this rank's buffer is what the other would have sent. */
        spread(state, call->to, call->to, size, 1);
    }
}

/** What was last sent is what a receive of the same size gets. */
static void keep_sent(standin *state, const nccl_call *call, uint64_t size)
{
    nccl_comm *const comm = call->comm;
    unsigned char *const copy = size <= VALUE_SIZE_MAX ? alloti_calloc_array(size, 1) : NULL;
    free(comm->sent);
    comm->sent = copy;
    comm->sent_size = copy == NULL ? 0 : size;
    if (copy != NULL) {
        value_offer(&state->values, (uintptr_t)call->from, copy, size);
    }
}

static void answer(standin *state, const nccl_call *call)
{
    const nccl_comm *const comm = call->comm;
    const uint64_t size = call->count * nccl_type_size(call->type);
    switch (call->kind) {
    case NCCL_BROADCAST:
        broadcast(state, call, size);
        break;
    case NCCL_ALL_GATHER:
    case NCCL_ALL_TO_ALL:
        spread(state, call->to, call->from, size, (uint64_t)comm->size);
        break;
    case NCCL_GATHER:
        spread(state, call->to, call->from, size,
               call->root == comm->rank ? (uint64_t)comm->size : 0);
        break;
    case NCCL_SCATTER:
        spread(state, call->to, call->from, size, call->root == comm->rank ? 1 : 0);
        break;
    case NCCL_SEND:
        keep_sent(state, call, size);
        break;
    case NCCL_RECEIVE:
        if (comm->sent_size == size && comm->sent != NULL) {
            value_receive(&state->values, (uintptr_t)call->to, comm->sent, size);
        }
        break;
    default:
        spread(state, call->to, call->from, size, 1);
        break;
    }
}

nccl_status nccl_alone(const nccl_call *call)
{
    standin *const state = standin_open();
    state->values.launches++;
    answer(state, call);
    stream_work_on(state, call->stream);
    standin_close(state);
    return NCCL_OK;
}

void nccl_alone_group_begin(void)
{
    is_in_group = true;
    group_count = 0;
}

void nccl_alone_group_end(void)
{
    const group_part *own = NULL;
    is_in_group = false;
    for (int i = 0; i < group_count; i++) {
        own = group[i].is_own ? &group[i] : own;
    }
    standin *const state = standin_open();
    for (int i = 0; i < group_count && own != NULL; i++) {
        if (!group[i].is_own && group[i].size == own->size) {
            spread(state, group[i].to, own->from, own->size, 1);
        }
    }
    standin_close(state);
}
