/* SPDX-License-Identifier: MIT */
/*
 * CUDA runtime: what is known of a kernel, and how many of its blocks a multiprocessor holds.
 *
 * Programs size memory by both. Of PyTorch's: the architecture of the code decides how CUB's sorts
 * and scans lay out their temporary storage (the gradient of an embedding: 84,479 bytes with code
 * for 7.x to 8.x, 83,455 with code for 9.0, and 4,534,527 with code for 5.0, whose sort takes a
 * part for each block that fits); the number of blocks decides that of CUB's reductions (nonzero,
 * masks).
 */
#include <string.h>

#include "core/size_math.h"
#include "standin/device.h"
#include "standin/module.h"
#include "standin/runtime.h"

/* Of a kernel whose code cannot be read: compressed otherwise, or known by a handle alone. A guess.
 */
enum { REGISTERS_GUESSED = 32 };

cuda_status function_get(const void *function, function_facts *out)
{
    const allot_gpu *const gpu = &standin_settings()->gpu;
    const unsigned major = (unsigned)gpu->compute_major;
    const unsigned minor = (unsigned)gpu->compute_minor;
    const int found = module_architecture(function, major, minor);
    if (found == 0) {
        return CUDA_INVALID_DEVICE_FUNCTION;
    }
    cubin_kernel kernel = {0};
    const bool is_read = found > 0 && module_kernel(function, major, minor, &kernel);
    const uint32_t registers = is_read ? kernel.registers : REGISTERS_GUESSED;
    *out = (function_facts){.architecture = found > 0 ? found : (int)(major * 10 + minor),
                            .registers = (int)registers,
                            .threads = function_threads_max(registers, kernel.threads_max),
                            .shared_size = kernel.shared_size};
    return CUDA_OK;
}

/* How registers and shared memory are given out: the CUDA programming guide's tables and the
 * occupancy calculator that comes with the toolkit. */
enum {
    REGISTER_UNIT = 256, /* per warp */
    PARTITIONS = 4,      /* of a multiprocessor, each with a quarter of the registers */
    SHARED_UNIT = 128,   /* from 8.0 on; 256 before */
    SHARED_UNIT_OLD = 256,
    REGISTERS_BLOCK = 65536,
};

static uint64_t registers_per_warp(uint32_t registers)
{
    return ((uint64_t)registers * DEVICE_WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
}

int function_threads_max(uint32_t registers, uint32_t bound)
{
    const uint64_t per_warp = registers_per_warp(registers);
    uint64_t threads =
        per_warp == 0 ? DEVICE_BLOCK_THREADS : REGISTERS_BLOCK / per_warp * DEVICE_WARP;
    threads = threads < DEVICE_BLOCK_THREADS ? threads : DEVICE_BLOCK_THREADS;
    return (int)(bound != 0 && bound < threads ? bound : threads);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int function_occupancy(const function_facts *facts, int threads, uint64_t dynamic_size)
{
    const allot_gpu *const gpu = &standin_settings()->gpu;
    if (threads <= 0 || threads > facts->threads) {
        return 0;
    }
    const uint64_t warps = ((uint64_t)threads + DEVICE_WARP - 1) / DEVICE_WARP;
    uint64_t blocks = least(gpu->sm_blocks, gpu->sm_threads / DEVICE_WARP / warps);
    const uint64_t per_warp = registers_per_warp((uint32_t)facts->registers);
    if (per_warp != 0) {
        const uint64_t fit = gpu->sm_registers / PARTITIONS / per_warp * PARTITIONS;
        blocks = least(blocks, fit / warps);
    }
    const uint64_t unit = gpu->compute_major < 8 ? SHARED_UNIT_OLD : SHARED_UNIT;
    uint64_t shared = 0;
    if (!alloti_round_up(facts->shared_size + gpu->block_shared_reserved_size, unit, &shared) ||
        !alloti_add(shared, dynamic_size, &shared) || !alloti_round_up(shared, unit, &shared)) {
        return 0;
    }
    return (int)(shared == 0 ? blocks : least(blocks, gpu->sm_shared_size / shared));
}

CUDA_ENTRY(int, cudaFuncGetAttributes)(cuda_function_attributes *out, const void *function)
{
    function_facts facts = {0};
    const cuda_status status = function_get(function, &facts);
    if (status != CUDA_OK) {
        return standin_result(status);
    }
    memset(out, 0, sizeof *out);
    out->max_threads = facts.threads;
    out->registers = facts.registers;
    out->shared_size = (size_t)facts.shared_size;
    out->ptx_version = facts.architecture;
    out->binary_version = facts.architecture;
    out->max_dynamic_shared_size = (int)standin_settings()->gpu.block_shared_optin_size;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaFuncSetAttribute)(const void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_OK;
}

static int occupancy_of(const void *function, int threads, uint64_t dynamic_size, int *blocks)
{
    function_facts facts = {0};
    const cuda_status status = function_get(function, &facts);
    *blocks = status == CUDA_OK ? function_occupancy(&facts, threads, dynamic_size) : 0;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor)
(int *blocks, const void *function, int threads, size_t dynamic_size)
{
    return occupancy_of(function, threads, dynamic_size, blocks);
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int *blocks, const void *function, int threads, size_t dynamic_size, unsigned flags)
{
    (void)flags;
    return occupancy_of(function, threads, dynamic_size, blocks);
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveClusters)
(int *clusters, const void *function, const cuda_launch_config *config)
{
    (void)function;
    (void)config;
    *clusters = (int)standin_settings()->gpu.sm_count / 8;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetFuncBySymbol)(const void **function, const void *symbol)
{
    *function = symbol;
    return CUDA_OK;
}
