# SPDX-License-Identifier: MIT
"""Dry runs of convolutions: sizes of cuDNN that are not known, assumed, or told by cuDNN's double."""

import os
import pathlib
import textwrap

import pytest

DOUBLE = pathlib.Path(os.environ.get("ALLOT_BUILD", "build/dev")) / "tests/standin/cudnn-new/libcudnn.so.9"

CONVOLVE = """
    import sys, torch
    batch, choose = int(sys.argv[1]), sys.argv[2]
    torch.backends.cudnn.deterministic = choose == "deterministic"
    torch.backends.cudnn.benchmark = choose == "benchmark"
    layer = torch.nn.Conv2d(8, 8, 3, padding=1, bias=False, device="cuda")
    image = torch.randn(batch, 8, 10, 10, device="cuda", requires_grad=True)
    layer(image).sum().backward()
    torch.cuda.synchronize()
    print("done")
"""


def elements(batch):
    """Of the tensors of each of the three convolutions: forward, backward twice."""
    return 8 * 8 * 3 * 3 + 2 * batch * 8 * 10 * 10


MULTIPROCESSORS = 108  # of an A100; the double's first proposal is as many bytes larger


@pytest.fixture
def convolve(dryrun, python):
    def call(*options, batch=2, choose="default", code=0):
        arguments = [str(batch), choose]
        return dryrun(python, CONVOLVE, *options, arguments=arguments, code=code)[0]

    return call


def workspaces(result):
    return [size for size in result["workspaces"] if size["name"] == "cuDNN workspaces"]


def test_the_table_completes_it(convolve):
    result = convolve("--workspace", "cudnn=256MiB")
    assert result["verdict"] == "fits" and result["unknown"] == {} and result["cudnn"] is None
    assert [(s["basis"], s["calls"], s["largest"]) for s in workspaces(result)] == [("table", 3, 256 << 20)]
    assert 256 << 20 <= result["allocated_peak"] < 258 << 20


def test_words_name_both_ways_out(run, python, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(CONVOLVE))
    text = run("dryrun", "--", python, path, "2", "default", code=1, timeout=600).stdout
    assert "sizes not known: cuDNN workspaces (3 times)" in text
    assert "--workspace cudnn=SIZE" in text and "--cudnn" in text
    assert "fits if none is larger than the headroom" in text


def test_cudnn_tells_its_workspaces(convolve):
    result = convolve("--cudnn-library", DOUBLE)
    assert result["verdict"] == "fits"
    assert [(s["basis"], s["calls"], s["largest"]) for s in workspaces(result)] == [
        ("library", 3, elements(2) + MULTIPROCESSORS)
    ]
    assert result["cudnn"]["version"] == 92600 and result["cudnn"]["problem"] == ""
    assert result["cudnn"]["queries"] == 3


def test_notes_of_engines_reach_pytorch(convolve):
    """The first proposal is not deterministic."""
    result = convolve("--cudnn-library", DOUBLE, choose="deterministic")
    assert [s["largest"] for s in workspaces(result)] == [elements(2) // 2]


def test_the_fastest_engine_is_not_known(convolve):
    result = convolve("--cudnn-library", DOUBLE, choose="benchmark")
    assert result["verdict"] == "fits"
    by_time = [s for s in workspaces(result) if s["basis"] == "rule"]
    assert len(by_time) == 1 and by_time[0]["most"] == elements(2) + MULTIPROCESSORS
    assert "benchmark" in by_time[0]["source"]


def test_a_crash_of_cudnn_leaves_the_run_alone(convolve):
    result = convolve("--cudnn-library", DOUBLE, batch=13, code=1)
    assert result["verdict"] == "incomplete" and result["exit_code"] == 0
    assert result["unknown"] == {"cuDNN workspaces": 3}
    assert [(s["basis"], s["workspace"], s["largest"]) for s in workspaces(result)] == [("unknown", "cudnn", 0)]
    assert result["allocated_peak"] < 1 << 20
    assert "helper program ended" in result["cudnn"]["problem"]
