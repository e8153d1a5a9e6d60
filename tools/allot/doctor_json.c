/* SPDX-License-Identifier: MIT */
/* The findings as a document, docs/json.md. */
#include <yajl/yajl_gen.h>

#include "doctor.h"
#include "dryrun_put.h"

static void put_text_or_null(yajl_gen json, const char *key, const char *text)
{
    if (text[0] == '\0') {
        dryrun_put_null(json, key);
    } else {
        dryrun_put_text(json, key, text);
    }
}

static void put_backends(yajl_gen json, const doctor_findings *findings)
{
    const unsigned count = findings->is_one_device ? 0 : ALLOT_BACKEND_COUNT;
    dryrun_put_key(json, "backends");
    yajl_gen_array_open(json);
    for (unsigned i = 0; i < count; i++) {
        const doctor_backend *const backend = &findings->backends[i];
        yajl_gen_map_open(json);
        dryrun_put_text(json, "backend", allot_backend_name((allot_backend)i));
        dryrun_put_text(json, "text", allot_backend_text((allot_backend)i));
        dryrun_put_text(json, "status", allot_status_name(backend->status));
        dryrun_put_text(json, "reason", backend->found.reason);
        dryrun_put_number(json, "device_count", backend->found.device_count);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_info(yajl_gen json, const doctor_device *device)
{
    const allot_device_info *const info = &device->info;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"memory_total", info->memory_total},
        {"memory_free", device->size_free},
        {"align", info->align},
        {"granule", info->granule},
        {"page", info->page},
        {"page_move_min", info->page_move_min},
        {"copy_bytes_per_s", info->copy_bytes_per_s},
        {"copy_latency_ns", info->copy_latency_ns},
    };
    const bool is_open = device->status == ALLOT_STATUS_OK;
    put_text_or_null(json, "name", info->name);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (is_open) {
            dryrun_put_number(json, numbers[i].key, numbers[i].value);
        } else {
            dryrun_put_null(json, numbers[i].key);
        }
    }
    dryrun_put_bool(json, "is_host_accessible", info->is_host_accessible);
    dryrun_put_bool(json, "has_bytes", info->has_bytes);
    dryrun_put_bool(json, "has_virtual_memory", info->granule != 0);
    dryrun_put_bool(json, "has_page_moves", info->page != 0);
    dryrun_put_bool(json, "has_async_alloc", info->has_async_alloc);
    dryrun_put_bool(json, "has_batch_copy", info->has_batch_copy);
}

static void put_devices(yajl_gen json, const doctor_findings *findings)
{
    dryrun_put_key(json, "devices");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < findings->device_count; i++) {
        const doctor_device *const device = &findings->devices[i];
        yajl_gen_map_open(json);
        dryrun_put_text(json, "device", doctor_device_text(device));
        dryrun_put_text(json, "status", allot_status_name(device->status));
        put_text_or_null(json, "reason", device->reason);
        put_info(json, device);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_kernel(yajl_gen json, const doctor_findings *findings)
{
    put_text_or_null(json, "kernel", findings->kernel);
    dryrun_put_key(json, "facts");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < findings->fact_count; i++) {
        yajl_gen_map_open(json);
        dryrun_put_text(json, "name", findings->facts[i].name);
        dryrun_put_text(json, "value", findings->facts[i].value);
        dryrun_put_text(json, "meaning", findings->facts[i].meaning);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

cli_exit doctor_print_json(const doctor_findings *findings)
{
    yajl_gen json = dryrun_put_open("allot.doctor/1", true);
    if (json == NULL) {
        return CLI_FAILED;
    }
    put_backends(json, findings);
    put_devices(json, findings);
    put_kernel(json, findings);
    put_text_or_null(json, "standin", findings->standin);
    dryrun_put_close(json);
    return CLI_OK;
}
