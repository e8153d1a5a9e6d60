# SPDX-License-Identifier: MIT
"""What the report of a dry run says, with a program that leaves reports as the recorder does."""

import json
import sys
import textwrap

import pytest
from conftest import HAS_STANDIN

pytestmark = pytest.mark.skipif(
    not HAS_STANDIN, reason="no stand-in, or an instrumented one, which other programs cannot load"
)

PROGRAM = """
    import json, os, pathlib, sys
    folder, pid, told = pathlib.Path(os.environ["ALLOT_DRYRUN"]), os.getpid(), json.loads(sys.argv[1])
    report = {"torch": "2.15.0", "cuda": "13.0", "steps": 3, "oom": told.get("oom", []),
              "devices": [{"device": i, "allocated_peak": peak, "reserved_peak": peak,
                           "retries": told.get("retries", 0)} for i, peak in enumerate(told["peaks"])],
              "exception": told.get("exception"), "problems": [], "finished": True,
              "python": "python"}
    (folder / f"{pid}.json").write_text(json.dumps(report))
    devices = [{"number": i, "total": 1 << 33, "peak": peak, "context": 0}
               for i, peak in enumerate(told["peaks"])]
    (folder / f"standin.{pid}").write_text(json.dumps({"devices": devices, "is_python": True}))
    sys.exit(told.get("code", 0))
"""

OOM = {"device": 1, "size": 1 << 30, "free": 0, "allocated": 1, "reserved": 1, "line": "a.py:7 (f)",
       "step": 2}  # fmt: skip


@pytest.fixture
def report(run, tmp_path):
    """report(options..., code=, **told) returns what is printed."""

    def call(*options, code=0, env=None, peaks=(1 << 20,), **told):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(PROGRAM))
        told["peaks"] = peaks
        return run("dryrun", "--no-advise", *options, "--", sys.executable, "-I", script,
                   json.dumps(told), code=code, env=env).stdout  # fmt: skip

    return call


def died(kind, text="words", line="a.py:1"):
    return {"type": kind, "text": text, "line": line, "time": 1}


def test_the_smallest_card_is_of_all_that_are_known(report, run, tmp_path):
    listed = len(json.loads(run("gpu", "--json", "list").stdout)["gpus"])
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert f"smallest card    rtx2080ti (10.76 GiB), of the {listed} listed, by its memory alone" in report(
        "--gpu", "a100-80", env=env
    )
    card = tmp_path / "tiny.json"
    card.write_text(json.dumps({"schema": "allot-gpu/1", "id": "tiny", "name": "Tiny",
                                "like": "rtx4090", "memory_total": 4 << 30}))  # fmt: skip
    assert f"smallest card    tiny (4.00 GiB), of the {listed} listed: the one of this run" in report(
        "--gpu", card, env=env
    )
    run("gpu", "import", card, env=env)
    assert f"tiny (4.00 GiB), of the {listed} listed and 1 imported, by its memory alone\n" in report(
        "--gpu", "a100-80", env=env
    )


def test_each_gpu_of_a_process_has_a_row(report):
    text = report("--gpus", "2", peaks=(3 << 20, 5 << 20, 0))
    rows = [line.split() for line in text.splitlines() if line.startswith("  cuda:")]
    assert [row[:5] for row in rows] == [
        ["cuda:0", "3.0", "MiB", "3.0", "MiB"], ["cuda:1", "5.0", "MiB", "5.0", "MiB"],
    ]  # fmt: skip
    assert "shown here" not in " ".join(rows[0]) and "shown here" in " ".join(rows[1])
    assert "cuda:" not in report()


def test_an_out_of_memory_names_the_gpu(report):
    text = report("--gpus", "2", peaks=(9, 9), oom=[OOM], code=1, exception=died("OutOfMemoryError"))
    assert "asked for 1.00 GiB on cuda:1 at a.py:7 (f)" in text
    first = report(oom=[OOM | {"device": 0}], code=1, exception=died("OutOfMemoryError"))
    assert "asked for 1.00 GiB at a.py:7 (f)" in first


def test_an_out_of_memory_that_was_caught(report):
    text = report(oom=[OOM] * 3, retries=1)
    assert text.startswith("FITS (3 out-of-memory caught) on ")
    assert "a.py:7 (f)" in text and "smallest card" not in text
    assert "cached memory was to be given back first" in text
    assert report(oom=[OOM]).startswith("FITS (1 out-of-memory caught) on ")
    # A program that says that it failed did not come to its end.
    assert "OUT OF MEMORY" in report(oom=[OOM], code=1, exception=died("ValueError"))


@pytest.mark.parametrize(
    ("exception", "said"),
    [
        (died("RuntimeError", "CUDA error: invalid device ordinal"), "beyond the 1 there is: --gpus 2"),
        (died("torch._inductor.exc.TritonMissing", "no"), "TORCH_COMPILE_DISABLE=1"),
        (died("KeyboardInterrupt", ""), "FAILED: it was interrupted (SIGINT)"),
    ],
)
def test_a_failure_has_a_way_out(report, exception, said):
    assert said in report(code=4, exception=exception)


def test_a_place_that_is_not_known_is_left_out(report):
    text = report(code=4, exception=died("SyntaxError", line=""))
    assert "SyntaxError: words" in text and "\n  at" not in text
