/* SPDX-License-Identifier: MIT */
/* Stacks folded to lines of code. */
#include <allot/explain.h>
#include <stdio.h>

#include "support/check.h"
#include "support/trace_maker.h"

/* Text of the line that one stack of frames folds to; static. */
static const char *fold(const maker_frame *frames, uint32_t count,
                        const allot_lines_options *options, allot_line_kind *kind)
{
    static char text[256];
    trace_maker m = maker_begin();
    maker_stack(&m, frames, count);
    maker_alloc(&m, MAKER_BASE, 512);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_lines *lines = NULL;
    text[0] = '\0';
    if (CHECK_OK(allot_lines_create(trace, options, &lines))) {
        const uint32_t line = allot_lines_of(lines, 0);
        *kind = allot_lines_get(lines, line)->kind;
        snprintf(text, sizeof text, "%s", allot_lines_text(lines, line));
    }
    allot_lines_destroy(lines);
    maker_end(history, trace);
    return text;
}

#define FOLD(frames, kind) fold(frames, sizeof(frames) / sizeof((frames)[0]), NULL, kind)

static const maker_frame LINEAR = {
    "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "forward", 134};
static const maker_frame UNWIND = {"??", "torch::unwind::unwind()", 0};
static const maker_frame GATHER = {"??", "torch::CapturedTraceback::gather(bool, bool, bool)", 0};
static const maker_frame EMPTY = {"EmptyTensor.cpp", "at::detail::empty_cuda(c10::ArrayRef<long>)",
                                  0};

static void the_innermost_line_of_the_user_is_taken(void)
{
    const maker_frame frames[] = {
        LINEAR, {"/app/model.py", "forward", 41}, LINEAR, {"/app/train.py", "main", 88}};
    allot_line_kind kind = ALLOT_LINE_NONE;
    CHECK_STR(FOLD(frames, &kind), "model.py:41 (forward)");
    CHECK_EQ(kind, ALLOT_LINE_USER);
}

static void cpp_frames_and_unwinders_are_folded_away(void)
{
    const maker_frame frames[] = {UNWIND, GATHER, EMPTY, LINEAR, {"/app/train.py", "main", 7}};
    allot_line_kind kind = ALLOT_LINE_NONE;
    CHECK_STR(FOLD(frames, &kind), "train.py:7 (main)");
}

static void libraries_are_told_by_their_folders(void)
{
    static const char *const LIBRARY[] = {
        "/usr/lib/python3/dist-packages/torch/tensor.py",
        "/usr/lib/python3.11/threading.py",
        "/src/pytorch/torch/nn/modules/module.py",
        "/src/pytorch/torch/_tensor.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        "<eval_with_key>.5",
        "/tmp/torchinductor_me/ab/cab.py",
        "C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python311\\Lib\\threading.py",
        "C:\\proj\\.venv\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
        "C:\\ProgramData\\Anaconda3\\lib\\runpy.py"};
    static const char *const USER[] = {"/home/me/torch/train.py",
                                       "/tmp/ipykernel_4711/123.py",
                                       "<ipython-input-3-abc>",
                                       "<stdin>",
                                       "C:\\code\\lib\\train.py",
                                       "/project/lib/model.py",
                                       "train"};
    allot_line_kind kind = ALLOT_LINE_NONE;
    for (size_t i = 0; i < sizeof LIBRARY / sizeof LIBRARY[0]; i++) {
        const maker_frame frames[] = {{LIBRARY[i], "f", 1}};
        FOLD(frames, &kind);
        if (!CHECK_EQ(kind, ALLOT_LINE_LIBRARY)) {
            printf("%s\n", LIBRARY[i]);
        }
    }
    for (size_t i = 0; i < sizeof USER / sizeof USER[0]; i++) {
        const maker_frame frames[] = {{USER[i], "f", 1}};
        FOLD(frames, &kind);
        if (!CHECK_EQ(kind, ALLOT_LINE_USER)) {
            printf("%s\n", USER[i]);
        }
    }
}

static void without_a_line_of_the_user_the_innermost_python_frame_is_taken(void)
{
    const maker_frame frames[] = {EMPTY, LINEAR};
    allot_line_kind kind = ALLOT_LINE_NONE;
    CHECK_STR(FOLD(frames, &kind), "torch/nn/modules/linear.py:134 (forward)");
    CHECK_EQ(kind, ALLOT_LINE_LIBRARY);
}

static void a_stack_of_cpp_frames_names_the_backward_node(void)
{
    const maker_frame frames[] = {
        UNWIND,
        EMPTY,
        {"??", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", 0},
        {"thread48.o", "execute_native_thread_routine", 0}};
    allot_line_kind kind = ALLOT_LINE_NONE;
    CHECK_STR(FOLD(frames, &kind), "torch::autograd::generated::MmBackward0::apply (C++)");
    CHECK_EQ(kind, ALLOT_LINE_NATIVE);
}

static void an_empty_stack_and_no_stack_are_told_apart(void)
{
    allot_line_kind kind = ALLOT_LINE_NONE;
    fold(NULL, 0, NULL, &kind);
    CHECK_EQ(kind, ALLOT_LINE_EMPTY);
    trace_maker m = maker_begin();
    maker_alloc(&m, MAKER_BASE, 512);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_lines *lines = NULL;
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    const uint32_t line = allot_lines_of(lines, ALLOT_NONE);
    CHECK_EQ(allot_lines_get(lines, line)->kind, ALLOT_LINE_NONE);
    CHECK_STR(allot_lines_text(lines, line), "(no stack recorded)");
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void own_prefixes_make_installed_code_the_users(void)
{
    const char *const prefixes[] = {"/opt/venv/lib/python3.11/site-packages/mine"};
    const allot_lines_options options = {
        .struct_size = sizeof options, .own_prefixes = prefixes, .own_prefix_count = 1};
    const maker_frame frames[] = {
        LINEAR, {"/opt/venv/lib/python3.11/site-packages/mine/net.py", "forward", 3}};
    allot_line_kind kind = ALLOT_LINE_NONE;
    CHECK_STR(fold(frames, 2, &options, &kind), "mine/net.py:3 (forward)");
    CHECK_EQ(kind, ALLOT_LINE_USER);
}

static void files_of_one_name_are_told_apart_by_their_folders(void)
{
    static const char *const PATHS[] = {"/a/x/model.py", "/b/x/model.py", "/a/train.py"};
    static const char *const TEXTS[] = {"a/x/model.py:1 (f)", "b/x/model.py:1 (f)",
                                        "train.py:1 (f)"};
    trace_maker m = maker_begin();
    for (uint32_t i = 0; i < 3; i++) {
        const maker_frame frame = {PATHS[i], "f", 1};
        maker_stack(&m, &frame, 1);
        maker_alloc(&m, MAKER_BASE + i * UINT64_C(512), 512);
    }
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_lines *lines = NULL;
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_STR(allot_lines_text(lines, allot_lines_of(lines, i)), TEXTS[i]);
    }
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static const check_test TESTS[] = {
    {"the_innermost_line_of_the_user_is_taken", the_innermost_line_of_the_user_is_taken},
    {"cpp_frames_and_unwinders_are_folded_away", cpp_frames_and_unwinders_are_folded_away},
    {"libraries_are_told_by_their_folders", libraries_are_told_by_their_folders},
    {"without_a_line_of_the_user_the_innermost_python_frame_is_taken",
     without_a_line_of_the_user_the_innermost_python_frame_is_taken},
    {"a_stack_of_cpp_frames_names_the_backward_node",
     a_stack_of_cpp_frames_names_the_backward_node},
    {"an_empty_stack_and_no_stack_are_told_apart", an_empty_stack_and_no_stack_are_told_apart},
    {"own_prefixes_make_installed_code_the_users", own_prefixes_make_installed_code_the_users},
    {"files_of_one_name_are_told_apart_by_their_folders",
     files_of_one_name_are_told_apart_by_their_folders},
};

CHECK_MAIN(TESTS)
