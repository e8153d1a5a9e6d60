/* SPDX-License-Identifier: MIT */
/**
 * What the stand-in is told: the environment variable ALLOT_STANDIN, a list of key:value separated
 * by commas. The keys stand in one list, below; unknown keys and values are an error.
 */
#ifndef ALLOTI_STANDIN_CONFIG_H
#define ALLOTI_STANDIN_CONFIG_H

#include <allot/gpu.h>
#include <allot/workspace.h>

#include "standin/answer.h"

enum { STANDIN_DEVICES_MAX = 64, STANDIN_PATH_MAX = 4096 };

/** When work that was put on a stream is finished. */
typedef enum standin_events {
    STANDIN_EVENTS_INSTANT, /**< At once: the least memory a run can need. */
    STANDIN_EVENTS_SYNC,    /**< When the program waits for it: the most. */
    STANDIN_EVENTS_LAG,     /**< Once a number of further pieces of work were put on any stream. */
    STANDIN_EVENTS_REAL,    /**< When it is done: with real bytes, always. */
} standin_events;

/** Addresses of new allocations. */
typedef enum standin_addresses {
    STANDIN_ADDRESSES_LINUX,  /**< In regions that lie lower and lower (region.h). */
    STANDIN_ADDRESSES_REUSE,  /**< The lowest free range that is large enough, as on Windows. */
    STANDIN_ADDRESSES_UPWARD, /**< Always above everything given out so far. */
} standin_addresses;

typedef struct standin_config {
    allot_gpu gpu;               /**< "gpu:ID" or "profile:FILE". */
    uint64_t limit;              /**< "limit:SIZE": memory of each device; 0: the profile's. */
    allot_workspaces workspaces; /**< "workspace:NAME=SIZE", any number of times. */
    uint64_t context; /**< "context:SIZE" or "workspace:context=SIZE": taken by a context; with a
                           limit: 0. */
    bool is_whole;    /**< Without a limit: what libraries take is taken of the card. */
    unsigned installed_count; /**< "devices:N". */
    unsigned device_count;    /**< Of these, what CUDA_VISIBLE_DEVICES lets the program see. */
    unsigned visible[STANDIN_DEVICES_MAX]; /**< [device_count] Which of the installed ones. */
    standin_events events;                 /**< "events:instant|sync|lag". */
    uint64_t lag;                          /**< "lag:N": pieces of work; for events:lag. */
    standin_addresses addresses;           /**< "addresses:linux|reuse|upward". */
    bool has_bytes;          /**< "bytes:real|none": device memory holds what is written. */
    uint64_t delay;          /**< "delay:SEED": with real bytes, work is put off; 0: not. */
    bool is_strict;          /**< "strict:0|1": a call answered by guess fails; with real bytes, a
                                broken rule aborts the process. */
    uint64_t fail_at;        /**< "fail:N": the N-th call that can fail does; 0: none. */
    unsigned fail_status;    /**< "error:CODE": as what; out of memory otherwise. */
    uint64_t read_guard;     /**< "guard:N": reads in a row that end a run; 0: never. */
    answer_rules answers;    /**< "booleans:RULE", any number of them: see answer.h. */
    bool is_alone;           /**< "ranks:alone|real": the other ranks do not exist. */
    uint64_t wait;           /**< "wait:S": seconds that ranks wait for others; 0: for ever. */
    unsigned cuda_major;     /**< "cuda:12|13"; 0: from the libraries that are loaded. */
    unsigned cudnn_version;  /**< "cudnn:91002": what cudnnGetVersion() answers. */
    unsigned nccl_version;   /**< "nccl:22105". */
    unsigned cublas_version; /**< "cublas:120405". */
    char oracle[STANDIN_PATH_MAX]; /**< "oracle:FILE": a real libcudnn.so.9 to ask; "" for none. */
    unsigned oracle_wait_s;        /**< "oracle_wait:SECONDS": for one answer of it. */
    char report[STANDIN_PATH_MAX]; /**< "report:FILE": counts, written when the process ends. */
} standin_config;

/**
 * Read a list of settings; NULL or "" gives the defaults.
 *
 * @return ALLOT_STATUS_INVALID with the key that is wrong.
 */
ALLOT_NODISCARD allot_status standin_config_parse(const char *text, standin_config *out);

#endif /* ALLOTI_STANDIN_CONFIG_H */
