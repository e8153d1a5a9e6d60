/* SPDX-License-Identifier: MIT */
/**
 * @file
 * GPU profiles: what a card tells a program about itself, as data. The built-in table covers common
 * NVIDIA cards; more are read from JSON files or asked of a driver on a machine that has the card.
 */
#ifndef ALLOT_GPU_H
#define ALLOT_GPU_H

#include <allot/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One list that yields each value of a profile: field, unit, text. The JSON key is the field's
 * name.
 */
#define ALLOT_GPU_FIELD_LIST(X)                                                                    \
    X(memory_total, "bytes", "memory that the driver reports")                                     \
    X(memory_context, "bytes", "memory that a CUDA context takes, kernels included: CUDA 13")      \
    X(memory_context_12, "bytes", "the same with CUDA 12")                                         \
    X(compute_major, "", "compute capability, before the point")                                   \
    X(compute_minor, "", "compute capability, after the point")                                    \
    X(sm_count, "", "streaming multiprocessors")                                                   \
    X(sm_threads, "", "resident threads per multiprocessor")                                       \
    X(sm_blocks, "", "resident blocks per multiprocessor")                                         \
    X(sm_registers, "", "32-bit registers per multiprocessor")                                     \
    X(sm_shared_size, "bytes", "shared memory per multiprocessor")                                 \
    X(block_shared_size, "bytes", "shared memory per block")                                       \
    X(block_shared_optin_size, "bytes", "shared memory per block, on request")                     \
    X(block_shared_reserved_size, "bytes", "shared memory per block that the system keeps")        \
    X(l2_size, "bytes", "level-2 cache")                                                           \
    X(l2_persisting_size, "bytes", "part of the level-2 cache that can be set aside")              \
    X(clock_khz, "kHz", "highest core clock")                                                      \
    X(memory_clock_khz, "kHz", "highest memory clock")                                             \
    X(memory_bus_bits, "bits", "width of the memory bus")                                          \
    X(copy_engine_count, "", "engines that copy beside running kernels")

typedef enum allot_gpu_field {
#define ALLOT_GPU_FIELD_ENUM(name, unit, text) ALLOT_GPU_FIELD_##name,
    ALLOT_GPU_FIELD_LIST(ALLOT_GPU_FIELD_ENUM)
#undef ALLOT_GPU_FIELD_ENUM
        ALLOT_GPU_FIELD_COUNT
} allot_gpu_field;

/** Room for an id or a name, the final NUL included. */
#define ALLOT_GPU_NAME_MAX 64
/** Room for a reference, the final NUL included. */
#define ALLOT_GPU_REFERENCE_MAX 192

/** One list that yields each kind of source: code, name in profile files, text. */
#define ALLOT_GPU_SOURCE_LIST(X)                                                                   \
    X(UNKNOWN, "unknown", "unknown: an estimate from similar cards")                               \
    X(GUIDE, "guide", "CUDA programming guide, by compute capability")                             \
    X(SHEET, "sheet", "data sheet or architecture paper")                                          \
    X(REPORT, "report", "reported by programs on such cards, to the printed digits")               \
    X(PROBE, "probe", "asked of the driver of such a card")                                        \
    X(FILE, "file", "profile file, which names no source")

/** Where a value comes from. */
typedef enum allot_gpu_source {
#define ALLOT_GPU_SOURCE_ENUM(code, name, text) ALLOT_GPU_SOURCE_##code,
    ALLOT_GPU_SOURCE_LIST(ALLOT_GPU_SOURCE_ENUM)
#undef ALLOT_GPU_SOURCE_ENUM
        ALLOT_GPU_SOURCE_COUNT
} allot_gpu_source;

/** One profile. Values are in the unit of ALLOT_GPU_FIELD_LIST. */
typedef struct allot_gpu {
    size_t struct_size;            /**< sizeof(allot_gpu). */
    char id[ALLOT_GPU_NAME_MAX];   /**< Short: "rtx4090", "a100-80". */
    char name[ALLOT_GPU_NAME_MAX]; /**< As the driver says: "NVIDIA GeForce RTX 4090". */
#define ALLOT_GPU_FIELD_MEMBER(name, unit, text) uint64_t name;
    ALLOT_GPU_FIELD_LIST(ALLOT_GPU_FIELD_MEMBER)
#undef ALLOT_GPU_FIELD_MEMBER
    uint8_t source[ALLOT_GPU_FIELD_COUNT]; /**< allot_gpu_source of each value. */
    /** Where each value can be looked up, or a remark about it; "" for none. */
    char reference[ALLOT_GPU_FIELD_COUNT][ALLOT_GPU_REFERENCE_MAX];
} allot_gpu;

/** Number of profiles in the built-in table. Thread-safe. */
ALLOT_API size_t allot_gpu_count(void);

/** Built-in profile `index`, 0 to allot_gpu_count() - 1, by rising memory, into *out. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_gpu_at(size_t index, allot_gpu *out);

/**
 * Built-in profile by id; case, blanks, '-' and '_' do not matter ("RTX 4090").
 *
 * @return ALLOT_STATUS_NOT_FOUND with the ids that resemble the name. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_gpu_find(const char *id, allot_gpu *out);

/** Value of a field; the text and unit of it. Thread-safe. */
ALLOT_API uint64_t allot_gpu_value(const allot_gpu *gpu, allot_gpu_field field);
ALLOT_API const char *allot_gpu_field_name(allot_gpu_field field);
ALLOT_API const char *allot_gpu_field_unit(allot_gpu_field field);
ALLOT_API const char *allot_gpu_field_text(allot_gpu_field field);

/** Name of a source in profile files, and one line about it. Thread-safe. */
ALLOT_API const char *allot_gpu_source_name(allot_gpu_source source);
ALLOT_API const char *allot_gpu_source_text(allot_gpu_source source);

/** Memory that a context takes with this major version of CUDA, in bytes. Thread-safe. */
ALLOT_API uint64_t allot_gpu_context(const allot_gpu *gpu, unsigned cuda_major);

/**
 * Read a profile from JSON: {"schema": "allot-gpu/1", "id": ..., "name": ..., FIELD: number, ...,
 * "sources": {FIELD: {"kind": ..., "reference": ...}, ...}}. Fields that are absent are taken from
 * the built-in card named by "like", else they are an error. Sources may be absent.
 *
 * @return ALLOT_STATUS_FORMAT with what is wrong; ALLOT_STATUS_IO. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_gpu_read(const char *path, allot_gpu *out);

/** Write a profile as such a file. Thread-safe. */
ALLOT_API ALLOT_NODISCARD allot_status allot_gpu_write(const allot_gpu *gpu, allot_sink sink);

/**
 * Ask the driver of this machine for the profile of one of its GPUs. Nothing of NVIDIA's is needed
 * but the driver, whose libraries are loaded for the call and stay loaded. What a context takes is
 * measured: one is made and given back, and NVML is asked before and after; other programs that
 * allocate in between falsify it.
 *
 * @param[in]  ordinal  Number of the GPU, from 0.
 * @param[out] out      Its id is made from its name; untouched on failure.
 * @return ALLOT_STATUS_UNSUPPORTED if there is no driver; ALLOT_STATUS_NOT_FOUND if it has no such
 *         GPU; ALLOT_STATUS_BACKEND with what the driver answered. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_gpu_probe(unsigned ordinal, allot_gpu *out);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_GPU_H */
