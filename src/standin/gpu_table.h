/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_STANDIN_GPU_TABLE_H
#define ALLOTI_STANDIN_GPU_TABLE_H

#include <allot/gpu.h>

/** What a context takes with one major version of CUDA. */
typedef struct gpu_context {
    unsigned mib;
    allot_gpu_source source;
    const char *reference;
} gpu_context;

/** What a compute capability decides. Sources: the CUDA programming guide's table. */
typedef struct gpu_architecture {
    unsigned major;
    unsigned minor;
    unsigned threads;    /**< Per multiprocessor. */
    unsigned blocks;     /**< Per multiprocessor. */
    unsigned shared_kib; /**< Per multiprocessor. */
    unsigned optin_kib;  /**< Per block. */
    unsigned reserved;   /**< Bytes per block. */
    gpu_context context_12;
    gpu_context context_13;
    const char *paper; /**< Address of the architecture's description. */
} gpu_architecture;

/** What a card has of its own. */
typedef struct gpu_card {
    const char *id;
    const char *name;
    unsigned major;
    unsigned minor;
    uint64_t memory; /**< Bytes, see `memory_source`. */
    allot_gpu_source memory_source;
    const char *memory_reference; /**< "" for none. */
    unsigned sm_count;            /**< Data sheet. */
    unsigned l2_kib;              /**< Data sheet. */
    unsigned persisting_kib;      /**< Unknown. */
    unsigned clock_mhz;           /**< Data sheet: boost. */
    unsigned memory_clock_mhz;    /**< Data sheet. */
    unsigned bus_bits;            /**< Data sheet. */
    unsigned copy_engines;        /**< Unknown: as on cards of the kind. */
} gpu_card;

/** Address of the guide that gives the values of a compute capability. */
extern const char ALLOTI_GPU_GUIDE[];

extern const gpu_architecture ALLOTI_GPU_ARCHITECTURES[];
extern const size_t ALLOTI_GPU_ARCHITECTURE_COUNT;
extern const gpu_card ALLOTI_GPU_CARDS[];
extern const size_t ALLOTI_GPU_CARD_COUNT;

#endif /* ALLOTI_STANDIN_GPU_TABLE_H */
