/* SPDX-License-Identifier: MIT */
/** Graphs of messages (cudnn_wire.h) made again with a real cuDNN, and what it says about them. */
#ifndef ALLOTI_STANDIN_ORACLE_GRAPH_H
#define ALLOTI_STANDIN_ORACLE_GRAPH_H

#include "core/bytes.h"
#include "standin/oracle/library.h"

/** Read a query, ask, write the answer. */
void oracle_answer(const cudnn_library *cudnn, alloti_cursor *query, alloti_bytes *answer);

#endif /* ALLOTI_STANDIN_ORACLE_GRAPH_H */
