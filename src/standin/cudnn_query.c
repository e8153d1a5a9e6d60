/* SPDX-License-Identifier: MIT */
#include "standin/cudnn_query.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "core/array.h"
#include "standin/cudnn_wire.h"
#include "standin/device.h"

static void put_key(yajl_gen json, const char *key)
{
    yajl_gen_string(json, (const unsigned char *)key, strlen(key));
}

static void put_sizes(yajl_gen json, const char *key, const int *sizes)
{
    enum { AXES = 3 };
    put_key(json, key);
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < AXES; i++) {
        yajl_gen_integer(json, sizes[i]);
    }
    yajl_gen_array_close(json);
}

static void put_numbers(yajl_gen json, const allot_gpu *gpu)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"deviceVer", gpu->compute_major * 100 + gpu->compute_minor * 10},
        {"driverVer", (uint64_t)device_cuda_version()},
        {"multiProcessorCount", gpu->sm_count},
        {"warpSize", DEVICE_WARP},
        {"maxSharedMemoryPerBlock", gpu->block_shared_size},
        {"maxSharedMemoryPerBlockOptin", gpu->block_shared_optin_size},
        {"reservedSharedMemoryPerBlock", gpu->block_shared_reserved_size},
        {"maxRegistersPerSM", gpu->sm_registers},
        {"regsPerBlock", gpu->sm_registers},
        {"maxCtasPerSM", gpu->sm_blocks},
        {"maxThreadsPerBlock", DEVICE_BLOCK_THREADS},
        {"maxThreadsPerSM", gpu->sm_threads},
        {"totalGlobalMem", gpu->memory_total},
        {"smClockRateKHz", gpu->clock_khz},
        {"memClockRateKHz", gpu->memory_clock_khz},
        {"memoryBusWidth", gpu->memory_bus_bits}, /* since 9.28 */
        {"l2CacheSize", gpu->l2_size},
        {"supportCoopLaunch", 1},
        {"pciDeviceId", 0},
        {"isTccDriver", 0},
        {"cudaDeviceId", 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put_key(json, numbers[i].key);
        yajl_gen_integer(json, (long long)numbers[i].value);
    }
}

/** The card as the documented mode without a device takes it: every field is required. */
static void put_device(alloti_bytes *message, const allot_gpu *gpu)
{
    static const int block[] = {1024, 1024, 64};
    static const int grid[] = {INT32_MAX, 65535, 65535};
    yajl_gen json = yajl_gen_alloc(NULL);
    if (json == NULL) {
        message->status = ALLOT_STATUS_HOST_MEMORY;
        return;
    }
    yajl_gen_map_open(json);
    put_key(json, "deviceName");
    put_key(json, gpu->name);
    put_numbers(json, gpu);
    put_sizes(json, "maxBlockSize", block);
    put_sizes(json, "maxGridSize", grid);
    yajl_gen_map_close(json);
    const unsigned char *text = NULL;
    size_t size = 0;
    yajl_gen_get_buf(json, &text, &size);
    alloti_bytes_put_varint(message, size);
    alloti_bytes_put(message, text, size);
    yajl_gen_free(json);
}

/* ---- graphs ---- */

enum { DEPTH_MAX = 16 };

/** The descriptors of a graph, each after those it holds. */
typedef struct descriptor_list {
    const cudnn_descriptor **items;
    uint64_t count;
    uint64_t capacity;
    bool has_failed;
} descriptor_list;

static uint64_t position(const descriptor_list *list, const cudnn_descriptor *descriptor)
{
    uint64_t i = 0;
    while (i < list->count && list->items[i] != descriptor) {
        i++;
    }
    return i;
}

static void collect(descriptor_list *list, const cudnn_descriptor *descriptor, unsigned depth);

static void collect_children(descriptor_list *list, const cudnn_attribute *attribute,
                             unsigned depth)
{
    cudnn_descriptor *const *const children = attribute->values;
    for (uint32_t i = 0; attribute->type == CUDNN_TYPE_DESCRIPTOR && i < attribute->count; i++) {
        if (children[i] != NULL) {
            collect(list, children[i], depth);
        }
    }
}

static void collect(descriptor_list *list, const cudnn_descriptor *descriptor, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        list->has_failed = true;
    }
    if (list->has_failed || position(list, descriptor) != list->count) {
        return;
    }
    for (uint64_t i = 0; i < descriptor->count; i++) {
        collect_children(list, &descriptor->attributes[i], depth + 1);
    }
    if (alloti_array_reserve(&list->items, &list->capacity, list->count + 1, sizeof(void *)) !=
        ALLOT_STATUS_OK) {
        list->has_failed = true;
        return;
    }
    list->items[list->count++] = descriptor;
}

static bool is_sent(const cudnn_attribute *attribute)
{
    return attribute->type != CUDNN_TYPE_HANDLE && attribute->type != CUDNN_TYPE_POINTER;
}

static void put_attribute(alloti_bytes *message, const descriptor_list *list,
                          const cudnn_attribute *attribute)
{
    alloti_bytes_put_varint(message, (uint64_t)attribute->name);
    alloti_bytes_put_varint(message, (uint64_t)attribute->type);
    alloti_bytes_put_varint(message, attribute->count);
    if (attribute->type != CUDNN_TYPE_DESCRIPTOR) {
        alloti_bytes_put(message, attribute->values,
                         attribute->count * cudnn_value_size(attribute->type));
        return;
    }
    cudnn_descriptor *const *const children = attribute->values;
    for (uint32_t i = 0; i < attribute->count; i++) {
        alloti_bytes_put_varint(message, position(list, children[i]));
    }
}

static void put_descriptor(alloti_bytes *message, const descriptor_list *list,
                           const cudnn_descriptor *descriptor)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < descriptor->count; i++) {
        count += is_sent(&descriptor->attributes[i]) ? 1 : 0;
    }
    alloti_bytes_put_varint(message, (uint64_t)descriptor->type);
    alloti_bytes_put_varint(message, count);
    for (uint64_t i = 0; i < descriptor->count; i++) {
        if (is_sent(&descriptor->attributes[i])) {
            put_attribute(message, list, &descriptor->attributes[i]);
        }
    }
}

void cudnn_query_write(const allot_gpu *gpu, const cudnn_descriptor *graph, int mode,
                       alloti_bytes *message)
{
    descriptor_list list = {0};
    collect(&list, graph, 0);
    put_device(message, gpu);
    alloti_bytes_put_varint(message, (uint64_t)mode);
    alloti_bytes_put_varint(message, list.count);
    for (uint64_t i = 0; i < list.count; i++) {
        put_descriptor(message, &list, list.items[i]);
    }
    free(list.items);
    if (list.has_failed) {
        message->status = ALLOT_STATUS_HOST_MEMORY;
    }
}
