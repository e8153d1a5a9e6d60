# SPDX-License-Identifier: MIT
"""Dry runs of real PyTorch programs."""

import os

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


def test_a_small_training_fits(dryrun, python, torch_version):
    result, _ = dryrun(python, TRAIN, "--gpu", "rtx4090", arguments=["64"])
    assert result["verdict"] == "fits"
    assert result["steps"] == 3
    assert result["torch"].split("+")[0] == torch_version.split("+")[0]
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
    assert result["exception"] == "ValueError: no such data"
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
    result, _ = dryrun(python, script, "--booleans", "script.py:4=flip:10")
    assert result["verdict"] == "fits" and result["approximate"]
    assert any("script.py:4" in line for line in result["booleans"])


def test_the_peak_can_be_asserted(dryrun, python):
    _, raw = dryrun(python, TRAIN, "--assert-peak", "1MiB", code=1, arguments=["64"])
    assert "above --assert-peak 1.0 MiB" in raw.stderr


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
    assert result.stderr.startswith("mine\n")
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
