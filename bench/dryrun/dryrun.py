#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a dry run costs: calls of the stand-in, the import of torch, training steps, memory.

CPU seconds (user and system) everywhere: they do not depend on what else the machine does. Prints a
table beside the goals, and writes the same as JSON.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
IMPORT = "import torch; torch.cuda.is_available()"


def cpu_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: "incomplete", a program that only imports
        sys.exit(f"{command}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def can_import(python):
    result = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    return result.returncode == 0


def import_ratio(options):
    """Imports in turns, plain and in a dry run; the plain one needs CUDA's real libraries."""
    plain = options.plain or options.python
    if not can_import(plain):
        return None
    dry = [options.allot, "dryrun", "--json", "--", plain, "-c", IMPORT]
    seconds = {"plain": [], "dry": []}
    for run in range(options.runs + 1):
        once = {"plain": cpu_seconds([plain, "-c", IMPORT]), "dry": cpu_seconds(dry)}
        for name in seconds if run else ():  # the first pair only warms up
            seconds[name].append(once[name])
    result = {name: statistics.median(values) for name, values in seconds.items()}
    return dict(result, ratio=result["dry"] / result["plain"])


def calls(options, settings):
    command = [options.calls, options.standin, settings]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def training(options, script, *arguments):
    """Figures of a training run: those that it prints, and those of the dry run."""
    command = [options.allot, "dryrun", "--json", "--gpu", "a100-80", "--", options.python,
               HERE / script, *map(str, arguments)]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{script}: exit {result.returncode}\n{result.stderr[-2000:]}")
    printed, report = result.stdout.split("{\n", 1)
    lines = dict(line.split(" ", 1) for line in printed.splitlines())
    seconds = [float(s) for s in lines["seconds"].split()]
    return {
        "step_s": statistics.median(seconds[1:]),
        "first_step_s": seconds[0],
        "resident_mib": float(lines["resident"].split()[0]) if "resident" in lines else None,
        "allocated_peak": json.loads("{\n" + report)["allocated_peak"],
    }


def row(name, value, unit, goal):
    mark = "" if goal is None else ("yes" if value <= goal else "NO")
    goal = "" if goal is None else f"{goal:g}"
    print(f"{name:<58} {value:>9.3f} {unit:<6} {goal:>6} {mark}")


def print_table(result):
    print(f"{'':<58} {'measured':>9} {'':<6} {'goal':>6}")
    for settings, figures in result["calls"].items():
        for call, goal in (("launch", 1), ("event", None), ("copy", None), ("malloc_free_pair", 1)):
            row(f"{call}, {settings}", figures[call]["median"] / 1000, "us", goal)
    host = next(iter(result["calls"].values()))["host_malloc_free_pair"]["median"]
    row("malloc() and free() beside it", host / 1000, "us", None)
    if result["import"] is None:
        print("import: not measured, this torch cannot be imported without the stand-in (--plain)")
    else:
        row("import of torch, dry / plain", result["import"]["ratio"], "", 1.05)
        row("  plain", result["import"]["plain"], "s", None)
    row("GPT-2 124M, batch 4, a step", result["gpt2"]["step_s"] * 1000, "ms", 20)
    row("7 B parameters, a step", result["llama7b"]["step_s"], "s", 0.07)
    row("7 B parameters, resident beyond imports, 12 steps", result["llama7b"]["resident_mib"],
        "MiB", 100)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--allot", required=True, type=pathlib.Path)
    parser.add_argument("--standin", required=True, type=pathlib.Path, help="its folder")
    parser.add_argument("--calls", required=True, type=pathlib.Path, help="the program standin_calls")
    parser.add_argument("--python", help="with a CUDA build of torch; default: ALLOT_TORCH_PYTHON")
    parser.add_argument("--plain", help="the same with the NVIDIA packages, for the plain import")
    parser.add_argument("--runs", type=int, default=7, help="pairs of imports")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.python = options.python or os.environ.get("ALLOT_TORCH_PYTHON", "").split(":")[0]
    kinds = ("instant", "sync", "lag")
    result = {"calls": {k: calls(options, f"limit:1TiB,events:{k}") for k in kinds}}
    if not options.python:
        sys.exit("bench_dryrun: --python names a Python with a CUDA build of torch")
    result["import"] = import_ratio(options)
    result["gpt2"] = training(options, "gpt2.py", 4, 30)
    result["llama7b"] = training(options, "llama7b.py", 12)
    print_table(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
