/* SPDX-License-Identifier: MIT */
/**
 * NCCL's communicators.
 *
 * Real ones: each rank is a process (or a thread) with a stand-in of its own, and they meet in a
 * file (nccl_segment.h). A collective never waits when it is called, as on real hardware: what this
 * rank contributes is sent as far as there is room, and what comes back is taken when it is there.
 * The program waits where it would wait for the GPU: when it synchronises with work behind a
 * collective, or reads its result (nccl_exchange.h). Ranks that call different things, and ranks
 * that ended, are found out and named.
 *
 * A rank alone: the others do not exist and hold, by rule, the same data as this one
 * (nccl_alone.c).
 */
#ifndef ALLOTI_STANDIN_NCCL_H
#define ALLOTI_STANDIN_NCCL_H

#include "standin/nccl_segment.h"
#include "standin/state.h"

typedef enum nccl_status {
    NCCL_OK = 0,
    NCCL_UNHANDLED = 1,
    NCCL_SYSTEM = 2,
    NCCL_INVALID = 4,
    NCCL_USAGE = 5,
    NCCL_REMOTE = 6,
    NCCL_SIGNED = -1, /**< Never used: makes the type an int, as NCCL's functions return. */
} nccl_status;

typedef enum nccl_kind {
    NCCL_NONE,
    NCCL_ALL_REDUCE,
    NCCL_REDUCE,
    NCCL_BROADCAST,
    NCCL_ALL_GATHER,
    NCCL_REDUCE_SCATTER,
    NCCL_ALL_TO_ALL,
    NCCL_GATHER,
    NCCL_SCATTER,
    NCCL_SEND,
    NCCL_RECEIVE,
    NCCL_SPLIT,
} nccl_kind;

/** What a rank asks for: sent ahead of its data, so that ranks can compare. */
typedef struct nccl_record {
    uint32_t kind;
    uint32_t type;
    uint32_t operation;
    int32_t root;    /**< Or the other rank of a send or receive; -1 for none. */
    uint64_t count;  /**< Elements. */
    uint64_t number; /**< Of the call on this communicator. */
    uint64_t size;   /**< Bytes that follow; 0: all zero or unknown. */
} nccl_record;

typedef struct nccl_op nccl_op;
typedef struct nccl_part nccl_part;

/** First in, first out. */
typedef struct nccl_queue {
    nccl_part *first;
    nccl_part *last;
} nccl_queue;

typedef struct nccl_comm {
    uint64_t mark;
    struct nccl_comm *next; /**< In the process's list. */
    int rank;
    int size;
    int device;
    uint64_t buffers; /**< Bytes it took of the device. */
    uint64_t calls;
    uint64_t splits;
    nccl_segment *segment; /**< NULL: a rank alone. */
    nccl_op *first;        /**< Unfinished, in the order of the calls. */
    nccl_op *last;
    nccl_queue *out; /**< [size] */
    nccl_queue *in;  /**< [size] */
    nccl_status error;
    bool is_untold; /**< Calls were lost by it, and no wait of the program has said so. */
    char text[SEGMENT_TEXT_MAX]; /**< Why, "" while all is well. */
    unsigned char *sent;         /**< Alone: what was last sent, for a receive. */
    uint64_t sent_size;
} nccl_comm;

/** One call of a collective. */
typedef struct nccl_call {
    nccl_comm *comm;
    nccl_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    uint32_t type;
    uint32_t operation;
    int root;
    void *stream;
} nccl_call;

/** NULL unless the handle is a live communicator. */
nccl_comm *comm_get(void *handle);

/** A rank alone: the call is answered at once. */
nccl_status nccl_alone(const nccl_call *call);

/** The same for broadcasts inside a group, which stand for one exchange. */
void nccl_alone_group_begin(void);
void nccl_alone_group_end(void);

/** Counts for the report. */
typedef struct nccl_counts {
    uint64_t communicators[STANDIN_DEVICES_MAX]; /**< Of each device, at most at one time. */
    uint64_t calls;
    char fault[SEGMENT_TEXT_MAX]; /**< The first fault; "" for none. */
} nccl_counts;

nccl_counts nccl_counts_get(void);

#endif /* ALLOTI_STANDIN_NCCL_H */
