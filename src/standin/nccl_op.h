/* SPDX-License-Identifier: MIT */
/**
 * One call of a collective under way: what this rank contributes, what came from the others, and
 * what becomes of it. With n ranks and s bytes in `count` elements:
 *
 *   call             this rank gives       to rank p goes         result
 *   all_reduce       s                     all of it              s, reduced
 *   reduce           s                     all, to the root       s, reduced, at the root
 *   broadcast        s, the root           all of it              s, the root's
 *   all_gather       s                     all of it              n s, by rank
 *   reduce_scatter   n s                   its s                  s, reduced
 *   all_to_all       n s                   its s                  n s, by rank
 *   gather           s                     all, to the root       n s, by rank, at the root
 *   scatter          n s, the root         its s                  s, the root's
 *   send, receive    s                     all, to the one        s
 *
 * Ranks with nothing to give send an empty record, so that all can compare what they call.
 */
#ifndef ALLOTI_STANDIN_NCCL_OP_H
#define ALLOTI_STANDIN_NCCL_OP_H

#include "standin/nccl.h"

/** What goes to one rank or comes from one. */
struct nccl_part {
    nccl_part *next; /**< In its queue. */
    nccl_op *op;
    nccl_record record; /**< Sent ahead, or as it arrived. */
    bool has_record;    /**< It is through. */
    unsigned char *bytes;
    uint64_t moved; /**< Of record.size. */
};

struct nccl_op {
    nccl_op *next; /**< In the order of the calls. */
    nccl_comm *comm;
    nccl_record record;
    uint64_t slice; /**< Bytes of `count` elements. */
    uint64_t from;  /**< Device addresses. */
    uint64_t to;
    void *host; /**< Result in host memory instead; NULL: at `to`. */
    unsigned char *own;
    unsigned char **in; /**< [ranks] What came from each; NULL: all zero or unknown. */
    nccl_part *parts;   /**< [2 ranks] */
    unsigned left;      /**< Parts that are not through. */
    uint32_t device;
    uint64_t slot; /**< Its place in the program's order: work `number` of this stream. */
    uint64_t number;
};

/** "AllReduce of 4 float32 (sum), call 12". */
void record_describe(const nccl_record *record, char *text, size_t size);

/** Whether what another rank calls fits to this rank's operation. */
bool record_fits(const nccl_op *op, const nccl_record *other);

/**
 * Make an operation and read what this rank gives, from `call->from` or `host`; NULL without host
 * memory. The caller releases it with op_destroy().
 */
nccl_op *op_create(const nccl_call *call, const void *host);
void op_destroy(nccl_op *op);

/** Put its parts into the communicator's queues. */
void op_queue(nccl_op *op);

/** All parts are through: compute the result and write it. */
void op_finish(nccl_op *op);

/** Bytes of the result on this rank; 0 for none. */
uint64_t op_result_size(const nccl_op *op);

/** Whether the result will be known, and is worth waiting for. */
bool op_has_values(uint64_t size);

#endif /* ALLOTI_STANDIN_NCCL_OP_H */
