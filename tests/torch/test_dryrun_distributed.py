# SPDX-License-Identifier: MIT
"""Dry runs of jobs with several ranks: real processes, and one rank without the others."""

import json

import pytest

# What each rank does shows in files, since lines of several processes may run into each other.
JOB = """
    import json, os, pathlib, sys
    import torch, torch.distributed as dist
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    def say(**what):
        pathlib.Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(what))
"""

OBJECTS = JOB + """
    layers = [torch.nn.Linear(512, 512) for _ in range(4)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), [rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(8 + 8 * rank, 512, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    gathered = [None] * world
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * 1000 * rank})
    sent = ["from", rank]
    dist.broadcast_object_list(sent, src=1)
    part = [None]
    dist.scatter_object_list(part, ["first", "second"] if rank == 0 else None, src=0)
    collected = [None] * world if rank == 1 else None
    dist.gather_object(rank * 10, collected, dst=1)
    if rank == 0:
        dist.send_object_list(["to the other"], dst=1)
        received = [None]
    else:
        received = [None]
        dist.recv_object_list(received, src=0)
    total = torch.tensor([rank + 1], device="cuda")
    dist.all_reduce(total)
    dist.barrier()
    pair = dist.new_group([0, 1])
    rest = torch.empty(2, dtype=torch.long, device="cuda")
    dist.all_gather_into_tensor(rest, torch.tensor([rank + 5], device="cuda"), group=pair)
    say(gathered=[(g["rank"], len(g["text"])) for g in gathered], sent=sent, part=part,
        collected=collected, received=received, total=total.item(), rest=rest.tolist())
    dist.destroy_process_group()
"""


TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2")

# The same in a few lines and without importing torch, which takes its time.
LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env=dict(
    os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
    MASTER_PORT="29617")) for rank in range(2)]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""


@pytest.fixture
def job(dryrun, python, tmp_path):
    """job(script, options..., code=, launcher=) runs two ranks; the JSON and the raw result."""

    def call(script, *options, code=0, launcher=None):
        own = tmp_path / "launcher.py"
        own.write_text(LAUNCHER)
        return dryrun(python, script, "--gpus", "2", *options, code=code, arguments=[tmp_path],
                      launcher=launcher or [own])  # fmt: skip

    return call


def said(tmp_path):
    return [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]


def test_two_processes_train_and_exchange_objects(job, tmp_path):
    result, raw = job(OBJECTS, "--record", tmp_path / "kept.pickle", launcher=TORCHRUN)
    assert result["verdict"] == "fits"
    assert [r["rank"] for r in result["ranks"]] == [0, 1]
    assert all(r["steps"] == 2 and r["verdict"] == "fits" for r in result["ranks"])
    # The second rank has the larger batch: it is the one that is shown.
    assert [r["worst"] for r in result["ranks"]] == [False, True]
    assert result["allocated_peak"] == result["ranks"][1]["allocated_peak"]
    both = said(tmp_path)
    for rank, own in enumerate(both):
        assert own["gathered"] == [[0, 0], [1, 1000]]
        assert own["sent"] == ["from", 1]
        assert own["part"] == [["first", "second"][rank]]
        assert own["collected"] == (None if rank == 0 else [0, 10])
        assert own["received"] == [None if rank == 0 else "to the other"]
        assert own["total"] == 3
        assert own["rest"] == [5, 6]
    assert "allot ranks" in raw.stderr
    assert (tmp_path / "kept.rank0.pickle").exists() and (tmp_path / "kept.rank1.pickle").exists()


def test_ranks_that_disagree_are_told_both_sides(job):
    script = JOB + """
    values = torch.ones(4 + rank, device="cuda")
    dist.all_reduce(values)
    torch.cuda.synchronize()
    """
    result, raw = job(script, code=4)
    assert result["verdict"] == "failed"
    for text in (result["rank_fault"], raw.stderr):
        assert "AllReduce of 4 float32 (sum), call 1" in text
        assert "AllReduce of 5 float32 (sum), call 1" in text


def test_one_rank_out_of_memory_ends_the_job(job):
    script = JOB + """
    values = torch.ones(4, device="cuda")
    dist.all_reduce(values)
    if rank == 1:
        torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
    dist.all_reduce(values)
    torch.cuda.synchronize()
    """
    result, _ = job(script, "--limit", "2GiB", "--events", "sync", code=1)
    assert result["verdict"] == "out_of_memory"
    assert [r["verdict"] == "out_of_memory" for r in result["ranks"]] == [False, True]
    assert "script.py:14 " in result["out_of_memory"][0]["line"]


ALONE = """
    import torch, torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert (rank, world) == (3, 8)

    gathered = [None] * 8
    dist.all_gather_object(gathered, {"rank": 3})
    assert gathered == [{"rank": 3}] * 8
    kept = ["mine"]
    dist.broadcast_object_list(kept, src=0)
    assert kept == ["mine"]
    group = dist.new_group([2, 3])
    assert dist.get_world_size(group) == 2
    host = dist.new_group(list(range(8)), backend="gloo")
    dist.all_reduce(torch.ones(3), group=host)
    dist.barrier(group=host)
    dist.monitored_barrier(host)
    dist.barrier()
    values, other = torch.ones(8, 16, device="cuda"), torch.empty(8, 16, device="cuda")
    dist.all_to_all_single(other, values)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, values, 4),
                                        dist.P2POp(dist.irecv, other, 2)]):
        work.wait()

    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    with torch.device("cuda"):
        model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)])
    size = sum(p.numel() * 4 for p in model.parameters())
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    torch.cuda.empty_cache()
    shard = torch.cuda.memory_allocated() - before
    assert size / 8 <= shard <= size / 8 * 1.02, (shard, size / 8)
    model(torch.randn(8, 2048, device="cuda")).sum().backward()

    mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "tp"))
    spread = distribute_tensor(torch.randn(1024, 16, device="cuda"), mesh, [Replicate(), Shard(0)])
    assert spread.to_local().shape == (256, 16)
    block = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    parallelize_module(block.cuda(), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert block[0].weight.to_local().shape == (64, 64)
    fully_shard(block, mesh=mesh["dp"])
    block(torch.randn(8, 64, device="cuda")).sum().backward()
    own = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
    own(torch.randn(2, 8, device="cuda")).sum().backward()
    dist.destroy_process_group()
"""


def test_one_rank_of_eight_runs_alone(dryrun, python):
    result, _ = dryrun(python, ALONE, "--world", "8", "--rank", "3")
    assert result["verdict"] == "fits"
    assert result["ranks"] == []


def test_of_spawned_ranks_one_runs(dryrun, python):
    script = """
        import torch, torch.distributed as dist, torch.multiprocessing as mp
        def train(rank, world):
            dist.init_process_group("nccl", init_method="tcp://127.0.0.1:9", rank=rank,
                                    world_size=world)
            dist.all_reduce(torch.ones(4, device="cuda"))
            print("rank", rank, "of", dist.get_world_size())
        if __name__ == "__main__":
            mp.spawn(train, args=(4,), nprocs=4)
    """
    result, raw = dryrun(python, script, "--world", "4", "--rank", "2")
    assert result["verdict"] == "fits"
    assert "rank 2 of 4\n" in raw.stderr and raw.stderr.count("rank ") == 1


def test_processes_on_one_gpu_share_its_memory(dryrun, python):
    script = """
        import multiprocessing, torch
        def use():
            torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
        if __name__ == "__main__":
            both = [multiprocessing.get_context("fork").Process(target=use) for _ in range(2)]
            for process in both:
                process.start()
            for process in both:
                process.join()
    """
    result, _ = dryrun(python, script, "--limit", "1GiB", code=1)
    assert result["verdict"] == "incomplete"
    assert any("2 processes share GPU 0" in problem for problem in result["problems"])
    assert len(result["ranks"]) == 2
