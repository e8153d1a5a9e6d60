/* SPDX-License-Identifier: MIT */
/**
 * A device over another one: a table of operations that hands every call on. Wrappers begin with a
 * device_wrapper, take this table, and put their own operations in the places they care about.
 */
#ifndef ALLOTI_DEVICE_FORWARD_H
#define ALLOTI_DEVICE_FORWARD_H

#include "device/device.h"

/** First member of what a wrapper is. */
typedef struct device_wrapper {
    allot_device *inner; /**< The caller's. */
    const char *name;    /**< "failing": its backend is then called "failing(host)". */
    /** (optional) Called before each call is handed on; what fails here goes no further. */
    allot_status (*before)(struct device_wrapper *self, allot_device_call call);
} device_wrapper;

/** The operations that the inner device has, but for `destroy`, which the wrapper sets. */
void alloti_forward_ops(const allot_device *inner, allot_device_ops *out);

/** The hook of a call, for operations that a wrapper does itself. */
ALLOT_NODISCARD allot_status alloti_forward_before(void *self, allot_device_call call);

#endif /* ALLOTI_DEVICE_FORWARD_H */
