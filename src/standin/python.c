/* SPDX-License-Identifier: MIT */
/*
 * Asks the interpreter that loaded us, if there is one, through its stable interface: found at run
 * time, so that nothing here depends on Python or on its version.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "standin/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_SIZE = 1024 };

static struct {
    int (*is_initialized)(void);
    int (*ensure)(void);
    void (*release)(int state);
    void *(*this_thread)(void);
    void *(*frame_of_thread)(void *thread);
    void *(*code_of_frame)(void *frame);
    void *(*back)(void *frame);
    int (*line_of_frame)(void *frame);
    void *(*attribute)(void *object, const char *name);
    const char *(*text)(void *object);
    void (*forget)(void *object);
    void (*clear_error)(void);
} python;

static bool is_ready;

static void find(const char *name, void *place)
{
    void *const symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(place, &symbol, sizeof symbol);
    is_ready = is_ready && symbol != NULL;
}

static void find_all(void)
{
    is_ready = true;
    find("Py_IsInitialized", &python.is_initialized);
    find("PyGILState_Ensure", &python.ensure);
    find("PyGILState_Release", &python.release);
    find("PyThreadState_Get", &python.this_thread);
    find("PyThreadState_GetFrame", &python.frame_of_thread);
    find("PyFrame_GetCode", &python.code_of_frame);
    find("PyFrame_GetBack", &python.back);
    find("PyFrame_GetLineNumber", &python.line_of_frame);
    find("PyObject_GetAttrString", &python.attribute);
    find("PyUnicode_AsUTF8", &python.text);
    find("Py_DecRef", &python.forget);
    find("PyErr_Clear", &python.clear_error);
}

bool python_is_here(void)
{
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL;
}

/** Write the place of a frame; false if it lies inside PyTorch or the recorder, whose lines say
 * nothing. */
static bool describe(void *frame, char *buffer, size_t size)
{
    void *const code = python.code_of_frame(frame);
    void *const name = code == NULL ? NULL : python.attribute(code, "co_filename");
    const char *const file = name == NULL ? NULL : python.text(name);
    if (file != NULL) {
        snprintf(buffer, size, "%s:%d", file, python.line_of_frame(frame));
    }
    const bool is_own = file != NULL && strstr(file, "site-packages/torch/") == NULL &&
                        strstr(file, "/standin/python/allot_dryrun") == NULL;
    python.forget(name);
    python.forget(code);
    return is_own;
}

static bool can_ask(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
    return is_ready && python.is_initialized();
}

/** The caller of a frame, which is let go. */
static void *leave(void *frame)
{
    void *const back = python.back(frame);
    python.forget(frame);
    return back;
}

void python_line(char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (!can_ask()) {
        return;
    }
    const int state = python.ensure();
    void *frame = python.frame_of_thread(python.this_thread());
    while (frame != NULL && !describe(frame, buffer, size)) {
        frame = leave(frame);
    }
    python.forget(frame);
    python.clear_error();
    python.release(state);
}

/** "runs/train.py:42" ends with "train.py:42", "runs/pretrain.py:42" does not. */
static bool ends_with(const char *place, const char *line)
{
    const size_t length = strlen(line);
    const size_t have = strlen(place);
    return have >= length && strcmp(place + have - length, line) == 0 &&
           (have == length || place[have - length - 1] == '/' || line[0] == '/');
}

bool python_is_at(const char *line)
{
    char place[PLACE_SIZE];
    bool is_found = false;
    if (!can_ask()) {
        return false;
    }
    const int state = python.ensure();
    void *frame = python.frame_of_thread(python.this_thread());
    while (frame != NULL && !is_found) {
        place[0] = '\0';
        (void)describe(frame, place, sizeof place);
        is_found = ends_with(place, line);
        frame = leave(frame);
    }
    python.forget(frame);
    python.clear_error();
    python.release(state);
    return is_found;
}
