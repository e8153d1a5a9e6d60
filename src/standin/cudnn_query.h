/* SPDX-License-Identifier: MIT */
/** Questions to a real cuDNN as messages (cudnn_wire.h). */
#ifndef ALLOTI_STANDIN_CUDNN_QUERY_H
#define ALLOTI_STANDIN_CUDNN_QUERY_H

#include "core/bytes.h"
#include "standin/config.h"
#include "standin/cudnn_descriptor.h"

/**
 * Write the question which engine configurations cuDNN proposes for a graph on a card. Equal
 * questions are equal bytes. message->status says whether there was memory.
 */
void cudnn_query_write(const allot_gpu *gpu, const cudnn_descriptor *graph, int mode,
                       alloti_bytes *message);

#endif /* ALLOTI_STANDIN_CUDNN_QUERY_H */
