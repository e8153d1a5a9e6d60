# SPDX-License-Identifier: MIT
"""PyTorch snapshots: what the library reads is what Python reads from the same file.

Python's side is an unpickler that allows no globals, so it can hold plain data only.
"""

import functools
import gzip
import io
import json
import os
import pathlib
import pickle
import random
import resource
import subprocess
import sys

import pytest

from conftest import IS_INSTRUMENTED, ROOT

sys.path.insert(0, str(ROOT / "bench"))
from make_snapshot import Snapshot, Writer  # noqa: E402

SNAPSHOTS = """a1_legacy_history_oom a2_state_only_368seg a3_trace_with_snapshot_events
a4_segment_free_churn_4dev a5_state_16gib_kv a6_cpp_frames_small a7_cpp_frames_segment_free
a8_complete_history_train a9_complete_history_small a10_windows_paths_user_metadata
a11_expandable_forward a12_expandable_two_gpus_conf a13_list_pool_id_no_free_requested
a14_state_tiny a15_1423_segments_45gib d1_expandable_map_unmap_one_gpu.derived""".split()
ORACLES = """classic_fraction classic_pools classic_roomy classic_streams_tight classic_tight
expandable_maxsplit_gc expandable_pools expandable_roomy expandable_round expandable_streams_tight
expandable_tight finetune_11gib_oom finetune_80gib finetune_expandable_11gib gc06 gc08_maxsplit
maxsplit128_round maxsplit64 round4 round_list""".split()

FX = ("fx_node_op", "fx_node_name", "fx_node_target", "fx_original_trace")
STATES = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2, "active_awaiting_free": 2}


class PlainUnpickler(pickle.Unpickler):
    """Plain data only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def load(data):
    return PlainUnpickler(io.BytesIO(data)).load()


def dump_library(path):
    """Lines of dump_trace, or its message."""
    program = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build/dev")) / "tests/dump_trace"
    result = subprocess.run([program, path], capture_output=True, check=False, timeout=300)
    assert result.returncode in (0, 3), result.stderr.decode()
    if result.returncode == 3:
        return result.stderr.decode().strip()
    return result.stdout.decode(errors="replace").split("\n")[:-1]


@functools.lru_cache(maxsize=None)
def text(value):
    if value is None:
        return " null"
    out = "".join(f"\\u{ord(c):04x}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in value)
    return f' "{out}"'


def pool(value):
    return " -" if value is None else f" {value[0]},{value[1]}"


def stack(frames):
    if frames is None:
        return " -"
    out = [f" stack {len(frames)}"]
    for f in frames:
        out.append(f"{text(f['name'])}{text(f['filename'])} {f.get('line', 0)}")
        if len(f) > 3:
            fx = [f.get(key) for key in FX]
            if any(value is not None for value in fx):
                out.append(" fx" + "".join(text(value) for value in fx))
    return "".join(out)


def time_ns(us):
    return " -" if us is None else f" {us * 1000}"


def category(value, names):
    if isinstance(value, int):
        value = names[value] if value < len(names) else None
    known = ("input", "temporary", "activation", "gradient", "autograd_detail", "parameter",
             "optimizer_state")
    return value.lower() if value is not None and value.lower() in known else "unknown"


class Dump:
    """The lines that dump_trace prints, from the objects that Python has read."""

    def __init__(self, snapshot):
        if isinstance(snapshot, list):
            snapshot = {"segments": snapshot}
        self.names = snapshot.get("categories", [])
        self.devices = []
        self.segments = {}
        self.events = {}
        for memory, traces, segments in ((0, "device_traces", "segments"),
                                         (1, "host_traces", "host_segments")):
            for i, trace in enumerate(snapshot.get(traces, [])):
                self.events[self.device(memory, i)] = trace
            for segment in snapshot.get(segments, []):
                device = self.device(memory, segment.get("device", 0))
                self.segments.setdefault(device, []).append(segment)
        annotations = snapshot.get("external_annotations", [])
        for a in annotations:
            if a.get("device", -1) >= 0:
                self.device(0, a["device"])
        self.lines = [f"device {memory} {index}" for memory, index in self.devices]
        for device, _ in enumerate(self.devices):
            self.lines += [self.event(device, e) for e in self.events.get(device, [])]
        for device in sorted(self.segments):
            for segment in sorted(self.segments[device], key=lambda s: s["address"]):
                self.add_segment(device, segment)
        self.add_settings("", snapshot.get("allocator_settings", {}))
        self.lines += [f"annotation {a['stage']}{text(a['name'])}{time_ns(a.get('time_us'))}"
                       for a in annotations if a["stage"] in ("START", "END")]

    def device(self, memory, index):
        if (memory, index) not in self.devices:
            self.devices.append((memory, index))
        return self.devices.index((memory, index))

    def event(self, device, e):
        addr = e.get("addr", e.get("device_free", 0))
        return (f"event {device} {e['action']} {addr} {e.get('size', 0)} {e.get('stream', 0) % 2**64}"
                f"{time_ns(e.get('time_us'))}{pool(e.get('pool_id'))}{text(e.get('compile_context'))}"
                f"{text(e.get('user_metadata'))} {category(e.get('category'), self.names)}"
                f"{stack(e.get('frames'))}")

    def add_segment(self, device, s):
        blocks = []
        address = s["address"]
        requested = 0
        for b in s["blocks"]:
            address = b.get("address", address)
            history = b.get("history")
            first = history[0] if history else {}
            size = first.get("real_size", b.get("requested_size", 0 if history is not None else b["size"]))
            frames = first.get("frames") if history else b.get("frames")
            requested += size if b["state"] != "inactive" else 0
            blocks.append(f"block {address} {b['size']} {size} {STATES[b['state']]}"
                          f" {category(b.get('category'), self.names)}{text(b.get('compile_context'))}"
                          f"{text(b.get('user_metadata'))}{stack(frames)}")
            address += b["size"]
        self.lines.append(
            f"segment {device} {s['address']} {s['total_size']} {s.get('allocated_size', 0)}"
            f" {s.get('active_size', 0)} {s.get('requested_size', requested)} {s.get('stream', 0) % 2**64}"
            f" {s.get('segment_type', 'large')} {'expandable' if s.get('is_expandable') else 'fixed'}"
            f"{pool(s.get('segment_pool_id'))}{stack(s.get('frames'))}")
        self.lines += blocks

    def add_settings(self, prefix, settings):
        for key, value in settings.items():
            if isinstance(value, dict):
                self.add_settings(f"{prefix}{key}.", value)
            elif isinstance(value, bool):
                self.lines.append(f"setting{text(prefix + key)} {str(value).lower()}")
            elif isinstance(value, float):
                self.lines.append(f"setting{text(prefix + key)} {value.hex()}")
            elif isinstance(value, int):
                self.lines.append(f"setting{text(prefix + key)} {value}")
            else:
                self.lines.append(f"setting{text(prefix + key)}{text(value)}")


def same(path, snapshot):
    ours = dump_library(path)
    assert isinstance(ours, list), ours
    theirs = Dump(snapshot).lines
    normal = [normal_float(line) for line in ours]
    for a, b in zip(normal, theirs):
        assert a == b
    assert len(normal) == len(theirs)


def normal_float(line):
    """C prints 0x0p+0 where Python prints 0x0.0p+0."""
    word = line.rsplit(" ", 1)[-1]
    if line.startswith("setting") and word.lstrip("-").startswith("0x"):
        return line[: -len(word)] + float.fromhex(word).hex()
    return line


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_recorded_snapshot_is_read_as_python_reads_it(data, name):
    path = data(f"snapshots/{name}.pickle")
    same(path, load(path.read_bytes()))


@pytest.mark.parametrize("name", ORACLES)
def test_compressed_snapshot_is_read_as_python_reads_it(data, name):
    path = data(f"oracle/{name}.pickle.gz")
    same(path, load(gzip.decompress(path.read_bytes())))


def pickle_like_cpp(snapshot):
    """Protocol 2 with one batch for each list and dict, however long: BINPUT, no MEMOIZE."""
    out = io.BytesIO()

    class Pickler(pickle._Pickler):
        _BATCHSIZE = 1 << 40

    Pickler(out, 2).dump(snapshot)
    return out.getvalue()


WAYS = {
    "protocol_2": lambda s: pickle.dumps(s, 2),
    "protocol_3": lambda s: pickle.dumps(s, 3),
    "protocol_4": lambda s: pickle.dumps(s, 4),
    "protocol_5": lambda s: pickle.dumps(s, 5),
    "one_batch": pickle_like_cpp,
    "no_memo": lambda s: __import__("pickletools").optimize(pickle.dumps(s, 4)),
    "gzip": lambda s: gzip.compress(pickle.dumps(s, 4)),
    "json": lambda s: json.dumps(s).encode(),
    "json_indented": lambda s: json.dumps(s, indent=1, ensure_ascii=False).encode(),
    "json_gzip": lambda s: gzip.compress(json.dumps(s).encode()),
}


def frames(rng):
    return [{"name": f"f{rng.randrange(9)}", "filename": f"/srv/app/m{rng.randrange(4)}.py",
             "line": rng.randrange(300)} for _ in range(rng.randrange(6))]


def random_snapshot(seed):
    """Everything that a snapshot can hold, of every age, by chance."""
    rng = random.Random(seed)
    shared = [frames(rng) for _ in range(5)]
    shared.append([{"name": "forward", "filename": "<eval_with_key>.0", "line": 5,
                    "fx_node_op": "call_module", "fx_node_name": "linear"}])
    big = rng.choice([0, 1 << 63])
    actions = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
               "segment_map", "segment_unmap", "snapshot", "oom", "user_defined"]

    def entry():
        action = rng.choice(actions)
        e = {"action": action, "device_free" if action == "oom" else "addr": big + rng.randrange(1 << 48),
             "size": rng.randrange(1 << rng.randrange(1, 40)), "stream": rng.choice([0, 7, 1 << 47])}
        optional = {"time_us": rng.randrange(1 << 51), "frames": rng.choice(shared),
                    "compile_context": rng.choice(["N/A", "0/1"]), "user_metadata": rng.choice(["", "é\n\"x"]),
                    "pool_id": rng.choice([(0, 0), (0, 3)]),
                    "category": rng.choice([0, 1, 2, "PARAMETER", "optimizer_state"]), "later": [1, {"x": None}]}
        e.update({k: v for k, v in optional.items() if rng.random() < 0.7})
        items = list(e.items())
        rng.shuffle(items)
        return dict(items)

    def segment(device, address):
        blocks = [{"address": address + i * 512, "size": 512, "requested_size": rng.randrange(513),
                   "state": rng.choice(list(STATES)), "frames": frames(rng)}
                  for i in range(rng.randrange(1, 6))]
        if rng.random() < 0.3:
            blocks = [{"size": 512, "state": "active_allocated",
                       "history": [{"addr": address, "real_size": 500, "frames": frames(rng)}]}]
        s = {"device": device, "address": address, "total_size": len(blocks) * 512,
             "allocated_size": 512, "active_size": 512, "stream": 0,
             "segment_type": rng.choice(["large", "small"]), "blocks": blocks}
        if rng.random() < 0.6:
            s.update(requested_size=400, segment_pool_id=rng.choice([(0, 0), (1, 2), [0, 5]]),
                     is_expandable=rng.random() < 0.5, frames=frames(rng))
        return s

    out = {"segments": [segment(rng.randrange(3), big + (i << 21)) for i in range(rng.randrange(8))],
           "device_traces": [[entry() for _ in range(rng.choice([0, 1, 3, 40, 1001]))] for _ in range(3)],
           "categories": ["input", "gradient", "no such thing"],
           "allocator_settings": {"a": -1, "b": 0.25, "c": True, "d": "x:y", "e": None,
                                  "nested": {"1": 0, "256": 4}},
           "external_annotations": [{"stage": s, "name": "Optimizer.step", "device": 0, "time_us": 5}
                                    for s in ("START", "END")],
           "other": [{"size": 1}, "text", {}],
           "host_segments": [segment(0, i << 21) for i in range(rng.randrange(2))],
           "host_traces": [[entry() for _ in range(rng.randrange(4))]]}
    items = list(out.items())
    rng.shuffle(items)
    return dict(items)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_random_snapshot_is_read_the_same_however_it_was_written(tmp_path, way, seed):
    snapshot = random_snapshot(seed)
    path = tmp_path / "snapshot"
    path.write_bytes(WAYS[way](snapshot))
    same(path, snapshot)


def test_bare_list_of_segments_is_read(tmp_path):
    segments = random_snapshot(2)["segments"]
    for way in ("protocol_4", "one_batch", "json"):
        path = tmp_path / way
        path.write_bytes(WAYS[way](segments))
        same(path, segments)


def test_generated_snapshot_is_what_python_would_write(tmp_path):
    out = io.BytesIO()
    Snapshot(Writer(out), 6000, 40, 300, 1).write()
    written = out.getvalue()
    snapshot = load(written)
    assert len(written) == len(pickle.dumps(snapshot, 4))
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(written)
    same(path, snapshot)


@pytest.mark.parametrize("seed", range(3))
def test_what_both_accept_after_bits_were_flipped_is_the_same(tmp_path, seed):
    """Either the library refuses the file, or it reads what Python reads."""
    rng = random.Random(seed)
    good = pickle.dumps(random_snapshot(seed + 10), 4)
    path = tmp_path / "snapshot.pickle"
    for _ in range(40):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        ours = dump_library(path)
        if not isinstance(ours, list):
            assert "byte " in ours
            continue
        try:
            snapshot = load(bytes(bad))
        except Exception:  # Python is stricter in places: text that is no UTF-8.
            continue
        assert [normal_float(line) for line in ours] == Dump(snapshot).lines


def distinct_texts(count):
    return b"".join(b"\x8c\x03" + bytes((33 + i % 90, 33 + i // 90 % 90, 33 + i // 8100)) for i in range(count))


HOSTILE = {
    "lists": b"]", "lists_in_memo": b"]\x94", "dicts_in_memo": b"}\x94", "values": b"N", "lists_of_one": b"]Na",
    "lists_of_two": b"](NNe", "dicts_of_one": b"}NNs", "tuples": b"N\x85", "tuples_in_tuples": b"\x85", "lists_in_lists": b"]]a", "tuples_in_memo": b"NN\x86\x94",
    "floats": b"G\x3f\xf0\0\0\0\0\0\0", "wide_integers": b"\x8a\x09\0\0\0\0\0\0\0\x80\0", "empty_texts": b"\x8c\0\x94",
    "frames_head": b"2", "pushed_and_popped": b"N0", "marks": b"(1",
}


@pytest.mark.skipif(IS_INSTRUMENTED, reason="instrumentation takes memory of its own")
@pytest.mark.parametrize("name", [*HOSTILE, "texts", "lists_in_list", "one_slot_at_the_end"])
def test_hostile_file_takes_a_small_multiple_of_its_size(tmp_path, name):
    size = 4 << 20
    if name == "texts":
        body = distinct_texts(size // 5)
    elif name == "lists_in_list":
        body = b"](" + b"]" * size + b"e"
    elif name == "one_slot_at_the_end":
        body = b"N0" * (size // 2) + b"Nr" + (size - 10).to_bytes(4, "little")
    else:
        body = b"N" + HOSTILE[name] * (size // len(HOSTILE[name]))
    path = tmp_path / "hostile.pickle"
    path.write_bytes(b"\x80\x04" + body + b".")
    program = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build/dev")) / "tests/dump_trace"
    limit = 70 * size + (64 << 20)  # a tuple in a tuple, one byte, is the worst: 64 bytes
    result = subprocess.run([program, path], capture_output=True, check=False, timeout=60,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert result.returncode == 3
    assert b"byte " in result.stderr
