#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a real card says, beside a dry run of the same programs on its own profile, in one sitting.

First the suites of devices and heaps run on the card, where the tests were built.

Writes into a folder under docs/gpu: the card's profile, report.json, report.txt. Needs an NVIDIA
card with its driver, and Python interpreters with torch and the NVIDIA packages.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
PROGRAMS = HERE.parent / "fidelity"
sys.path.insert(0, str(PROGRAMS))
import compare  # noqa: E402

GIB = 1 << 30
SUITES = (
    ("device/test_device_conformance", "cuda"),
    ("device/test_device_heap", "cuda"),
    ("device/test_cuda",),
    ("property/prop_heap", "--device", "cuda"),
)
NEEDS = {"a9": 4 * GIB, "a8": 2 * GIB, "a10": 15 * GIB, "a11": 15 * GIB, "a15": 46 * GIB}


def main():
    args = arguments()
    folder = args.out or new_folder(args)
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / "profile.json"
    on_card(args, args.allot, "gpu", "--id", "here", "--output", profile, "probe")
    gpu = json.loads(profile.read_text())
    report = {
        "schema": "allot.bench.gpu-check/1",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "gpu": gpu["name"], "driver": driver_version(args), "is_pretended": args.pretend is not None,
        "suites": check_suites(args), "addresses": check_addresses(args, profile), "programs": [],
    }  # fmt: skip
    for python in args.python:
        for name, needs in NEEDS.items():
            if needs <= gpu["memory_total"] and (not args.programs or name in args.programs):
                report["programs"].append(check_program(args, python, name, profile))
                print(line_of(report["programs"][-1]), flush=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "report.txt").write_text(text_of(report))
    print(f"\n{text_of(report)}\nwritten: {folder}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", required=True,
                        help="an interpreter with torch; may be given several times")  # fmt: skip
    parser.add_argument("--allot", type=pathlib.Path, default=TREE / "build" / "release" / "allot")
    parser.add_argument("--out", type=pathlib.Path, help="folder; default docs/gpu/DATE-CARD")
    parser.add_argument("--pretend", metavar="NAME", help="let the stand-in be the card: tries this "
                        "script where there is none, and checks nothing else")  # fmt: skip
    parser.add_argument("programs", nargs="*", metavar="NAME", help=f"of {', '.join(NEEDS)}")
    args = parser.parse_args()
    if args.pretend and args.out is None:
        parser.error("--pretend needs --out: docs/gpu is for what cards say")
    return args


def new_folder(args):
    name = query(args, "name").lower().replace(" ", "-")
    return TREE / "docs" / "gpu" / f"{datetime.date.today()}-{name}"


def query(args, field):
    if args.pretend:
        return "stand-in"
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader", "--id=0"]
    return subprocess.check_output(command, text=True).strip()


def driver_version(args):
    return query(args, "driver_version")


def on_card(args, *command):
    prefix = [args.allot, "dryrun", "--gpu", args.pretend, "--"] if args.pretend else []
    run([*prefix, *command], codes=(0, 1) if args.pretend else (0,))


def run(command, codes=(0,)):
    command = list(map(str, command))
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode not in codes:
        sys.exit(f"gpu_check: {' '.join(command)}: exit {result.returncode}\n"
                 f"{result.stdout[-2000:]}{result.stderr[-4000:]}")  # fmt: skip
    return result.stdout


def check_suites(args):
    """Of each suite that was built: its exit status, its last line, what failed."""
    build = args.allot.resolve().parent
    env = dict(os.environ)
    if args.pretend:
        env |= {"LD_LIBRARY_PATH": str(build / "standin"), "ALLOT_STANDIN": "limit:256MiB,bytes:real,delay:1"}
    found = []
    for name, *options in SUITES:
        program = build / "tests" / name
        if not program.exists():
            continue
        result = subprocess.run([program, *options], capture_output=True, text=True, check=False, env=env)
        lines = (result.stdout + result.stderr).splitlines() or [""]
        found.append({"suite": program.name, "exit": result.returncode, "last": result.stdout.splitlines()[-1:],
                      "failed": [line for line in lines if "failed:" in line or line.startswith("FAIL")]})  # fmt: skip
        print(suite_line(found[-1]), flush=True)
    return found


def suite_line(row):
    state = {0: "passed", 77: "skipped"}.get(row["exit"], f"FAILED with exit status {row['exit']}")
    return "\n     ".join([f"{row['suite']}: {state}: {' '.join(row['last']).strip()}", *row["failed"]])


def check_addresses(args, profile):
    """How many of the driver's addresses the stand-in's rule gives, counted from the first."""
    with tempfile.TemporaryDirectory() as folder:
        card, dry = pathlib.Path(folder) / "card.json", pathlib.Path(folder) / "dry.json"
        script = [sys.executable, HERE / "addresses.py"]
        on_card(args, *script, card)
        run([args.allot, "dryrun", "--gpu", profile, "--", *script, dry], codes=(0, 1))
        placed, expected = json.loads(card.read_text()), json.loads(dry.read_text())
    shift = expected[0][1] - placed[0][1]
    equal = sum(there[1] + shift == here[1] for there, here in zip(placed, expected, strict=True))
    return {"total": len(placed), "equal": equal, "placed": placed}


def check_program(args, python, name, profile):
    program = PROGRAMS / f"{name}.py"
    with tempfile.TemporaryDirectory() as folder:
        card, figures, dry = (pathlib.Path(folder) / n for n in ("card.pickle", "figures", "dry.pickle"))
        on_card(args, python, HERE / "record.py", card, figures, program)
        dry_run = [args.allot, "dryrun", "--gpu", profile, "--record", dry, "--", python, program]
        run(dry_run, codes=(0, 1))
        found = compare.compare(compare.read(args.allot, card), compare.read(args.allot, dry))
        return {"program": name, **json.loads(figures.read_text()), "total": found.total,
                "identical": found.identical, "surplus": found.surplus, "placed": found.placed,
                "placed_alike": found.placed_alike, "errors": found.errors,
                "difference": found.difference}  # fmt: skip


def line_of(row):
    errors = ", ".join(f"{name} {error:+,} B" for name, error in row["errors"].items())
    text = (
        f"{row['program']:4} torch {row['torch']}: {row['identical']} of {row['total']} events identical, "
        f"{row['surplus']} more; {row['placed_alike']} of {row['placed']} placed alike; {errors}; "
        f"context {row['context']:,} B, outside PyTorch at the end {row['outside']:,} B"
    )
    return text if row["difference"] is None else f"{text}\n     {row['difference']}"


def text_of(report):
    addresses = report["addresses"]
    pretended = "NOT A CARD: the stand-in was both sides\n" if report["is_pretended"] else ""
    return (
        f"{pretended}{report['gpu']}, driver {report['driver']}, {report['date']}\n"
        f"addresses: {addresses['equal']} of {addresses['total']} as the stand-in's rule gives them\n"
        + "".join(f"{suite_line(row)}\n" for row in report["suites"])
        + "".join(f"{line_of(row)}\n" for row in report["programs"])
    )


if __name__ == "__main__":
    main()
