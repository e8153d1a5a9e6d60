/* SPDX-License-Identifier: MIT */
/**
 * What a real cuDNN would propose for a graph, if the settings name one ("oracle:FILE"): asked
 * through the helper program, remembered for the life of the process.
 *
 * Thread-safe.
 */
#ifndef ALLOTI_STANDIN_CUDNN_ORACLE_H
#define ALLOTI_STANDIN_CUDNN_ORACLE_H

#include "standin/cudnn_descriptor.h"
#include "standin/cudnn_wire.h"

/** cuDNN's answer about a graph; lives as long as the process. */
typedef struct cudnn_answer {
    int status;     /**< Of cuDNN's heuristics. */
    uint32_t count; /**< 0 unless the status is 0. */
    cudnn_choice *choices;
    uint64_t largest;    /**< Largest workspace among the choices that a plan can be made of. */
    atomic_int executed; /**< Choice that a plan was executed of, plus 1; 0: none; -1: several. */
} cudnn_answer;

typedef struct cudnn_oracle_state {
    uint64_t queries;    /**< Questions to cuDNN. */
    uint64_t repeated;   /**< Answered from memory. */
    uint64_t version;    /**< 92800; 0: none answered. */
    const char *problem; /**< "" for none. */
} cudnn_oracle_state;

/** NULL where no cuDNN is named, or it did not answer. */
cudnn_answer *cudnn_oracle_ask(const cudnn_descriptor *graph, int mode);

/** What came of it so far. false: no cuDNN is named. Call it when the process ends. */
bool cudnn_oracle_describe(cudnn_oracle_state *out);

#endif /* ALLOTI_STANDIN_CUDNN_ORACLE_H */
