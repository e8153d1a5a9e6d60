/* SPDX-License-Identifier: MIT */
/* Every backend, and every device of those that are there. */
#include <string.h>

#include "doctor.h"

const char *doctor_device_text(const doctor_device *device)
{
    return device->given != NULL ? device->given : device->text;
}

void doctor_ask_device(const char *text, doctor_device *out)
{
    allot_device *device = NULL;
    uint64_t size_total = 0;
    out->status = allot_device_open(text, &device);
    if (out->status == ALLOT_STATUS_OK) {
        allot_device_get_info(device, &out->info);
        out->status = allot_device_memory_info(device, &out->size_free, &size_total);
    }
    if (out->status != ALLOT_STATUS_OK) {
        snprintf(out->reason, sizeof out->reason, "%s", allot_error_detail());
    }
    allot_device_destroy(device);
}

static void find_backend(doctor_findings *out, allot_backend backend)
{
    doctor_backend *const at = &out->backends[backend];
    at->status = allot_backend_probe(backend, &at->found);
    if (at->status != ALLOT_STATUS_OK) {
        return;
    }
    for (uint32_t i = 0; i < at->found.device_count && out->device_count < DOCTOR_DEVICES_MAX;
         i++) {
        doctor_device *const device = &out->devices[out->device_count++];
        snprintf(device->text, sizeof device->text, "%s:%u", allot_backend_name(backend), i);
        doctor_ask_device(device->text, device);
    }
}

void doctor_find_devices(doctor_findings *out)
{
    for (unsigned i = 0; i < ALLOT_BACKEND_COUNT; i++) {
        find_backend(out, (allot_backend)i);
    }
}
