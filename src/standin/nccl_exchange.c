/* SPDX-License-Identifier: MIT */
#include "standin/nccl_exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/nccl_op.h"
#include "standin/nccl_type.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all communicators and these: */
static nccl_comm *comms;
static nccl_counts counts;
static atomic_uint_least64_t pending; /* operations and untold faults; read unlocked as a hint */

void exchange_lock(void)
{
    pthread_mutex_lock(&lock);
}

void exchange_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool exchange_is_idle(void)
{
    return atomic_load_explicit(&pending, memory_order_relaxed) == 0;
}

void exchange_add(nccl_comm *comm)
{
    uint64_t count = 1;
    for (const nccl_comm *other = comms; other != NULL; other = other->next) {
        count += other->device == comm->device ? 1 : 0;
    }
    if (count > counts.communicators[comm->device]) {
        counts.communicators[comm->device] = count;
    }
    comm->next = comms;
    comms = comm;
}

/** The program knows by now. */
static void set_told(nccl_comm *comm)
{
    if (comm->is_untold) {
        comm->is_untold = false;
        atomic_fetch_sub(&pending, 1);
    }
}

nccl_status exchange_tell(uint32_t device)
{
    nccl_status status = NCCL_OK;
    for (nccl_comm *comm = comms; comm != NULL; comm = comm->next) {
        if (comm->is_untold && comm->device == (int)device) {
            status = comm->error;
            set_told(comm);
        }
    }
    return status;
}

void exchange_remove(nccl_comm *comm)
{
    set_told(comm);
    nccl_comm **at = &comms;
    while (*at != NULL && *at != comm) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = comm->next;
    }
}

nccl_status exchange_error(const nccl_comm *comm)
{
    exchange_lock();
    const nccl_status status = comm->error;
    exchange_unlock();
    return status;
}

nccl_comm *exchange_first(void)
{
    return comms;
}

nccl_counts nccl_counts_get(void)
{
    exchange_lock();
    const nccl_counts result = counts;
    exchange_unlock();
    return result;
}

/* ---- faults ---- */

void exchange_drop(nccl_comm *comm)
{
    while (comm->first != NULL) {
        nccl_op *const op = comm->first;
        comm->first = op->next;
        op_destroy(op);
        atomic_fetch_sub(&pending, 1);
    }
    comm->last = NULL;
    for (int i = 0; i < comm->size && comm->out != NULL; i++) {
        comm->out[i] = (nccl_queue){0};
        comm->in[i] = (nccl_queue){0};
    }
}

static void set_fault(nccl_comm *comm, nccl_status status, const char *text)
{
    if (comm->first != NULL && !comm->is_untold) {
        comm->is_untold = true;
        atomic_fetch_add(&pending, 1);
    }
    comm->error = status;
    snprintf(comm->text, sizeof comm->text, "%s", text);
    if (counts.fault[0] == '\0') {
        snprintf(counts.fault, sizeof counts.fault, "%s", text);
    }
    exchange_drop(comm);
}

void exchange_fail(nccl_comm *comm, nccl_status status, const char *format, ...)
{
    char text[SEGMENT_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (comm->segment == NULL || segment_break(comm->segment, text)) {
        fprintf(stderr, "allot: NCCL: %s\n", text);
    }
    set_fault(comm, status, text);
}

static void fail_mismatch(nccl_part *part)
{
    nccl_comm *const comm = part->op->comm;
    char own[160];
    char other[160];
    record_describe(&part->op->record, own, sizeof own);
    record_describe(&part->record, other, sizeof other);
    const int from = (int)((part - part->op->parts) / 2);
    exchange_fail(comm, NCCL_USAGE,
                  "the ranks of a communicator of %d disagree: rank %d calls %s; rank %d calls %s",
                  comm->size, comm->rank, own, from, other);
}

/** Whether nothing more can come from a rank. */
static bool is_gone(const nccl_comm *comm, unsigned rank)
{
    return segment_state_of(comm->segment, rank) == SEGMENT_LEFT ||
           segment_is_dead(comm->segment, rank);
}

static void fail_gone(nccl_comm *comm, unsigned rank, const nccl_op *op)
{
    char text[160];
    record_describe(&op->record, text, sizeof text);
    exchange_fail(
        comm, NCCL_REMOTE,
        "rank %u (process %ld) %s after %" PRIu64 " calls; rank %d of %d still waits for it in %s",
        rank, segment_process_of(comm->segment, rank),
        segment_state_of(comm->segment, rank) == SEGMENT_LEFT ? "destroyed its communicator"
                                                              : "ended",
        segment_calls_of(comm->segment, rank), comm->rank, comm->size, text);
}

/** Find out about ranks that ended and that something is still wanted of. */
static void check_ranks(nccl_comm *comm)
{
    for (unsigned i = 0; i < (unsigned)comm->size && comm->error == NCCL_OK; i++) {
        const nccl_part *const in = comm->in[i].first;
        const nccl_part *const out = comm->out[i].first;
        if ((in == NULL && out == NULL) || !is_gone(comm, i)) {
            continue;
        }
        /* Only now: what it wrote before it ended is there. */
        if (in != NULL && segment_ready(comm->segment, i) == 0) {
            fail_gone(comm, i, in->op);
        } else if (out != NULL && segment_room(comm->segment, i) < sizeof out->record) {
            fail_gone(comm, i, out->op);
        }
    }
}

void exchange_check_ranks(void)
{
    for (nccl_comm *comm = comms; comm != NULL; comm = comm->next) {
        if (comm->first != NULL) {
            check_ranks(comm);
        }
    }
}

/* ---- moving ---- */

static void part_done(nccl_queue *queue, nccl_part *part)
{
    queue->first = part->next;
    queue->last = part->next == NULL ? NULL : queue->last;
    part->op->left--;
}

/** Send what there is room for; true if the part is through. */
static bool move_out(nccl_comm *comm, unsigned to, nccl_part *part)
{
    if (!part->has_record) {
        if (segment_room(comm->segment, to) < sizeof part->record) {
            return false;
        }
        (void)segment_write(comm->segment, to, &part->record, sizeof part->record);
        part->has_record = true;
    }
    if (part->moved < part->record.size) {
        part->moved += segment_write(comm->segment, to, part->bytes + part->moved,
                                     part->record.size - part->moved);
    }
    return part->moved == part->record.size;
}

/** Take the record; false if it is not there or ends everything. */
static bool take_record(nccl_comm *comm, unsigned from, nccl_part *part)
{
    if (segment_ready(comm->segment, from) < sizeof part->record) {
        return false;
    }
    (void)segment_read(comm->segment, from, &part->record, sizeof part->record);
    part->has_record = true;
    if (!record_fits(part->op, &part->record) ||
        (part->record.size != 0 && part->record.size != part->op->slice)) {
        fail_mismatch(part);
        return false;
    }
    if (part->record.size != 0) {
        part->bytes = alloti_alloc_array(part->record.size, 1);
        part->op->in[from] = part->bytes;
        if (part->bytes == NULL) {
            exchange_fail(comm, NCCL_SYSTEM, "no host memory for %" PRIu64 " bytes",
                          part->record.size);
            return false;
        }
    }
    return true;
}

/** Take what is there; true if the part is through. */
static bool move_in(nccl_comm *comm, unsigned from, nccl_part *part)
{
    if (!part->has_record && !take_record(comm, from, part)) {
        return false;
    }
    if (part->moved < part->record.size) {
        part->moved += segment_read(comm->segment, from, part->bytes + part->moved,
                                    part->record.size - part->moved);
    }
    return part->moved == part->record.size;
}

static void finish_ready(nccl_comm *comm)
{
    while (comm->first != NULL && comm->first->left == 0) {
        nccl_op *const op = comm->first;
        comm->first = op->next;
        comm->last = op->next == NULL ? NULL : comm->last;
        op_finish(op);
        op_destroy(op);
        atomic_fetch_sub(&pending, 1);
    }
}

bool exchange_adopt_fault(nccl_comm *comm)
{
    const char *const fault = segment_fault(comm->segment);
    if (fault != NULL && comm->error == NCCL_OK) {
        set_fault(comm, NCCL_REMOTE, fault);
    }
    return fault != NULL;
}

static void progress(nccl_comm *comm)
{
    (void)exchange_adopt_fault(comm);
    for (unsigned i = 0; i < (unsigned)comm->size && comm->error == NCCL_OK; i++) {
        nccl_queue *const out = &comm->out[i];
        nccl_queue *const in = &comm->in[i];
        while (out->first != NULL && move_out(comm, i, out->first)) {
            part_done(out, out->first);
        }
        while (in->first != NULL && move_in(comm, i, in->first)) {
            part_done(in, in->first);
        }
    }
    finish_ready(comm);
}

void exchange_progress(void)
{
    for (nccl_comm *comm = comms; comm != NULL; comm = comm->next) {
        if (comm->first != NULL) {
            progress(comm);
        }
    }
}

/* ---- starting ---- */

/** Give the call its place on the stream; true if it is recorded into a graph instead. */
static bool place_on_stream(nccl_op *op, void *handle)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    bool is_captured = false;
    state->values.launches++;
    if (stream_get(state, handle, &stream) == CUDA_OK) {
        is_captured = stream->capture != NULL;
        (void)stream_work(state, stream);
        op->device = stream->device;
        op->slot = stream->slot;
        op->number = stream->now.clock.numbers[stream->slot];
    }
    standin_close(state);
    return is_captured;
}

static void append(nccl_comm *comm, nccl_op *op)
{
    if (comm->last == NULL) {
        comm->first = op;
    } else {
        comm->last->next = op;
    }
    comm->last = op;
    atomic_fetch_add(&pending, 1);
    op_queue(op);
    counts.calls++;
    segment_set_calls(comm->segment, comm->calls);
}

static nccl_status start(const nccl_call *call)
{
    nccl_comm *const comm = call->comm;
    if (comm->error != NCCL_OK) {
        return comm->error;
    }
    nccl_op *const op = op_create(call, NULL);
    if (op == NULL) {
        return NCCL_SYSTEM;
    }
    if (place_on_stream(op, call->stream)) {
        comm->calls--;
        op_destroy(op); /* nothing is exchanged when a graph is launched */
        return NCCL_OK;
    }
    append(comm, op);
    progress(comm);
    return comm->error;
}

nccl_status exchange_start(const nccl_call *call)
{
    /* What is given may be the result of a call that is still under way. */
    const uint64_t pieces = call->kind == NCCL_REDUCE_SCATTER || call->kind == NCCL_ALL_TO_ALL
                                ? (uint64_t)call->comm->size
                                : 1;
    const uint64_t size = call->count * nccl_type_size(call->type) * pieces;
    if (op_has_values(size) && nccl_wait_copy(NULL, call->from, size) != CUDA_OK) {
        return NCCL_REMOTE;
    }
    exchange_lock();
    const nccl_status status = start(call);
    exchange_unlock();
    return status;
}

static nccl_status start_host(nccl_comm *comm, nccl_kind kind, const void *own, uint64_t size,
                              void *all)
{
    enum { UINT8 = 1 };
    const nccl_call call = {.comm = comm, .kind = kind, .count = size, .type = UINT8, .root = -1};
    nccl_op *const op = comm->error == NCCL_OK ? op_create(&call, own) : NULL;
    if (op == NULL) {
        return comm->error == NCCL_OK ? NCCL_SYSTEM : comm->error;
    }
    op->host = all;
    append(comm, op);
    return NCCL_OK;
}

nccl_status exchange_host(nccl_comm *comm, nccl_kind kind, const void *own, uint64_t size,
                          void *all)
{
    memset(all, 0, (size_t)(size * (uint64_t)comm->size));
    exchange_lock();
    const nccl_status status = start_host(comm, kind, own, size, all);
    exchange_unlock();
    return status == NCCL_OK ? exchange_flush(comm) : status;
}
