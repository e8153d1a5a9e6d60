# SPDX-License-Identifier: MIT
"""Which process of a run stands for it, with a program that leaves the reports of several."""

import json
import sys
import textwrap

import pytest
from conftest import HAS_STANDIN

pytestmark = pytest.mark.skipif(
    not HAS_STANDIN, reason="no stand-in, or an instrumented one, which other programs cannot load"
)

# Reports as the recorder and the stand-in leave them: argv[1] lists the processes.
PROGRAM = """
    import json, os, pathlib, sys
    folder = pathlib.Path(os.environ["ALLOT_DRYRUN"])
    for i, told in enumerate(json.loads(sys.argv[1])):
        pid = os.getpid() if i == 0 else 4000000 + i
        peak = told.get("peak", 0)
        device = {"device": 0, "allocated_peak": peak, "reserved_peak": peak, "retries": 0}
        report = {"torch": "2.15.0", "cuda": "13.0", "steps": 3, "oom": told.get("oom", []),
                  "devices": [device] if peak else [], "exception": told.get("exception"),
                  "problems": [], "finished": told.get("finished", True)}
        if "rank" in told:
            report["rank"] = told["rank"]
        (folder / f"{pid}.json").write_text(json.dumps(report))
        if peak:
            devices = [{"number": told.get("gpu", i), "total": 1 << 30, "peak": peak, "context": 0}]
            (folder / f"standin.{pid}").write_text(json.dumps({"devices": devices}))
            if told.get("snapshot", True):
                (folder / f"{pid}.pickle").write_text(f"snapshot {told.get('rank')}")
"""

OOM = [{"device": 0, "size": 5, "free": 0, "allocated": 1, "reserved": 1, "line": "a.py:7",
        "step": 2}]  # fmt: skip


DIED = {"type": "torch.OutOfMemoryError", "text": "CUDA out of memory", "line": "a.py:7", "time": 1}


@pytest.fixture
def ranks(run, tmp_path):
    def call(*processes, code=0, options=(), said=""):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(PROGRAM))
        result = run("dryrun", "--limit", "1GiB", "--json", *options, "--", sys.executable, "-I",
                     script, json.dumps(processes), code=code)  # fmt: skip
        assert said in result.stderr
        return json.loads(result.stdout)

    return call


LAUNCHER = {}


def test_the_largest_rank_stands_for_the_run(ranks):
    result = ranks(LAUNCHER, {"rank": 1, "peak": 300}, {"rank": 0, "peak": 200},
                   {"rank": 2, "peak": 250})  # fmt: skip
    assert result["verdict"] == "fits"
    assert result["allocated_peak"] == 300
    assert [(r["rank"], r["worst"]) for r in result["ranks"]] == [(0, False), (1, True), (2, False)]


def test_out_of_memory_is_worse_than_a_larger_peak(ranks):
    died = {"rank": 1, "peak": 200, "oom": OOM, "exception": DIED}
    result = ranks(LAUNCHER, {"rank": 0, "peak": 300}, died, code=1)
    assert result["verdict"] == "out_of_memory"
    assert result["allocated_peak"] == 200


def test_a_rank_that_caught_an_out_of_memory_stands_for_the_run(ranks):
    result = ranks(LAUNCHER, {"rank": 0, "peak": 300}, {"rank": 1, "peak": 200, "oom": OOM})
    assert result["verdict"] == "fits"
    assert result["allocated_peak"] == 200 and len(result["out_of_memory"]) == 1
    ended = {"rank": 1, "peak": 200, "oom": OOM, "finished": False}
    assert ranks(LAUNCHER, {"rank": 0, "peak": 300}, ended, code=1)["verdict"] == "out_of_memory"


def test_processes_without_a_gpu_are_no_ranks(ranks):
    result = ranks(LAUNCHER, {"rank": 0, "peak": 300}, {}, {})
    assert result["verdict"] == "fits"
    assert result["ranks"] == []
    assert result["allocated_peak"] == 300


def test_a_rank_that_was_ended_leaves_the_run_unknown(ranks):
    result = ranks(LAUNCHER, {"rank": 0, "peak": 300}, {"rank": 1, "finished": False}, code=1)
    assert result["verdict"] == "incomplete"


def test_the_first_failure_is_told(ranks):
    def failed(what, time):
        return {"type": "ValueError", "text": what, "line": "a.py:1", "time": time}

    result = ranks(LAUNCHER, {"rank": 0, "peak": 300, "exception": failed("later", 20)},
                   {"rank": 1, "peak": 200, "exception": failed("first", 10)}, code=4)  # fmt: skip
    assert result["verdict"] == "failed"
    assert result["exception"] == "ValueError: first"


def test_ranks_that_share_a_gpu_are_added_up(ranks):
    most = 600 << 20
    both = [{"rank": 0, "peak": most, "gpu": 1}, {"rank": 1, "peak": most, "gpu": 1}]
    result = ranks(LAUNCHER, *both, code=1)
    assert result["verdict"] == "incomplete"
    assert "2 processes share GPU 1" in next(iter(result["problems"]))


def test_each_rank_keeps_its_snapshot(ranks, tmp_path):
    processes = [LAUNCHER, {"rank": 0, "peak": 1}, {"rank": 1, "peak": 2}]
    ranks(*processes, options=["--record", tmp_path / "of{rank}.bin"])
    ranks(*processes, options=["--record", tmp_path / "kept.pickle"])
    ranks(*processes, options=["--record", tmp_path / "plain"])
    for name in ("of1.bin", "kept.rank1.pickle", "plain.rank1"):
        assert (tmp_path / name).read_text() == "snapshot 1"


def test_snapshots_that_are_missing_are_told(ranks, tmp_path):
    without = [{"rank": i, "peak": 1, "snapshot": False} for i in (0, 1)]
    with_one = [{"rank": 2, "peak": 1}]
    record = ["--record", tmp_path / "kept.pickle"]
    ranks(LAUNCHER, *without, options=record, code=4, said="there is no snapshot to keep")
    ranks(LAUNCHER, *without, *with_one, options=record, said="snapshots of 1 of 3 ranks were kept")
