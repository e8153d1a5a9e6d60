/* SPDX-License-Identifier: MIT */
/**
 * What calls of a GPU's driver take, in nanoseconds: round figures in the middle of what is
 * published for PCIe data-centre GPUs under CUDA 12 (NVIDIA, "Introducing low-level GPU virtual
 * memory management", 2020; GMLake, ASPLOS 2024, section 2.3). They rank, they do not predict.
 */
#ifndef ALLOTI_CORE_DRIVER_COSTS_H
#define ALLOTI_CORE_DRIVER_COSTS_H

enum {
    DRIVER_COST_ALLOC_NS = 200000,         /**< Taking a segment (cudaMalloc). */
    DRIVER_COST_FREE_NS = 300000,          /**< Giving it back, its synchronisation included. */
    DRIVER_COST_ALLOC_NS_PER_GIB = 300000, /**< In addition, per GiB taken or mapped. */
    DRIVER_COST_PAGE_MAP_NS = 10000,       /**< Making and mapping a page of 2 MiB. */
    DRIVER_COST_PAGE_UNMAP_NS = 10000,     /**< Unmapping and releasing it. */
    DRIVER_COST_RANGE_NS = 30000,          /**< A call that maps or unmaps a range. */
    DRIVER_COST_SYNC_NS = 50000,           /**< Waiting for all streams. */
};

#endif /* ALLOTI_CORE_DRIVER_COSTS_H */
