# SPDX-License-Identifier: MIT
"""Runs programs on liballot's model of PyTorch's allocator, through its public C interface."""

import bisect
import ctypes
from ctypes import POINTER, CFUNCTYPE, Structure, byref, c_bool, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p

NONE = 0xFFFFFFFF
OK, DEVICE_MEMORY, FRAGMENTED = 0, 3, 4
KIND_COUNT = 11
FIRST_ADDRESS = 0x200000000000
LAST_ADDRESS = 1 << 62
STEP = 2 << 20
CONF_BYTES = 4096
AT_ONCE, ON_CALL = 0, 1


class Event(Structure):
    _fields_ = [
        ("kind", c_int), ("pool", c_uint32), ("address", c_uint64), ("size", c_uint64),
        ("stream", c_uint64), ("block", c_uint32), ("is_for_large", c_bool),
    ]  # fmt: skip


class Gauge(Structure):
    _fields_ = [("now", c_uint64), ("peak", c_uint64)]


class Stats(Structure):
    _fields_ = [("struct_size", c_size_t)]
    _fields_ += [(n, Gauge) for n in ("reserved", "allocated", "active", "requested", "inactive_split", "segment_count")]
    _fields_ += [
        (n, c_uint64)
        for n in (
            "alloc_count", "driver_alloc_count", "driver_free_count", "range_map_count",
            "range_unmap_count", "bytes_taken", "page_map_count", "page_unmap_count", "retry_count",
            "oom_count", "rejection_count", "sync_count", "refusal_count",
        )
    ]  # fmt: skip


TAKE = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64, POINTER(c_uint64))
GIVE = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)
MAP = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
FREE_BYTES = CFUNCTYPE(c_uint64, c_void_p)
ON_EVENT = CFUNCTYPE(None, c_void_p, POINTER(Event))


class Driver(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("context", c_void_p), ("segment_alloc", TAKE), ("segment_free", GIVE),
        ("reserve", TAKE), ("unreserve", GIVE), ("map", MAP), ("unmap", GIVE), ("free_bytes", FREE_BYTES),
    ]  # fmt: skip


class Options(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("conf", c_void_p), ("driver", POINTER(Driver)), ("limit", c_uint64),
        ("fraction", c_double), ("version", c_uint32), ("completion", c_int), ("on_event", ON_EVENT),
        ("on_event_context", c_void_p),
    ]  # fmt: skip


class PoolOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("use_on_oom", c_bool), ("no_split", c_bool), ("has_allocator", c_bool), ("is_graph", c_bool), ("number", c_uint64)]


class Library:
    def __init__(self, path):
        self.c = c = ctypes.CDLL(path)
        c.allot_error_detail.restype = ctypes.c_char_p
        c.allot_event_kind_name.restype = ctypes.c_char_p
        c.allot_torchsim_get_stats.restype = POINTER(Stats)
        c.allot_torchsim_get_stats.argtypes = [c_void_p]
        c.allot_torchsim_alloc.argtypes = [c_void_p, c_uint64, c_uint64, c_uint32, POINTER(c_uint32)]
        c.allot_torchsim_free.argtypes = [c_void_p, c_uint32]
        c.allot_torchsim_record_stream.argtypes = [c_void_p, c_uint32, c_uint64]
        c.allot_torchsim_complete.argtypes = [c_void_p, c_uint32]
        c.allot_torchsim_empty_cache.argtypes = [c_void_p]
        c.allot_torchsim_destroy.argtypes = [c_void_p]
        c.allot_torchsim_reset_peaks.argtypes = [c_void_p]
        c.allot_torchsim_pool_create.argtypes = [c_void_p, POINTER(PoolOptions), POINTER(c_uint32)]
        for name in ("begin", "end", "release", "empty_cache"):
            function = getattr(c, "allot_torchsim_pool_" + name, None)
            if function is not None:
                function.argtypes = [c_void_p, c_uint32]
        self.kinds = [c.allot_event_kind_name(i).decode() for i in range(KIND_COUNT)]

    def check(self, status):
        if status != OK:
            raise RuntimeError(f"{status}: {self.c.allot_error_detail().decode()}")


class Addresses:
    """Addresses of all devices: always new ones, or the lowest free ones."""

    def __init__(self, reuses):
        self.reuses = reuses
        self.begins, self.ends = [FIRST_ADDRESS], [LAST_ADDRESS]  # of what is free, ascending

    def take(self, size):
        size = (size + STEP - 1) // STEP * STEP
        at = next(i for i in range(len(self.begins)) if self.ends[i] - self.begins[i] >= size)
        address = self.begins[at]
        self.begins[at] += size
        if self.begins[at] == self.ends[at]:
            del self.begins[at], self.ends[at]
        return address

    def give(self, address, size):
        if not self.reuses:
            return
        end = address + (size + STEP - 1) // STEP * STEP
        at = bisect.bisect(self.begins, address)
        self.begins.insert(at, address)
        self.ends.insert(at, end)
        if at + 1 < len(self.begins) and self.begins[at + 1] == end:
            del self.begins[at + 1], self.ends[at]
        if at > 0 and self.ends[at - 1] == address:
            del self.begins[at], self.ends[at - 1]


class Device:
    """The model of one device's allocator."""

    def __init__(self, library, program, addresses):
        self.library, self.program, self.addresses = library, program, addresses
        self.used, self.limit = 0, program["limit"]
        self.events, self.waiting, self.ready = [], [], []
        self.directed = 0
        conf = ctypes.create_string_buffer(CONF_BYTES)
        text = program["conf"].encode()
        library.check(library.c.allot_torch_conf_parse_for(text, program["version"], conf, None))
        self.driver = Driver(
            ctypes.sizeof(Driver), None, TAKE(self._alloc), GIVE(self._free), TAKE(self._reserve),
            GIVE(self._unreserve), MAP(self._map), GIVE(self._give), FREE_BYTES(lambda _: self.limit - self.used),
        )  # fmt: skip
        self.on_event = ON_EVENT(self._event)
        options = Options(
            ctypes.sizeof(Options), ctypes.cast(conf, c_void_p), ctypes.pointer(self.driver), self.limit,
            program["fraction"], program["version"], AT_ONCE if program["events"] == "instant" else ON_CALL,
            self.on_event, None,
        )  # fmt: skip
        self.sim = c_void_p()
        library.check(library.c.allot_torchsim_create(byref(options), byref(self.sim)))

    def _take(self, size):
        if size > self.limit - self.used:
            return DEVICE_MEMORY
        self.used += size
        return OK

    def _alloc(self, _, size, stream, address):
        status = self._take(size)
        if status == OK:
            address[0] = self.addresses.take(size)
        return status

    def _reserve(self, _, size, stream, address):
        address[0] = self.addresses.take(size)
        return OK

    def _unreserve(self, _, address, size):
        self.addresses.give(address, size)

    def _free(self, _, address, size):
        self.addresses.give(address, size)
        self._give(_, address, size)

    def _map(self, _, address, size):
        return self._take(size)

    def _give(self, _, address, size):
        self.used -= size
        self.synchronized()  # as the driver does before it takes memory back

    def _event(self, _, event):
        e = event[0]
        kind = self.library.kinds[e.kind]
        self.events.append((kind, e.address, e.size, e.stream))
        if kind == "free_requested":
            self.waiting.append(e.block)
        elif kind == "free_completed":
            self.waiting.remove(e.block)
            if e.block in self.ready:
                self.ready.remove(e.block)

    def call(self, name, *arguments):
        return getattr(self.library.c, "allot_torchsim_" + name)(self.sim, *arguments)

    def do(self, name, *arguments):
        self.library.check(self.call(name, *arguments))

    def alloc(self, size, stream, pool):
        if self.directed == 0:
            for block in list(self.ready):
                self.do("complete", block)
        block = c_uint32()
        status = self.call("alloc", size, stream, pool, byref(block))
        if status in (DEVICE_MEMORY, FRAGMENTED):
            return None
        self.library.check(status)
        return block.value

    def synchronized(self):
        if self.program["events"] == "sync":
            self.ready = list(self.waiting)

    def pool_new(self, number, on_oom=False, whole=False, is_graph=False):
        options = PoolOptions(ctypes.sizeof(PoolOptions), bool(on_oom), bool(whole), False, is_graph, number)
        pool = c_uint32()
        self.do("pool_create", byref(options), byref(pool))
        return pool.value

    def begin(self, pool):
        self.do("pool_begin", pool)
        self.directed += 1

    def end(self, pool):
        self.do("pool_end", pool)
        self.directed -= 1

    def stats(self):
        s = self.library.c.allot_torchsim_get_stats(self.sim)[0]
        out = {}
        for ours, theirs in GAUGES.items():
            out[theirs + ".current"] = getattr(s, ours).now
            out[theirs + ".peak"] = getattr(s, ours).peak
        for ours, theirs in COUNTS.items():
            out[theirs] = getattr(s, ours)
        return out

    def close(self):
        self.library.c.allot_torchsim_destroy(self.sim)


# Our statistics under the names of torch.cuda.memory_stats().
GAUGES = {
    "reserved": "reserved_bytes.all", "allocated": "allocated_bytes.all", "active": "active_bytes.all",
    "requested": "requested_bytes.all", "inactive_split": "inactive_split_bytes.all",
    "segment_count": "segment.all",
}  # fmt: skip
COUNTS = {
    "alloc_count": "allocation.all.allocated", "driver_alloc_count": "num_device_alloc",
    "driver_free_count": "num_device_free", "retry_count": "num_alloc_retries", "oom_count": "num_ooms",
    "rejection_count": "num_oom_rejections", "sync_count": "num_sync_all_streams",
}  # fmt: skip


class Model:
    """Runs one program."""

    def __init__(self, library, program, result):
        self.program, self.streams = program, result["streams"]
        self.first, self.each, self.numbers = result["first"], result["each"], result["numbers"]
        addresses = Addresses(program["addresses"] == "reuse")
        self.devices = [Device(library, program, addresses) for _ in range(program["devices"])]
        self.blocks, self.pools, self.graphs, self.states = {}, {}, {}, {}
        self.region = None
        self.capture = None

    def run(self):
        self.make_state(self.first)
        self.drop_state(self.make_state(self.each))
        if "dropped" in self.numbers:
            self.devices[0].do("pool_release", self.devices[0].pool_new(self.numbers["dropped"], is_graph=True))
        for op in self.program["ops"]:
            getattr(self, "op_" + op[0])(*op[1:])

    def make_state(self, requests):
        """What PyTorch's generator keeps for a graph."""
        return [self.devices[0].alloc(size, stream, NONE) for size, stream in requests]

    def drop_state(self, blocks):
        for block in reversed(blocks):
            self.devices[0].do("free", block)

    def op_a(self, name, size, stream, device):
        pool = NONE
        if self.region is not None and self.pools[self.region][0] == device:
            pool = self.pools[self.region][1]
        elif self.capture is not None and device == 0 and stream == self.capture[1]:
            pool = self.capture[0]
        block = self.devices[device].alloc(size, self.streams[device][stream], pool)
        if block is not None:
            self.blocks[name] = (device, block)

    def op_f(self, name):
        if name in self.blocks:
            device, block = self.blocks.pop(name)
            self.devices[device].do("free", block)

    def op_r(self, name, stream):
        if name in self.blocks:
            device, block = self.blocks[name]
            self.devices[device].do("record_stream", block, self.streams[device][stream])

    def op_e(self):
        for device in self.devices:
            device.do("empty_cache")

    def op_z(self):
        for device in self.devices:
            device.library.c.allot_torchsim_reset_peaks(device.sim)

    def op_s(self):
        for device in self.devices:
            device.synchronized()

    def op_pn(self, pool, device, on_oom, whole):
        self.pools[pool] = (device, self.devices[device].pool_new(self.numbers["pools"][pool], on_oom, whole))

    def op_pb(self, pool):
        device, name = self.pools[pool]
        self.devices[device].begin(name)
        self.region = pool

    def op_pe(self, pool):
        device, name = self.pools[pool]
        self.devices[device].end(name)
        self.devices[device].do("pool_release", name)
        self.region = None

    def op_pd(self, pool):
        device, name = self.pools.pop(pool)
        self.devices[device].do("pool_release", name)
        self.devices[device].do("pool_empty_cache", name)

    def op_gb(self, graph, stream, shared):
        device = self.devices[0]
        pool = self.graphs[shared] if shared >= 0 else device.pool_new(self.numbers["graphs"][graph], is_graph=True)
        device.begin(pool)
        if shared < 0:
            device.do("pool_release", pool)
        self.graphs[graph] = pool
        self.states[graph] = self.make_state(self.each)
        self.capture = (pool, stream)

    def op_ge(self, graph):
        self.devices[0].end(self.graphs[graph])
        self.capture = None

    def op_gd(self, graph):
        self.devices[0].do("pool_release", self.graphs.pop(graph))
        self.drop_state(self.states.pop(graph))

    def close(self):
        for device in self.devices:
            device.close()
