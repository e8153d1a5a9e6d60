/* SPDX-License-Identifier: MIT */
/* Finds the stand-in, sets up a program's environment, runs it. The user's environment stays as it
 * is: everything is passed to the child alone and written to a folder of its own. */
#include "dryrun_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dryrun_ranks.h"
#include "dryrun_signal.h"

/* ---- the folder of the stand-in ---- */

static bool has_standin(const char *folder)
{
    char path[DRYRUN_PATH_MAX];
    return snprintf(path, sizeof path, "%s/libcuda.so.1", folder) < (int)sizeof path &&
           access(path, R_OK) == 0;
}

bool dryrun_find_standin(char *out, size_t size)
{
    static const char *const places[] = {"standin", "../lib/allot/standin",
                                         "../lib/x86_64-linux-gnu/allot/standin"};
    const char *const told = getenv("ALLOT_STANDIN_DIR");
    if (told != NULL) {
        return snprintf(out, size, "%s", told) < (int)size && has_standin(out);
    }
    char self[DRYRUN_PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        return false;
    }
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[2 * DRYRUN_PATH_MAX];
        char real[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        if (realpath(path, real) != NULL && has_standin(real)) {
            return snprintf(out, size, "%s", real) < (int)size;
        }
    }
    return false;
}

/* ---- the child ---- */

/** Set a variable to `value`, followed by what it was before, separated by a colon. */
static bool put_in_front(const char *name, const char *value)
{
    const char *const before = getenv(name);
    if (before == NULL || before[0] == '\0') {
        return setenv(name, value, 1) == 0;
    }
    const size_t size = strlen(value) + strlen(before) + 2;
    char *const both = malloc(size);
    if (both == NULL) {
        return false;
    }
    snprintf(both, size, "%s:%s", value, before);
    const bool is_set = setenv(name, both, 1) == 0;
    free(both);
    return is_set;
}

/** Append to a text that has room for `size`; false if it is full. */
static bool append(char *text, size_t size, const char *prefix, const char *value)
{
    const size_t length = strlen(text);
    return (size_t)snprintf(text + length, size - length, "%s%s", prefix, value) < size - length;
}

/** Append the entries of the table that are set. */
static bool append_workspaces(const allot_workspaces *table, char *text, size_t size)
{
    bool is_put = true;
    for (unsigned i = 0; i < ALLOT_WORKSPACE_COUNT && is_put; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, "%s=%llu", allot_workspace_name((allot_workspace)i),
                 (unsigned long long)table->size[i]);
        is_put = !table->is_set[i] || append(text, size, ",workspace:", entry);
    }
    return is_put;
}

static bool put_settings(const dryrun_request *request, const char *folder)
{
    char text[3 * DRYRUN_PATH_MAX];
    int length = snprintf(text, sizeof text,
                          "%s:%s,devices:%u,events:%s,strict:%d,ranks:%s,report:%s/standin",
                          request->profile[0] != '\0' ? "profile" : "gpu",
                          request->profile[0] != '\0' ? request->profile : request->gpu.id,
                          request->gpus, request->events, request->is_strict ? 1 : 0,
                          request->world != 0 ? "alone" : "real", folder);
    if (length > 0 && request->limit != 0) {
        length += snprintf(text + length, sizeof text - (size_t)length, ",limit:%llu",
                           (unsigned long long)request->limit);
    }
    bool is_put = length > 0 && (size_t)length < sizeof text &&
                  append_workspaces(&request->workspaces, text, sizeof text);
    if (is_put && request->cudnn != NULL) {
        is_put = append(text, sizeof text,
                        ",oracle:", request->cudnn[0] == '\0' ? "libcudnn.so.9" : request->cudnn);
    }
    for (size_t i = 0; is_put && request->booleans != NULL && request->booleans[i] != NULL; i++) {
        is_put = append(text, sizeof text, ",booleans:", request->booleans[i]);
    }
    if (is_put && request->settings != NULL) {
        is_put = append(text, sizeof text, ",", request->settings);
    }
    return is_put && setenv("ALLOT_STANDIN", text, 1) == 0;
}

/** Which rank plays alone: the Python side tells it what torchrun would. */
static bool put_rank(const dryrun_request *request)
{
    char text[32];
    snprintf(text, sizeof text, "%u/%u", request->rank, request->world);
    return request->world == 0 ? unsetenv("ALLOT_DRYRUN_ALONE") == 0
                               : setenv("ALLOT_DRYRUN_ALONE", text, 1) == 0 &&
                                     setenv("MASTER_ADDR", "127.0.0.1", 1) == 0 &&
                                     setenv("MASTER_PORT", "29500", 1) == 0;
}

/** PyTorch reads the first name up to 2.8, either from 2.9 on. */
static bool put_conf(const char *conf)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    bool is_put = true;
    for (size_t i = 0; conf != NULL && i < sizeof names / sizeof names[0]; i++) {
        is_put = is_put && (conf[0] == '\0' ? unsetenv(names[i]) : setenv(names[i], conf, 1)) == 0;
    }
    return is_put;
}

/** No progress line where the output goes to a file. */
static bool put_progress(const dryrun_request *request)
{
    const bool is_shown = !request->is_quiet && isatty(STDERR_FILENO) != 0;
    return setenv("ALLOT_DRYRUN_PROGRESS", is_shown ? "1" : "0", 1) == 0;
}

static bool put_environment(const dryrun_request *request, const char *standin, const char *folder)
{
    char both[2 * DRYRUN_PATH_MAX + 64];
    char python[DRYRUN_PATH_MAX + 16];
    char steps[32];
    snprintf(both, sizeof both, "%s/libcuda.so.1:%s/libnvidia-ml.so.1", standin, standin);
    snprintf(python, sizeof python, "%s/python", standin);
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)request->steps);
    return put_in_front("LD_PRELOAD", both) && put_in_front("LD_LIBRARY_PATH", standin) &&
           put_in_front("PYTHONPATH", python) && setenv("ALLOT_DRYRUN", folder, 1) == 0 &&
           setenv("ALLOT_DRYRUN_STEPS", steps, 1) == 0 && put_progress(request) &&
           put_conf(request->conf) && put_rank(request) && put_settings(request, folder);
}

/** Let the output of a quiet program go to a file; its input is read again from its beginning. */
static bool redirect(const char *path)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (lseek(STDIN_FILENO, 0, SEEK_SET) != 0) {
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void)dup2(nothing, STDIN_FILENO);
    }
    return file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

/** Become the program, or tell the parent through `failure` why that was not possible. */
static void run_child(const dryrun_request *request, const char *standin,
                      const dryrun_result *result, int failure)
{
    if (put_environment(request, standin, result->folder) &&
        (!request->keeps_stdout || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) &&
        (result->output[0] == '\0' || redirect(result->output))) {
        execvp(request->command[0], request->command);
    }
    const int error = errno;
    (void)!write(failure, &error, sizeof error);
    _exit(1);
}

/** What kept the program from starting, 0 if it started: the pipe closes with the exec. */
static int read_failure(int pipe_end)
{
    int error = 0;
    return read(pipe_end, &error, sizeof error) == (ssize_t)sizeof error ? error : 0;
}

/** It stays a zombie, whose number nobody else gets, until no signal is passed on to it. */
static bool wait_for(pid_t child, int *status)
{
    siginfo_t ended;
    while (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    dryrun_signal_end();
    return waitpid(child, status, 0) == child;
}

static void print_failure(const char *command, int error)
{
    const size_t length = strlen(command);
    fprintf(stderr, "allot: %s: %s\n", command, strerror(error));
    if (length > 3 && strcmp(command + length - 3, ".py") == 0) {
        fprintf(stderr, "allot: a Python script is run by Python: allot dryrun -- python %s\n",
                command);
    }
}

/** Where folders are made. The program may change its own, so the path must be a whole one. */
static const char *parent_folder(void)
{
    const char *const parent = getenv("TMPDIR");
    return parent != NULL && parent[0] == '/' ? parent : "/tmp";
}

static bool make_folder(char *out, size_t size)
{
    return snprintf(out, size, "%s/allot-dryrun-XXXXXX", parent_folder()) < (int)size &&
           mkdtemp(out) != NULL;
}

/** Paths are passed on in lists: some characters would split them. */
static bool are_places_sound(const char *standin)
{
    if (strpbrk(standin, " \t\n:") != NULL) {
        fprintf(stderr,
                "allot: %s: the path of the stand-in may have no blank and no colon, at which "
                "LD_PRELOAD is split; let ALLOT_STANDIN_DIR name a link to it\n",
                standin);
        return false;
    }
    if (strchr(parent_folder(), ',') != NULL) {
        fprintf(stderr, "allot: TMPDIR=%s: a path without a comma is needed\n", parent_folder());
        return false;
    }
    return true;
}

cli_exit dryrun_run(const dryrun_request *request, dryrun_result *out)
{
    char standin[DRYRUN_PATH_MAX];
    *out = (dryrun_result){0};
    if (!dryrun_find_standin(standin, sizeof standin)) {
        fputs(ALLOT_HAS_STANDIN != 0
                  ? "allot: the stand-in for CUDA is not where it was built or installed; "
                    "ALLOT_STANDIN_DIR names its folder\n"
                  : "allot: built without the stand-in for CUDA, which needs Linux on x86-64; make "
                    "the run there with --record FILE, all other verbs read that file here\n",
              stderr);
        return CLI_FAILED;
    }
    if (!are_places_sound(standin)) {
        return CLI_FAILED;
    }
    if (!make_folder(out->folder, sizeof out->folder)) {
        fprintf(stderr, "allot: a temporary folder: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    if (request->is_quiet) {
        snprintf(out->output, sizeof out->output, "%.4000s/output", out->folder);
    }
    int failure[2];
    if (pipe(failure) != 0 || fcntl(failure[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(failure[1], F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "allot: a pipe: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    fflush(NULL);
    const pid_t child = dryrun_signal_fork();
    if (child == 0) {
        run_child(request, standin, out, failure[1]);
    }
    int status = 0;
    close(failure[1]);
    const int error = child > 0 ? read_failure(failure[0]) : errno;
    close(failure[0]);
    const bool has_ended = child > 0 && wait_for(child, &status);
    if (!has_ended || error != 0) {
        print_failure(request->command[0], error != 0 ? error : errno);
        return error != 0 && child > 0 ? CLI_USAGE : CLI_FAILED;
    }
    out->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    dryrun_read_ranks(request, out, child);
    return CLI_OK;
}

void dryrun_clean(const dryrun_result *result)
{
    DIR *const folder = result->folder[0] == '\0' ? NULL : opendir(result->folder);
    if (folder == NULL) {
        return;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    closedir(folder);
    (void)rmdir(result->folder);
}
