/* SPDX-License-Identifier: MIT */
/**
 * The process's one stand-in: CUDA's interface has no handle to carry state in, so this is global.
 *
 * Every entry begins with standin_open(), which sets everything up at the first call and takes the
 * one lock, and ends with standin_close(), which gives the lock back and then runs the program's
 * callbacks that became due. Nothing below this layer locks. A process that never calls CUDA pays
 * nothing: no range is reserved, no signal handler set, no file written.
 */
#ifndef ALLOTI_STANDIN_STATE_H
#define ALLOTI_STANDIN_STATE_H

#include <pthread.h>

#include "standin/abi.h"
#include "standin/address.h"
#include "standin/config.h"
#include "standin/host.h"
#include "standin/memory.h"
#include "standin/pool.h"
#include "standin/queue.h"
#include "standin/slot.h"
#include "standin/small.h"
#include "standin/stream.h"
#include "standin/use.h"
#include "standin/values.h"
#include "standin/vmm.h"

typedef struct standin {
    pthread_mutex_t lock; /**< Guards everything here. The only mutex of the stand-in. */
    standin_config config;
    address_space space;
    memory_state memory;
    small_state small;
    vmm_state vmm;
    host_state host;
    stream_state streams;
    pool_state pools;
    value_state values;
    alloti_slots events;
    alloti_slots graphs;
    alloti_slots execs;
    queue_state queues; /**< The rest: with real bytes only. */
    use_state uses;
    cuda_status broken;    /**< Work failed: all calls from then on fail with this. */
    uint64_t rules_broken; /**< So far. */
    uint64_t fail_left;    /**< Calls until one fails; 0: none does. */
    cuda_status fail_status;
} standin;

/** A thread that asks again and again whether the same thing is finished. */
typedef struct standin_asking {
    const void *what; /**< Event or stream. */
    uint64_t tick;    /**< Work of the process when it first asked. */
    uint64_t count;
    uint64_t since; /**< Milliseconds. */
} standin_asking;

/** Contexts that a thread may push; more are refused as out of memory. */
enum { STANDIN_PUSHED_MAX = 64 };

/** What each thread has of its own. */
typedef struct standin_thread {
    unsigned device;
    unsigned pushed[STANDIN_PUSHED_MAX]; /**< [pushed_count] devices below the current one. */
    unsigned pushed_count;
    bool has_worked; /**< Put work on a stream. */
    standin_asking asking;
    cuda_status last_error;
    standin_stream *streams[STANDIN_DEVICES_MAX]; /**< Its own default streams; NULL until used. */
} standin_thread;

/** Set up at the first call; lock. Ends the process with a message if the settings are wrong. */
standin *standin_open(void);

/** Unlock, then run the callbacks that became due. */
void standin_close(standin *state);

/** The settings; valid for the life of the process, no lock needed. */
const standin_config *standin_settings(void);

/** The same for the NVML library. */
__attribute__((visibility("default"))) const standin_config *allot_standin_settings(void);

standin_thread *standin_this_thread(void);

/** Where this thread keeps its default stream of a device, which goes when the thread ends. */
standin_stream **standin_thread_stream(uint32_t device);

/** A call that can fail begins: what it has to fail with if that was asked for, else CUDA_OK. */
static inline cuda_status standin_may_fail(standin *state)
{
    return state->fail_left != 0 && --state->fail_left == 0 ? state->fail_status : CUDA_OK;
}

/** Remember an error for cudaGetLastError(); returns it. */
cuda_status standin_result(cuda_status status);

/**
 * For tests of programs: let the `calls`-th call from now that allocates, maps or puts work on a
 * stream fail with `status`; 0 takes that back.
 */
__attribute__((visibility("default"))) void allot_standin_fail(uint64_t calls, int status);

/** For the same: rules that were broken so far (bytes:real). */
__attribute__((visibility("default"))) uint64_t allot_standin_rules_broken(void);

/** For tests of the stand-in: whether its figures of memory agree with each other. */
__attribute__((visibility("default"))) bool allot_standin_check(void);

/** Memory in use and in all of an installed device, for the NVML library. false: no such one. */
__attribute__((visibility("default"))) bool allot_standin_memory(unsigned device, uint64_t *used,
                                                                 uint64_t *total);

#endif /* ALLOTI_STANDIN_STATE_H */
