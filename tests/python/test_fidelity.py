# SPDX-License-Identifier: MIT
"""The comparison of a dry run with a recording: what it must see, on made-up traces."""

import os
import pickle
import subprocess
import sys

import pytest

from conftest import ROOT, command_path

FIDELITY = ROOT / "bench" / "fidelity"
sys.path.insert(0, str(FIDELITY))
import compare  # noqa: E402
import fidelity  # noqa: E402

MIB = 1 << 20
CASE = fidelity.Case("a0", "2.6.0", "a100-80")
EVENTS = [
    ("segment_alloc", 20 * MIB, 0), ("alloc", 5 * MIB, 0), ("alloc", 3 * MIB, 5 * MIB),
    ("free_requested", 5 * MIB, 0), ("free_completed", 5 * MIB, 0), ("alloc", 4 * MIB, 0),
]  # fmt: skip


def trace(events=None, base=0x7F0000000000, allocated=8 * MIB, reserved=20 * MIB):
    made = [compare.Event(kind, size, base + offset) for kind, size, offset in events or EVENTS]
    peaks = {"requested": 8 * MIB - 1, "allocated": allocated, "reserved": reserved}
    return compare.Trace(made, peaks)


def changed(index, *event):
    return [*EVENTS[:index], *event, *EVENTS[index + 1 :]]


def test_the_same_elsewhere_is_exact():
    found = compare.compare(trace(), trace(base=0x200000000000))
    assert found.is_exact() and found.difference is None
    assert (found.total, found.identical, found.surplus) == (6, 6, 0)
    assert (found.placed, found.placed_alike) == (3, 3)
    assert found.errors == {"requested": 0, "allocated": 0, "reserved": 0}


def test_one_other_size_is_seen():
    found = compare.compare(trace(), trace(changed(2, ("alloc", 3 * MIB + 1, 5 * MIB))))
    assert not found.is_exact()
    assert (found.identical, found.surplus) == (5, 1)
    assert found.difference == f"event 2: alloc of {3 * MIB}, here alloc of {3 * MIB + 1}"


def test_one_other_action_is_seen():
    found = compare.compare(trace(), trace(changed(4, ("alloc", 5 * MIB, 0))))
    assert not found.is_exact() and found.identical == 5


@pytest.mark.parametrize("index", range(len(EVENTS)))
def test_a_missing_event_is_seen_and_the_rest_still_matches(index):
    shorter = trace(changed(index))
    found = compare.compare(trace(), shorter)
    assert not found.is_exact() and (found.identical, found.surplus) == (5, 0)
    found = compare.compare(shorter, trace())
    assert not found.is_exact() and (found.identical, found.surplus) == (5, 1)
    assert found.difference.startswith("event ")


def test_another_place_is_no_other_event():
    found = compare.compare(trace(), trace(changed(5, ("alloc", 4 * MIB, 8 * MIB))))
    assert found.is_exact()
    assert (found.placed, found.placed_alike) == (3, 2)


def test_errors_of_peaks_are_signed():
    found = compare.compare(trace(), trace(allocated=9 * MIB, reserved=18 * MIB))
    assert found.errors == {"requested": 0, "allocated": MIB, "reserved": -2 * MIB}
    assert not fidelity.is_reached(CASE, found, trace().peaks)


@pytest.mark.parametrize(
    ("allocated", "reserved", "reached"),
    [(0, 0, True), (0, 20_971, True), (0, -20_972, False), (1, 0, False)],
)
def test_goals(allocated, reserved, reached):
    other = trace(allocated=8 * MIB + allocated, reserved=20 * MIB + reserved)
    assert fidelity.is_reached(CASE, compare.compare(trace(), other), trace().peaks) == reached
    missed = compare.compare(trace(), trace(changed(0)))
    assert not fidelity.is_reached(CASE, missed, trace().peaks)


def write_snapshot(path, events, base=0x200000000000):
    """A snapshot as PyTorch writes it: what the events leave behind, and the events."""
    common = {"stream": 0, "time_us": 1, "frames": []}
    blocks = [
        {"address": base, "size": 4 * MIB, "requested_size": 4 * MIB, "state": "active_allocated"},
        {"address": base + 4 * MIB, "size": MIB, "requested_size": 0, "state": "inactive"},
        {"address": base + 5 * MIB, "size": 3 * MIB, "requested_size": 3 * MIB,
         "state": "active_allocated"},
        {"address": base + 8 * MIB, "size": 12 * MIB, "requested_size": 0, "state": "inactive"},
    ]  # fmt: skip
    segment = {
        "device": 0, "address": base, "total_size": 20 * MIB, "allocated_size": 7 * MIB,
        "active_size": 7 * MIB, "requested_size": 7 * MIB, "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
        "blocks": [{**block, "frames": []} for block in blocks],
    }  # fmt: skip
    entries = [
        {"action": kind, "addr": base + offset, "size": size, **common}
        for kind, size, offset in events
    ]
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [entries]}))
    return path


def test_snapshots_are_read_and_cut(tmp_path):
    path = write_snapshot(tmp_path / "whole.pickle", EVENTS)
    whole = compare.read(command_path(), path)
    assert [event.what() for event in whole.events] == [event[:2] for event in EVENTS]
    assert whole.peaks == {"requested": 8 * MIB, "allocated": 8 * MIB, "reserved": 20 * MIB}
    fidelity.keep_last_events(path, 1)
    cut = compare.read(command_path(), path)
    assert [event.what() for event in cut.events] == [("alloc", 4 * MIB)]
    assert cut.peaks == {"requested": 7 * MIB, "allocated": 7 * MIB, "reserved": 20 * MIB}


def call(*arguments, **variables):
    result = subprocess.run(
        [sys.executable, FIDELITY / "fidelity.py", "--allot", command_path(), *arguments],
        env={**os.environ, "ALLOT_FIDELITY_PYTHON": "", **variables}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    return result.returncode, result.stderr


def test_what_is_missing_is_said(tmp_path):
    code, text = call("--data", tmp_path, "a9")
    assert code == 1 and f"no a9_*.pickle in {tmp_path}" in text and "--data" in text
    write_snapshot(tmp_path / "a9_made_up.pickle", EVENTS)
    code, text = call("--data", tmp_path, "a9")
    assert code == 1 and "no Python with torch 2.6.0" in text and "--install" in text
    code, text = call("--data", tmp_path, "a9", ALLOT_FIDELITY_PYTHON="/nowhere/python")
    assert code == 1 and "/nowhere/python in ALLOT_FIDELITY_PYTHON" in text
    code, text = call("b1")
    assert code == 2 and "no program for b1" in text
