/* SPDX-License-Identifier: MIT */
#include "standin/cudnn_descriptor.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

static const uint64_t DESCRIPTOR_MARK = UINT64_C(0x616c6c6f7463646e);

cudnn_descriptor *cudnn_descriptor_create(int type)
{
    cudnn_descriptor *const descriptor = calloc(1, sizeof *descriptor);
    if (descriptor != NULL) {
        descriptor->mark = DESCRIPTOR_MARK;
        descriptor->type = type;
        descriptor->basis = REPORT_UNKNOWN;
        atomic_init(&descriptor->references, 1);
    }
    return descriptor;
}

cudnn_descriptor *cudnn_descriptor_get(void *pointer)
{
    cudnn_descriptor *const descriptor = pointer;
    return (uintptr_t)pointer > UINT16_MAX && descriptor->mark == DESCRIPTOR_MARK ? descriptor
                                                                                  : NULL;
}

size_t cudnn_value_size(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_POINTER:
    case CUDNN_TYPE_DESCRIPTOR:
        return 8;
    case CUDNN_TYPE_FRACTION:
        return 16;
    default: /* the enumerations, float and int */
        return type > 0 && type < 256 ? 4 : 0;
    }
}

static void clear_attribute(cudnn_attribute *attribute)
{
    cudnn_descriptor *const *const children = attribute->values;
    for (uint32_t i = 0; attribute->type == CUDNN_TYPE_DESCRIPTOR && i < attribute->count; i++) {
        cudnn_descriptor_release(children[i]);
    }
    free(attribute->values);
}

static void clear(cudnn_descriptor *descriptor)
{
    for (uint64_t i = 0; i < descriptor->count; i++) {
        clear_attribute(&descriptor->attributes[i]);
    }
    descriptor->count = 0;
}

void cudnn_descriptor_release(cudnn_descriptor *descriptor)
{
    /* Acquire and release: who frees it has seen everything that others did with it. */
    if (descriptor == NULL ||
        atomic_fetch_sub_explicit(&descriptor->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    clear(descriptor);
    free(descriptor->attributes);
    descriptor->mark = 0;
    free(descriptor);
}

/** A copy of the values; descriptors among them are held. NULL without host memory. */
static void *copy_values(int type, uint32_t count, const void *values)
{
    const size_t size = cudnn_value_size(type);
    void *const copy = alloti_alloc_array(count == 0 ? 1 : count, size);
    if (copy == NULL) {
        return NULL;
    }
    if (count != 0) {
        memcpy(copy, values, count * size);
    }
    cudnn_descriptor **const children = copy;
    for (uint32_t i = 0; type == CUDNN_TYPE_DESCRIPTOR && i < count; i++) {
        children[i] = cudnn_descriptor_get(children[i]);
        if (children[i] != NULL) {
            atomic_fetch_add_explicit(&children[i]->references, 1, memory_order_relaxed);
        }
    }
    return copy;
}

static cudnn_attribute *find(const cudnn_descriptor *descriptor, int name)
{
    for (uint64_t i = 0; i < descriptor->count; i++) {
        if (descriptor->attributes[i].name == name) {
            return &descriptor->attributes[i];
        }
    }
    return NULL;
}

bool cudnn_descriptor_set(cudnn_descriptor *descriptor, int name, int type, uint32_t count,
                          const void *values)
{
    if (cudnn_value_size(type) == 0) {
        return false;
    }
    cudnn_attribute *place = find(descriptor, name);
    if (place == NULL &&
        alloti_array_reserve(&descriptor->attributes, &descriptor->capacity, descriptor->count + 1,
                             sizeof *descriptor->attributes) != ALLOT_STATUS_OK) {
        return false;
    }
    void *const copy = copy_values(type, count, values);
    if (copy == NULL) {
        return false;
    }
    if (place != NULL) {
        clear_attribute(place);
    } else {
        place = &descriptor->attributes[descriptor->count++];
    }
    *place = (cudnn_attribute){.name = name, .type = type, .count = count, .values = copy};
    return true;
}

const cudnn_attribute *cudnn_descriptor_find(const cudnn_descriptor *descriptor, int name)
{
    return find(descriptor, name);
}

cudnn_descriptor *cudnn_descriptor_child(const cudnn_descriptor *descriptor, int name)
{
    const cudnn_attribute *const attribute = find(descriptor, name);
    return attribute != NULL && attribute->type == CUDNN_TYPE_DESCRIPTOR && attribute->count != 0
               ? ((cudnn_descriptor *const *)attribute->values)[0]
               : NULL;
}

int64_t cudnn_descriptor_number(const cudnn_descriptor *descriptor, int name, int64_t otherwise)
{
    const cudnn_attribute *const attribute = find(descriptor, name);
    if (attribute == NULL || attribute->count == 0) {
        return otherwise;
    }
    if (attribute->type == CUDNN_TYPE_INT64) {
        return *(const int64_t *)attribute->values;
    }
    return cudnn_value_size(attribute->type) == sizeof(int) ? *(const int *)attribute->values
                                                            : otherwise;
}

bool cudnn_descriptor_assign(cudnn_descriptor *to, const cudnn_descriptor *from)
{
    if (to == from) {
        return true;
    }
    clear(to);
    to->basis = from->basis;
    to->status = from->status;
    to->answer = from->answer;
    to->choice = from->choice;
    for (uint64_t i = 0; i < from->count; i++) {
        const cudnn_attribute *const attribute = &from->attributes[i];
        if (!cudnn_descriptor_set(to, attribute->name, attribute->type, attribute->count,
                                  attribute->values)) {
            return false;
        }
    }
    return true;
}
