/* SPDX-License-Identifier: MIT */
#include "standin/fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "standin/state.h"

static const standin *watched;
static struct sigaction before;

/** Everything here must be safe in a signal handler: snprintf of integers is, on Linux. */
static void say(uint64_t address)
{
    char text[256];
    const memory_block *const block = memory_find(watched, address);
    int length = 0;
    if (block != NULL) {
        length = snprintf(text, sizeof text,
                          "allot: host code touched device address 0x%" PRIx64 ", %" PRIu64
                          " bytes into allocation %" PRIu64 " of %" PRIu64 " bytes on device %u\n",
                          address, address - block->address, block->id, block->size,
                          (unsigned)block->device);
    } else {
        length = snprintf(text, sizeof text,
                          "allot: host code touched device address 0x%" PRIx64
                          ", which belongs to no allocation\n",
                          address);
    }
    if (length > 0) {
        (void)!write(STDERR_FILENO, text, (size_t)length);
    }
}

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    const uint64_t address = (uintptr_t)info->si_addr;
    if (address_is_inside(&watched->space, address)) {
        say(address);
    }
    /* Returning repeats the access, which now goes to the handler that was there before. */
    sigaction(SIGSEGV, &before, NULL);
}

void fault_install(const standin *state)
{
    watched = state;
    struct sigaction action = {0};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
}
