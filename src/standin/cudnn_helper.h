/* SPDX-License-Identifier: MIT */
/**
 * The helper program: the real cuDNN runs in a process of its own, since in this one its functions
 * are ours. Started when first needed, ended by the end of this process.
 *
 * Not thread-safe: one thread at a time.
 */
#ifndef ALLOTI_STANDIN_CUDNN_HELPER_H
#define ALLOTI_STANDIN_CUDNN_HELPER_H

#include "standin/config.h"
#include "standin/cudnn_wire.h"

typedef struct cudnn_helper {
    int socket;       /**< -1: not running. */
    long owner;       /**< Process that started it: children of fork() start their own. */
    unsigned deaths;  /**< Times it was lost. */
    uint64_t version; /**< 92800: of the cuDNN that answers; 0: none did so far. */
    bool is_useless;  /**< Not to be tried again. */
    char problem[WIRE_TEXT_MAX + STANDIN_PATH_MAX]; /**< The last one, "" for none. */
} cudnn_helper;

/** Send a query and receive the answer into an empty buffer; false leaves `problem`. */
bool cudnn_helper_ask(cudnn_helper *helper, const standin_config *config, const alloti_bytes *query,
                      alloti_bytes *answer);

#endif /* ALLOTI_STANDIN_CUDNN_HELPER_H */
