#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Placement beside the allocators of others, in one run: time, refusals, memory held, ratios.

Every contestant replays the same workloads (W1 to W4 of bench_space) in a process of its own; in
each round all take their turns. One that is not there is left out, and said why. Exit code 1 if a
contestant gave blocks that overlap, or none of them can run.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import adapters
from environment import TREE, Environment, commit, cpu_name

WORKLOADS = ["W1", "W2", "W3", "W4"]
BASES = {"tlsf": "allot-tlsf", "first-fit": "allot-first-fit"}  # ratios are to these
ROUNDS_DEFAULT = 7
LIMIT_S_DEFAULT = 20


def main():
    args = arguments()
    environment = Environment(args.folder, args.programs)
    if args.install:
        environment.install()
    ready, absent = prepare(chosen_by(args), environment)
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    rows = []
    print(HEADER)
    for workload in args.workloads:
        for row in compare(workload, ready, args):
            rows.append(row)
            print(line_of(row), flush=True)
    write(args, rows, absent)
    return 0 if ready and not any(row["fault"] for row in rows) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, metavar="FOLDER",
                        default=TREE / "build" / "release" / "bench",
                        help="where peer_replay was built")  # fmt: skip
    parser.add_argument("--folder", type=pathlib.Path, default=TREE / "build" / "peers",
                        help="where peers are installed")  # fmt: skip
    parser.add_argument("--install", action="store_true", help="install there what is missing")
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    parser.add_argument("--operations", type=int, default=0, metavar="N",
                        help="of each workload, the first N only")  # fmt: skip
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=WORKLOADS)
    parser.add_argument("--limit", type=float, default=LIMIT_S_DEFAULT, metavar="SECONDS",
                        help="for one replay; who takes longer is not timed")  # fmt: skip
    parser.add_argument("--adapter", action="append", default=[], metavar="NAME=FILE[:CONFIG]",
                        help="one more allocator: a shared object as peers/peer.h says")  # fmt: skip
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    parser.add_argument("names", nargs="*", metavar="NAME", help="contestants; all without names")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    if not set(args.workloads) <= set(WORKLOADS):
        parser.error(f"--workloads: some of {','.join(WORKLOADS)}")
    if any("=" not in text for text in args.adapter):
        parser.error("--adapter: NAME=FILE or NAME=FILE:CONFIG")
    unknown = set(args.names) - {each.name for each in known_by(args)}
    if unknown:
        parser.error(f"no contestant {', '.join(sorted(unknown))}")
    return args


def known_by(args):
    given = []
    for text in args.adapter:
        name, _, rest = text.partition("=")
        file, _, config = rest.partition(":")
        given.append(adapters.Contestant(name, "", str(pathlib.Path(file).resolve()), config))
    return [*adapters.CONTESTANTS, *given]


def chosen_by(args):
    return [each for each in known_by(args) if not args.names or each.name in args.names]


def prepare(contestants, environment):
    """({name: (version, command, variables)}, {name: why it is left out})"""
    ready, absent = {}, {}
    for each in contestants:
        try:
            version = environment.version(each.package) if each.package else ""
            ready[each.name] = (version, *adapters.command_of(each, environment))
        except adapters.Absent as reason:
            absent[each.name] = str(reason)
    return ready, absent


class Failed(Exception):
    """A contestant cannot go on; the text says why."""


class Runner:
    """A contestant on one workload, waiting in a process of its own."""

    def __init__(self, command, variables, workload, args):
        self.errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (as long as the process)
        settings = [str(1 + WORKLOADS.index(workload)), str(args.operations), str(args.limit)]
        self.process = subprocess.Popen(
            [args.programs / "peer_replay", *command, *settings], env={**os.environ, **variables},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip

    def ask(self, question):
        """The words of the answer; Failed with what the process said last if it has ended."""
        with contextlib.suppress(BrokenPipeError):  # it has ended, as is seen next
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ", 4)
            if words[0] in (question, "slow"):
                return words
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines() or [f"exit code {code}"]
        raise Failed(said[-1])

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def compare(workload, ready, args):
    """A row for each contestant."""
    runners = {name: Runner(*each[1:], workload, args) for name, each in ready.items()}
    rows = {name: check(name, ready[name][0], workload, runners[name]) for name in runners}
    times = {name: [] for name in runners if rows[name]["fault"] is None and not rows[name]["note"]}
    for _ in range(args.rounds):
        for name, found in times.items():
            _, nanoseconds, operations = runners[name].ask("time")
            found.append(float(nanoseconds) / int(operations))
    for name, runner in runners.items():
        runner.close()
    for name, found in times.items():
        rows[name]["ns_per_operation"] = {
            "median": statistics.median(found), "fastest": min(found), "slowest": max(found)
        }  # fmt: skip
    for row in rows.values():
        row["ratios"] = {base: ratio(row, rows.get(name)) for base, name in BASES.items()}
    return rows.values()


def check(name, version, workload, runner):
    row = {"contestant": name, "version": version, "workload": workload, "ns_per_operation": None,
           "refused": None, "reserved": None, "live_peak": None, "fault": None, "note": ""}  # fmt: skip
    try:
        kind, *words = runner.ask("check")
    except Failed as reason:
        row["note"] = str(reason)
        return row
    if kind == "slow":
        row["note"] = f"over {float(words[1]):.0f} s for the first {int(words[0]):,} operations"
        return row
    row["refused"], row["reserved"], row["live_peak"] = map(int, words[:3])
    row["fault"] = words[3] or None
    return row


def ratio(row, base):
    if base is None or base["ns_per_operation"] is None or row["ns_per_operation"] is None:
        return None
    return row["ns_per_operation"]["median"] / base["ns_per_operation"]["median"]


HEADER = (
    f"{'':3} {'':18} {'version':>14} {'ns/op':>8} {'/ tlsf':>7} {'/ first-fit':>11} "
    f"{'refused':>8} {'reserved/live':>13}"
)


def line_of(row):
    start = f"{row['workload']:3} {row['contestant']:18} {row['version']:>14}"
    if row["fault"] is not None:
        return f"{start} FAULT: {row['fault']}"
    if row["note"]:
        return f"{start} not timed: {row['note']}"
    ratios = [f"{value:.2f}" if value else "" for value in row["ratios"].values()]
    return (
        f"{start} {row['ns_per_operation']['median']:8.1f} {ratios[0]:>7} {ratios[1]:>11} "
        f"{row['refused']:>8} {row['reserved'] / row['live_peak']:13.3f}"
    )


def write(args, rows, absent):
    if args.json is None:
        return
    result = {"schema": "allot.bench.peers/1", "commit": commit(), "cpu": cpu_name(),
              "rounds": args.rounds, "operations": args.operations or None, "rows": rows,
              "absent": absent}  # fmt: skip
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"the same as JSON: {args.json}")


if __name__ == "__main__":
    sys.exit(main())
