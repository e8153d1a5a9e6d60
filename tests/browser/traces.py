# SPDX-License-Identifier: MIT
"""Makes PyTorch snapshots for the browser tests, opcode by opcode, so that a million events take
neither the memory nor the time of a million dicts."""

import array
import random
import struct

MIB = 1 << 20
BASE = 0x7F00_0000_0000


class Writer:
    """Writes a pickle; strings and lists of frames are written once and then referred to."""

    def __init__(self, file):
        self.file = file
        self.memo = {}
        file.write(b"\x80\x04")

    def integer(self, value):
        if 0 <= value < 1 << 31:
            self.file.write(b"J" + struct.pack("<i", value))
        else:
            self.file.write(b"\x8a\x08" + struct.pack("<q", value))

    def string(self, text):
        if text in self.memo:
            self.file.write(b"j" + struct.pack("<I", self.memo[text]))
            return
        data = text.encode()
        self.file.write(b"X" + struct.pack("<I", len(data)) + data + b"\x94")
        self.memo[text] = len(self.memo)

    def frames(self, key, frames):
        """frames: [(name, file, line)]."""
        if key in self.memo:
            self.file.write(b"j" + struct.pack("<I", self.memo[key]))
            return
        self.file.write(b"](")
        for name, filename, line in frames:
            self.dict(name=name, filename=filename, line=line)
        self.file.write(b"e\x94")
        self.memo[key] = len(self.memo)

    def begin(self):
        self.file.write(b"}(")

    def end(self):
        self.file.write(b"u")

    def items(self, values):
        for name, value in values.items():
            self.string(name)
            if isinstance(value, bool):
                self.file.write(b"\x88" if value else b"\x89")
            elif isinstance(value, int):
                self.integer(value)
            else:
                self.string(value)

    def dict(self, **values):
        self.begin()
        self.items(values)
        self.end()


def snapshot(path, events, segments):
    """events: iterable of (dict, frames key or None, frames); segments: [(dict, [block dict])]."""
    with open(path, "wb") as file:
        out = Writer(file)
        out.begin()
        out.string("device_traces")
        file.write(b"](](")
        for values, key, frames in events:
            out.begin()
            out.items(values)
            if key is not None:
                out.string("frames")
                out.frames(key, frames)
            out.end()
        file.write(b"ee")
        out.string("segments")
        file.write(b"](")
        for values, blocks in segments:
            out.begin()
            out.items(values)
            out.string("blocks")
            file.write(b"](")
            for block in blocks:
                out.dict(**block)
            file.write(b"e")
            out.end()
        file.write(b"e")
        out.end()
        file.write(b".")


def large_snapshot(path, event_count, seed=1):
    """A training-like rhythm of `event_count` events: slots of fixed sizes, taken and given
    back in waves, by 200 stacks of 12 frames.

    Returns the bytes in use after each event."""
    rng = random.Random(seed)
    # Block size, segment size and number of segments. Blocks of up to 1 MiB lie in segments of
    # 2 MiB, and no free range is as small as the rests that PyTorch leaves to a block.
    kinds = [(512, 2 * MIB, 2), (4096, 2 * MIB, 4), (65536, 2 * MIB, 16), (MIB, 2 * MIB, 64),
             (4 * MIB, 32 * MIB, 16), (32 * MIB, 256 * MIB, 12)]  # fmt: skip
    sizes = [kind[0] for kind in kinds]
    slots, segments, address = [], [], BASE
    for size, total, count in kinds:
        slots.append([address + n * total + at for n in range(count) for at in range(0, total, size)])
        segments += [(address + n * total, total) for n in range(count)]
        address += count * total
    stacks = [
        [(f"op_{s}", f"/app/model/layer_{s % 20}.py", 10 + s)]
        + [(f"call_{d}", f"/usr/lib/python3/dist-packages/torch/nn/module_{d}.py", d) for d in range(10)]
        + [("main", "/app/train.py", 7)]
        for s in range(200)
    ]

    totals = array.array("Q")

    def events():
        time, made, live, total = 1_700_000_000_000_000, 0, [], 0
        for start, size in segments:
            yield dict(action="segment_alloc", addr=start, size=size, stream=0, time_us=time), None, None
            made += 1
            totals.append(0)
        while made + 3 <= event_count:
            wave = (made // 20000) % 2 == 0
            time += rng.randint(1, 40)
            if live and rng.random() > (0.62 if wave else 0.38):
                at = rng.randrange(len(live))
                live[at], live[-1] = live[-1], live[at]
                kind, addr, stack = live.pop()
                slots[kind].append(addr)
                for action in ("free_requested", "free_completed"):
                    yield dict(action=action, addr=addr, size=sizes[kind], stream=0, time_us=time), stack, stacks[stack]
                total -= sizes[kind]
                totals.extend((total + sizes[kind], total))
                made += 2
            else:
                kind = min(int(rng.expovariate(0.7)), len(sizes) - 1)
                if not slots[kind]:
                    continue
                addr, stack = slots[kind].pop(), rng.randrange(200)
                live.append((kind, addr, stack))
                yield dict(action="alloc", addr=addr, size=sizes[kind], stream=0, time_us=time), stack, stacks[stack]
                total += sizes[kind]
                totals.append(total)
                made += 1

    snapshot(path, events(), [])
    return totals


def hostile_snapshot(path, payload):
    """A trace in which every name is `payload`."""
    frames = [(payload, payload + ".py", 3), (payload, "/app/" + payload, 4)]
    start = BASE

    def event(action, addr, size):
        values = dict(action=action, addr=addr, size=size, stream=0, time_us=1_700_000_000_000_000)
        return values, 0 if action == "alloc" else None, frames

    events = [event("segment_alloc", start, 20 * MIB)]
    events += [event("alloc", start + n * MIB, MIB) for n in range(8)]
    snapshot(path, events, [])
