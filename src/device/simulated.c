/* SPDX-License-Identifier: MIT */
/* Opening simulated devices, and null ones, which are the same with much memory and no costs. */
#include "device/simulated.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/size_math.h"

static const uint64_t ALIGN = 512; /* of cudaMalloc */
static const uint64_t GRANULE_DEFAULT = UINT64_C(2) << 20;
/** CUDA's major version that the memory of a context is taken from. */
enum { CUDA_MAJOR = 13 };

static void free_objects(alloti_slots *slots)
{
    for (uint64_t i = 0; i < slots->count; i++) {
        free(slots->slots[i].object);
    }
    alloti_slots_fini(slots);
}

static void destroy(void *self, bool is_forked)
{
    simulated *const device = self;
    free_objects(&device->memories);
    free_objects(&device->streams);
    free_objects(&device->events);
    alloti_areas_fini(&device->areas);
    alloti_areas_fini(&device->maps);
    allot_space_destroy(device->addresses);
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->mutex);
    }
    free(device);
}

static void get_info(void *self, allot_device_info *out)
{
    *out = ((const simulated *)self)->info;
}

static const allot_device_ops OPS = {
    .struct_size = sizeof OPS,
    .destroy = destroy,
    .get_info = get_info,
    .memory_info = alloti_simulated_memory_info,
    .alloc = alloti_simulated_alloc,
    .free = alloti_simulated_free,
    .stream_create = alloti_simulated_stream_create,
    .stream_destroy = alloti_simulated_stream_destroy,
    .stream_wait = alloti_simulated_stream_wait,
    .stream_synchronize = alloti_simulated_stream_synchronize,
    .event_create = alloti_simulated_event_create,
    .event_destroy = alloti_simulated_event_destroy,
    .event_record = alloti_simulated_event_record,
    .event_query = alloti_simulated_event_query,
    .event_synchronize = alloti_simulated_event_synchronize,
    .copy = alloti_simulated_copy,
    .fill = alloti_simulated_fill,
    .write = alloti_simulated_write,
    .read = alloti_simulated_read,
    .clock_ns = alloti_simulated_clock_ns,
    .copy_batch = alloti_simulated_copy_batch,
    .reserve = alloti_simulated_reserve,
    .unreserve = alloti_simulated_unreserve,
    .memory_create = alloti_simulated_memory_create,
    .memory_release = alloti_simulated_memory_release,
    .map = alloti_simulated_map,
    .unmap = alloti_simulated_unmap,
};

/** What simulated and null devices differ in. */
typedef struct simulated_plan {
    const char *backend;
    const char *name;
    uint64_t memory_total;
    uint64_t memory_used; /**< From the beginning. */
    uint64_t granule;
    simulated_costs costs;
} simulated_plan;

static allot_status make(const simulated_plan *plan, simulated **out)
{
    simulated *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    const allot_space_options options = {.struct_size = sizeof options, .granule = ALIGN};
    const allot_status status = allot_space_create(SIMULATED_ADDRESSES, &options, &self->addresses);
    if (status != ALLOT_STATUS_OK) {
        free(self);
        return status;
    }
    self->info = (allot_device_info){.memory_total = plan->memory_total,
                                     .align = ALIGN,
                                     .granule = plan->granule,
                                     .copy_bytes_per_s = plan->costs.copy_bytes_per_s,
                                     .copy_latency_ns = plan->costs.copy_latency_ns};
    snprintf(self->info.name, sizeof self->info.name, "%s", plan->name);
    snprintf(self->info.backend, sizeof self->info.backend, "%s", plan->backend);
    self->costs = plan->costs;
    self->memory_used = plan->memory_used;
    pthread_mutex_init(&self->mutex, NULL);
    alloti_areas_init(&self->areas);
    alloti_areas_init(&self->maps);
    *out = self;
    return ALLOT_STATUS_OK;
}

static allot_status open_plan(simulated_plan *plan, const device_settings *settings,
                              allot_device **out)
{
    plan->granule = settings->granule != 0 ? settings->granule : GRANULE_DEFAULT;
    if (!alloti_is_pow2(plan->granule) || plan->granule < ALIGN || plan->granule > SIMULATED_BASE) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: granule: want a power of two of %llu bytes to 64 TiB",
                           plan->backend, (unsigned long long)ALIGN);
    }
    if (settings->memory != 0) {
        plan->memory_total = settings->memory;
        plan->memory_used = 0;
    }
    simulated *self = NULL;
    allot_status status = make(plan, &self);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_create(&OPS, self, out);
    if (status != ALLOT_STATUS_OK) {
        destroy(self, false);
    }
    return status;
}

static allot_status open_simulated(const device_settings *settings, allot_device **out)
{
    allot_gpu gpu;
    const allot_status status =
        allot_gpu_find(settings->gpu[0] != '\0' ? settings->gpu : "a100-80", &gpu);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    char name[ALLOT_DEVICE_NAME_MAX];
    snprintf(name, sizeof name, "%s (simulated)", gpu.name);
    simulated_plan plan = {.backend = allot_backend_name(ALLOT_BACKEND_SIMULATED),
                           .name = name,
                           .memory_total = gpu.memory_total,
                           .memory_used = allot_gpu_context(&gpu, CUDA_MAJOR)};
    alloti_simulated_costs(&gpu, &plan.costs);
    return open_plan(&plan, settings, out);
}

static allot_status open_null(const device_settings *settings, allot_device **out)
{
    simulated_plan plan = {.backend = allot_backend_name(ALLOT_BACKEND_NULL),
                           .name = "null device",
                           .memory_total = SIMULATED_ADDRESSES / 2};
    return open_plan(&plan, settings, out);
}

static allot_status probe_simulated(allot_backend_probe_result *out)
{
    out->device_count = 1;
    snprintf(out->reason, sizeof out->reason, "%zu profiles of GPUs", allot_gpu_count());
    return ALLOT_STATUS_OK;
}

static allot_status probe_null(allot_backend_probe_result *out)
{
    out->device_count = 1;
    snprintf(out->reason, sizeof out->reason, "always there");
    return ALLOT_STATUS_OK;
}

const device_backend alloti_backend_simulated = {.probe = probe_simulated, .open = open_simulated};
const device_backend alloti_backend_null = {.probe = probe_null, .open = open_null};
