/* SPDX-License-Identifier: MIT */
#include "standin/nccl_op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "standin/bytes.h"
#include "standin/nccl_type.h"

/* ---- saying it ---- */

/** "AllReduce"; never NULL. */
static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"nothing",   "AllReduce",     "Reduce",   "Broadcast",
                                        "AllGather", "ReduceScatter", "AlltoAll", "Gather",
                                        "Scatter",   "Send",          "Recv",     "CommSplit"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "something unknown";
}

static bool is_reduction(uint32_t kind)
{
    return kind == NCCL_ALL_REDUCE || kind == NCCL_REDUCE || kind == NCCL_REDUCE_SCATTER;
}

void record_describe(const nccl_record *record, char *text, size_t size)
{
    char more[48] = "";
    if (is_reduction(record->kind)) {
        snprintf(more, sizeof more, " (%s)", nccl_operation_name(record->operation));
    }
    if (record->root >= 0) {
        const size_t length = strlen(more);
        snprintf(more + length, sizeof more - length, " %s rank %d",
                 record->kind == NCCL_SEND || record->kind == NCCL_GATHER ? "to"
                 : record->kind == NCCL_REDUCE                            ? "at"
                                                                          : "from",
                 record->root);
    }
    snprintf(text, size, "%s of %" PRIu64 " %s%s, call %" PRIu64, kind_name(record->kind),
             record->count, nccl_type_name(record->type), more, record->number);
}

bool record_fits(const nccl_op *op, const nccl_record *other)
{
    const nccl_record *const own = &op->record;
    if (own->kind == NCCL_RECEIVE) {
        return other->kind == NCCL_SEND && other->count * nccl_type_size(other->type) == op->slice;
    }
    return own->kind == other->kind && own->type == other->type && own->count == other->count &&
           own->root == other->root && own->operation == other->operation;
}

/* ---- what goes where ---- */

static unsigned ranks_of(const nccl_op *op)
{
    return (unsigned)op->comm->size;
}

static bool is_root(const nccl_op *op)
{
    return op->record.root == op->comm->rank;
}

/** Bytes that this rank gives in all. */
static uint64_t own_size(const nccl_op *op)
{
    switch (op->record.kind) {
    case NCCL_REDUCE_SCATTER:
    case NCCL_ALL_TO_ALL:
        return op->slice * ranks_of(op);
    case NCCL_SCATTER:
        return is_root(op) ? op->slice * ranks_of(op) : 0;
    case NCCL_BROADCAST:
        return is_root(op) ? op->slice : 0;
    case NCCL_RECEIVE:
        return 0;
    default:
        return op->slice;
    }
}

uint64_t op_result_size(const nccl_op *op)
{
    switch (op->record.kind) {
    case NCCL_ALL_GATHER:
    case NCCL_ALL_TO_ALL:
    case NCCL_SPLIT:
        return op->slice * ranks_of(op);
    case NCCL_GATHER:
        return is_root(op) ? op->slice * ranks_of(op) : 0;
    case NCCL_REDUCE:
        return is_root(op) ? op->slice : 0;
    case NCCL_SEND:
        return 0;
    default:
        return op->slice;
    }
}

/** What this rank gives to rank `to`: NULL for nothing. */
static unsigned char *piece_for(const nccl_op *op, unsigned to)
{
    switch (op->record.kind) {
    case NCCL_REDUCE_SCATTER:
    case NCCL_ALL_TO_ALL:
    case NCCL_SCATTER:
        return op->own == NULL ? NULL : op->own + op->slice * to;
    case NCCL_REDUCE:
    case NCCL_GATHER:
        return (int)to == op->record.root ? op->own : NULL;
    default:
        return op->own;
    }
}

static bool is_zero(const unsigned char *bytes, uint64_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0);
}

/* ---- making one ---- */

bool op_has_values(uint64_t size)
{
    return size != 0 && (standin_settings()->has_bytes || size <= VALUE_SIZE_MAX);
}

/** Read what this rank gives; false without host memory. Unknown values stay NULL. */
static bool read_own(nccl_op *op, const void *host, void *stream_handle)
{
    const uint64_t size = own_size(op);
    if (host == NULL && !op_has_values(size)) {
        return true;
    }
    op->own = alloti_calloc_array(size, 1);
    if (op->own == NULL) {
        return false;
    }
    if (host != NULL) {
        memcpy(op->own, host, (size_t)size);
        return true;
    }
    standin *const state = standin_open();
    if (!state->config.has_bytes && address_is_inside(&state->space, op->from)) {
        value_offer(&state->values, op->from, op->own, size);
    } else {
        /* What the stream was given before has to be there; the host waits where a kernel would. */
        standin_stream *stream = NULL;
        if (state->config.has_bytes && stream_get(state, stream_handle, &stream) == CUDA_OK &&
            stream->capture == NULL) {
            (void)stream_synchronize(state, stream);
        }
        bytes_copy(state, op->own, (const void *)(uintptr_t)op->from, size);
    }
    standin_close(state);
    return true;
}

nccl_op *op_create(const nccl_call *call, const void *host)
{
    nccl_op *const op = calloc(1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    op->comm = call->comm;
    op->record = (nccl_record){.kind = call->kind,
                               .type = call->type,
                               .operation = is_reduction(call->kind) ? call->operation : 0,
                               .root = call->root,
                               .count = call->count,
                               .number = ++call->comm->calls};
    op->slice = call->count * nccl_type_size(call->type);
    op->from = (uintptr_t)call->from;
    op->to = (uintptr_t)call->to;
    op->in = calloc(ranks_of(op), sizeof *op->in);
    op->parts = alloti_calloc_array(2 * (uint64_t)ranks_of(op), sizeof *op->parts);
    if (op->in == NULL || op->parts == NULL || !read_own(op, host, call->stream)) {
        op_destroy(op);
        return NULL;
    }
    return op;
}

void op_destroy(nccl_op *op)
{
    if (op == NULL) {
        return;
    }
    for (unsigned i = 0; op->in != NULL && i < ranks_of(op); i++) {
        if ((int)i != op->comm->rank || op->record.kind == NCCL_RECEIVE) {
            free(op->in[i]); /* this rank's own is a place in `own` */
        }
    }
    free(op->in);
    free(op->parts);
    free(op->own);
    free(op);
}

static void enqueue(nccl_queue *queue, nccl_part *part)
{
    if (queue->last == NULL) {
        queue->first = part;
    } else {
        queue->last->next = part;
    }
    queue->last = part;
    part->op->left++;
}

static void queue_out(nccl_op *op, unsigned to)
{
    nccl_part *const part = &op->parts[2 * (size_t)to];
    part->op = op;
    part->record = op->record;
    part->bytes = piece_for(op, to);
    part->record.size = part->bytes == NULL || is_zero(part->bytes, op->slice) ? 0 : op->slice;
    enqueue(&op->comm->out[to], part);
}

static void queue_in(nccl_op *op, unsigned from)
{
    nccl_part *const part = &op->parts[2 * (size_t)from + 1];
    part->op = op;
    enqueue(&op->comm->in[from], part);
}

void op_queue(nccl_op *op)
{
    const unsigned own = (unsigned)op->comm->rank;
    if (op->record.kind == NCCL_SEND) {
        queue_out(op, (unsigned)op->record.root);
        return;
    }
    if (op->record.kind == NCCL_RECEIVE) {
        queue_in(op, (unsigned)op->record.root);
        return;
    }
    op->in[own] = piece_for(op, own);
    for (unsigned i = 0; i < ranks_of(op); i++) {
        if (i != own) {
            queue_out(op, i);
            queue_in(op, i);
        }
    }
}

/* ---- finishing one ---- */

/** Put together what came, by rank. */
static void join(const nccl_op *op, unsigned char *out)
{
    for (unsigned i = 0; i < ranks_of(op); i++) {
        if (op->in[i] != NULL) {
            memcpy(out + i * op->slice, op->in[i], (size_t)op->slice);
        }
    }
}

static void compute(const nccl_op *op, unsigned char *out)
{
    const unsigned char *from = NULL;
    switch (op->record.kind) {
    case NCCL_ALL_REDUCE:
    case NCCL_REDUCE:
    case NCCL_REDUCE_SCATTER:
        nccl_reduce(op->record.type, op->record.operation, op->in, ranks_of(op), op->record.count,
                    out);
        break;
    case NCCL_BROADCAST:
    case NCCL_SCATTER:
    case NCCL_RECEIVE:
        from = op->in[op->record.root];
        if (from != NULL) {
            memcpy(out, from, (size_t)op->slice);
        }
        break;
    default:
        join(op, out);
        break;
    }
}

static bool is_known(const nccl_op *op)
{
    bool known = false;
    for (unsigned i = 0; i < ranks_of(op); i++) {
        known = known || op->in[i] != NULL;
    }
    return known;
}

/** Write the result to the device; NULL: unknown. */
static void put_result(const nccl_op *op, const unsigned char *result, uint64_t size)
{
    standin *const state = standin_open();
    const bool is_shadow = !state->config.has_bytes && address_is_inside(&state->space, op->to);
    if (is_shadow && result != NULL) {
        value_receive(&state->values, op->to, result, size);
    } else if (is_shadow) {
        value_forget(&state->values, op->to, size);
    } else if (result != NULL) {
        bytes_copy(state, (void *)(uintptr_t)op->to, result, size);
    }
    standin_close(state);
}

void op_finish(nccl_op *op)
{
    const uint64_t size = op_result_size(op);
    if (size == 0) {
        return;
    }
    unsigned char *result = NULL;
    if (op->host != NULL) {
        join(op, op->host);
        return;
    }
    if (op_has_values(size) && (standin_settings()->has_bytes || is_known(op))) {
        result = alloti_calloc_array(size, 1); /* without memory it is simply not known */
    }
    if (result != NULL) {
        compute(op, result);
    }
    put_result(op, result, size);
    free(result);
}
