/* SPDX-License-Identifier: MIT */
/*
 * Paths are compared with '/' for '\' and without regard to case, so that Windows and its
 * capitals need no rules of their own.
 */
#include "advise/stack_facts.h"

#include <ctype.h>
#include <string.h>

/* Of a longer path or name only the beginning is looked at: a stranger's file may use one name of a
 * megabyte in every frame. */
enum { HEAD_MAX = 1024 };

static char fold(char c)
{
    return c == '\\' ? '/' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether `text` begins with `part` (lower case, '/'). */
static bool begins_with(const char *text, const char *part)
{
    while (*part != '\0' && fold(*text) == *part) {
        text++;
        part++;
    }
    return *part == '\0';
}

static const char *find(const char *text, const char *part)
{
    for (size_t i = 0; i < HEAD_MAX && text[i] != '\0'; i++) {
        if (begins_with(text + i, part)) {
            return text + i;
        }
    }
    return NULL;
}

static bool ends_with(const char *text, size_t length, const char *part)
{
    const size_t tail = strlen(part);
    return length >= tail && begins_with(text + length - tail, part);
}

static bool has_any(const char *text, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (find(text, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_any(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Python frames always have a line. */
static bool is_native(const char *path, size_t length, uint32_t line)
{
    static const char *const ENDS[] = {".cpp", ".cc",  ".c",  ".cxx", ".cu", ".cuh",
                                       ".h",   ".hpp", ".so", ".dll", ".s"};
    if (line == 0 || path[0] == '\0' || strcmp(path, "??") == 0 || find(path, ".so.") != NULL) {
        return true;
    }
    for (size_t i = 0; i < COUNT(ENDS); i++) {
        if (ends_with(path, length, ENDS[i])) {
            return true;
        }
    }
    return false;
}

/* Python's own library: ".../lib/python3.11/x.py", "...\Python311\Lib\x.py", "...\conda\Lib\x.py".
 */
static bool is_standard_library(const char *path)
{
    const char *const unix_lib = find(path, "/lib/python");
    if (unix_lib != NULL && isdigit((unsigned char)unix_lib[sizeof "/lib/python" - 1])) {
        return true;
    }
    const char *const python = find(path, "/python3");
    const char *const conda = find(path, "conda");
    return (python != NULL && find(python, "/lib/") != NULL) ||
           (conda != NULL && find(conda, "/lib/") != NULL);
}

static bool is_library_path(const char *path)
{
    static const char *const FOLDERS[] = {
        "/site-packages/",      "/dist-packages/",  "/torch/nn/",        "/torch/optim/",
        "/torch/autograd/",     "/torch/utils/",    "/torch/_dynamo/",   "/torch/_inductor/",
        "/torch/cuda/",         "/torch/amp/",      "/torch/_functorch", "/torch/distributed/",
        "/torch/fx/",           "/torch/jit/",      "/torch/_tensor.py", "/torch/_ops.py",
        "/torch/functional.py", "/torch/_library/", "torchinductor_"};
    if (path[0] == '<') {
        return !begins_with(path, "<ipython") && !begins_with(path, "<stdin");
    }
    return has_any(path, FOLDERS, COUNT(FOLDERS)) || is_standard_library(path);
}

static alloti_frame_owner owner_of_native(const char *name)
{
    static const char *const PARTS[] = {
        "unwind::",         "capturedtraceback",    "gather_with_cpp",
        "cachingallocator", "cudacachingallocator", "recordtrace",
        "get_stack_trace"};
    if (has_any(name, PARTS, COUNT(PARTS))) {
        return ALLOTI_FRAME_UNWINDER;
    }
    return find(name, "backward") != NULL && find(name, "::apply") != NULL ? ALLOTI_FRAME_BACKWARD
                                                                           : ALLOTI_FRAME_NATIVE;
}

static bool is_own(const char *path, const allot_lines_options *options)
{
    for (size_t i = 0; i < options->own_prefix_count; i++) {
        const char *const prefix = options->own_prefixes[i];
        if (strncmp(path, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

alloti_frame_owner alloti_frame_owner_of(const allot_trace *trace, uint32_t frame,
                                         const allot_lines_options *options)
{
    const allot_frame *const f = allot_trace_frame(trace, frame);
    size_t length = 0;
    const char *const path = allot_trace_string(trace, f->filename, &length);
    if (is_native(path, length, f->line)) {
        return owner_of_native(allot_trace_string(trace, f->name, NULL));
    }
    return is_library_path(path) && !is_own(path, options) ? ALLOTI_FRAME_LIBRARY
                                                           : ALLOTI_FRAME_USER;
}

static unsigned facts_of_native(const char *name)
{
    static const char *const BACKWARD[] = {"autograd::engine", "autograd::graph_task",
                                           "autograd::node::operator", "thread_main"};
    unsigned facts = 0;
    if (has_any(name, BACKWARD, COUNT(BACKWARD))) {
        facts |= ALLOTI_STACK_IN_BACKWARD;
    }
    if (find(name, "workspace") != NULL) {
        facts |= ALLOTI_STACK_IS_WORKSPACE;
    }
    return facts;
}

static unsigned facts_of_python(const char *path, const char *name)
{
    static const char *const OPTIMIZERS[] = {"/optim/",      "/optimizers/", "/optimizer/",
                                             "optimizer.py", "/adamw.py",    "/adam.py"};
    static const char *const BACKWARD_NAMES[] = {"backward", "_engine_run_backward", "_make_grads"};
    static const char *const BACKWARD_PATHS[] = {"/_tensor.py", "/autograd/"};
    static const char *const FORWARD_NAMES[] = {"forward", "_call_impl", "_wrapped_call_impl"};
    static const char *const MODULE_NAMES[] = {"_apply",
                                               "from_pretrained",
                                               "load_state_dict",
                                               "_load_from_state_dict",
                                               "reset_parameters",
                                               "to_empty",
                                               "_load_pretrained_model",
                                               "load_model",
                                               "set_module_tensor_to_device",
                                               "replicate"};
    static const char *const DATA_NAMES[] = {
        "_prepare_input",      "_prepare_inputs", "send_to_device",
        "move_data_to_device", "pin_memory",      "collate_fn",
        "batch_to_device",     "_move_to_device", "scatter"};
    unsigned facts = ALLOTI_STACK_HAS_PYTHON;
    if (has_any(path, OPTIMIZERS, COUNT(OPTIMIZERS)) && find(path, "scheduler") == NULL) {
        facts |= ALLOTI_STACK_IN_OPTIMIZER;
    }
    if (is_any(name, BACKWARD_NAMES, COUNT(BACKWARD_NAMES)) &&
        has_any(path, BACKWARD_PATHS, COUNT(BACKWARD_PATHS))) {
        facts |= ALLOTI_STACK_IN_BACKWARD;
    }
    if (is_any(name, FORWARD_NAMES, COUNT(FORWARD_NAMES))) {
        facts |= ALLOTI_STACK_IN_FORWARD;
    }
    const bool builds_module = strcmp(name, "__init__") == 0 && find(path, "/nn/modules/") != NULL;
    if (builds_module || is_any(name, MODULE_NAMES, COUNT(MODULE_NAMES))) {
        facts |= ALLOTI_STACK_MOVES_MODULE;
    }
    if (is_any(name, DATA_NAMES, COUNT(DATA_NAMES)) || find(path, "/utils/data/") != NULL) {
        facts |= ALLOTI_STACK_MOVES_DATA;
    }
    return facts;
}

uint8_t alloti_frame_facts(const allot_trace *trace, uint32_t frame)
{
    const allot_frame *const f = allot_trace_frame(trace, frame);
    size_t length = 0;
    const char *const path = allot_trace_string(trace, f->filename, &length);
    const char *const name = allot_trace_string(trace, f->name, NULL);
    if (is_native(path, length, f->line)) {
        return (uint8_t)facts_of_native(name);
    }
    const unsigned plain = is_library_path(path) ? 0 : ALLOTI_STACK_IS_PLAIN;
    return (uint8_t)(facts_of_python(path, name) | plain);
}

uint8_t alloti_stack_facts(const allot_trace *trace, uint32_t stack, const uint8_t *frame_facts)
{
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(trace, stack, &count);
    unsigned facts = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* Only the first Python frame tells whether the stack is plain. */
        const unsigned mask = (facts & ALLOTI_STACK_HAS_PYTHON) != 0 ? ALLOTI_STACK_IS_PLAIN : 0;
        facts |= frame_facts[frames[i]] & ~mask;
    }
    return (uint8_t)facts;
}
