# SPDX-License-Identifier: MIT
"""Snapshots of made-up programs, for replays: what was asked for, in one segment large enough."""

import pickle

MIB = 1 << 20
BASE = 0x7F0000000000


def round_up(size, step):
    return -(-size // step) * step


class Program:
    """A history under construction. Addresses rise and are never used again."""

    def __init__(self):
        self.trace = []
        self.live = {}
        self.end = BASE

    def _add(self, action, address, size, stream):
        self.trace.append({"action": action, "addr": address, "size": size, "stream": stream})

    def alloc(self, name, size, stream=0):
        self._add("alloc", self.end, size, stream)
        self.live[name] = (self.end, size, stream)
        self.end += round_up(size, 512)

    def free(self, *names):
        for name in names:
            block = self.live.pop(name)
            self._add("free_requested", *block)
            self._add("free_completed", *block)

    def free_later(self, name):
        """Free a block that another stream still uses; returns what completes it."""
        block = self.live[name]
        self._add("free_requested", *block)

        def complete():
            self._add("free_completed", *block)
            del self.live[name]

        return complete

    def write(self, path):
        end = round_up(self.end, 2 * MIB)
        blocks, at = [], BASE
        for address, size, _ in sorted(self.live.values()):
            if address > at:
                blocks.append({"address": at, "size": address - at, "requested_size": 0,
                               "state": "inactive"})
            at = address + round_up(size, 512)
            blocks.append({"address": address, "size": at - address, "requested_size": size,
                           "state": "active_allocated"})
        if at < end:
            blocks.append({"address": at, "size": end - at, "requested_size": 0,
                           "state": "inactive"})
        segment = {"device": 0, "address": BASE, "total_size": end - BASE, "stream": 0,
                   "allocated_size": 0, "active_size": 0, "segment_type": "large",
                   "blocks": blocks}
        first = {"action": "segment_alloc", "addr": BASE, "size": end - BASE, "stream": 0}
        snapshot = {"segments": [segment], "device_traces": [[first, *self.trace]]}
        path.write_bytes(pickle.dumps(snapshot))
        return path


def training(layers, iterations):
    """A program that allocates as training of a transformer does: activations kept until the
    backward pass, temporaries, gradients, batches of varying length."""
    program, alloc, free = Program(), None, None
    alloc, free = program.alloc, program.free
    for layer in range(layers):
        for n, size in enumerate((4 * MIB, 12 * MIB, 16 * MIB, 16 * MIB, 8192, 8192, 12288)):
            alloc(("weight", layer, n), size)
    for i in range(iterations):
        tokens = (24 + i * 5 % 17) * (160 + i * 37 % 97) * 8
        for layer in range(layers):
            alloc(("a0", layer), 256 * tokens)
            alloc("t1", 768 * tokens)
            alloc(("a1", layer), 64 * tokens)
            free("t1")
            alloc(("a2", layer), 512 * tokens)
        alloc("g", 256 * tokens)
        for layer in reversed(range(layers)):
            alloc("t2", 512 * tokens)
            free(("a2", layer))
            alloc("next", 256 * tokens)
            free("t2", ("a1", layer), ("a0", layer), "g")
            program.live["g"] = program.live.pop("next")
            alloc(("grad", layer), 16 * MIB)
        free("g", *(("grad", layer) for layer in range(layers)))
    return program
