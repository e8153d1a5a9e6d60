/* SPDX-License-Identifier: MIT */
#include "standin/fault.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "standin/state.h"

static const standin *watched;
static char note_path[STANDIN_PATH_MAX + 32]; /* "" for no file; a handler cannot make it up */
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
    const int note = note_path[0] == '\0' || length <= 0
                         ? -1
                         : open(note_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (note >= 0) {
        (void)!write(note, text, (size_t)length);
        close(note);
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
    if (state->config.report[0] != '\0') {
        snprintf(note_path, sizeof note_path, "%s.%ld.fault", state->config.report, (long)getpid());
    }
    struct sigaction action = {0};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
}
