# SPDX-License-Identifier: MIT
"""The progress line of a dry run on a terminal.

The program writes to the same terminal. Its own writes take the line away first, and the line is
drawn only where the cursor stands at the beginning of one: a bar that the program draws itself, or
a prompt, stays as it is.
"""

import sys
import threading

INTERVAL_S = 1
ERASE = "\r\033[K"


class Progress:
    """Draws `text()` on standard error about once a second until end()."""

    def __init__(self, text):
        self.text = text
        self.lock = threading.RLock()
        self.is_drawn = False
        self.is_line_begun = False
        self.is_over = threading.Event()
        self.write_error = sys.stderr.write
        for stream in (sys.stdout, sys.stderr):
            if stream.isatty():
                stream.write = self.make_write(stream)
        threading.Thread(target=self.draw_until_end, daemon=True).start()

    def make_write(self, stream):
        write = stream.write

        def write_alone(text):
            with self.lock:
                self.erase()
                if text:
                    self.is_line_begun = not text.endswith("\n")
                return write(text)

        return write_alone

    def erase(self):
        if self.is_drawn:
            self.is_drawn = False
            self.write_error(ERASE)
            sys.stderr.flush()

    def draw(self):
        with self.lock:
            if not self.is_line_begun and not self.is_over.is_set():
                self.is_drawn = True
                self.write_error(ERASE + self.text())
                sys.stderr.flush()

    def draw_until_end(self):
        while not self.is_over.wait(INTERVAL_S):
            self.draw()

    def end(self):
        with self.lock:
            self.is_over.set()
            self.erase()
