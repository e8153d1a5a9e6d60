/* SPDX-License-Identifier: MIT */
/* NVRTC: programs that compile to nothing, under the names they were given. */
#include <stdlib.h>
#include <string.h>

#include "standin/device.h"
#include "standin/runtime.h"

CUDA_ENTRY(int, nvrtcVersion)(int *major, int *minor)
{
    const int version = device_cuda_version();
    *major = version / 1000;
    *minor = version % 1000 / 10;
    return 0;
}

CUDA_ENTRY(const char *, nvrtcGetErrorString)(int status)
{
    return status == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}

/** The mangled name only serves to look the kernel up again, which works under any name. */
CUDA_ENTRY(int, nvrtcGetLoweredName)(void *program, const char *expression, const char **name)
{
    (void)program;
    *name = expression;
    return 0;
}

static int give_size(size_t *size)
{
    *size = 1;
    return 0;
}

static int give_text(char *text)
{
    text[0] = '\0';
    return 0;
}

CUDA_ENTRY(int, nvrtcGetPTXSize)(void *program, size_t *size)
{
    (void)program;
    return give_size(size);
}

CUDA_ENTRY(int, nvrtcGetPTX)(void *program, char *text)
{
    (void)program;
    return give_text(text);
}

CUDA_ENTRY(int, nvrtcGetCUBINSize)(void *program, size_t *size)
{
    (void)program;
    return give_size(size);
}

CUDA_ENTRY(int, nvrtcGetCUBIN)(void *program, char *text)
{
    (void)program;
    return give_text(text);
}

CUDA_ENTRY(int, nvrtcGetProgramLogSize)(void *program, size_t *size)
{
    (void)program;
    return give_size(size);
}

CUDA_ENTRY(int, nvrtcGetProgramLog)(void *program, char *text)
{
    (void)program;
    return give_text(text);
}
