/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_STANDIN_PYTHON_H
#define ALLOTI_STANDIN_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/** Whether this process runs Python. */
bool python_is_here(void);

/**
 * Write "file.py:line" of the Python code that runs on this thread, "" if there is none. Takes
 * Python's own lock: never call it while holding one of ours.
 */
void python_line(char *buffer, size_t size);

/**
 * Whether this thread's stack has a frame at a line: "train.py:42" is line 42 of any file whose
 * path ends so. Takes Python's own lock, too.
 */
bool python_is_at(const char *line);

#endif /* ALLOTI_STANDIN_PYTHON_H */
