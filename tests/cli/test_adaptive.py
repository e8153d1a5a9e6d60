# SPDX-License-Identifier: MIT
"""A heap that places adaptively holds at most what the best fixed strategy holds, and one per cent."""

import json

import pytest
from conftest import ROOT, run_command

FIXED = ["first-fit", "best-fit", "buddy", "tlsf", "tiered"]
EXAMPLE = ROOT / "examples" / "finetune_11gib_oom.pickle.gz"
RECORDINGS = [
    "snapshots/a7_cpp_frames_segment_free.pickle",
    "snapshots/a8_complete_history_train.pickle",
    "snapshots/a9_complete_history_small.pickle",
    "oracle/finetune_80gib.pickle.gz",
]


def peaks(path, models):
    """Most bytes that each model holds for the requests of a recording."""
    options = [option for model in models for option in ("--model", model)]
    document = json.loads(run_command("replay", "--json", *options, path).stdout)
    return [replay["reserved_peak"] for replay in document["replays"]]


def check(path, modes):
    heaps = [f"heap:{strategy}:mode={mode}" for strategy in FIXED for mode in modes]
    adaptive, classic, expandable, *fixed = peaks(
        path, [f"heap:adaptive:mode={modes[0]}", "torch", "torch:expandable_segments:True", *heaps]
    )
    assert adaptive <= min(fixed) * 1.01
    return adaptive, classic, expandable


def test_it_holds_less_than_others_for_the_example():
    adaptive, classic, expandable = check(EXAMPLE, ["virtual", "segments"])
    assert adaptive < classic
    assert adaptive < expandable


def test_in_segments_it_holds_half_of_what_others_hold():
    adaptive, classic, expandable = check(EXAMPLE, ["segments"])
    assert adaptive < classic * 0.6
    assert adaptive < expandable


@pytest.mark.parametrize("name", RECORDINGS)
def test_in_segments_it_holds_less_than_pytorch(data, name):
    adaptive, classic, _ = check(data(name), ["segments"])
    assert adaptive < classic


@pytest.mark.parametrize("name", RECORDINGS)
def test_it_holds_less_than_others_for_recordings(data, name):
    adaptive, classic, expandable = check(data(name), ["virtual", "segments"])
    assert adaptive < classic
    assert adaptive < expandable
