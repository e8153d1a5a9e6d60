#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time and memory of reading PyTorch snapshots, beside CPython's pickle.load of the same files.

Each reading is a process of its own, the two take turns; figures come from its resource usage.
Prints a table, and writes the same as JSON.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON_READER = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
GOAL = {"500MiB": {"cpu_s": 1.0, "rss_bytes": int(0.6 * (1 << 30))}}


def measure(command):
    """CPU seconds and peak resident bytes of a process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]}: exit {process.returncode}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "rss_bytes": usage.ru_maxrss * 1024}


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))]


def summary(runs):
    cpu = [run["cpu_s"] for run in runs]
    return {"runs": len(runs), "cpu_s": {"median": quantile(cpu, 0.5), "p5": quantile(cpu, 0.05),
                                         "p95": quantile(cpu, 0.95), "worst": max(cpu)},
            "rss_bytes": max(run["rss_bytes"] for run in runs)}


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit():
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        result = subprocess.run(git, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # a machine without git
        return "unknown"
    return result.stdout.strip() or "unknown"


def make_file(folder, size):
    path = folder / f"snapshot_{size}.pickle"
    if not path.exists():
        fresh = path.with_suffix(".part")
        subprocess.run([sys.executable, HERE / "make_snapshot.py", "--size", size, "--out", fresh],
                       check=True, stdout=subprocess.DEVNULL)
        fresh.rename(path)
    return path


def compare(path, args):
    ours, theirs = [], []
    ours_command = [args.program, path]
    theirs_command = [sys.executable, "-c", PYTHON_READER, path]
    measure(ours_command)  # The file is in the page cache from now on.
    for i in range(max(args.runs, args.python_runs)):
        if i < args.runs:
            ours.append(measure(ours_command))
        if i < args.python_runs:
            theirs.append(measure(theirs_command))
    return {"file_bytes": path.stat().st_size, "allot": summary(ours), "cpython": summary(theirs)}


def print_row(size, row):
    ours, theirs = row["allot"], row["cpython"]
    print(f"{size:>8} {ours['cpu_s']['median']:9.3f} {ours['cpu_s']['p5']:7.3f} {ours['cpu_s']['p95']:7.3f}"
          f" {ours['cpu_s']['worst']:7.3f} {ours['rss_bytes'] / (1 << 20):9.0f}"
          f" {theirs['cpu_s']['median']:11.3f} {theirs['rss_bytes'] / (1 << 20):9.0f}"
          f" {row['cpu_ratio']:9.1f} {row['rss_ratio']:9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the built read_file")
    parser.add_argument("--compiler", default="unknown")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."),
                        help="where snapshots are made and kept")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--python-runs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    parser.add_argument("sizes", nargs="*", default=["10MiB", "100MiB", "500MiB"])
    args = parser.parse_args()
    result = {"schema": "allot.bench.read/1", "commit": commit(), "compiler": args.compiler,
              "cpu": cpu_name(), "python": platform.python_version(), "sizes": {}}
    print(f"reading PyTorch snapshots: {result['commit']}, {args.compiler}, {result['cpu']}, "
          f"CPython {result['python']}")
    print(f"{'':8} {'allot CPU s':>33} {'RSS':>9} {'pickle.load':>11} {'RSS':>9} {'ratio':>9} {'ratio':>9}")
    print(f"{'file':>8} {'median':>9} {'p5':>7} {'p95':>7} {'worst':>7} {'MiB':>9} {'CPU s':>11} {'MiB':>9}"
          f" {'of CPU':>9} {'of RSS':>9}")
    args.folder.mkdir(parents=True, exist_ok=True)
    for size in args.sizes:
        row = compare(make_file(args.folder, size), args)
        row["cpu_ratio"] = row["cpython"]["cpu_s"]["median"] / row["allot"]["cpu_s"]["median"]
        row["rss_ratio"] = row["cpython"]["rss_bytes"] / row["allot"]["rss_bytes"]
        row["goal"] = GOAL.get(size)
        result["sizes"][size] = row
        print_row(size, row)
    text = json.dumps(result, indent=1)
    if args.json is not None:
        args.json.write_text(text + "\n")
        print(f"the same as JSON: {args.json}")


if __name__ == "__main__":
    main()
