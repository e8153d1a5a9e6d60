#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How exact a dry run is: programs of ours on the stand-in, beside snapshots that real cards gave.

For each snapshot the program beside this file that takes the same steps runs under the version of
torch that recorded it, by `allot dryrun`; the last events of its trace, as many as the snapshot has,
are compared with the snapshot's. Prints a table; exit code 1 if a goal is missed.

ALLOT_FIDELITY_PYTHON names Python interpreters with those versions, separated by colons; --install
makes the environments instead (a gigabyte each, without the NVIDIA packages).
"""

import argparse
import dataclasses
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import venv

import compare

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
DATA = TREE.parent / "shared" / "data" / "snapshots"
RESERVED_ERROR_MAX = 0.001  # of the peak; events and the exact measure may not differ at all
TRACKER_TIMEOUT_S = 600


@dataclasses.dataclass(frozen=True)
class Case:
    name: str  # of the snapshot, and of the program
    torch: str
    gpu: str
    conf: str = ""  # PYTORCH_CUDA_ALLOC_CONF
    settings: str = "addresses:linux"  # of the stand-in
    exact: str = "allocated"  # the measure whose peak has to be equal


ON_WINDOWS = "addresses:reuse"
CASES = [
    Case("a8", "2.6.0", "rtx4090", settings=ON_WINDOWS),
    Case("a9", "2.6.0", "a100-80"),
    Case("a10", "2.11.0", "rtx4080", settings=ON_WINDOWS),
    Case("a11", "2.11.0", "b200", conf="expandable_segments:True"),
    # What is left of a segment counts as allocated, and how many steps came before is not known.
    Case("a15", "2.6.0", "a100-80", exact="requested"),
]


class Unusable(Exception):
    """Something that is needed is not there; the text says what to do."""


def main():
    args = arguments()
    try:
        rows = list(measure_all(args))
    except Unusable as reason:
        sys.exit(f"fidelity: {reason}")
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        result = {"schema": "allot.bench.fidelity/1", "rows": rows}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
        print(f"the same as JSON: {args.json}")
    return 0 if all(row["is_reached"] for row in rows) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--allot", type=pathlib.Path, default=TREE / "build" / "release" / "allot")
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="the folder of snapshots")
    parser.add_argument("--install", type=pathlib.Path, metavar="FOLDER",
                        help="make the environments that are missing here")  # fmt: skip
    parser.add_argument("--gpu", help="another card than the recorded one, for all")
    parser.add_argument("--tracker", action="store_true",
                        help="also what PyTorch's own MemTracker estimates")  # fmt: skip
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    parser.add_argument("names", nargs="*", metavar="NAME", help="snapshots; all without names")
    args = parser.parse_args()
    unknown = set(args.names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no program for {', '.join(sorted(unknown))}")
    return args


def measure_all(args):
    cases = [case for case in CASES if not args.names or case.name in args.names]
    snapshots = {case.name: snapshot_of(case, args.data) for case in cases}
    pythons = pythons_for({case.torch for case in cases}, args.install)
    print(HEADER, flush=True)
    for case in cases:
        row = measure(case, snapshots[case.name], pythons[case.torch], args)
        print(line_of(row), flush=True)
        if row["difference"] is not None:
            print(f"       first difference at {row['difference']}", flush=True)
        yield row


def snapshot_of(case, folder):
    found = sorted(folder.glob(f"{case.name}_*.pickle"))
    if not found:
        raise Unusable(
            f"no {case.name}_*.pickle in {folder}: the recordings do not come with the source; "
            "--data names the folder that has them"
        )
    return found[0]


def pythons_for(versions, folder):
    """{version of torch: Python interpreter that has it}"""
    named = filter(None, os.environ.get("ALLOT_FIDELITY_PYTHON", "").split(":"))
    pythons = {version_of_torch(python): python for python in named}
    for version in sorted(versions - pythons.keys()):
        if folder is None:
            raise Unusable(
                f"no Python with torch {version}: name one in ALLOT_FIDELITY_PYTHON, or let "
                "--install FOLDER make it, as `make fidelity` does"
            )
        pythons[version] = install(version, folder.resolve())
    return pythons


def version_of_torch(python):
    code = "import importlib.metadata as m; print(m.version('torch'))"
    try:
        text = subprocess.check_output([python, "-c", code], text=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unusable(f"{python} in ALLOT_FIDELITY_PYTHON is no Python with torch") from error
    return text.strip().split("+")[0]


def install(version, folder):
    """A private environment with this torch and, of what it depends on, what Python itself needs."""
    place = folder / f"torch-{version}"
    python = place / "bin" / "python"
    if (place / "made").exists():
        return python
    print(f"installing torch {version} into {place}", file=sys.stderr, flush=True)
    venv.create(place, with_pip=True, clear=True)
    lines = (TREE / "tests" / "requirements-torch.txt").read_text().splitlines()
    others = [line for line in lines if line and not line.startswith(("#", "torch=="))]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if subprocess.run([*pip, f"torch=={version}", *others], check=False).returncode != 0:
        raise Unusable(f"pip could not install torch {version}: see above")
    (place / "made").touch()
    return python


def measure(case, snapshot, python, args):
    gpu = args.gpu or case.gpu
    real = compare.read(args.allot, snapshot)
    with tempfile.TemporaryDirectory() as folder:
        recorded = pathlib.Path(folder) / "dry.pickle"
        dry_run(case, gpu, [python, HERE / f"{case.name}.py"], args.allot, "--record", recorded)
        keep_last_events(recorded, len(real.events))
        dry = compare.read(args.allot, recorded)
    found = compare.compare(real, dry)
    row = {"snapshot": case.name, "torch": case.torch, "gpu": gpu, "conf": case.conf,
           "settings": case.settings, **dataclasses.asdict(found), "peaks": real.peaks,
           "is_reached": is_reached(case, found, real.peaks)}  # fmt: skip
    if args.tracker:
        row["tracker"] = estimate(case, gpu, python, args.allot)
    return row


def dry_run(case, gpu, command, allot, *options, timeout_s=None):
    command = [allot, "dryrun", "--gpu", gpu, "--set", case.settings, *options, "--", *command]
    result = subprocess.run(
        list(map(str, command)), env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=case.conf),
        capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise Unusable(f"the dry run of {case.name} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def keep_last_events(path, count):
    """The recording on the card began late: drop what came before. For files made here only."""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    snapshot["device_traces"] = [trace[-count:] for trace in snapshot["device_traces"]]
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)


def is_reached(case, found, peaks):
    return (
        found.is_exact()
        and found.errors[case.exact] == 0
        and abs(found.errors["reserved"]) <= RESERVED_ERROR_MAX * peaks["reserved"]
    )


def estimate(case, gpu, python, allot):
    """Bytes, or None if the tracker gives nothing in time."""
    command = [python, HERE / "tracker.py", HERE / f"{case.name}.py"]
    try:
        return int(dry_run(case, gpu, command, allot, timeout_s=TRACKER_TIMEOUT_S).split()[0])
    except (Unusable, subprocess.TimeoutExpired):
        return None


HEADER = (
    f"{'':5} {'torch':7} {'card':9} {'events identical':>16} {'placed alike':>14} "
    f"{'peak allocated, error':>30} {'peak reserved, error':>30}"
)


def line_of(row):
    text = (
        f"{row['snapshot']:5} {row['torch']:7} {row['gpu']:9} "
        f"{row['identical']:>6} of {row['total']:>6} {row['placed_alike']:>5} of {row['placed']:>5} "
        f"{error_text(row, 'allocated'):>30} {error_text(row, 'reserved'):>30}"
    )
    if "tracker" in row:
        text += f"   MemTracker {tracker_text(row)}"
    return text


def error_text(row, name):
    error, peak = row["errors"][name], row["peaks"][name]
    share = f"{error:+,} B ({100 * error / peak:+.3f} %)" if error else "0 B"
    return f"{peak / 2**20:,.1f} MiB, {share}"


def tracker_text(row):
    if row["tracker"] is None:
        return f"nothing in {TRACKER_TIMEOUT_S} s"
    return f"{100 * (row['tracker'] / row['peaks']['allocated'] - 1):+.2f} %"


if __name__ == "__main__":
    sys.exit(main())
