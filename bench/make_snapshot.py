#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a synthetic PyTorch memory snapshot of a wanted size.

The bytes are those that Python's pickler writes with protocol 4 for such a snapshot: frame dicts
shared through the memo, one unshared list of frames for each entry, PyTorch's order of keys,
batches of 1,000, frames of 64 KiB. Each allocation gives three entries (alloc, free_requested,
free_completed). The pickle is written directly, so that 500 MiB need neither the time nor the
memory of an object for each value.

    make_snapshot.py --size 500MiB --out snapshot.pickle
"""
import argparse
import random
import re
import struct

BATCH = 1000
FRAME_TARGET = 64 * 1024
SLOT = 2 << 20
BASE = 0x7F0000000000
LIVE = 4096
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
    "expandable_segments": False, "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False,
    "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)},
}


class Writer:
    """The parts of a pickler that a snapshot needs; `memo` maps a name of ours to its slot."""

    def __init__(self, file):
        self.file = file
        self.buffer = bytearray()
        self.size = 0
        self.slots = 0
        self.memo = {}
        self.emit(b"\x80\x04", framed=False)

    def emit(self, data, framed=True):
        if not framed:
            self.file.write(data)
            self.size += len(data)
            return
        self.buffer += data

    def boundary(self, force=False):
        """End the frame here if it is long enough."""
        if len(self.buffer) >= FRAME_TARGET or (force and self.buffer):
            head = b"\x95" + struct.pack("<Q", len(self.buffer)) if len(self.buffer) >= 4 else b""
            self.emit(head + bytes(self.buffer), framed=False)
            self.buffer.clear()

    def memoize(self, name=None):
        if name is not None:
            self.memo[name] = self.slots
        self.slots += 1
        return b"\x94"

    def get(self, slot):
        return b"h" + bytes((slot,)) if slot < 256 else b"j" + struct.pack("<I", slot)

    def text(self, value):
        """Bytes that push a string: from the memo after the first time."""
        slot = self.memo.get(value)
        if slot is not None:
            return self.get(slot)
        data = value.encode()
        head = b"\x8c" + bytes((len(data),)) if len(data) < 256 else b"X" + struct.pack("<I", len(data))
        return head + data + self.memoize(value)

    def value(self, value):
        if value is None:
            return b"N"
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            if 0 <= value < 1 << 8:
                return b"K" + bytes((value,))
            if 0 <= value < 1 << 16:
                return b"M" + struct.pack("<H", value)
            if -(1 << 31) <= value < 1 << 31:
                return b"J" + struct.pack("<i", value)
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8a" + bytes((len(data),)) + data
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple):
            return self.tuple(value)
        if isinstance(value, dict):
            return self.dict(value)
        raise TypeError(type(value))

    def tuple(self, pair):
        slot = self.memo.get(pair)
        if slot is not None:
            return self.get(slot)
        return self.value(pair[0]) + self.value(pair[1]) + b"\x86" + self.memoize(pair)

    def dict(self, items, name=None):
        out = [b"}", self.memoize(name)]
        pairs = [self.text(key) + self.value(value) for key, value in items.items()] if len(
            items) > 1 else []
        if pairs:
            out += [b"(", *pairs, b"u"]
        else:
            for key, value in items.items():
                out += [self.text(key), self.value(value), b"s"]
        return b"".join(out)

    def items(self, count, write):
        """The items of a list in batches; `write(i)` emits one and ends frames."""
        done = 0
        while done < count:
            n = min(BATCH, count - done)
            if n > 1:
                self.emit(b"(")
            for i in range(done, done + n):
                write(i)
            self.emit(b"e" if n > 1 else b"a")
            done += n


class Snapshot:
    def __init__(self, writer, allocations, depth, stacks, seed):
        self.writer = writer
        self.allocations = allocations
        self.random = random.Random(seed)
        self.stacks = self.make_stacks(depth, stacks)
        self.stack_bytes = {}
        self.sizes = [self.random.randrange(256, SLOT) for _ in range(64)]
        self.time = 1_700_000_000_000_000

    def make_stacks(self, depth, count):
        """Frames as numbers, innermost first: a quarter of the levels is common to all stacks, half
        of them to every third stack, the rest differs."""
        root, middle = depth // 4, depth // 2
        stacks = []
        for i in range(count):
            inner = [1000 + (i * 7 + level * (i % 97)) % (4 * count)
                     for level in range(depth - root - middle)]
            stacks.append(inner + [100 * (i % 3 + 1) + level for level in range(middle)] +
                          list(range(root)))
        return stacks

    def frame(self, number):
        name = ("frame", number)
        slot = self.writer.memo.get(name)
        if slot is not None:
            return self.writer.get(slot)
        return self.writer.dict({"name": f"forward_{number % 401}",
                                 "filename": f"/srv/app/model/layers/block_{number % 173}.py",
                                 "line": 10 + number % 900}, name)

    def frames(self, stack):
        """A list of frames; its bytes are the same each time once all its frames are known."""
        writer = self.writer
        known = self.stack_bytes.get(stack)
        if known is None:
            out = [b"]", writer.memoize(), b"("]
            out += [self.frame(number) for number in self.stacks[stack]]
            out.append(b"e")
            known = b"]\x94(" + b"".join(
                writer.get(writer.memo[("frame", n)]) for n in self.stacks[stack]) + b"e"
            self.stack_bytes[stack] = known
            return b"".join(out)
        writer.slots += 1
        return known

    def entry(self, action, addr, size, stack):
        writer = self.writer
        self.time += 7
        out = [b"}", writer.memoize(), b"("]
        for key, value in (("action", action), ("addr", addr), ("size", size), ("stream", 0),
                           ("time_us", self.time)):
            out += [writer.text(key), writer.value(value)]
        out += [writer.text("frames"), self.frames(stack), b"u"]
        writer.emit(b"".join(out))
        writer.boundary()

    def place(self, allocation):
        slot = allocation % LIVE
        return BASE + slot * SLOT, self.sizes[allocation * 31 % len(self.sizes)]

    def trace(self):
        """alloc of n; once LIVE are held, the two entries of freeing n - LIVE come before."""
        count = len(self.stacks)
        entries = []
        for n in range(self.allocations):
            if n >= LIVE:
                addr, size = self.place(n - LIVE)
                stack = (n - LIVE) * 13 % count
                entries.append(("free_requested", addr, size, stack))
                entries.append(("free_completed", addr, size, stack))
            addr, size = self.place(n)
            entries.append(("alloc", addr, size, n * 13 % count))
            if len(entries) >= 3 * BATCH:
                yield from entries
                entries.clear()
        yield from entries

    def segments(self):
        writer = self.writer
        held = min(LIVE, self.allocations)

        def block(i):
            n = self.allocations - 1 - (self.allocations - 1 - i) % LIVE
            addr, size = self.place(n)
            writer.emit(b"".join((b"}", writer.memoize(), b"(")))
            for key, value in (("address", addr), ("size", SLOT), ("requested_size", size),
                               ("state", "active_allocated")):
                writer.emit(writer.text(key) + writer.value(value))
            writer.emit(writer.text("frames") + self.frames(n * 13 % len(self.stacks)) + b"u")
            writer.boundary()

        writer.emit(b"]" + writer.memoize() + b"}" + writer.memoize() + b"(")
        for key, value in (("device", 0), ("address", BASE), ("total_size", held * SLOT),
                           ("allocated_size", held * SLOT), ("active_size", held * SLOT),
                           ("requested_size", held * SLOT // 2), ("stream", 0),
                           ("segment_type", "large"), ("segment_pool_id", (0, 0)),
                           ("is_expandable", False)):
            writer.emit(writer.text(key) + writer.value(value))
        writer.emit(writer.text("blocks") + b"]" + writer.memoize())
        writer.items(held, block)
        writer.emit(b"ua")

    def entry_count(self):
        return self.allocations + 2 * max(0, self.allocations - LIVE)

    def write(self):
        writer = self.writer
        writer.emit(b"}" + writer.memoize() + b"(")
        writer.emit(writer.text("segments"))
        self.segments()
        writer.emit(writer.text("device_traces") + b"]" + writer.memoize() + b"]" + writer.memoize())
        entries = self.trace()
        writer.items(self.entry_count(), lambda _: self.entry(*next(entries)))
        writer.emit(b"a")
        writer.emit(writer.text("allocator_settings") + writer.dict(SETTINGS))
        writer.emit(b"u.")
        writer.boundary(force=True)


def parse_size(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|B|)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"no size: {text}")
    return int(float(match[1]) * {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[match[2]])


class Counter:
    """A file that only counts."""

    def __init__(self):
        self.size = 0

    def write(self, data):
        self.size += len(data)


def measure(allocations, args):
    counter = Counter()
    Snapshot(Writer(counter), allocations, args.frames, args.stacks, args.seed).write()
    return counter.size


def count_allocations(args):
    """Each allocation adds the same number of bytes once all stacks are known and all slots taken."""
    low = 3 * LIVE + 2 * args.stacks
    high = low + 10_000
    size_low = measure(low, args)
    per_allocation = (measure(high, args) - size_low) / (high - low)
    return max(1, int(low + (args.size - size_low) / per_allocation))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=parse_size, help="wanted size of the file, e.g. 500MiB")
    parser.add_argument("--allocations", type=int, help="number of allocations instead of a size")
    parser.add_argument("--frames", type=int, default=40, help="frames of each stack")
    parser.add_argument("--stacks", type=int, default=2000, help="different stacks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    if (args.size is None) == (args.allocations is None):
        parser.error("give either --size or --allocations")
    allocations = args.allocations if args.size is None else count_allocations(args)
    with open(args.out, "wb", buffering=1 << 20) as file:
        snapshot = Snapshot(Writer(file), allocations, args.frames, args.stacks, args.seed)
        snapshot.write()
    print(f"{args.out}: {snapshot.writer.size:,} bytes, {allocations:,} allocations, "
          f"{snapshot.entry_count():,} entries")


if __name__ == "__main__":
    main()
