# SPDX-License-Identifier: MIT
"""What `allot replay --model torch:SETTINGS` says of a run against the run itself.

A random program runs on PyTorch under settings A. Its snapshot is replayed under settings B, another
limit and another fraction. Then the program runs on PyTorch under those, and every figure of the
replay must be the run's.

The second run is the same program as far as a snapshot can tell:

- A request that failed under A is made (with its rounded size, which is all that is recorded) and
  given back at once: what the program would have done with it is unknown.
- A request that throw_on_cudamalloc_oom refused leaves no event; it is left out.
- An empty_cache() that found nothing to give under A leaves no event; it is left out.
- An empty_cache() right before a request that takes more than was ever held looks like pressure: a
  free stands behind each here.
- When a graph or a MemPool is dropped is seen only by what it gives back: none is dropped here. Nor
  does a snapshot show use_on_oom, no_split where it made no difference, or when a use on another stream would have ended in the other run:
  the device has always finished here.
- Up to 2.11 the lower address wins where sizes are equal, and the driver decides on addresses: it gives
  each address once here, as the replay does.
"""

import json
import os
import pickle
import random
import subprocess

import program as programs

# Figures of the replay and the statistics of torch.cuda.memory_stats() that they must equal.
FIGURES = {
    "reserved_peak": ("reserved_bytes.all.peak",),
    "allocated_peak": ("allocated_bytes.all.peak",),
    "active_peak": ("active_bytes.all.peak",),
    "requested_peak": ("requested_bytes.all.peak",),
    "reserved_end": ("reserved_bytes.all.current",),
    "allocated_end": ("allocated_bytes.all.current",),
    "allocations": ("allocation.all.allocated",),
    "driver_allocs": ("num_device_alloc",),
    "driver_frees": ("num_device_free",),
    "retries": ("num_alloc_retries",),
    "oom_count": ("num_ooms", "num_oom_rejections"),
}

# Settings of a recording under which memory is given back for another reason than pressure.
GIVES_EARLY = "garbage_collection_threshold"


def generate(seed, version, count):
    """A program under A; `other` says what B is."""
    draw = random.Random(f"pair/{seed}/{version}/{count}")
    features = {name for name in programs.FEATURES if draw.random() < 0.4} - {"sync"}
    if "empty" in features:
        features -= {"devices"}
    if version < SHOWS_POOLS:
        features -= {"pools", "graphs"}
    program = programs.generate(seed, version, count, features, _keys(draw, version) - {GIVES_EARLY})
    program["ops"] = tidy(_plain(program["ops"]))
    if version < programs.BLOCKS_HAVE_AGE:
        program["addresses"] = "upward"
    program["other"] = {
        "conf": programs.conf(draw, version, _keys(draw, version)),
        "limit": draw.choice(programs.LIMITS) * programs.MIB,
        "fraction": draw.choice([0, 0, 0.3, 0.5, 0.9]),
    }
    return program


def tidy(ops):
    """programs.tidy(), and each empty_cache() has a free behind it."""
    ops = programs.tidy(ops)
    return [op for i, op in enumerate(ops) if op[0] != "e" or (i + 1 < len(ops) and ops[i + 1][0] == "f")]


# Before, events do not name their pools (2.11), or a capture, which no event shows, also changes what
# requests to the default pool may release (2.12).
SHOWS_POOLS = 213


def _keys(draw, version):
    known = [key for key, (since, _) in programs.SETTINGS.items() if version >= since]
    return set(draw.sample(known, draw.choice([0, 1, 1, 2, 2, 3])))


# Names of blocks that stand for what a program frees after an empty_cache().
FIRST_GUARD = 10**6


def _plain(ops):
    """Without what a snapshot does not show; behind each empty_cache() a free."""
    count = sum(op[0] == "e" for op in ops)
    yield from (["a", FIRST_GUARD + i, 1, 0, 0] for i in range(count))
    guards = iter(range(FIRST_GUARD, FIRST_GUARD + count))
    for op in ops:
        if op[0] not in ("pd", "gd", "z"):
            yield [*op[:3], 0, 0] if op[0] == "pn" else op
        if op[0] == "e":
            yield ["f", next(guards)]


def second_run(program, first):
    """The program as the snapshot of its first run shows it, under B."""
    sizes = [[e["size"] for e in trace if e["action"] == "oom"] for trace in first["snapshot"]["device_traces"]]
    failed, ops, empties = first["failed"], [], iter(first["empties"])
    for op in program["ops"]:
        kind = op[0]
        if kind == "a" and failed.get(op[1]) == "oom":
            ops += [["a", op[1], sizes[op[4]].pop(0), op[3], op[4]], ["f", op[1]]]
        elif kind == "e":
            ops += [op] if next(empties) else []
        elif kind not in "afr" or op[1] not in failed:
            ops.append(op)
    return {**program, **program["other"], "ops": ops}


def replay(allot, snapshot, other, device, folder):
    """The figures of `allot replay` for one device."""
    path = os.path.join(folder, "recorded.pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    command = [
        allot, "replay", "--json", "--continue", "--device", str(device), "--limit", str(other["limit"]),
        "--model", "torch:" + other["conf"],
    ]  # fmt: skip
    if other["fraction"]:
        command += ["--fraction", str(other["fraction"])]
    done = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["replays"][0]


def difference(torch, allot, program, folder):
    """What differs, None if nothing does."""
    first = torch.run(program)
    if isinstance(first, str):
        return "cannot run: " + first
    second = torch.run(second_run(program, first))
    if isinstance(second, str):
        return "cannot run: " + second
    for device in range(program["devices"]):
        if not any(e["action"] == "alloc" for e in first["snapshot"]["device_traces"][device]):
            continue
        try:
            figures = replay(allot, first["snapshot"], program["other"], device, folder)
        except RuntimeError as error:
            return f"device {device}: allot replay: {error}"
        for name, keys in FIGURES.items():
            theirs = sum(second["stats"][device].get(key, 0) for key in keys)
            if figures[name] != theirs:
                return f"device {device}: {name}: PyTorch {theirs}, replay {figures[name]}"
    return None
