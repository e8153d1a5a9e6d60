# SPDX-License-Identifier: MIT
"""The language model of a10 and a11: rotary positions, gated inner layers, attention written out."""

import math

import torch
from torch import nn

VOCABULARY = 10000


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * scale
        return (self.weight * x).to(kind)


class Rotary(nn.Module):
    def __init__(self, context, width):
        super().__init__()
        self.register_buffer("table", torch.empty(2, context, width // 2), persistent=False)

    def forward(self, x):
        even, odd = x.unflatten(-1, (-1, 2)).movedim(-1, 0).unbind(0)
        cosine, sine = self.table[:, : x.size(-2), :].unbind(0)
        first = cosine * even - sine * odd
        second = sine * even + cosine * odd
        rotated = torch.concat((first, second), dim=-1)
        return rotated


def softmax(x):
    above = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(above)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def attend(q, k, v, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return torch.einsum("...qk,...kd->...qd", weights, v)


class Attention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.count = heads
        self.q, self.k, self.v, self.out = (Linear(width, width) for _ in range(4))
        self.rotary = rotary

    def heads(self, x):
        return x.unflatten(-1, (self.count, -1)).transpose(-2, -3)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        q = self.rotary(q)
        k = self.rotary(k)
        places = torch.arange(x.shape[-2], device=x.device)
        mask = places[:, None] >= places[None, :]
        mask = mask[None, ...]
        mixed = attend(q, k, v, mask)
        mixed = mixed.transpose(-2, -3).flatten(-2)
        return self.out(mixed)


def silu(x):
    return x * torch.sigmoid(x)


class Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.gate = Linear(width, inner)

    def forward(self, x):
        return self.down(silu(self.up(x)) * self.gate(x))


class Block(nn.Module):
    def __init__(self, width, inner, heads, rotary):
        super().__init__()
        self.attention, self.inner = Attention(width, heads, rotary), Gated(width, inner)
        self.norm_attention, self.norm_inner = Norm(width), Norm(width)

    def forward(self, x):
        attended = self.attention(self.norm_attention(x))
        middle = x + attended
        inner = self.inner(self.norm_inner(middle))
        out = middle + inner
        return out


class Model(nn.Module):
    def __init__(self, context, width, inner, layers, heads):
        super().__init__()
        self.embedding = Embedding(width)
        self.rotary = Rotary(context, width // heads)
        self.blocks = nn.ModuleList(
            [Block(width, inner, heads, self.rotary) for _ in range(layers)]
        )  # fmt: skip
        self.norm, self.head = Norm(width), Linear(width, VOCABULARY)

    def forward(self, tokens):
        embedded = self.embedding(tokens)  # lives as long as this call
        x = embedded
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        scores = self.head(x)
        return scores


class Embedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(VOCABULARY, width))

    def forward(self, tokens):
        return self.weight[tokens, :]


def on_the_device(**shape):
    """The model as `Model(...).to("cuda")` gives it, without its parameters in the host's memory.

    Unlike to_empty() it makes the rotary table once, though every block leads to it.
    """
    with torch.device("meta"):
        model = Model(**shape)
    return model._apply(lambda t: torch.empty_like(t, device="cuda") if t.is_meta else t)


def log_softmax(x):
    largest = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - largest
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


def loss_of(scores, targets):
    logarithms = -log_softmax(scores)
    return torch.mean(torch.gather(logarithms, -1, targets.unsqueeze(-1)))
