/* SPDX-License-Identifier: MIT */
/** Unique ids of communicators: the path of the file in which ranks meet. */
#ifndef ALLOTI_STANDIN_NCCL_ID_H
#define ALLOTI_STANDIN_NCCL_ID_H

#include <allot/base.h>

#include "standin/abi.h"

/** Make a meeting place and its id; for a rank alone an id without one. Thread-safe. */
ALLOT_NODISCARD allot_status nccl_id_make(cuda_unique_id *id);

/** The path in an id, into a buffer as large as the id; false if it is not from a dry run. */
bool nccl_id_path(const cuda_unique_id *id, char *path);

#endif /* ALLOTI_STANDIN_NCCL_ID_H */
