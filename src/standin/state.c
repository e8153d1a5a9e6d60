/* SPDX-License-Identifier: MIT */
#include "standin/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "standin/fault.h"
#include "standin/report.h"

enum { EXIT_SETTINGS = 78 };

static standin the;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local standin_thread this_thread;
static pthread_key_t thread_key;
static void leave_thread(void *thread);

static void refuse(void)
{
    fprintf(stderr, "allot: stand-in for CUDA: %s\n", allot_error_detail());
    _Exit(EXIT_SETTINGS);
}

/* A child of fork() may have been made while another thread held the lock. */
static void before_fork(void)
{
    pthread_mutex_lock(&the.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&the.lock);
}

/* The threads that do the work stay with the parent: as on real hardware, CUDA does not survive a
 * fork, and a child that goes on is told. */
static void after_fork_in_child(void)
{
    if (the.queues.has_threads) {
        the.queues.has_threads = false;
        the.queues.moving = 0;
        the.broken = CUDA_NOT_INITIALIZED;
    }
    pthread_mutex_unlock(&the.lock);
}

static void stop(void)
{
    if (the.config.has_bytes) {
        pthread_mutex_lock(&the.lock);
        queue_stop(&the);
        pthread_mutex_unlock(&the.lock);
    }
}

static void set_up(void)
{
    pthread_mutex_init(&the.lock, NULL);
    if (standin_config_parse(getenv("ALLOT_STANDIN"), &the.config) != ALLOT_STATUS_OK ||
        address_space_init(&the.space, the.config.addresses == STANDIN_ADDRESSES_UPWARD,
                           the.config.has_bytes) != ALLOT_STATUS_OK) {
        refuse();
    }
    memory_init(&the.memory, &the.config);
    pthread_key_create(&thread_key, leave_thread);
    queue_init(&the.queues, the.config.delay);
    the.fail_left = the.config.fail_at;
    the.fail_status = (cuda_status)the.config.fail_status;
    fault_install(&the);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    atexit(stop);
    atexit(report_write);
}

standin *standin_open(void)
{
    pthread_once(&once, set_up);
    pthread_mutex_lock(&the.lock);
    return &the;
}

void standin_close(standin *state)
{
    if (state->streams.due_count != 0) {
        stream_run_due(state);
    } else {
        pthread_mutex_unlock(&state->lock);
    }
}

const standin_config *standin_settings(void)
{
    pthread_once(&once, set_up);
    return &the.config;
}

standin_thread *standin_this_thread(void)
{
    return &this_thread;
}

/* A thread that used its default streams ends. */
static void leave_thread(void *thread)
{
    standin_thread *const own = thread;
    standin *const state = standin_open();
    for (unsigned i = 0; i < STANDIN_DEVICES_MAX; i++) {
        if (own->streams[i] != NULL) {
            (void)stream_destroy(state, own->streams[i]);
            own->streams[i] = NULL;
        }
    }
    standin_close(state);
}

standin_stream **standin_thread_stream(uint32_t device)
{
    (void)pthread_setspecific(thread_key, &this_thread);
    return &this_thread.streams[device];
}

cuda_status standin_result(cuda_status status)
{
    if (status != CUDA_OK) {
        this_thread.last_error = status;
    }
    return status;
}

bool allot_standin_memory(unsigned device, uint64_t *used, uint64_t *total)
{
    const standin_config *const config = standin_settings();
    if (device >= config->installed_count) {
        return false;
    }
    *used = 0;
    *total = config->limit;
    standin *const state = standin_open();
    for (unsigned i = 0; i < config->device_count; i++) {
        if (config->visible[i] == device) {
            *used = state->memory.devices[i].used;
            *total = state->memory.devices[i].total;
        }
    }
    standin_close(state);
    return true;
}

void allot_standin_fail(uint64_t calls, int status)
{
    standin *const state = standin_open();
    state->fail_left = calls;
    state->fail_status = (cuda_status)status;
    standin_close(state);
}

uint64_t allot_standin_rules_broken(void)
{
    standin *const state = standin_open();
    const uint64_t count = state->rules_broken;
    standin_close(state);
    return count;
}

bool allot_standin_check(void)
{
    standin *const state = standin_open();
    const bool is_right = memory_check(state);
    standin_close(state);
    return is_right;
}

const standin_config *allot_standin_settings(void)
{
    return standin_settings();
}
