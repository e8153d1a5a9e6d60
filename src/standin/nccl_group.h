/* SPDX-License-Identifier: MIT */
/** Groups: what a thread calls between ncclGroupStart() and ncclGroupEnd() is one step. */
#ifndef ALLOTI_STANDIN_NCCL_GROUP_H
#define ALLOTI_STANDIN_NCCL_GROUP_H

#include "standin/nccl.h"

/** Whether this thread is inside a group. */
bool group_is_open(void);

/** The end of the group waits for the other ranks of this communicator. false: it has no room. */
bool group_join_later(nccl_comm *comm);

/** Unless it is gone before. */
void group_forget(const nccl_comm *comm);

#endif /* ALLOTI_STANDIN_NCCL_GROUP_H */
