/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "standin/device.h"
#include "standin/bus_id.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "standin/gpu_attributes.h"
#include "standin/state.h"

enum { VERSION_12 = 12080, VERSION_13 = 13020 };

static int look_for_runtime(struct dl_phdr_info *info, size_t size, void *major)
{
    (void)size;
    const char *const at = strstr(info->dlpi_name, "libcudart.so.");
    if (at == NULL || at[13] != '1' || at[14] < '2' || at[14] > '3') {
        return 0;
    }
    *(unsigned *)major = 10u + (unsigned)(at[14] - '0');
    return 1;
}

unsigned device_runtime_major(void)
{
    static atomic_uint found;
    unsigned major = atomic_load_explicit(&found, memory_order_relaxed);
    if (major == 0) {
        major = 13;
        dl_iterate_phdr(look_for_runtime, &major);
        atomic_store_explicit(&found, major, memory_order_relaxed);
    }
    return major;
}

unsigned device_cuda_major(void)
{
    const unsigned major = standin_settings()->cuda_major;
    return major != 0 ? major : device_runtime_major();
}

int device_cuda_version(void)
{
    return device_cuda_major() == 12 ? VERSION_12 : VERSION_13;
}

/** Of a device by its number among those that are installed. */
static void installed_uuid(unsigned device, unsigned char *out)
{
    for (unsigned i = 0; i < 16; i++) {
        out[i] = (unsigned char)(0xa1 + i * 7 + device);
    }
}

void allot_standin_uuid_text(unsigned device, char *out, size_t size)
{
    unsigned char id[16];
    installed_uuid(device, id);
    snprintf(out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
             id[12], id[13], id[14], id[15]);
}

void device_uuid(unsigned device, unsigned char *out)
{
    installed_uuid(standin_settings()->visible[device], out);
}

void device_bus_id(unsigned device, char *out, size_t size)
{
    snprintf(out, size, "0000:%02x:00.0", standin_settings()->visible[device] + 1);
}

int device_of_bus_id(const char *text)
{
    const uint32_t bus = bus_id_parse(text);
    const standin_config *const config = standin_settings();
    for (unsigned i = 0; i < config->device_count; i++) {
        if (bus != 0 && config->visible[i] == bus - 1) {
            return (int)i;
        }
    }
    return -1;
}

/* Attributes by number. Those that are the same on every card of this century's architectures are
 * written out; a card's own come from its profile. What is absent here is 0: it is not supported.
 */
typedef struct attribute {
    int number;
    int value;
} attribute;

static const attribute SAME[] = {
    {1, DEVICE_BLOCK_THREADS}, /* threads per block */
    {2, 1024},                 /* block, x */
    {3, 1024},                 /* block, y */
    {4, 64},                   /* block, z */
    {5, INT32_MAX},            /* grid, x */
    {6, 65535},                /* grid, y */
    {7, 65535},                /* grid, z */
    {9, 65536},                /* constant memory */
    {10, DEVICE_WARP},         /* warp */
    {11, INT32_MAX},           /* pitch */
    {12, 65536},               /* registers per block */
    {14, 512},                 /* texture alignment */
    {15, 1},                   /* copies overlap kernels */
    {19, 1},                   /* host memory can be mapped */
    {21, 131072},              /* texture 1D */
    {22, 131072},              /* texture 2D, width */
    {23, 65536},               /* texture 2D, height */
    {24, 16384},               /* texture 3D */
    {25, 16384},               /* texture 3D */
    {26, 16384},               /* texture 3D */
    {30, 512},                 /* surface alignment */
    {31, 1},                   /* concurrent kernels */
    {41, 1},                   /* unified addressing */
    {51, 32},                  /* texture pitch alignment */
    {78, 1},                   /* stream priorities */
    {79, 1},                   /* L1 caches globals */
    {80, 1},                   /* L1 caches locals */
    {83, 1},                   /* managed memory */
    {87, 32},                  /* single to double precision */
    {89, 1},                   /* concurrent access to managed memory */
    {90, 1},                   /* preemption */
    {91, 1},                   /* host pointers for registered memory */
    {95, 1},                   /* cooperative launch */
    {99, 1},                   /* registering host memory */
    {102, 1},                  /* virtual memory management */
    {103, 1},                  /* handles as file descriptors */
    {109, 134213632},          /* access policy window */
    {112, 1},                  /* sparse arrays */
    {113, 1},                  /* registering read-only memory */
    {114, 1},                  /* timeline semaphores */
    {115, 1},                  /* memory pools */
    {119, 1},                  /* pool handles as file descriptors */
    {121, 1},                  /* deferred mapping of arrays */
    {122, 1},                  /* 64-bit stream memory operations */
    {123, 1},                  /* waiting for NOR */
    {125, 1},                  /* events between processes */
    {126, 1},                  /* memory synchronisation domains */
    {129, 1},                  /* unified function pointers */
    {131, -1},                 /* NUMA node */
    {134, -1},                 /* NUMA node of the host */
};

static bool same_everywhere(int number, int *out)
{
    for (size_t i = 0; i < sizeof SAME / sizeof SAME[0]; i++) {
        if (SAME[i].number == number) {
            *out = SAME[i].value;
            return true;
        }
    }
    return false;
}

/** Attributes that the profile knows. */
static uint64_t from_profile(const allot_gpu *gpu, int number, unsigned device)
{
    switch (number) {
#define CASE(number, field)                                                                        \
    case number:                                                                                   \
        return gpu->field;
        GPU_ATTRIBUTE_LIST(CASE)
#undef CASE
    case 33: /* bus */
        return device + 1;
    case 120: /* cluster launch */
    case 127: /* tensor maps */
        return gpu->compute_major >= 9 ? 1 : 0;
    default:
        return 0;
    }
}

bool device_attribute(const standin_config *config, int number, unsigned device, int *out)
{
    if (number < 1) {
        return false;
    }
    if (!same_everywhere(number, out)) {
        *out = (int)from_profile(&config->gpu, number, device);
    }
    return true;
}

/* One list of cudaDeviceProp's members. X: type, name, attribute that holds the value; ONLY12: the
 * same, removed in version 13; HAND: type, name, length of an array, filled in by hand. */
#define PROPERTY_LIST(X, ONLY12, HAND)                                                             \
    HAND(char, name, [256])                                                                        \
    HAND(cuda_uuid, uuid, )                                                                        \
    HAND(char, luid, [8])                                                                          \
    HAND(unsigned, luid_mask, )                                                                    \
    HAND(size_t, memory_total, )                                                                   \
    X(size_t, block_shared_size, 8)                                                                \
    X(int, block_registers, 12)                                                                    \
    X(int, warp, 10)                                                                               \
    X(size_t, pitch, 11)                                                                           \
    X(int, block_threads, 1)                                                                       \
    HAND(int, block_size, [3])                                                                     \
    HAND(int, grid_size, [3])                                                                      \
    ONLY12(int, clock_khz, 13)                                                                     \
    X(size_t, constant_size, 9)                                                                    \
    X(int, compute_major, 75)                                                                      \
    X(int, compute_minor, 76)                                                                      \
    X(size_t, texture_alignment, 14)                                                               \
    X(size_t, texture_pitch_alignment, 51)                                                         \
    ONLY12(int, can_overlap, 15)                                                                   \
    X(int, sm_count, 16)                                                                           \
    ONLY12(int, has_timeout, 17)                                                                   \
    X(int, is_integrated, 18)                                                                      \
    X(int, can_map_host, 19)                                                                       \
    ONLY12(int, compute_mode, 20)                                                                  \
    X(int, texture_1d, 21)                                                                         \
    X(int, texture_1d_mipmap, 77)                                                                  \
    ONLY12(int, texture_1d_linear, 69)                                                             \
    HAND(int, texture_2d, [2])                                                                     \
    HAND(int, texture_2d_mipmap, [2])                                                              \
    HAND(int, texture_2d_linear, [3])                                                              \
    HAND(int, texture_2d_gather, [2])                                                              \
    HAND(int, texture_3d, [3])                                                                     \
    HAND(int, texture_3d_other, [3])                                                               \
    X(int, texture_cube, 52)                                                                       \
    HAND(int, texture_1d_layered, [2])                                                             \
    HAND(int, texture_2d_layered, [3])                                                             \
    HAND(int, texture_cube_layered, [2])                                                           \
    X(int, surface_1d, 55)                                                                         \
    HAND(int, surface_2d, [2])                                                                     \
    HAND(int, surface_3d, [3])                                                                     \
    HAND(int, surface_1d_layered, [2])                                                             \
    HAND(int, surface_2d_layered, [3])                                                             \
    X(int, surface_cube, 66)                                                                       \
    HAND(int, surface_cube_layered, [2])                                                           \
    X(size_t, surface_alignment, 30)                                                               \
    X(int, concurrent_kernels, 31)                                                                 \
    X(int, has_ecc, 32)                                                                            \
    X(int, pci_bus, 33)                                                                            \
    X(int, pci_device, 34)                                                                         \
    X(int, pci_domain, 50)                                                                         \
    X(int, is_tcc, 35)                                                                             \
    X(int, copy_engines, 40)                                                                       \
    X(int, unified_addressing, 41)                                                                 \
    ONLY12(int, memory_clock_khz, 36)                                                              \
    X(int, memory_bus_bits, 37)                                                                    \
    X(int, l2_size, 38)                                                                            \
    X(int, l2_persisting_size, 108)                                                                \
    X(int, sm_threads, 39)                                                                         \
    X(int, has_priorities, 78)                                                                     \
    X(int, l1_globals, 79)                                                                         \
    X(int, l1_locals, 80)                                                                          \
    X(size_t, sm_shared_size, 81)                                                                  \
    X(int, sm_registers, 82)                                                                       \
    X(int, has_managed, 83)                                                                        \
    X(int, is_multi_board, 84)                                                                     \
    X(int, board_group, 85)                                                                        \
    X(int, has_host_atomics, 86)                                                                   \
    ONLY12(int, double_ratio, 87)                                                                  \
    X(int, pageable_access, 88)                                                                    \
    X(int, concurrent_managed, 89)                                                                 \
    X(int, has_preemption, 90)                                                                     \
    X(int, has_host_pointers, 91)                                                                  \
    X(int, cooperative_launch, 95)                                                                 \
    ONLY12(int, cooperative_multi, 96)                                                             \
    X(size_t, block_shared_optin_size, 97)                                                         \
    X(int, pageable_tables, 100)                                                                   \
    X(int, direct_managed, 101)                                                                    \
    X(int, sm_blocks, 106)                                                                         \
    X(int, policy_window, 109)                                                                     \
    X(size_t, block_shared_reserved_size, 111)                                                     \
    X(int, can_register, 99)                                                                       \
    X(int, has_sparse, 112)                                                                        \
    X(int, can_register_read_only, 113)                                                            \
    X(int, has_timeline, 114)                                                                      \
    X(int, has_pools, 115)                                                                         \
    X(int, has_rdma, 116)                                                                          \
    X(unsigned, rdma_flush, 117)                                                                   \
    X(int, rdma_order, 118)                                                                        \
    X(unsigned, pool_handles, 119)                                                                 \
    X(int, has_deferred_arrays, 121)                                                               \
    X(int, has_ipc_events, 125)                                                                    \
    X(int, has_clusters, 120)                                                                      \
    X(int, has_function_pointers, 129)                                                             \
    HAND(int, reserved, [63])

#define VALUE_MEMBER(type, name, number) type name;
#define HAND_MEMBER(type, name, array) type name array;
#define NOTHING(...)
typedef struct properties_12 {
    PROPERTY_LIST(VALUE_MEMBER, VALUE_MEMBER, HAND_MEMBER)
} properties_12;
typedef struct properties_13 {
    PROPERTY_LIST(VALUE_MEMBER, NOTHING, HAND_MEMBER)
} properties_13;

/* Sizes of cudaDeviceProp in the headers of CUDA 12 and 13. */
_Static_assert(sizeof(properties_12) == 1032, "layout of CUDA 12");
_Static_assert(sizeof(properties_13) == 1008, "layout of CUDA 13");

static int attribute_of(const standin_config *config, int number, unsigned device)
{
    int value = 0;
    (void)device_attribute(config, number, device, &value);
    return value;
}

/* The two layouts have the same members, so the code that fills them in is written once. */
#define SET_VALUE(type, name, number) out->name = (type)attribute_of(config, (number), device);
#define FILL(only12)                                                                               \
    memset(out, 0, sizeof *out);                                                                   \
    PROPERTY_LIST(SET_VALUE, only12, NOTHING)                                                      \
    memcpy(out->name, config->gpu.name, sizeof config->gpu.name);                                  \
    device_uuid(device, out->uuid.bytes);                                                          \
    out->memory_total = config->limit;                                                             \
    for (int i = 0; i < 3; i++) {                                                                  \
        out->block_size[i] = attribute_of(config, 2 + i, device);                                  \
        out->grid_size[i] = attribute_of(config, 5 + i, device);                                   \
        out->texture_3d[i] = attribute_of(config, 24 + i, device);                                 \
    }                                                                                              \
    out->texture_2d[0] = attribute_of(config, 22, device);                                         \
    out->texture_2d[1] = attribute_of(config, 23, device);

static void fill_12(const standin_config *config, unsigned device, properties_12 *out)
{
    FILL(SET_VALUE)
}

static void fill_13(const standin_config *config, unsigned device, properties_13 *out)
{
    FILL(NOTHING)
}

void device_properties(const standin_config *config, unsigned device, unsigned major, void *out)
{
    if (major == 12) {
        fill_12(config, device, out);
    } else {
        fill_13(config, device, out);
    }
}
