# SPDX-License-Identifier: MIT
"""Runs programs on PyTorch's own CUDA allocator. To be started with the stand-in preloaded.

Reads lines of JSON {"program": ..., "out": path} on standard input, runs each in a child forked
before CUDA is initialised (settings, limit and devices are fixed at that moment), and answers with
a line: "ok", or what went wrong. The result is a pickle: `traces` and `stats` per device, `snapshot`.
"""

import json
import os
import pickle
import signal
import sys
import traceback
import warnings

import torch

TIME_MAX = 120


def number_of(pool):
    """What PyTorch's hash tables go by."""
    return pool[0] or pool[1]


class Run:
    """One program in this process."""

    def __init__(self, program):
        self.program = program
        self.tensors, self.pools, self.graphs = {}, {}, {}
        self.region = None
        self.capture = None
        torch.cuda.init()
        self.devices = range(program["devices"])
        self.streams = []
        for device in self.devices:
            with torch.cuda.device(device):
                own = [torch.cuda.Stream() for _ in range(program["streams"])]
                self.streams.append([torch.cuda.default_stream(), *own])
        if program["fraction"]:
            for device in self.devices:
                torch.cuda.set_per_process_memory_fraction(program["fraction"], device)
        torch.cuda.memory._record_memory_history(max_entries=10**7, context=None)
        self.failed, self.empties = {}, []
        self.numbers = {"pools": {}, "graphs": {}}
        self.rejections = [0 for _ in self.devices]
        self.first, self.each = [], []
        if any(op[0] == "gb" for op in program["ops"]):
            self.find_generator_state()

    def find_generator_state(self):
        """PyTorch's generator may allocate for the first graph, and for each: `first`, `each`."""
        self.first_graph, self.first = self.empty_graph()
        second, self.each = self.empty_graph()
        self.numbers["dropped"] = number_of(second.pool())

    def empty_graph(self):
        """A graph, and what was allocated for it."""
        graph = torch.cuda.CUDAGraph()
        before = len(torch.cuda.memory._snapshot()["device_traces"][0])
        with torch.cuda.stream(self.streams[0][1]):
            graph.capture_begin()
            graph.capture_end()
        entries = torch.cuda.memory._snapshot()["device_traces"][0][before:]
        return graph, [(e["size"], e["stream"]) for e in entries if e["action"] == "alloc"]

    def step(self, op):
        getattr(self, "op_" + op[0])(*op[1:])

    def op_a(self, name, size, stream, device):
        try:
            with torch.cuda.stream(self.streams[device][stream]):
                self.tensors[name] = torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")
        except torch.OutOfMemoryError:
            self.failed[name] = self.failure(device)

    def failure(self, device):
        """Whether a failure is an out-of-memory with an event or a refusal without one."""
        if "throw_on_cudamalloc_oom" not in self.program["conf"]:
            return "oom"
        before = self.rejections[device]
        self.rejections[device] = torch.cuda.memory_stats(device)["num_oom_rejections"]
        return "oom" if self.rejections[device] == before else "rejected"

    def op_f(self, name):
        self.tensors.pop(name, None)

    def op_r(self, name, stream):
        if name in self.tensors:
            tensor = self.tensors[name]
            tensor.record_stream(self.streams[tensor.device.index][stream])

    def op_e(self):
        before = self.given()
        torch.cuda.empty_cache()
        self.empties.append(self.given() != before)

    def given(self):
        return [torch.cuda.memory_stats(device)["num_device_free"] for device in self.devices]

    def op_z(self):
        for device in self.devices:
            torch.cuda.reset_peak_memory_stats(device)

    def op_s(self):
        for device in self.devices:
            torch.cuda.synchronize(device)

    def op_pn(self, pool, device, on_oom, whole):
        options = {name: True for name, wanted in (("use_on_oom", on_oom), ("no_split", whole)) if wanted}
        with torch.cuda.device(device):
            self.pools[pool] = (torch.cuda.MemPool(**options), device)
        self.numbers["pools"][pool] = number_of(self.pools[pool][0].id)

    def op_pb(self, pool):
        handle, device = self.pools[pool]
        self.region = torch.cuda.use_mem_pool(handle, device)
        self.region.__enter__()

    def op_pe(self, pool):
        self.region.__exit__(None, None, None)
        self.region = None

    def op_pd(self, pool):
        del self.pools[pool]

    def op_gb(self, graph, stream, shared):
        self.graphs[graph] = torch.cuda.CUDAGraph()
        self.capture = torch.cuda.stream(self.streams[0][stream])
        self.capture.__enter__()
        pool = {} if shared < 0 else {"pool": self.graphs[shared].pool()}
        self.graphs[graph].capture_begin(**pool, capture_error_mode="relaxed")

    def op_ge(self, graph):
        self.graphs[graph].capture_end()
        self.numbers["graphs"][graph] = number_of(self.graphs[graph].pool())
        self.capture.__exit__(None, None, None)

    def op_gd(self, graph):
        del self.graphs[graph]


def run(program, out):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = program["conf"]
    os.environ["ALLOT_STANDIN"] = (
        f"addresses:{program['addresses']},context:0,limit:{program['limit']},devices:{program['devices']},"
        f"events:{program['events']}"
    )
    warnings.simplefilter("ignore")
    state = Run(program)
    for op in program["ops"]:
        state.step(op)
    snapshot = torch.cuda.memory._snapshot()
    result = {
        "snapshot": snapshot,
        "first": state.first,
        "each": state.each,
        "failed": state.failed,
        "numbers": state.numbers,
        "empties": state.empties,
        "streams": [[s.cuda_stream for s in streams] for streams in state.streams],
        "stats": [torch.cuda.memory_stats(device) for device in state.devices],
        "version": str(torch.__version__),
    }
    with open(out, "wb") as file:
        pickle.dump(result, file)


def run_child(job):
    error = job["out"] + ".error"
    try:
        signal.alarm(TIME_MAX)
        run(job["program"], job["out"])
        os._exit(0)
    except BaseException:
        with open(error, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        os._exit(1)


def main():
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            run_child(job)
        status = os.waitpid(child, 0)[1]
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


main()
