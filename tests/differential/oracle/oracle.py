# SPDX-License-Identifier: MIT
"""Random programs on PyTorch's own allocator against liballot's model of it.

  oracle.py --python VENV/bin/python --standin DIR --library liballot.so --count 200 --seed 0

Every event (kind, address, size, stream), every statistic, and `allot replay --check` on the
snapshot must be equal. With --what-if each program runs under two settings, and `allot replay` of
the first run's snapshot must give the figures of the second (whatif.py). A program that differs is
shrunk and printed; exit status 1.
"""

import argparse
import collections
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time

import model_side
import program as programs
import whatif


class Torch:
    """A process that runs programs on PyTorch under the stand-in."""

    def __init__(self, python, standin, folder):
        self.out = os.path.join(folder, "result.pickle")
        environment = dict(os.environ)
        environment["LD_PRELOAD"] = f"{standin}/libcuda.so.1:{standin}/libnvidia-ml.so.1"
        environment["LD_LIBRARY_PATH"] = standin
        environment["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # a warning for each refused request otherwise
        self.process = subprocess.Popen(
            [python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_side.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        text = json.loads(self.process.stdout.readline())["version"]
        self.version = 100 * int(text.split(".")[0]) + int(text.split(".")[1])

    def run(self, program):
        """The result; a text if the program could not be run."""
        error = self.out + ".error"
        for path in (self.out, error):
            if os.path.exists(path):
                os.unlink(path)
        self.process.stdin.write(json.dumps({"program": program, "out": self.out}) + "\n")
        self.process.stdin.flush()
        status = json.loads(self.process.stdout.readline())["status"]
        if status != 0:
            detail = open(error, encoding="utf-8").read() if os.path.exists(error) else ""
            return f"status {status}\n{detail}"
        with open(self.out, "rb") as file:
            return pickle.load(file)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def real_events(trace):
    out = []
    for entry in trace:
        if entry["action"] == "snapshot":
            continue
        address = entry.get("device_free", entry["addr"] if "addr" in entry else 0)
        out.append((entry["action"], address, entry["size"], entry["stream"]))
    return out


def in_order(events):
    """Frees that complete together do so in the order of a hash table: sorted."""
    out, run = [], []
    for event in events:
        if event[0] == "free_completed":
            run.append(event)
        else:
            out += [*sorted(run), event]
            run = []
    return out + sorted(run)

# From here on the events of a snapshot name their pools; before, a check has to guess them.
NAMES_POOLS = 212


def has_pools(program):
    return any(op[0] in ("gb", "pn") for op in program["ops"])


def text_of(event):
    return "nothing" if event is None else f"{event[0]} {event[1]:#x} {event[2]} stream {event[3]:#x}"


def compare_events(real, model, device):
    real, model = in_order(real), in_order(model)
    for i in range(max(len(real), len(model))):
        theirs = real[i] if i < len(real) else None
        ours = model[i] if i < len(model) else None
        if theirs != ours:
            around = "".join(f"\n    {text_of(e)}" for e in real[max(0, i - 4) : i])
            return (
                f"device {device}, event {i}: PyTorch {text_of(theirs)}, model {text_of(ours)}; "
                f"before it:{around}"
            )
    return None


def compare_stats(real, model, device, program):
    for key, ours in model.items():
        if key not in real:
            continue
        if key == "inactive_split_bytes.all.peak" and any(op[0] == "r" for op in program["ops"]):
            continue  # depends on the order in which frees complete
        if real[key] != ours:
            return f"device {device}: {key}: PyTorch {real[key]}, model {ours}"
    return None


def check_snapshot(allot, result, program, folder):
    """`allot replay --check` for every device."""
    path = os.path.join(folder, "snapshot.pickle")
    with open(path, "wb") as file:
        pickle.dump(result["snapshot"], file)
    for device in range(program["devices"]):
        if not result["snapshot"]["device_traces"][device]:
            continue
        command = [allot, "replay", "--check", "--device", str(device), "--limit", str(program["limit"])]
        if program["fraction"]:
            command += ["--fraction", str(program["fraction"])]
        done = subprocess.run([*command, path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"device {device}: allot replay --check: status {done.returncode}\n{done.stdout}{done.stderr}"
    return None


class Oracle:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.torch = Torch(options.python, options.standin, folder)
        self.library = model_side.Library(options.library)

    def difference(self, program):
        """What differs, None if nothing does; "cannot run: ..." is no difference."""
        if "other" in program:
            self.counts["pairs"] += 1
            return whatif.difference(self.torch, self.options.allot, program, self.folder)
        result = self.torch.run(program)
        if isinstance(result, str):
            return "cannot run: " + result
        model = model_side.Model(self.library, program, result)
        try:
            model.run()
        except RuntimeError as error:
            return f"model: {error}"
        for device, ours in enumerate(model.devices):
            theirs = real_events(result["snapshot"]["device_traces"][device])
            found = compare_events(theirs, ours.events, device) or compare_stats(
                result["stats"][device], ours.stats(), device, program
            )
            if found:
                return found
        self.counts["events"] += sum(len(d.events) for d in model.devices)
        self.counts["retries"] += sum(d.stats()["num_alloc_retries"] for d in model.devices)
        self.counts["ooms"] += sum(d.stats()["num_ooms"] for d in model.devices)
        model.close()
        if self.options.allot and (self.torch.version >= NAMES_POOLS or not has_pools(program)):
            return check_snapshot(self.options.allot, result, program, self.folder)
        return None

    def generate(self, seed):
        options = self.options
        if options.what_if:
            return whatif.generate(seed, self.torch.version, options.operations)
        keys = options.keys.split(",") if options.keys is not None else None
        features = set(options.features.split(",")) if options.features is not None else None
        return programs.generate(seed, self.torch.version, options.operations, features, keys)

    def report(self, program, found):
        kind = classify(found)
        self.failures[kind] += 1
        print(f"\nseed {program['seed']} differs: {describe(program)}\n  {found}", flush=True)
        if self.failures[kind] > self.options.shrink:
            return
        tidy = whatif.tidy if "other" in program else programs.tidy
        small = programs.shrink(program, lambda p: same(found, self.difference(p)), self.options.budget, tidy)
        print(f"  smallest: {describe(small)}\n  {self.difference(small)}\n  {json.dumps(small)}", flush=True)

    def run(self):
        self.failures = collections.Counter()
        self.counts = collections.Counter()
        settings = collections.Counter()
        for seed in range(self.options.seed, self.options.seed + self.options.count):
            program = self.generate(seed)
            found = self.difference(program)
            for part in programs.split_conf(program["conf"]) or ["(defaults)"]:
                settings[part.split(":")[0]] += 1
            is_own_fault = found and ("status -6" in found or "INTERNAL ASSERT" in found)
            if is_own_fault and found.startswith("cannot run"):
                self.counts["aborted by PyTorch"] += 1
                print(f"seed {seed} aborted by PyTorch: {found.strip().splitlines()[-1][:200]}", flush=True)
            elif found and found.startswith("cannot run") and "stream is capturing" in found:
                self.counts["refused in a capture"] += 1
            elif found:
                self.report(program, found)
        print(f"\ntorch {self.torch.version}: {self.options.count} programs, {dict(self.counts)}")
        print(f"settings: {dict(settings)}")
        print(f"differences: {dict(self.failures)}")
        self.torch.close()
        return 1 if self.failures else 0


def describe(program):
    kinds = collections.Counter(op[0] for op in program["ops"])
    head = {key: value for key, value in program.items() if key != "ops"}
    return f"{json.dumps(head)} {dict(kinds)}"


def classify(found):
    if found.startswith("cannot run"):
        return "cannot run: " + found.strip().splitlines()[-1][:100]
    if "event " in found and "PyTorch" in found:
        words = found.split("PyTorch ")[1]
        return f"{words.split()[0]} / {words.split('model ')[1].split()[0]}"
    return found.split(": PyTorch")[0].split(": ", 1)[-1][:60]


def same(found, other):
    return other is not None and classify(found) == classify(other)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter with a CUDA build of torch")
    parser.add_argument("--standin", required=True, help="folder of the stand-in")
    parser.add_argument("--library", required=True, help="liballot.so")
    parser.add_argument("--allot", help="the command; checks each snapshot with it too")
    parser.add_argument("--what-if", action="store_true", help="replays under other settings; needs --allot")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; -1: by the time")
    parser.add_argument("--operations", type=int, default=5000)
    parser.add_argument("--keys", help="settings to use, instead of random ones")
    parser.add_argument("--features", help=f"of {','.join(programs.FEATURES)}, instead of random ones")
    parser.add_argument("--shrink", type=int, default=1, help="programs to shrink of each kind of difference")
    parser.add_argument("--budget", type=int, default=400, help="programs to try while shrinking one")
    parser.add_argument("--program", help="run this program (JSON) alone")
    options = parser.parse_args()
    if options.seed < 0:
        options.seed = int(time.time()) * 1000
    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(options, folder)
        if options.program:
            oracle.counts = collections.Counter()
            with open(options.program, encoding="utf-8") as file:
                print(oracle.difference(json.load(file)))
            return 0
        return oracle.run()


if __name__ == "__main__":
    sys.exit(main())
