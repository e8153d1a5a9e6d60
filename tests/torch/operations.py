# SPDX-License-Identifier: MIT
"""Operations on a device, one after the other in one process: a table of names and what to call.

A case fails if it raises; `operations.py` prints the names of those that did, with what they raised.
What a case gives back is not looked at, since values are not known in a dry run.
"""

import contextlib
import io
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional

D = "cuda"
CASES = {}


def case(call):
    CASES[call.__name__] = call
    return call


def add(prefix, names, make):
    """One case for each name: make(name)."""
    for name in names.split():
        CASES[f"{prefix}_{name}"] = lambda name=name: make(name)


def matrix(*shape):
    return torch.randn(*(shape or (64, 64)), device=D)


def integers(*shape):
    return torch.randint(0, 10, shape or (64,), device=D)


def trained(module, *inputs):
    """Forward and backward."""
    result = module.to(D)(*inputs)
    result = result[0] if isinstance(result, tuple) else result
    result.float().sum().backward()
    return result


# ---- values that the host reads

READS = {
    "item": lambda: matrix().sum().item(),
    "tolist": lambda: matrix().tolist(),
    "numpy": lambda: matrix().cpu().numpy(),
    "repr": lambda: repr(matrix()),
    "bool": lambda: bool(matrix().isnan().any()),
    "allclose": lambda: torch.allclose(matrix(), matrix()),
    "equal": lambda: torch.equal(matrix(), matrix()),
    "nonzero": lambda: torch.nonzero(matrix() > 0),
    "argwhere": lambda: torch.argwhere(matrix() > 0),
    "where": lambda: torch.where(matrix() > 0),
    "masked_select": lambda: matrix().masked_select(matrix() > 0),
    "mask": lambda: matrix()[matrix() > 0],
    "mask_assign": lambda: matrix().masked_fill_(matrix() > 0, 1).index_put_((integers(),), matrix(64)),
    "unique": lambda: integers().unique(return_inverse=True, return_counts=True),
    "unique_consecutive": lambda: torch.unique_consecutive(integers()),
    "unique_dim": lambda: torch.unique(integers(8, 8), dim=0),
    "bincount": lambda: torch.bincount(integers()),
    "one_hot": lambda: functional.one_hot(integers()),
    "repeat_interleave": lambda: torch.repeat_interleave(matrix(10), integers(10)),
    "isin": lambda: torch.isin(integers(), integers()),
    "combinations": lambda: torch.combinations(integers(5)),
    "multinomial": lambda: torch.multinomial(matrix(4, 100).abs(), 3),
    "categorical": lambda: torch.distributions.Categorical(logits=matrix(4, 10)).sample().tolist(),
    "normal": lambda: torch.distributions.Normal(matrix(3), matrix(3).exp()).rsample(),
}  # fmt: skip
add("read", " ".join(READS), lambda name: READS[name]())

# ---- sorting, indexing, reductions

TENSORS = {
    "topk": lambda: matrix().topk(5),
    "sort": lambda: matrix().sort(),
    "sort_long": lambda: matrix(10**6).sort(),
    "argsort_stable": lambda: integers().argsort(stable=True),
    "kthvalue": lambda: matrix(100).kthvalue(3),
    "quantile": lambda: matrix(100).quantile(0.5),
    "median": lambda: matrix().median(),
    "mode": lambda: matrix().mode(),
    "searchsorted": lambda: torch.searchsorted(matrix(100), matrix(10)),
    "histc": lambda: torch.histc(matrix()),
    "cumsum": lambda: matrix().cumsum(0),
    "cummax": lambda: matrix().cummax(0),
    "logcumsumexp": lambda: matrix().logcumsumexp(0),
    "scatter_add": lambda: matrix(10).scatter_add_(0, integers(), matrix(64)),
    "index_add": lambda: matrix(10, 8).index_add_(0, integers(), matrix(64, 8)),
    "index_put_accumulate": lambda: matrix().index_put_((integers(), integers()), matrix(64), accumulate=True),
    "index": lambda: matrix()[integers()],
    "gather": lambda: matrix(64, 10).gather(1, integers(64, 10)),
    "take_along_dim": lambda: matrix(64, 10).take_along_dim(integers(64, 10), 1),
    "roll_flip_rot90": lambda: matrix().roll(3).flip(0).rot90(),
    "tril_indices": lambda: torch.tril_indices(8, 8, device=D),
    "randperm": lambda: torch.randperm(100000, device=D),
    "bmm": lambda: torch.bmm(matrix(4, 5, 6), matrix(4, 6, 7)),
    "baddbmm_half": lambda: torch.baddbmm(*(matrix(4, 8, 8).half() for _ in range(3))),
    "einsum": lambda: torch.einsum("ij,jk->ik", matrix(), matrix()),
    "cdist": lambda: torch.cdist(matrix(), matrix()),
    "int_mm": lambda: torch._int_mm(*(torch.zeros(64, 64, device=D, dtype=torch.int8) for _ in range(2))),
    "complex": lambda: (matrix() + 1j * matrix()).abs().angle(),
    "complex_prod": lambda: torch.prod(matrix() + 0j),
    "special": lambda: torch.special.airy_ai(matrix()),
    "block_diag": lambda: torch.block_diag(matrix(2, 2), matrix(3, 3)),
    "generator": lambda: (torch.cuda.get_rng_state(), torch.cuda.manual_seed_all(1)),
}  # fmt: skip
add("tensor", " ".join(TENSORS), lambda name: TENSORS[name]())

# ---- linear algebra, Fourier transforms, sparse matrices

add("linalg", "inv det svd qr eigh eigvalsh cholesky lu_factor pinv matrix_rank slogdet eig eigvals svdvals "
    "matrix_norm cond matrix_exp ldl_factor lu", lambda name: getattr(torch.linalg, name)(matrix()))  # fmt: skip
add("linalg_batch", "svd inv eigh qr", lambda name: getattr(torch.linalg, name)(matrix(8, 16, 16)))
add("linalg_two", "solve lstsq", lambda name: getattr(torch.linalg, name)(matrix(), matrix()))
add("fft", "fft rfft fft2 rfft2 fftn ifft", lambda name: getattr(torch.fft, name)(
    matrix() + 0j if name == "ifft" else matrix()))  # fmt: skip


@case
def cholesky_solve():
    a = matrix()
    torch.cholesky_solve(a, a), torch.cholesky_inverse(a)
    torch.linalg.solve_triangular(a, a, upper=True), torch.linalg.householder_product(a, a[0])


@case
def stft():
    window = torch.hann_window(400, device=D)
    spectrum = torch.stft(matrix(16000), 400, window=window, return_complex=True)
    torch.istft(spectrum, 400, window=window)


@case
def sparse():
    a = matrix().relu()
    torch.sparse.mm(a.to_sparse(), matrix()), a.to_sparse_csr() @ matrix()
    return a.to_sparse().coalesce().to_dense()


@case
def sparse_semi_structured():
    torch.sparse.to_sparse_semi_structured(torch.ones(128, 128, device=D, dtype=torch.half))


# ---- layers

add("rnn", "LSTM GRU RNN", lambda name: trained(getattr(nn, name)(16, 32, num_layers=2), matrix(5, 4, 16)))
add("rnn_both_ways", "LSTM GRU", lambda name: trained(
    getattr(nn, name)(16, 32, num_layers=2, bidirectional=True, dropout=0.1), matrix(5, 4, 16)))  # fmt: skip


@case
def rnn_projected():
    trained(nn.LSTM(16, 32, proj_size=8), matrix(5, 4, 16))


@case
def rnn_packed():
    packed = nn.utils.rnn.pack_padded_sequence(matrix(5, 3, 16), torch.tensor([5, 4, 2]))
    nn.LSTM(16, 32).to(D)(packed)[0].data.sum().backward()


def convolve(name):
    dimensions = int(name[-2])
    trained(getattr(nn, name)(4, 8, 3), matrix(2, 4, *[12] * dimensions))


add("layer", "Conv1d Conv2d Conv3d ConvTranspose2d", convolve)


@case
def convolve_fast_paths():
    torch.backends.cudnn.benchmark = True
    block = nn.Sequential(nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, groups=32))
    block = block.half().to(memory_format=torch.channels_last)
    trained(block, matrix(2, 16, 16, 16).half().to(memory_format=torch.channels_last))
    torch.backends.cudnn.benchmark = False


LAYERS = {
    "norms": lambda: trained(nn.Sequential(nn.LayerNorm(64), nn.RMSNorm(64), nn.BatchNorm1d(64)), matrix()),
    "group_norm": lambda: trained(nn.GroupNorm(2, 4), matrix(2, 4, 8, 8)),
    "pools": lambda: trained(nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2)), matrix(2, 4, 8, 8).requires_grad_()),
    "embedding": lambda: trained(nn.Embedding(10, 8, padding_idx=0, max_norm=1.0), integers()),
    "embedding_bag": lambda: trained(nn.EmbeddingBag(10, 8), integers(8, 8)),
    "encoder": lambda: trained(nn.TransformerEncoderLayer(64, 4, batch_first=True), matrix(2, 10, 64)),
    "encoder_eval": lambda: nn.TransformerEncoderLayer(64, 4, batch_first=True).to(D).eval()(matrix(2, 10, 64)),
    "attention_masked": lambda: nn.MultiheadAttention(64, 4, batch_first=True).to(D)(
        *[matrix(2, 10, 64)] * 3, key_padding_mask=torch.zeros(2, 10, dtype=torch.bool, device=D)),
    "interpolate": lambda: functional.interpolate(matrix(1, 3, 8, 8), scale_factor=2, mode="bilinear"),
    "grid_sample": lambda: functional.grid_sample(matrix(1, 3, 8, 8), matrix(1, 8, 8, 2), align_corners=False),
    "bce": lambda: functional.binary_cross_entropy(matrix(10).sigmoid(), matrix(10).sigmoid()),
    "cross_entropy": lambda: functional.cross_entropy(matrix(8, 10), integers(8)).item(),
    "ctc": lambda: functional.ctc_loss(matrix(50, 4, 20).log_softmax(2), integers(4, 10) + 1, torch.full((4,), 50), torch.full((4,), 10)),
    "trunc_normal": lambda: nn.init.trunc_normal_(matrix()),
    "orthogonal": lambda: nn.init.orthogonal_(matrix()),
    "spectral_norm": lambda: trained(nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64)), matrix()),
    "nested": lambda: torch.nested.nested_tensor([matrix(3), matrix(5)], layout=torch.jagged).sin(),
}  # fmt: skip
add("nn", " ".join(LAYERS), lambda name: LAYERS[name]())


def attend(name):
    """Backends that the card or the type does not allow are not cases."""
    q = torch.randn(2, 4, 128, 64, device=D, dtype=torch.bfloat16, requires_grad=True)
    with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, name)):
        functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


add("attend", "MATH FLASH_ATTENTION EFFICIENT_ATTENTION CUDNN_ATTENTION", attend)


@case
def flex_attention():
    from torch.nn.attention.flex_attention import flex_attention

    q = matrix(1, 2, 128, 64)
    flex_attention(q, q, q)


@case
def float8():
    major, minor = torch.cuda.get_device_capability()
    if (major, minor) < (8, 9):
        return
    eight, one = torch.zeros(64, 64, device=D, dtype=torch.float8_e4m3fn), torch.ones((), device=D)
    torch._scaled_mm(eight, eight.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


# ---- training

OPTIMIZERS = "Adam AdamW SGD RMSprop Adagrad Adadelta NAdam RAdam Adamax ASGD Rprop LBFGS Adafactor"


def optimize(name, **options):
    model = nn.Linear(64, 64, bias=False).to(D)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)

    def closure():
        optimizer.zero_grad()
        loss = model(matrix(4, 64)).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


add("optimizer", OPTIMIZERS, optimize)
add("optimizer_fused", "Adam AdamW SGD", lambda name: optimize(name, fused=True))
add("optimizer_one_by_one", "AdamW", lambda name: optimize(name, foreach=False))


@case
def optimizer_sparse():
    table = nn.Embedding(10, 8, sparse=True).to(D)
    table(integers()).sum().backward()
    torch.optim.SparseAdam(table.parameters()).step()


@case
def grad_scaler():
    model, scaler = nn.Linear(64, 64).to(D), torch.amp.GradScaler()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        with torch.autocast(D, torch.float16):
            loss = model(matrix()).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        scaler.step(optimizer)
        scaler.update()
    scaler.get_scale()


def mlp():
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).to(D)


@case
def checkpoint():
    for is_reentrant in (False, True):
        torch.utils.checkpoint.checkpoint(
            mlp(), matrix().requires_grad_(), use_reentrant=is_reentrant
        ).sum().backward()


@case
def offload():
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = mlp()(matrix()).sum()
    loss.backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(D)):
        loss = mlp()(matrix()).sum()
    loss.backward()


@case
def vmap():
    model = mlp()
    weights = dict(model.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).sum()

    torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, matrix(4, 1, 64))


@case
def graphed_callables():
    example = matrix(8, 64).requires_grad_()
    torch.cuda.make_graphed_callables(mlp(), (example,))(matrix(8, 64)).sum().backward()


@case
def jit():
    model = torch.jit.trace(mlp(), matrix())
    [model(matrix()) for _ in range(3)]


# ---- data, files, tools

@case
def load_pinned():
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.zeros(64))
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(data, 16, pin_memory=True, num_workers=workers)
        for x, _ in loader:
            assert x.is_pinned()
            x.to(D, non_blocking=True)


@case
def save_and_load():
    file = io.BytesIO()
    torch.save({"a": matrix(), "model": mlp().state_dict()}, file)
    for device in ("cuda", "cpu"):
        file.seek(0)
        assert torch.load(file, map_location=device, weights_only=True)["a"].device.type == device


@case
def profiler():
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, profile_memory=True):
        matrix() @ matrix()


TOOLS = {
    "nvtx": lambda: (torch.cuda.nvtx.range_push("a"), torch.cuda.nvtx.range_pop()),
    "jiterator": lambda: torch.cuda.jiterator._create_jit_fn(
        "template <typename T> T same(T a) { return a; }")(matrix()),
    "share": lambda: matrix().untyped_storage()._share_cuda_(),
    "memory_summary": lambda: torch.cuda.memory_summary(),
    "mem_get_info": lambda: torch.cuda.mem_get_info(),
    "properties": lambda: torch.cuda.get_device_properties(0),
    "events": lambda: elapsed(),
}  # fmt: skip
add("tool", " ".join(TOOLS), lambda name: TOOLS[name]())


def elapsed():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0


@case
def graph_refuses_reads():
    graph = torch.cuda.CUDAGraph()
    with contextlib.suppress(RuntimeError):
        with torch.cuda.graph(graph):
            matrix().sum().item()
        raise AssertionError("a read in a capture has to fail")
    torch.cuda.synchronize()


def main(names):
    warnings.simplefilter("ignore")
    failed = 0
    for name, call in CASES.items():
        if names and name not in names:
            continue
        try:
            call()
        except Exception as error:
            failed += 1
            text = " ".join(str(error).split())[:200]
            print(f"{name}: {type(error).__name__}: {text}", file=sys.stderr, flush=True)
    print(f"{len(CASES)} operations, {failed} failed", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
