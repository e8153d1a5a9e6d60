/* SPDX-License-Identifier: MIT */
#include "dryrun_hint.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dryrun_words.h"

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
        say(hints, "a loop waits for a value that a dry run does not compute: %s",
            result->boolean_line_count == 0
                ? "limit the loop in the script"
                : "--booleans LINE=flip:N answers every N-th of its questions with true");
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

/** Lines from a read to where the program fails because of it. */
enum { LINES_APART = 5 };

/** How many lines before `place`, "train.py:42 (main)", a read at `line` was; UINT64_MAX: not near.
 */
static uint64_t lines_before(const char *line, const char *place)
{
    const char *const at = strrchr(line, ':');
    const char *const end = strstr(place, " (");
    const char *place_at = end == NULL ? place + strlen(place) : end;
    while (place_at > place && *place_at != ':') {
        place_at--;
    }
    const size_t length = (size_t)(place_at - place);
    const size_t have = at == NULL ? 0 : (size_t)(at - line);
    if (length == 0 || have < length || strncmp(at - length, place, length) != 0 ||
        (have > length && line[have - length - 1] != '/')) {
        return UINT64_MAX;
    }
    const uint64_t read = strtoull(at + 1, NULL, 10);
    const uint64_t failed = strtoull(place_at + 1, NULL, 10);
    return read <= failed && failed - read <= LINES_APART ? failed - read : UINT64_MAX;
}

/** The read that is nearest before the failure, NULL if none is near. */
static const char *nearest(const dryrun_count *lines, uint32_t count, const char *place)
{
    const char *found = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t distance = lines_before(lines[i].name, place);
        if (distance < least) {
            least = distance;
            found = lines[i].name;
        }
    }
    return found;
}

/** The program may have failed because of what a dry run answered. */
static void say_answered(const dryrun_result *result, dryrun_hints *hints)
{
    const char *const place = result->exception_line;
    const bool is_raised = result->exception[0] != '\0';
    const char *const question =
        is_raised ? nearest(result->boolean_lines, result->boolean_line_count, place)
                  : result->last_question;
    if (question != NULL && question[0] != '\0') {
        const char *const line = dryrun_near_line(question);
        say(hints,
            "%s read a boolean that a dry run does not compute%s: --booleans %s=true or =false "
            "answers it",
            line, is_raised ? "" : ", the last before the end", line);
        return;
    }
    const char *number = nearest(result->value_lines, result->value_line_count, place);
    number = number != NULL ? number : nearest(result->size_lines, result->size_line_count, place);
    if (number != NULL) {
        say(hints,
            "%s read a number that a dry run does not compute: 0; no option answers it, the "
            "script has to go on without",
            dryrun_near_line(number));
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
        if (result->exit_code < 128) {
            say_answered(result, hints);
        }
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
