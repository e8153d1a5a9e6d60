/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dladdr */
#include "standin/cudnn_helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/array.h"

enum { DEATHS_MAX = 3 };

/** Folder of this library, where the helper program lies too; false if it cannot be found. */
static bool own_folder(char *out, size_t size)
{
    Dl_info info;
    void *const here = (void *)(uintptr_t)own_folder;
    if (dladdr(here, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *const slash = strrchr(info.dli_fname, '/');
    const int length = slash == NULL ? 0 : (int)(slash - info.dli_fname);
    return length != 0 && snprintf(out, size, "%.*s", length, info.dli_fname) < (int)size;
}

/** "LD_LIBRARY_PATH=..." without a folder; NULL without host memory. The caller frees it. */
static char *path_without(const char *variable, const char *folder)
{
    static const char NAME[] = "LD_LIBRARY_PATH=";
    char *const copy = strdup(variable + strlen(NAME));
    char *const out = malloc(strlen(variable) + 1);
    if (copy == NULL || out == NULL) {
        free(copy);
        free(out);
        return NULL;
    }
    size_t length = (size_t)sprintf(out, "%s", NAME);
    char *rest = copy;
    const char *part = NULL;
    while ((part = strsep(&rest, ":")) != NULL) {
        if (strcmp(part, folder) != 0) {
            length += (size_t)sprintf(out + length, "%s%s", length > strlen(NAME) ? ":" : "", part);
        }
    }
    free(copy);
    return out;
}

/**
 * This process's environment without the stand-in. *path is the one variable that the caller frees
 * beside the array; NULL without host memory.
 */
static char **clean_environment(const char *folder, char **path)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **const out = alloti_alloc_array(count + 1, sizeof *out);
    size_t kept = 0;
    *path = NULL;
    for (size_t i = 0; out != NULL && i < count; i++) {
        if (strncmp(environ[i], "LD_LIBRARY_PATH=", strlen("LD_LIBRARY_PATH=")) == 0) {
            *path = path_without(environ[i], folder);
            out[kept++] = *path == NULL ? environ[i] : *path;
        } else if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0) {
            out[kept++] = environ[i];
        }
    }
    if (out != NULL) {
        out[kept] = NULL;
    }
    return out;
}

/** Run the program with its standard input connected to `socket`; false if it cannot be run. */
static bool spawn(const char *folder, const standin_config *config, int socket)
{
    char program[STANDIN_PATH_MAX + 32];
    char wait[32];
    snprintf(program, sizeof program, "%s/allot-cudnn-oracle", folder);
    snprintf(wait, sizeof wait, "%u", config->oracle_wait_s);
    char library[STANDIN_PATH_MAX];
    snprintf(library, sizeof library, "%s", config->oracle);
    char *const arguments[] = {program, library, wait, NULL};
    char *path = NULL;
    char **const environment = clean_environment(folder, &path);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    /* cuDNN complains there about the driver that it does not find. */
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const bool is_running = environment != NULL && posix_spawn(&child, program, &actions, NULL,
                                                               arguments, environment) == 0;
    posix_spawn_file_actions_destroy(&actions);
    if (is_running) {
        /* It goes on in a child of its own, so that this process has no child that it knows not of.
         */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    free(path);
    free(environment);
    return is_running;
}

static void stop(cudnn_helper *helper)
{
    if (helper->socket >= 0) {
        close(helper->socket);
    }
    helper->socket = -1;
}

static bool fail(cudnn_helper *helper, bool is_useless, const char *problem, const char *detail)
{
    stop(helper);
    helper->is_useless = is_useless;
    snprintf(helper->problem, sizeof helper->problem, "%s%s", problem, detail);
    return false;
}

/** Read the first message: which cuDNN it is, or why there is none. */
static bool greet(cudnn_helper *helper, int wait_ms)
{
    alloti_bytes hello = {0};
    char problem[WIRE_TEXT_MAX] = "its helper program does not answer";
    uint64_t status = 1;
    if (wire_receive(helper->socket, wait_ms, &hello)) {
        alloti_cursor cursor = {.data = hello.data, .size = hello.size};
        status = alloti_cursor_varint(&cursor);
        helper->version = alloti_cursor_varint(&cursor);
        wire_take_text(&cursor, problem);
        status = cursor.has_failed ? 1 : status;
    }
    alloti_bytes_fini(&hello);
    return status == 0 || fail(helper, true, problem, "");
}

static bool start(cudnn_helper *helper, const standin_config *config, int wait_ms)
{
    char folder[STANDIN_PATH_MAX];
    int sockets[2];
    if (!own_folder(folder, sizeof folder) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return fail(helper, true, "its helper program cannot be connected to", "");
    }
    const bool is_running = spawn(folder, config, sockets[1]);
    close(sockets[1]);
    helper->socket = sockets[0];
    helper->owner = getpid();
    if (!is_running) {
        return fail(helper, true, "its helper program cannot be started from ", folder);
    }
    return greet(helper, wait_ms);
}

bool cudnn_helper_ask(cudnn_helper *helper, const standin_config *config, const alloti_bytes *query,
                      alloti_bytes *answer)
{
    enum { SLACK_S = 2, MS = 1000 };
    const int wait_ms = (int)(config->oracle_wait_s + SLACK_S) * MS;
    if (helper->socket >= 0 && helper->owner != getpid()) {
        stop(helper);
    }
    if (helper->is_useless || (helper->socket < 0 && !start(helper, config, wait_ms))) {
        return false;
    }
    if (!wire_send(helper->socket, query) || !wire_receive(helper->socket, wait_ms, answer)) {
        helper->deaths++;
        return fail(helper, helper->deaths >= DEATHS_MAX,
                    "its helper program ended or was silent while it was asked", "");
    }
    return true;
}
