/* SPDX-License-Identifier: MIT */
/* Every backend, and every device of those that are there. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/** What is found of one backend, and of its devices, which come at the end of the list. */
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

/** A driver ended the child, which `ended` tells of. Of its devices nothing is kept. */
static void note_end(doctor_backend *out, int ended)
{
    const bool is_signal = WIFSIGNALED(ended);
    out->status = ALLOT_STATUS_BACKEND;
    out->found.device_count = 0;
    snprintf(out->found.reason, sizeof out->found.reason,
             "its driver ends the programs that open it here (%s %d)",
             is_signal ? "signal" : "exit status",
             is_signal ? WTERMSIG(ended) : WEXITSTATUS(ended));
}

/**
 * The same in a child process: drivers that find a machine not to their liking may end the process
 * instead of answering.
 */
static void find_backend_apart(doctor_findings *out, allot_backend backend)
{
    const size_t device_count = out->device_count;
    const pid_t child = fork();
    if (child == 0) {
        find_backend(out, backend);
        _exit(0);
    }
    int ended = 0;
    if (child < 0) {
        find_backend(out, backend);
    } else if (waitpid(child, &ended, 0) != child || ended != 0) {
        note_end(&out->backends[backend], ended);
        out->device_count = device_count;
    }
}

void doctor_find_devices(doctor_findings *out)
{
    for (unsigned i = 0; i < ALLOT_BACKEND_COUNT; i++) {
        if (i == ALLOT_BACKEND_OPENCL || i == ALLOT_BACKEND_CUDA) {
            find_backend_apart(out, (allot_backend)i);
        } else {
            find_backend(out, (allot_backend)i);
        }
    }
}
