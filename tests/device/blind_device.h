/* SPDX-License-Identifier: MIT */
/** A device that does not keep the order of streams: what a heap over it does wrong must be seen.
 */
#ifndef BLIND_DEVICE_H
#define BLIND_DEVICE_H

#include <allot/device.h>

typedef enum blindness {
    BLIND_TO_WAITS,  /**< A stream does not wait for events. */
    BLIND_TO_EVENTS, /**< Every event counts as reached. */
} blindness;

/** A device over another one, which outlives it. */
ALLOT_NODISCARD allot_status blind_device_open(allot_device *inner, blindness kind,
                                               allot_device **out);

#endif /* BLIND_DEVICE_H */
