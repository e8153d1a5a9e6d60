# SPDX-License-Identifier: MIT
"""Dry runs of real PyTorch programs, and the oracle: what the real allocator did.

ALLOT_TORCH_PYTHON names the Python interpreters to test with, separated by colons; each has a CUDA
build of torch, without the NVIDIA packages. Without it, or without torch, the tests are skipped.
"""

import gzip
import json
import os
import pathlib
import pickle
import re
import subprocess
import textwrap

import pytest

PYTHONS = [p for p in os.environ.get("ALLOT_TORCH_PYTHON", "").split(":") if p]
STANDIN = pathlib.Path(os.environ.get("ALLOT_BUILD", "build/dev")) / "standin"

# The device that the oracle was made on.
ORACLE_GPU = {"schema": "allot-gpu/1", "id": "oracle", "name": "Oracle", "like": "a100-80",
              "sm_count": 96}  # fmt: skip


def torch_version(python):
    code = "import importlib.metadata as m; print(m.version('torch'))"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return result.stdout.strip()


@pytest.fixture(scope="session", params=PYTHONS or [None])
def python(request):
    if request.param is None:
        pytest.skip("no Python with torch: ALLOT_TORCH_PYTHON is not set")
    if not torch_version(request.param):
        pytest.skip(f"{request.param} has no torch")
    return request.param


@pytest.fixture(scope="session")
def python_of_the_oracle():
    for python in PYTHONS:
        if torch_version(python).startswith("2.15.0"):
            return python
    pytest.skip("no Python with torch 2.15.0 in ALLOT_TORCH_PYTHON")


@pytest.fixture
def dryrun(run, tmp_path):
    """dryrun(python, script, options..., code=exit code) runs a script; returns its JSON."""

    def call(python, script, *options, code=0, arguments=()):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(script))
        result = run("dryrun", "--json", *options, "--", python, path, *arguments, code=code,
                     timeout=600)  # fmt: skip
        return json.loads(result.stdout[result.stdout.index("{\n") :]), result

    return call


TRAIN = """
    import sys, torch
    batch = int(sys.argv[1])
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(3):
        loss = model(torch.randn(batch, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_small_training_fits(dryrun, python):
    result, _ = dryrun(python, TRAIN, "--gpu", "rtx4090", arguments=["64"])
    assert result["verdict"] == "fits"
    assert result["steps"] == 3
    assert result["torch"].split("+")[0] == torch_version(python).split("+")[0]
    weights = 4 * (1024 * 1024 + 1024) * 4
    assert 3 * weights < result["allocated_peak"] < 8 * weights
    assert result["allocated_peak"] <= result["reserved_peak"] <= result["device_peak"]
    assert result["missing"] == {} and result["problems"] == {}


def test_out_of_memory_names_the_line(dryrun, python):
    result, _ = dryrun(python, TRAIN, "--limit", "1GiB", code=1, arguments=["100000"])
    assert result["verdict"] == "out_of_memory"
    first = result["out_of_memory"][0]
    assert "script.py:7 " in first["line"]
    assert first["size"] >= 100000 * 1024 * 4
    assert "OutOfMemoryError" in result["exception"]
    assert result["device_peak"] <= 1 << 30


def test_steps_end_a_run(dryrun, python):
    result, _ = dryrun(python, TRAIN, "--steps", "2", arguments=["64"])
    assert result["verdict"] == "fits"
    assert result["steps"] == 2


def test_another_failure_is_not_about_memory(dryrun, python):
    script = "import torch\ntorch.ones(3, device='cuda')\nraise ValueError('no such data')"
    result, _ = dryrun(python, script, code=4)
    assert result["verdict"] == "failed"
    assert result["exception"] == "builtins.ValueError: no such data"
    assert "script.py:3" in result["exception_line"]


def test_a_loop_that_waits_for_a_value_is_ended(dryrun, python):
    script = """
        import torch
        flag = torch.zeros(1, dtype=torch.bool, device="cuda")
        while not flag:
            pass
    """
    result, raw = dryrun(python, script, "--set", "guard:1000", code=1)
    assert result["verdict"] == "incomplete"
    assert "script.py:4" in raw.stderr
    result, _ = dryrun(python, script, "--set", "flip:10")
    assert result["verdict"] == "fits"
    assert any("script.py:4" in line for line in result["reads"])


def test_the_peak_can_be_asserted(dryrun, python):
    _, raw = dryrun(python, TRAIN, "--assert-peak", "1MiB", code=1, arguments=["64"])
    assert "--assert-peak 1MiB" in raw.stderr


def test_a_program_without_cuda_is_incomplete(dryrun, python):
    result, _ = dryrun(python, "import torch", code=1)
    assert result["verdict"] == "incomplete"


def test_streams_bound_the_memory_from_both_sides(dryrun, python):
    script = """
        import torch
        side = torch.cuda.Stream()
        for _ in range(50):
            with torch.cuda.stream(side):
                block = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
            block.record_stream(torch.cuda.current_stream())
            del block
    """
    least, _ = dryrun(python, script, "--limit", "40GiB")
    most, _ = dryrun(python, script, "--limit", "40GiB", "--events", "sync")
    assert least["reserved_peak"] == 100 << 20
    assert most["reserved_peak"] == 50 * (100 << 20)


def test_the_users_own_sitecustomize_runs(python, run, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    result = run("dryrun", "--json", "--", python, "-c", "pass", code=1,
                 env={"PYTHONPATH": str(tmp_path)})  # fmt: skip
    assert result.stdout.startswith("mine\n")
    assert "sitecustomize" not in result.stderr


def test_graphs_pools_and_settings_work(dryrun, python):
    script = """
        import torch
        static = torch.zeros(1000, 1000, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            static @ static
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = static @ static + 1
        graph.replay()
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            own = torch.empty(1 << 20, device="cuda")
        pinned = torch.empty(1 << 20, pin_memory=True)
        own.copy_(pinned, non_blocking=True)
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() > 0
    """
    for setting in ("", "expandable_segments:True", "max_split_size_mb:64"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting
        try:
            result, _ = dryrun(python, script)
        finally:
            del os.environ["PYTORCH_CUDA_ALLOC_CONF"]
        assert result["verdict"] == "fits", setting


def test_one_rank_of_eight_runs_alone(dryrun, python):
    script = """
        import torch, torch.distributed as dist
        from torch.distributed.fsdp import fully_shard
        dist.init_process_group("nccl")
        assert dist.get_world_size() == 8 and dist.get_rank() == 3
        gathered = [None] * 8
        dist.all_gather_object(gathered, {"rank": 3})
        assert gathered == [{"rank": 3}] * 8
        with torch.device("cuda"):
            model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(4)])
            own = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        before = torch.cuda.memory_allocated()
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        model(torch.randn(8, 4096, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        print("parameters", torch.cuda.memory_allocated())
        dist.destroy_process_group()
    """
    result, _ = dryrun(python, script, "--world", "8", "--rank", "3")
    assert result["verdict"] == "fits"


# ---- the oracle ----


@pytest.fixture
def on_the_oracle(python_of_the_oracle, tmp_path):
    """on_the_oracle(limit MiB, setting, script, arguments...) returns the standard output."""
    profile = tmp_path / "oracle.json"
    profile.write_text(json.dumps(ORACLE_GPU))

    def call(limit, setting, *command):
        libraries = [STANDIN.resolve() / name for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
        variables = dict(
            os.environ, LD_PRELOAD=":".join(map(str, libraries)),
            LD_LIBRARY_PATH=str(STANDIN.resolve()), PYTORCH_CUDA_ALLOC_CONF=setting,
            ALLOT_STANDIN=f"profile:{profile},limit:{limit}MiB,addresses:upward",
        )  # fmt: skip
        result = subprocess.run(
            [python_of_the_oracle, *map(str, command)], env=variables, capture_output=True,
            text=True, timeout=600, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    return call


# Name, setting, memory in MiB, fraction, kind of program, seed.
RANDOM_PROGRAMS = [
    ("classic_tight", "", 7000, None, "empty", 101),
    ("classic_streams_tight", "", 8000, None, "streams_empty", 102),
    ("classic_pools", "", 40960, None, "streams_pools_empty", 103),
    ("gc08_maxsplit", "garbage_collection_threshold:0.8,max_split_size_mb:256", 8000, "1.0",
     "streams", 108),
    ("expandable_maxsplit_gc", "expandable_segments:True,max_split_size_mb:64,"
     "garbage_collection_threshold:0.8", 8000, "0.95", "streams_empty", 114),
    ("expandable_pools", "expandable_segments:True", 40960, None, "streams_pools_empty", 115),
]  # fmt: skip


class PlainUnpickler(pickle.Unpickler):
    """Loads plain data only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def events(path):
    """Action, size and address of every event, addresses counted from the lowest."""
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        trace = PlainUnpickler(file).load()["device_traces"][0]
    lowest = min(e["addr"] for e in trace if e["action"] in ("segment_alloc", "segment_map"))
    return [
        (e["action"], e["size"], None if e["action"] == "oom" else e["addr"] - lowest)
        for e in trace
    ]


@pytest.mark.parametrize("program", RANDOM_PROGRAMS, ids=lambda p: p[0])
def test_random_programs_repeat_every_event(on_the_oracle, data, tmp_path, program):
    name, setting, limit, fraction, kind, seed = program
    script, expected = data("oracle/random_program.py"), data(f"oracle/{name}.pickle.gz")
    out = tmp_path / "out.pickle"
    on_the_oracle(limit, setting, script, out, seed, 6000, kind, *([fraction] if fraction else []))
    assert events(out) == events(expected)


@pytest.mark.parametrize(
    ("setting", "limit", "expected"),
    [
        ("", 11264, "steps 6 peak allocated 9287 reserved 10536 retries 3"),
        ("", 81920, "steps 13 peak allocated 10027 reserved 19880 retries 0"),
        ("expandable_segments:True", 11264, "steps 13 peak allocated 10011 reserved 11050 retries 0"),
        ("max_split_size_mb:512", 12288, "steps 13 peak allocated 10031 reserved 12272 retries 2"),
    ],
)
def test_the_fine_tuning_run_has_the_figures_of_the_oracle(
    on_the_oracle, data, setting, limit, expected
):
    script = data("oracle/finetune.py")
    arguments = "--dim 768 --layers 12 --heads 12 --steps 14 --out out.pickle".split()
    assert re.search(f"^{expected}$", on_the_oracle(limit, setting, script, *arguments),
                     re.MULTILINE)  # fmt: skip
