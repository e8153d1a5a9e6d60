# SPDX-License-Identifier: MIT
"""What scripts do, in programs of a few lines: settings, pools, streams, several devices, threads,
a small transformer, and a long table of operations in one process."""

import os
import pathlib

import pytest

MIB = 1 << 20
HERE = pathlib.Path(__file__).parent

# Forty blocks, half of them freed, then larger ones that do not fit between.
FRAGMENTS = """
    import torch
    MIB = 1 << 20
    def block(mib):
        return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    blocks = [block(37 + 13 * i) for i in range(40)]
    del blocks[::2]
    more = [block(301) for _ in range(10)]
    reserved = torch.cuda.memory_reserved()
    del blocks, more
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0
    try:
        block(90 << 10)
        raise SystemExit("90 GiB fit")
    except torch.OutOfMemoryError as error:
        assert "Tried to allocate 90.00 GiB" in str(error)
    held = []
    try:
        while True:
            held.append(block(777))
    except torch.OutOfMemoryError:
        pass
    print("held", len(held), "reserved", reserved // MIB)
"""


def words(raw, first):
    line = next(line for line in raw.stderr.splitlines() if line.startswith(first + " "))
    return line.split()


@pytest.mark.parametrize(
    ("setting", "held", "most"),
    [
        # Segments of 778 MiB.
        ("", (79 << 10) // 778, 13_000),
        # One range that grows: nothing is rounded up to segments.
        ("expandable_segments:True", (79 << 10) // 777, 12_000),
    ],
)
def test_settings_decide_what_fits(dryrun, python, monkeypatch, setting, held, most):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", setting)
    result, raw = dryrun(python, FRAGMENTS, "--limit", "79GiB")
    assert result["verdict"] == "fits" and len(result["out_of_memory"]) == 2  # both caught
    found = words(raw, "held")
    assert int(found[1]) in (held - 1, held)
    assert 40 * 300 // 2 < int(found[3]) < most


def test_cuda_malloc_async_runs_without_a_snapshot(dryrun, python, monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
    script = """
        import torch
        block = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
        print("now", torch.cuda.memory_allocated())
    """
    result, raw = dryrun(python, script, code=None)
    assert result["exception"] == "" and result["exit_code"] == 0
    assert int(words(raw, "now")[1]) == 100 * MIB
    assert result["device_peak"] - result["context"] >= 100 * MIB


POOLS = """
    import torch
    block = lambda mib: torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        own = block(64)
    assert len(pool.snapshot()) == 1
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    event.synchronize()
    assert event.query()

    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x = torch.randn(64, 256, device="cuda")
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before
    private = {tuple(s["segment_pool_id"]) for s in torch.cuda.memory_snapshot()} - {(0, 0)}
    print("pools", len(private))
"""


def test_pools_and_a_captured_training_step(dryrun, python):
    result, raw = dryrun(python, POOLS)
    assert result["verdict"] == "fits" and result["steps"] == 4
    assert words(raw, "pools")[1] == "2"


DEVICES = """
    import torch
    from torch import nn
    assert torch.cuda.device_count() == 4 and torch.cuda.can_device_access_peer(0, 1)
    layers = [nn.Linear(1024, 1024).to(f"cuda:{i}") for i in range(4)]
    h = torch.randn(64, 1024, device="cuda:0")
    for i, layer in enumerate(layers):
        h = torch.relu(layer(h.to(f"cuda:{i}")))
    h.sum().backward()
    assert all(layer.weight.grad.device.index == i for i, layer in enumerate(layers))
    several = nn.DataParallel(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()).to("cuda:0"))
    several(torch.randn(64, 1024, device="cuda:0")).sum().backward()
    torch.cuda.synchronize()
    print("peaks", *(torch.cuda.max_memory_allocated(i) for i in range(4)))
"""


def test_several_devices_share_a_model(dryrun, python):
    result, raw = dryrun(python, DEVICES, "--gpus", "4")
    assert result["verdict"] == "fits"
    peaks = [int(peak) for peak in words(raw, "peaks")[1:]]
    weights = 1024 * 1024 * 4
    assert all(2 * weights <= peak < 12 * weights for peak in peaks)
    assert peaks[0] == max(peaks) and result["allocated_peak"] in peaks


ENDLESS = """
    import torch
    side = torch.cuda.Stream()
    for _ in range(500):
        with torch.cuda.stream(side):
            block = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
        block.record_stream(torch.cuda.current_stream())
        del block
    print("retries", torch.cuda.memory_stats()["num_alloc_retries"])
"""


def test_a_loop_that_never_synchronises_has_two_bounds(dryrun, python):
    least, _ = dryrun(python, ENDLESS, "--limit", "10GiB")
    most, raw = dryrun(python, ENDLESS, "--limit", "10GiB", "--events", "sync")
    assert least["verdict"] == most["verdict"] == "fits"
    assert least["reserved_peak"] == 100 * MIB
    # Until the device is full: then the allocator waits for everything and begins again.
    assert most["reserved_peak"] == (10 << 10) // 100 * 100 * MIB
    assert int(words(raw, "retries")[1]) == 500 // 102


THREADS = """
    import threading, torch
    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for k in range(200):
                a = torch.empty(1000 + k, device="cuda")
                (a + 1).cpu()
                a.record_stream(torch.cuda.current_stream())
                torch.empty(100, pin_memory=True).to("cuda", non_blocking=True)
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == 0
"""


@pytest.mark.parametrize("events", ["instant", "sync"])
def test_sixteen_threads_allocate_at_once(dryrun, python, events):
    result, _ = dryrun(python, THREADS, "--events", events)
    assert result["verdict"] == "fits" and result["exception"] == ""


TRANSFORMER = """
    import sys, torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint
    kind = sys.argv[1]
    LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 4, 256, 4, 1000, 256

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            q, k, v = (
                part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for part in self.mix(self.norms[0](x)).chunk(3, -1)
            )
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            return x + self.mlp(self.norms[1](x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if kind == "checkpoint" else block(x)
            return self.head(x)

    with torch.device("cuda"):
        model = Model().to(torch.bfloat16)
    weights = sum(p.numel() * 2 for p in model.parameters())
    if kind == "lora":
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        for block in model.blocks:
            layer = block.mix
            layer.a = nn.Parameter(torch.zeros(8, WIDTH, device="cuda", dtype=torch.bfloat16))
            layer.b = nn.Parameter(torch.zeros(3 * WIDTH, 8, device="cuda", dtype=torch.bfloat16))
            layer.register_forward_hook(lambda l, x, y: y + functional.linear(functional.linear(x[0], l.a), l.b))
    if kind == "generate":
        tokens = torch.randint(0, VOCABULARY, (2, 16), device="cuda")
        with torch.inference_mode():
            while tokens.shape[1] < 64:
                scores = model(tokens)[:, -1].float().topk(50).values.softmax(-1)
                tokens = torch.cat([tokens, torch.multinomial(scores, 1)], 1)
        raise SystemExit
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    for step in range(3):
        tokens = torch.randint(0, VOCABULARY, (8, LENGTH), device="cuda")
        logits = model(tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print("weights", weights, "trained", sum(p.numel() * 2 for p in trained), "now", torch.cuda.memory_allocated())
"""


def test_a_small_transformer_trains_in_every_way(dryrun, python):
    results = {}
    for kind in ("plain", "checkpoint", "lora", "generate"):
        results[kind], raw = dryrun(python, TRANSFORMER, "--gpu", "rtx4090", arguments=[kind])
        assert results[kind]["verdict"] == "fits" and results[kind]["exception"] == "", kind
        assert not results[kind]["approximate"], kind
        if kind == "generate":
            continue
        found = words(raw, "weights")
        weights, trained, now = int(found[1]), int(found[3]), int(found[5])
        # Weights and two moments, a workspace of cuBLAS and what little is left.
        assert weights + 2 * trained <= now < weights + 2 * trained + 12 * MIB, kind
        assert results[kind]["steps"] == 3
    peaks = {kind: result["allocated_peak"] for kind, result in results.items()}
    assert peaks["generate"] < peaks["checkpoint"] < peaks["plain"]
    assert peaks["lora"] < peaks["plain"]


def test_operations(dryrun, python):
    result, raw = dryrun(python, (HERE / "operations.py").read_text(), code=None)
    assert "operations, 0 failed" in raw.stderr, raw.stderr[-3000:]
    assert result["exception"] == "" and result["problems"] == {} and result["missing"] == {}


COMPILED = """
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64)).cuda()
    compiled = torch.compile(model)
    for _ in range(2):
        compiled(torch.randn(32, 64, device="cuda")).sum().backward()
    torch.cuda.synchronize()
"""


def has_module(python, name):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return os.spawnv(os.P_WAIT, python, [python, "-c", code]) == 0


def test_compiled_models_run(dryrun, python, monkeypatch, tmp_path):
    if not has_module(python, "triton"):
        pytest.skip("torch.compile needs triton, which is not installed")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    result, _ = dryrun(python, COMPILED)
    assert result["verdict"] == "fits" and result["missing"] == {}


HUGGING_FACE = """
    import sys, torch
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                         vocab_size=1000)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).bfloat16()
    prompt = torch.randint(0, 1000, (2, 16), device="cuda")
    for options in ({}, {"do_sample": True}, {"num_beams": 3}, {"use_cache": False}, {"eos_token_id": 5}):
        out = model.generate(prompt, max_new_tokens=20, pad_token_id=0, **options)
        assert "num_beams" in options or out.shape == (2, 36)
    model.generate(prompt[:1], max_new_tokens=20, pad_token_id=0, prompt_lookup_num_tokens=2)
"""


def test_generate_of_transformers_ends(dryrun, python):
    if not has_module(python, "transformers"):
        pytest.skip("transformers is not installed")
    result, _ = dryrun(python, HUGGING_FACE)
    assert result["verdict"] == "fits" and result["approximate"]
    assert result["assumptions"] == {"generate() runs to its maximum length": 6}
