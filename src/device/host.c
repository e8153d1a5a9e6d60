/* SPDX-License-Identifier: MIT */
/* Opening and closing the host device, and what is known of it. */
#include "device/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/size_math.h"
#include "core/size_text.h"
#include "device/device.h"
#include "device/host_pages.h"

#define GRANULE_DEFAULT (UINT64_C(2) << 20)

static void host_destroy(void *self, bool is_forked)
{
    /* All of it is memory of this process, of a child as well: nothing is shared with the parent.
     */
    host_device *const device = self;
    alloti_host_regions_fini(device);
    for (uint64_t i = 0; i < device->memories.count; i++) {
        host_memory *const memory = device->memories.slots[i].object;
        if (memory != NULL) {
            free(memory->slots);
            free(memory);
        }
    }
    alloti_host_parking_fini(device);
    alloti_slots_fini(&device->memories);
    alloti_slots_fini(&device->streams);
    alloti_slots_fini(&device->events);
    alloti_host_mover_fini(&device->mover, is_forked);
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->lock);
    }
    free(device);
}

static void host_get_info(void *self, allot_device_info *out)
{
    const host_device *const device = self;
    const bool moves = device->mover.way != HOST_WAY_COPY;
    *out = (allot_device_info){
        .backend = "host",
        .memory_total = device->quota,
        .align = device->is_huge ? HOST_HUGE_PAGE : device->machine->page,
        .granule = device->granule,
        .page = moves ? device->machine->page : 0,
        .page_move_min = moves ? device->page_move_min : 0,
        .copy_bytes_per_s = device->machine->copy_bytes_per_s,
        .copy_latency_ns = device->machine->copy_latency_ns,
        .is_host_accessible = true,
        .has_bytes = true,
    };
    if (moves) {
        snprintf(out->name, sizeof out->name, "host (moves: %s from %s)",
                 alloti_host_way_text(device->mover.way), alloti_size(device->page_move_min).text);
    } else {
        snprintf(out->name, sizeof out->name, "host (moves: %s)",
                 alloti_host_way_text(device->mover.way));
    }
}

static const allot_device_ops HOST_OPS = {
    .struct_size = sizeof HOST_OPS,
    .destroy = host_destroy,
    .get_info = host_get_info,
    .memory_info = alloti_host_memory_info,
    .alloc = alloti_host_alloc,
    .free = alloti_host_free,
    .stream_create = alloti_host_stream_create,
    .stream_destroy = alloti_host_stream_destroy,
    .stream_wait = alloti_host_stream_wait,
    .stream_synchronize = alloti_host_stream_synchronize,
    .event_create = alloti_host_event_create,
    .event_destroy = alloti_host_event_destroy,
    .event_record = alloti_host_event_record,
    .event_query = alloti_host_event_query,
    .event_synchronize = alloti_host_event_synchronize,
    .copy = alloti_host_copy,
    .fill = alloti_host_fill,
    .write = alloti_host_write,
    .read = alloti_host_read,
    .move = alloti_host_move_op,
    .reserve = alloti_host_reserve,
    .unreserve = alloti_host_unreserve,
    .memory_create = alloti_host_memory_create,
    .memory_release = alloti_host_memory_release,
    .map = alloti_host_map,
    .unmap = alloti_host_unmap,
};

/** How pages are to be moved: as the settings say, or the fastest way. */
static allot_status choose_way(const char *wanted, bool is_huge, host_way *out)
{
    if (wanted[0] == '\0' || strcmp(wanted, "auto") == 0) {
        *out = alloti_host_way_best(is_huge);
        return ALLOT_STATUS_OK;
    }
    unsigned way = 0;
    while (way < HOST_WAY_COUNT && strcmp(alloti_host_way_spelling((host_way)way), wanted) != 0) {
        way++;
    }
    if (way == HOST_WAY_COUNT) {
        return alloti_fail(ALLOT_STATUS_INVALID, "host: no way to move pages is called %s", wanted);
    }
    const host_way_found *const found = alloti_host_way_find((host_way)way);
    if (!found->works) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "host: move:%s: %s", wanted, found->reason);
    }
    *out = (host_way)way;
    return ALLOT_STATUS_OK;
}

static allot_status check_settings(const host_device *device)
{
    if (!alloti_is_pow2(device->granule) || device->granule < device->machine->page) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "host: a granule is a power of 2 of at least the page, %" PRIu64
                           " bytes; not %" PRIu64,
                           device->machine->page, device->granule);
    }
    const uint64_t granules = device->quota / device->granule;
    if (granules == 0 || granules >= ALLOT_NONE) {
        return alloti_fail(
            ALLOT_STATUS_INVALID,
            "host: %s of memory are %" PRIu64 " granules of %s; there must be 1 to 2^32 - 2",
            alloti_size(device->quota).text, granules, alloti_size(device->granule).text);
    }
    return ALLOT_STATUS_OK;
}

/** Set up the mover with what was measured of its way. */
static allot_status init_mover(host_device *device, host_way way)
{
    const host_way_found *const found = alloti_host_way_find(way);
    const allot_status status = alloti_host_mover_init(&device->mover, way);
    if (status != ALLOT_STATUS_OK || way == HOST_WAY_COPY) {
        return status;
    }
    host_mover *const mover = &device->mover;
    mover->is_huge_cheap = device->is_huge && found->is_huge_cheap;
    mover->page_min = found->page_min[device->is_huge ? 1 : 0];
    device->page_move_min = alloti_host_way_min(way, device->is_huge);
    if (device->page_move_min == HOST_NEVER) {
        /* Asked for, though it is not faster here. */
        mover->page_min = mover->page;
        device->page_move_min = mover->page;
    }
    return ALLOT_STATUS_OK;
}

static allot_status host_init(host_device *device, const device_settings *settings)
{
    const host_machine *const machine = alloti_host_machine();
    *device = (host_device){
        .machine = machine,
        .quota = alloti_align_down(settings->memory != 0 ? settings->memory : machine->memory / 2,
                                   machine->page),
        .granule = settings->granule != 0 ? settings->granule : GRANULE_DEFAULT,
        .is_huge = machine->has_huge && (settings->huge || !settings->has_huge),
        .is_guarded = settings->guard,
    };
    alloti_areas_init(&device->regions);
    allot_status status = check_settings(device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    device->parking.slot_max = (uint32_t)(device->quota / device->granule);
    host_way way = HOST_WAY_COPY;
    status = choose_way(settings->move, device->is_huge, &way);
    if (status == ALLOT_STATUS_OK) {
        status = init_mover(device, way);
    }
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_init(&device->lock, NULL);
    }
    return status;
}

static allot_status host_open(const device_settings *settings, allot_device **out)
{
    host_device *const device = malloc(sizeof *device);
    if (device == NULL) {
        return alloti_fail_memory(sizeof *device);
    }
    allot_status status = host_init(device, settings);
    if (status != ALLOT_STATUS_OK) {
        free(device);
        return status;
    }
    status = allot_device_create(&HOST_OPS, device, out);
    if (status != ALLOT_STATUS_OK) {
        host_destroy(device, false);
    }
    return status;
}

static allot_status host_probe(allot_backend_probe_result *out)
{
    const host_machine *const machine = alloti_host_machine();
    const host_way best = alloti_host_way_best(machine->has_huge);
    const host_way_found *const preferred = alloti_host_way_find(HOST_WAY_UFFD);
    snprintf(out->reason, sizeof out->reason, "%s, %s pages, moves by %s%s%s",
             alloti_size(machine->memory).text, machine->has_huge ? "huge" : "small",
             alloti_host_way_text(best), preferred->works ? "" : "; ", preferred->reason);
    out->device_count = 1;
    return ALLOT_STATUS_OK;
}

const device_backend alloti_backend_host = {.probe = host_probe, .open = host_open};
