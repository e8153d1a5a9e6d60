/* SPDX-License-Identifier: MIT */
/** PCI bus ids as CUDA and NVML write them: "domain:bus:device.function", all hexadecimal. */
#ifndef STANDIN_BUS_ID_H
#define STANDIN_BUS_ID_H

#include <stdint.h>
#include <stdlib.h>

/** The bus of an id; 0, which no device of the stand-in has, if the text is no id. */
static inline uint32_t bus_id_parse(const char *text)
{
    char *end = NULL;
    (void)strtoul(text, &end, 16);
    if (end == text || *end != ':') {
        return 0;
    }
    const char *const bus = end + 1;
    const unsigned long number = strtoul(bus, &end, 16);
    return end == bus || *end != ':' || number > UINT32_MAX ? 0 : (uint32_t)number;
}

#endif /* STANDIN_BUS_ID_H */
