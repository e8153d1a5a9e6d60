/* SPDX-License-Identifier: MIT */
#include "dryrun_hint.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/** Releases of PyTorch that the tests run with: first and last. */
enum { TESTED_FIRST = 206, TESTED_LAST = 215, RELEASE_MAJOR = 100 };

__attribute__((format(printf, 2, 3))) static void say(dryrun_hints *hints, const char *format, ...)
{
    if (hints->count < DRYRUN_HINT_MAX) {
        va_list args;
        va_start(args, format);
        vsnprintf(hints->text[hints->count++], DRYRUN_HINT_SIZE, format, args);
        va_end(args);
    }
}

static const char *interpreter(const dryrun_result *result)
{
    return result->python[0] == '\0' ? "python" : result->python;
}

/** How to get a torch that a dry run can use. */
static void say_install(const dryrun_result *result, dryrun_hints *hints)
{
    say(hints,
        "install PyPI's, a CUDA build: %s -m pip install --no-deps torch (the NVIDIA packages are "
        "not needed; torch asks for its small Python dependencies by name)",
        interpreter(result));
}

/** torch is there but not one that uses CUDA. */
static bool say_wrong_build(const dryrun_result *result, dryrun_hints *hints)
{
    if (result->torch[0] == '\0' || result->cuda[0] != '\0') {
        return false;
    }
    if (result->hip[0] != '\0') {
        say(hints, "torch %s is built for ROCm %s; a dry run stands in for CUDA alone",
            result->torch, result->hip);
    } else {
        say(hints, "torch %s is built for the CPU and never calls CUDA", result->torch);
    }
    say_install(result, hints);
    return true;
}

static void say_release(const dryrun_result *result, dryrun_hints *hints)
{
    char *point = NULL;
    const unsigned long major = strtoul(result->torch, &point, 10);
    if (major == 0 || major > RELEASE_MAJOR || *point != '.') {
        return;
    }
    const unsigned long release = RELEASE_MAJOR * major + strtoul(point + 1, NULL, 10);
    if (release < TESTED_FIRST || release > TESTED_LAST) {
        say(hints, "torch %s was not tested: dry runs are tested with 2.6 to 2.15", result->torch);
    }
}

/** Runtimes whose calls went past the stand-in. */
static void say_own_runtimes(const dryrun_result *result, dryrun_hints *hints)
{
    for (uint32_t i = 0; i < result->own_runtime_count && i < 3; i++) {
        say(hints,
            "%s has a CUDA runtime built in, which does not work here: build it with the shared "
            "one "
            "(nvcc -cudart shared; CMake: CUDA_RUNTIME_LIBRARY Shared)",
            result->own_runtimes[i].name);
    }
}

/** Of several ranks, another one than that whose report this is may have used it. */
static void say_unused_rules(const dryrun_result *result, dryrun_hints *hints)
{
    for (uint32_t i = 0; i < result->rule_count && i < 3 && result->rank_count < 2; i++) {
        if (result->rules[i].count == 0) {
            say(hints, "--booleans %s=...: no boolean was read at that line",
                result->rules[i].name);
        }
    }
}

/** Letters of Python's options that keep the recording out: of "-I", "-E", "-S", "-sE". */
static const char *isolating_option(const dryrun_request *request)
{
    const char *const slash = strrchr(request->command[0], '/');
    const char *const name = slash == NULL ? request->command[0] : slash + 1;
    if (strncmp(name, "python", strlen("python")) != 0) {
        return NULL;
    }
    for (char *const *at = request->command + 1; *at != NULL && (*at)[0] == '-'; at++) {
        if ((*at)[1] == 'c' || (*at)[1] == 'm') {
            return NULL;
        }
        if ((*at)[1] != '-' && strpbrk(*at, "IES") != NULL) {
            return *at;
        }
        at += ((*at)[1] == 'X' || (*at)[1] == 'W') && (*at)[2] == '\0' && at[1] != NULL ? 1 : 0;
    }
    return NULL;
}

/** No Python reported anything. */
static void say_unwatched(const dryrun_request *request, const dryrun_result *result,
                          dryrun_hints *hints)
{
    const char *const option = isolating_option(request);
    if (option != NULL) {
        say(hints,
            "Python was started with %s, so that it ignores PYTHONPATH or sitecustomize, through "
            "which its memory is recorded: leave the option out",
            option);
    } else if (result->is_python) {
        say(hints, "Python used CUDA unrecorded: it was started with -I, -E or -S, or a script set "
                   "PYTHONPATH without what was there (PYTHONPATH=src:$PYTHONPATH)");
    } else if (!result->has_standin) {
        say(hints, "the program used neither CUDA nor Python");
    }
}

static void say_incomplete(const dryrun_request *request, const dryrun_result *result,
                           dryrun_hints *hints)
{
    if (!result->has_process && !dryrun_is_native(result)) {
        say_unwatched(request, result, hints);
    } else if (result->has_process && !result->is_finished && !result->is_stopped) {
        say(hints, "a process ended before it could report its memory (by a signal, or by exec)");
    } else if (result->has_process && result->torch[0] == '\0') {
        say(hints, "the program never imported torch");
    } else if (!say_wrong_build(result, hints) &&
               (!result->has_standin || !result->has_peaks || result->device_peak == 0)) {
        say(hints, "the program never used CUDA: does it ask for the device \"cuda\"?");
    }
    if (result->is_stopped) {
        say(hints, "a loop waits for a value that a dry run does not compute: --booleans "
                   "LINE=flip:N answers every N-th of its questions with true");
    }
}

static void say_exit(const dryrun_result *result, dryrun_hints *hints)
{
    enum { SIGNALLED = 128, NO_COMMAND = 127 };
    if (result->exit_code == SIGNALLED + SIGKILL) {
        say(hints, "SIGKILL mostly means that the host ran out of memory: models that are made on "
                   "the CPU take real memory; make them with torch.device(\"cuda\") or \"meta\"");
    } else if (result->exit_code == NO_COMMAND) {
        say(hints, "exit code 127: a command or a function that the program is linked with was not "
                   "found, see above");
    }
    if (result->touched[0] != '\0') {
        say(hints, "%s", result->touched + (strncmp(result->touched, "allot: ", 7) == 0 ? 7 : 0));
        say(hints, "the host cannot read device memory, on a real card neither: copy with .cpu()");
    }
}

static void say_failed(const dryrun_request *request, const dryrun_result *result,
                       dryrun_hints *hints)
{
    const char *const error = result->exception;
    if (strstr(error, "No module named 'torch'") != NULL) {
        say(hints, "torch is not installed for %s", interpreter(result));
        say_install(result, hints);
    } else if (strstr(error, "undefined symbol") != NULL) {
        say(hints, "a function of CUDA that this torch needs is not in the stand-in");
    } else if (strstr(error, "No CUDA GPUs are available") != NULL) {
        say(hints,
            "CUDA_VISIBLE_DEVICES hides the cards: it chooses among those of --gpus, whose UUIDs "
            "are not those of real ones");
    } else if (strstr(error, "invalid device ordinal") != NULL) {
        say(hints,
            "the program asked for a GPU beyond the %u there %s: --gpus %u, or as many as it "
            "uses",
            request->gpus, request->gpus == 1 ? "is" : "are", request->gpus + 1);
    } else if (strstr(error, "TritonMissing") != NULL ||
               strstr(error, "No module named 'triton'") != NULL) {
        say(hints,
            "torch.compile needs triton: %s -m pip install --no-deps triton; or run it "
            "uncompiled with TORCH_COMPILE_DISABLE=1 in the environment",
            interpreter(result));
    } else {
        (void)say_wrong_build(result, hints);
    }
    say_exit(result, hints);
}

void dryrun_find_hints(const dryrun_request *request, const dryrun_result *result,
                       dryrun_verdict verdict, dryrun_hints *out)
{
    out->count = 0;
    if (verdict == DRYRUN_INCOMPLETE) {
        say_incomplete(request, result, out);
    } else if (verdict == DRYRUN_FAILED) {
        say_failed(request, result, out);
    }
    say_unused_rules(result, out);
    say_own_runtimes(result, out);
    say_release(result, out);
}
