/* SPDX-License-Identifier: MIT */
/**
 * Moving what ranks exchange, and waiting for it.
 *
 * An operation is a part for each rank that it sends to and one for each that it receives from.
 * Parts wait in one queue per rank and direction and move on by themselves, so that operations of a
 * group do not stand in each other's way. An operation whose parts are all through is finished in
 * the order of the calls: its result is computed and written to device memory, as far as that is
 * known.
 *
 * Everything here is guarded by the lock of this file, which comes before the process's lock.
 */
#ifndef ALLOTI_STANDIN_NCCL_EXCHANGE_H
#define ALLOTI_STANDIN_NCCL_EXCHANGE_H

#include "standin/nccl.h"

void exchange_lock(void);
void exchange_unlock(void);

/** Enter a communicator into the list of those that move on; take it out. Locked. */
void exchange_add(nccl_comm *comm);
void exchange_remove(nccl_comm *comm);

nccl_comm *exchange_first(void);

/** What became of a communicator. Takes the lock: its text is complete afterwards. */
nccl_status exchange_error(const nccl_comm *comm);

/** Whether nothing is under way; a hint, without the lock. */
bool exchange_is_idle(void);

/** Move everything on as far as it goes without waiting; find ranks that ended. Locked. */
void exchange_progress(void);
void exchange_check_ranks(void);

/** Whether another rank ended the communicator; its reason is this rank's from now on. Locked. */
bool exchange_adopt_fault(nccl_comm *comm);

/** End a communicator, for all of its ranks, with a reason. Locked. */
void exchange_fail(nccl_comm *comm, nccl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * The error of a communicator of this device that lost calls, once: another thread may have found
 * out about it before the program waited. Locked.
 */
nccl_status exchange_tell(uint32_t device);

/** Put a call under way. Takes the lock. The communicator's error if it has one. */
nccl_status exchange_start(const nccl_call *call);

/** Exchange a few bytes of the host with all ranks and wait. `all` is [size ranks][size]. */
nccl_status exchange_host(nccl_comm *comm, nccl_kind kind, const void *own, uint64_t size,
                          void *all);

/** Wait until all ranks have joined. NCCL_REMOTE with a text that names those that have not. */
nccl_status exchange_join(nccl_comm *comm);

/** Wait for everything that was called on a communicator. */
nccl_status exchange_flush(nccl_comm *comm);

/** Let everything unfinished go. Locked. */
void exchange_drop(nccl_comm *comm);

/**
 * Before the program waits for the GPU: wait for the calls that come before the end of a stream,
 * before an event, on a device. CUDA_LAUNCH_FAILURE if one of them cannot end.
 */
cuda_status nccl_wait_stream(void *stream);
cuda_status nccl_wait_event(void *event);
cuda_status nccl_wait_device(uint32_t device);

/** Before a copy: wait for the calls whose results it reads or overwrites. */
cuda_status nccl_wait_copy(const void *to, const void *from, uint64_t size);

/** Move on what is under way, if anything: called where programs ask whether work is finished. */
void nccl_nudge(void);

#endif /* ALLOTI_STANDIN_NCCL_EXCHANGE_H */
