/* SPDX-License-Identifier: MIT */
/** What allot doctor finds out, and the two ways in which it says it. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli.h"

enum { DOCTOR_DEVICES_MAX = 64, DOCTOR_FACTS_MAX = 8, DOCTOR_TEXT_MAX = 1024 };

/** A device, opened or refused. */
typedef struct doctor_device {
    char text[32]; /**< "cuda:1": what opens it. With --device as given, see `given`. */
    const char *given;
    allot_status status;
    char reason[DOCTOR_TEXT_MAX]; /**< Of a refusal. */
    allot_device_info info;
    uint64_t size_free;
} doctor_device;

typedef struct doctor_backend {
    allot_status status;
    allot_backend_probe_result found;
} doctor_backend;

/** Something of the kernel that decides what the host device can do. */
typedef struct doctor_fact {
    const char *name;
    char value[64];
    const char *meaning; /**< Borrowed: a constant. */
} doctor_fact;

typedef struct doctor_findings {
    bool is_one_device; /**< Only `devices[0]` was looked at. */
    doctor_backend backends[ALLOT_BACKEND_COUNT];
    doctor_device devices[DOCTOR_DEVICES_MAX];
    size_t device_count;
    char kernel[128]; /**< "Linux 6.8.0". */
    doctor_fact facts[DOCTOR_FACTS_MAX];
    size_t fact_count;
    char standin[4096]; /**< Its folder; "" if there is none. */
} doctor_findings;

/** Look for every backend and open each of its devices. `out` is shared with child processes, in
 * which drivers are started. */
void doctor_find_devices(doctor_findings *out);

/** Open one device and ask it. */
void doctor_ask_device(const char *text, doctor_device *out);

/** What opens a device. */
const char *doctor_device_text(const doctor_device *device);

void doctor_find_facts(doctor_findings *out);

void doctor_print_text(const doctor_findings *findings);

/** CLI_FAILED without memory; then nothing was printed but a message. */
cli_exit doctor_print_json(const doctor_findings *findings);

#endif /* CLI_DOCTOR_H */
