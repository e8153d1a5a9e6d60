/* SPDX-License-Identifier: MIT */
#include "dryrun_signal.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], PATIENCE = 3 };

/* Written by the handler alone, except where the signals are blocked. */
static volatile sig_atomic_t caught;
static volatile sig_atomic_t times;
static volatile sig_atomic_t child; /* 0: none. Linux has no pid above 2^22. */

/** The program got what the terminal sends; what another process sent came here alone. */
static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = number;
    times = times + 1;
    if (child != 0 && times >= PATIENCE) {
        kill(child, SIGKILL);
    } else if (child != 0 && info->si_code <= 0) {
        kill(child, number);
    }
}

void dryrun_signal_init(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
        struct sigaction before;
        sigemptyset(&action.sa_mask);
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(SIGNALS[i], &action, NULL);
        }
    }
}

static void block(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaddset(&set, SIGNALS[i]);
    }
    (void)sigprocmask(how, &set, NULL);
}

pid_t dryrun_signal_fork(void)
{
    block(SIG_BLOCK);
    const pid_t pid = fork();
    if (pid == 0) {
        /* exec() takes the handlers away; until then a signal must not look like the parent's. */
        for (size_t i = 0; i < SIGNAL_COUNT; i++) {
            struct sigaction before;
            if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
                (void)signal(SIGNALS[i], SIG_DFL);
            }
        }
    } else if (pid > 0) {
        child = (sig_atomic_t)pid;
    }
    block(SIG_UNBLOCK);
    return pid;
}

void dryrun_signal_end(void)
{
    child = 0;
}

bool dryrun_signal_is_caught(void)
{
    return caught != 0;
}

void dryrun_signal_raise(void)
{
    if (caught != 0) {
        (void)signal(caught, SIG_DFL);
        (void)raise(caught);
    }
}
