/* SPDX-License-Identifier: MIT */
/**
 * What is behind an allot_device: the completed table of a backend, and what was counted.
 *
 * calls.c is the one place that calls the table: it checks arguments, counts, and checks what came
 * back, so that backends stay thin. open.c knows the backends by name; each has one file or a few,
 * and ends in an open function of the form below.
 */
#ifndef ALLOTI_DEVICE_DEVICE_H
#define ALLOTI_DEVICE_DEVICE_H

#include <allot/device_backend.h>
#include <stdatomic.h>

#include "core/status.h"

struct allot_device {
    allot_device_ops ops; /**< Checked; what is missing of it is made up for in calls.c. */
    void *self;
    allot_device_info info;
    uint64_t fork_generation; /**< When it was opened. */
    /* Counters. Relaxed: they guard nothing. */
    _Atomic uint64_t calls[ALLOT_DEVICE_CALL_COUNT];
    _Atomic uint64_t failures[ALLOT_DEVICE_CALL_COUNT];
    _Atomic uint64_t size_allocated;
    _Atomic uint64_t size_created;
    _Atomic uint64_t size_reserved;
    _Atomic uint64_t size_copied;
    _Atomic uint64_t live_count;
};

/** Whether this is a child of the process that opened the device. */
bool alloti_device_is_forked(const allot_device *device);

/** ALLOT_STATUS_FORKED in such a child. */
ALLOT_NODISCARD allot_status alloti_device_check_fork(const allot_device *device);

/** The settings that a text gave; texts are borrowed for the call. */
typedef struct device_settings {
    uint32_t ordinal;
    uint64_t memory;  /**< 0: not given. */
    uint64_t granule; /**< 0: not given. */
    char gpu[64];     /**< "": not given. */
    char move[16];    /**< "": not given. */
    bool has_huge;    /**< `huge` was given. */
    bool huge;
    bool guard;
} device_settings;

/** A backend as open.c knows it. */
typedef struct device_backend {
    /** What is there; the reason is filled in always. */
    allot_status (*probe)(allot_backend_probe_result *out);
    /** Make the device; the settings are those that the backend takes. */
    allot_status (*open)(const device_settings *settings, allot_device **out);
} device_backend;

extern const device_backend alloti_backend_host;
extern const device_backend alloti_backend_simulated;
extern const device_backend alloti_backend_null;
extern const device_backend alloti_backend_opencl;
extern const device_backend alloti_backend_cuda;

#endif /* ALLOTI_DEVICE_DEVICE_H */
