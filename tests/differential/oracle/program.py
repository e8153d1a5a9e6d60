# SPDX-License-Identifier: MIT
"""Random programs for an allocator: what they are, how they are made, how they are made smaller.

A program is a dict (JSON): `conf` (settings), `limit` (bytes of each device), `devices`, `fraction`
(0: none), `events` ("instant" or "sync"), `streams` (how many beside the default one) and `ops`:

  ["a", id, size, stream, device]      allocate; stream 0 is the default one
  ["f", id]                            free
  ["r", id, stream]                    record_stream
  ["e"]                                empty_cache
  ["s"]                                synchronize every device
  ["z"]                                begin all peaks again (reset_peak_memory_stats)
  ["pn", pool, device, on_oom, whole]  a new MemPool (use_on_oom, no_split)
  ["pb", pool] ["pe", pool]            begin and end use_mem_pool
  ["pd", pool]                         drop the MemPool
  ["gb", graph, stream, shared]        begin to capture; `shared`: a graph whose pool is used, or -1
  ["ge", graph] ["gd", graph]          end the capture, drop the graph
"""

import random

MIB = 1 << 20

# Settings by the first release that knows them, each with the values that are tried.
SETTINGS = {
    "max_split_size_mb": (200, ["20", "21", "32", "64", "128", "256", "512"]),
    "max_non_split_rounding_mb": (206, ["20", "21", "32", "64", "128"]),
    "garbage_collection_threshold": (200, ["0.2", "0.5", "0.6", "0.8", "0.9", "0.95"]),
    "expandable_segments": (202, ["True", "True", "True", "False"]),
    "roundup_power2_divisions": (
        200,
        ["1", "2", "4", "8", "16", "64", "[256:1,512:2,1024:4,>:8]", "[1:2,8:4,64:8,>:16]", "[32:4,>:1]", "[>:4]"],
    ),
    "release_lock_on_cudamalloc": (202, ["True"]),
    "graph_capture_record_stream_reuse": (209, ["True"]),
    "per_process_memory_fraction": (210, ["0.3", "0.5", "0.9", "1.0"]),
    "large_segment_size_mb": (211, ["12", "20", "22", "40", "64", "100"]),
    "throw_on_cudamalloc_oom": (212, ["True"]),
    "pinned_use_cuda_host_register": (203, ["True"]),
    "pinned_num_register_threads": (203, ["8"]),
    "pinned_use_background_threads": (207, ["True"]),
    "pinned_reserve_segment_size_mb": (211, ["64"]),
    "expandable_segments_reserve": (215, ["0.25", "0.5", "2.0", "1024mb", "9000mb"]),
}

# What a program does beside allocating and freeing; drawn independently.
FEATURES = ("streams", "pools", "graphs", "empty", "sync", "fraction", "devices", "resets")


def _size(draw):
    kind = draw.random()
    for share, low, high in (
        (0.30, 1, 4096), (0.55, 4096, MIB), (0.60, MIB - 1024, MIB + 1024), (0.85, MIB, 24 * MIB),
        (0.97, 24 * MIB, 256 * MIB),
    ):  # fmt: skip
        if kind < share:
            return draw.randint(low, high)
    return draw.randint(256 * MIB, 1024 * MIB)


# Up to this release a largest split has to be above the size of a segment, not at least that.
LAST_ABOVE_SEGMENT = 209

# In this release the order in which frees complete together, that of a hash table, decides which of
# the merged blocks counts as the older one.
BLOCKS_HAVE_AGE = 212

# Up to this release use_mem_pool() on one device also kept the others from releasing their caches.
LAST_POOL_CONTEXT = 207


LIMITS = [80000, 40000, 16000, 8000, 7000, 5000, 3000, 2000, 1000]  # MiB


def conf(draw, version, keys):
    """A random settings string with these keys."""
    chosen = {}
    for key, (since, values) in SETTINGS.items():
        if version >= since and key in keys:
            chosen[key] = draw.choice(values)
    # PyTorch refuses a largest split and a rounding below the size of a segment.
    least = int(chosen.get("large_segment_size_mb", "20")) + (version <= LAST_ABOVE_SEGMENT)
    for key in ("max_split_size_mb", "max_non_split_rounding_mb"):
        if key in chosen and int(chosen[key]) < least:
            chosen[key] = str(least)
    return ",".join(f"{key}:{value}" for key, value in chosen.items())


class _Writer:
    """Draws one operation after the other and knows what is live."""

    def __init__(self, draw, program, features):
        self.draw, self.program, self.features = draw, program, features
        self.ops = program["ops"]
        self.live = []
        self.next_id = 0
        self.pools, self.graphs = {}, {}
        self.next_pool = self.next_graph = 0
        self.region = None
        self.capture = None
        self.sizes = [_size(draw) for _ in range(40)]

    def stream(self):
        return self.draw.randint(0, self.program["streams"])

    def alloc(self):
        draw = self.draw
        size = draw.choice(self.sizes) if draw.random() < 0.7 else _size(draw)
        device = draw.randrange(self.program["devices"])
        stream = self.stream()
        if self.capture is not None and draw.random() < 0.7:
            stream, device = self.graphs[self.capture], 0
        self.ops.append(["a", self.next_id, size, stream, device])
        self.live.append((self.next_id, device))
        self.next_id += 1

    def free(self):
        name, device = self.live.pop(self.draw.randrange(len(self.live)))
        if "streams" in self.features and self.draw.random() < 0.2:
            self.ops.append(["r", name, self.stream()])
        self.ops.append(["f", name])

    def pool_step(self):
        draw = self.draw
        if self.region is not None:
            if draw.random() < 0.3:
                self.ops.append(["pe", self.region])
                self.region = None
        elif len(self.pools) < 5 and draw.random() < 0.3:
            device = draw.randrange(self.program["devices"])
            on_oom = self.program["version"] >= 209 and draw.random() < 0.4
            whole = self.program["version"] >= 210 and draw.random() < 0.3
            self.ops.append(["pn", self.next_pool, device, int(on_oom), int(whole)])
            self.pools[self.next_pool] = device
            self.next_pool += 1
        elif self.pools and self.capture is None and draw.random() < 0.15:
            pool = draw.choice(list(self.pools))
            self.ops.append(["pd", pool])
            del self.pools[pool]
        elif self.pools and self.capture is None:
            self.region = draw.choice(list(self.pools))
            self.ops.append(["pb", self.region])

    def graph_step(self):
        draw = self.draw
        if self.capture is not None:
            if draw.random() < 0.3:
                self.ops.append(["ge", self.capture])
                self.capture = None
        elif self.graphs and draw.random() < 0.3:
            graph = draw.choice(list(self.graphs))
            self.ops.append(["gd", graph])
            del self.graphs[graph]
        elif self.region is None and len(self.graphs) < 4:
            shared = draw.choice(list(self.graphs)) if self.graphs and draw.random() < 0.4 else -1
            stream = draw.randint(1, self.program["streams"])
            self.ops.append(["gb", self.next_graph, stream, shared])
            self.graphs[self.next_graph] = stream
            self.capture = self.next_graph
            self.next_graph += 1

    def step(self, grows):
        draw = self.draw
        if draw.random() < grows or not self.live:
            self.alloc()
        else:
            self.free()
        if "pools" in self.features and draw.random() < 0.05:
            self.pool_step()
        if "graphs" in self.features and draw.random() < 0.05:
            self.graph_step()
        if "resets" in self.features and draw.random() < 0.002:
            self.ops.append(["z"])
        if self.capture is None:
            if "empty" in self.features and draw.random() < 0.005:
                self.ops.append(["e"])
            if "sync" in self.features and draw.random() < 0.02:
                self.ops.append(["s"])


def generate(seed, version, count, features=None, keys=None):
    """A program; the same arguments give the same one."""
    draw = random.Random(f"{seed}/{version}/{count}")
    if keys is None:
        known = [key for key, (since, _) in SETTINGS.items() if version >= since]
        keys = draw.sample(known, draw.choice([0, 1, 1, 2, 2, 2, 3, 4]))
    if features is None:
        features = {name for name in FEATURES if draw.random() < 0.35}
    if version <= LAST_POOL_CONTEXT and "pools" in features:
        features = features - {"devices"}
        if version == LAST_POOL_CONTEXT:
            keys = [key for key in keys if key != "expandable_segments"]  # MemPool refuses
    if "garbage_collection_threshold" in keys and draw.random() < 0.8:
        features = features | {"fraction"}
    has_uses = "streams" in features and version != BLOCKS_HAVE_AGE
    program = {
        "seed": seed,
        "version": version,
        "conf": conf(draw, version, keys),
        "limit": draw.choice(LIMITS) * MIB,
        "devices": draw.choice([2, 3]) if "devices" in features else 1,
        "fraction": draw.choice([0.3, 0.5, 0.7, 0.9, 0.95, 1.0]) if "fraction" in features else 0,
        "events": "sync" if "sync" in features and not features & {"pools", "graphs"} else "instant",
        "streams": 3 if "streams" in features else (1 if "graphs" in features else 0),
        "addresses": draw.choice(["reuse", "upward"]),
        "ops": [],
    }
    writer = _Writer(draw, program, features if has_uses else features - {"streams"})
    for i in range(count):
        writer.step(0.52 if (i // 1000) % 2 == 0 else 0.47)
    program["ops"] = tidy(program["ops"])
    return program


def tidy(ops):
    """Without the operations that have lost what they refer to, so that any subset is a program."""
    live, pools, graphs = set(), set(), set()
    region = capture = None
    out = []
    for op in ops:
        kind = op[0]
        if kind == "a":
            live.add(op[1])
        elif kind == "f":
            if op[1] not in live:
                continue
            live.discard(op[1])
        elif kind == "r":
            if op[1] not in live:
                continue
        elif kind == "pn":
            pools.add(op[1])
        elif kind == "pd":
            if op[1] not in pools or region == op[1] or capture is not None:
                continue
            pools.discard(op[1])
        elif kind == "pb":
            if op[1] not in pools or region is not None or capture is not None:
                continue
            region = op[1]
        elif kind == "pe":
            if region != op[1]:
                continue
            region = None
        elif kind == "gb":
            if region is not None or capture is not None:
                continue
            if op[3] not in graphs:
                op = [*op[:3], -1]
            graphs.add(op[1])
            capture = op[1]
        elif kind == "ge":
            if capture != op[1]:
                continue
            capture = None
        elif kind == "gd":
            if op[1] not in graphs or capture == op[1]:
                continue
            graphs.discard(op[1])
        elif capture is not None and kind != "z":
            continue
        out.append(op)
    if region is not None:
        out.append(["pe", region])
    if capture is not None:
        out.append(["ge", capture])
    return out


def shrink(program, fails, budget=400, tidy=tidy):
    """The smallest program found for which `fails` holds; tries at most `budget` programs."""
    tries = 0

    def attempt(candidate):
        nonlocal tries
        tries += 1
        return tries <= budget and fails(candidate)

    def with_ops(ops):
        return {**program, "ops": tidy(ops)}

    chunk = max(1, len(program["ops"]) // 2)
    while chunk >= 1 and tries < budget:
        start, progress = 0, False
        while start < len(program["ops"]) and tries < budget:
            ops = program["ops"]
            candidate = with_ops(ops[:start] + ops[start + chunk :])
            if len(candidate["ops"]) < len(ops) and attempt(candidate):
                program, progress = candidate, True
            else:
                start += chunk
        if not progress or chunk > 1:
            chunk //= 2
    parts = [part for part in split_conf(program["conf"])]
    for part in list(parts):
        fewer = [p for p in parts if p != part]
        candidate = {**program, "conf": ",".join(fewer)}
        if attempt(candidate):
            program, parts = candidate, fewer
    for key, value in (("fraction", 0), ("devices", 1), ("events", "instant")):
        if program[key] != value and attempt({**program, key: value}):
            program = {**program, key: value}
    return program


def split_conf(conf):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(conf):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(conf[start:i])
            start = i + 1
    return parts + [conf[start:]] if conf else []
