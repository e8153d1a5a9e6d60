# SPDX-License-Identifier: MIT
"""The comparison with the allocators of others: what it measures, leaves out and finds wrong."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT

PEERS = ROOT / "bench" / "peers"
PROGRAMS = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build/dev")) / "bench"
OURS = ["first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive"]
PACKAGES = {"umf", "tensorflow-cpu", "librmm-cu13", "libtcmalloc-minimal4", "libjemalloc2"}

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "peer_replay").exists(), reason="a build without benchmarks"
)


@pytest.fixture
def call(tmp_path):
    """call(ARGUMENTS...): (exit code, both outputs, the JSON or None), with no peer installed."""

    def run(*arguments):
        made = tmp_path / "peers.json"
        result = subprocess.run(
            [sys.executable, PEERS / "peers.py", "--programs", PROGRAMS, "--folder", tmp_path / "none",
             "--rounds", "1", "--operations", "3000", "--json", made, *arguments],
            env={**os.environ, "ALLOT_TORCH_PYTHON": "/nowhere/python"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        return result.returncode, result.stdout, json.loads(made.read_text()) if made.exists() else None

    return run


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    made = tmp_path_factory.mktemp("fake") / "fake.so"
    compiler = os.environ.get("CC", "cc").split()
    source = ROOT / "tests" / "python" / "fake_peer.c"
    subprocess.run([*compiler, "-shared", "-fPIC", "-I", PEERS, source, "-o", made], check=True)
    return made


def test_what_is_there_is_measured_and_the_rest_left_out_with_a_reason(call):
    code, text, result = call()
    assert code == 0
    names = [f"allot-{name}" for name in OURS] + ["glibc"]
    assert [(row["workload"], row["contestant"]) for row in result["rows"]] == [
        (workload, name) for workload in ("W1", "W2", "W3", "W4") for name in names
    ]
    for row in result["rows"]:
        assert row["ns_per_operation"]["median"] > 0 and row["ratios"]["tlsf"] > 0
        assert row["fault"] is None and row["note"] == ""
        assert f"{row['workload']}  {row['contestant']} " in text
    for package in PACKAGES:
        reasons = [reason for reason in result["absent"].values() if package in reason]
        assert reasons and all("--install" in reason for reason in reasons), package
    assert "ALLOT_TORCH_PYTHON" in result["absent"]["pytorch"]
    for name, reason in result["absent"].items():
        assert f"left out: {name}: {reason}" in text


def test_ratios_are_to_our_own(call):
    _, _, result = call("--workloads", "W2", "allot-tlsf", "allot-first-fit", "glibc")
    rows = {row["contestant"]: row for row in result["rows"]}
    times = {name: row["ns_per_operation"]["median"] for name, row in rows.items()}
    for name, row in rows.items():
        assert row["ratios"] == {
            "tlsf": times[name] / times["allot-tlsf"],
            "first-fit": times[name] / times["allot-first-fit"],
        }
    alone = call("--workloads", "W2", "glibc")[2]["rows"][0]
    assert alone["ratios"] == {"tlsf": None, "first-fit": None}


def call_with(call, fake, kind, *arguments):
    """What became of the fake beside ours: (exit code, output, its row)."""
    code, text, result = call(
        "--workloads", "W2", "--adapter", f"fake={fake}:{kind}", "allot-tlsf", "fake", *arguments
    )
    ours, other = result["rows"]
    assert ours["ns_per_operation"]["median"] > 0
    return code, text, other


def test_an_allocator_of_ones_own_takes_part(call, fake):
    code, _, row = call_with(call, fake, "bump")
    assert code == 0 and row["fault"] is None and row["refused"] == 0
    assert row["reserved"] > row["live_peak"] > 0
    code, _, row = call_with(call, fake, "refuse")
    # 1,000 requests begin W2, every other one of the rest is one more; the fake grants a hundred.
    assert code == 0 and row["refused"] == 1000 + 2000 // 2 - 100


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("overlap", "overlaps one that is in use"),
        ("unaligned", "does not begin at a multiple of 256"),
        ("outside", "ends outside of the region"),
    ],
)
def test_wrong_blocks_are_found(call, fake, kind, what):
    code, text, row = call_with(call, fake, kind)
    assert code == 1
    assert row["fault"].startswith("operation 100: the block of ") and row["fault"].endswith(what)
    assert f"FAULT: {row['fault']}" in text
    assert row["ns_per_operation"] is None


@pytest.mark.parametrize(
    ("kind", "why"),
    [("unwilling", "it does not want to"), ("none", "it cannot be made"), ("abort", "exit code -6")],
)
def test_one_that_fails_does_not_stop_the_others(call, fake, kind, why):
    code, text, row = call_with(call, fake, kind)
    assert code == 0 and why in row["note"] and f"not timed: {row['note']}" in text


def test_a_file_that_is_no_adapter(call):
    code, _, row = call_with(call, "/nowhere/fake.so", "")
    assert code == 0 and "/nowhere/fake.so" in row["note"]


def test_one_that_takes_too_long_is_not_timed(call):
    code, _, result = call("--workloads", "W2", "--limit", "0", "allot-tlsf")
    assert code == 0
    assert result["rows"][0]["note"] == "over 0 s for the first 1,024 operations"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--workloads", "W5"], "--workloads: some of W1,W2,W3,W4"),
        (["--adapter", "fake.so"], "--adapter: NAME=FILE"),
        (["dlmalloc"], "no contestant dlmalloc"),
    ],
)
def test_wrong_arguments(call, arguments, text):
    code, said, result = call(*arguments)
    assert code == 2 and text in said and result is None
