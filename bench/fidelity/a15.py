# SPDX-License-Identifier: MIT
"""A forward pass of a larger model in training, as behind snapshot a15 (torch 2.6.0).

The snapshot holds one forward pass, its 1,423 segments are from before. Which of the steps it was is
not known: STEPS of them with a backward pass and the optimizer come before.
"""

import math
import sys

import torch
from torch import nn

VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS, WIDTH_INNER = 10000, 256, 1600, 48, 25, 6400
BATCH = 4
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def applied(weight, x):
    return torch.einsum("oi,...i->...o", weight, x)


def weights(*shape):
    return nn.Parameter(torch.empty(*shape))


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = weights(WIDTH)

    def forward(self, x):
        mean = (x**2).mean(-1, keepdim=True)
        size = torch.sqrt(mean + 1e-5)
        return (x / size) * self.weight


class Rotary:
    """Made anew in every layer of every pass, on the device."""

    def __init__(self, width, length):
        numbers = torch.arange(0, width, 2, device="cuda", dtype=torch.float32)
        exponents = numbers / width
        frequencies = 1.0 / (10000**exponents)
        positions = torch.arange(length, device="cuda", dtype=torch.float32)
        angles = torch.einsum("p,f->pf", positions, frequencies)
        self.cosine, self.sine = torch.cos(angles), torch.sin(angles)

    def __call__(self, x, positions):
        cosine = self.cosine[positions]
        sine = self.sine[positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
        first = even * cosine - odd * sine
        second = even * sine + odd * cosine
        rotated = torch.empty_like(x)
        rotated[..., 0::2] = first
        rotated[..., 1::2] = second
        return rotated


def softmax(x):
    largest = torch.max(x, dim=-1, keepdim=True).values
    above = x - largest
    powers = torch.exp(above)
    total = torch.sum(powers, dim=-1, keepdim=True)
    return powers / total


def attend(q, k, v, mask):
    products = torch.einsum("...qd,...kd->...qk", q, k)
    masked = torch.where(mask, products, -torch.inf)
    shares = softmax(masked / math.sqrt(q.shape[-1]))
    return torch.einsum("...qk,...kd->...qd", shares, v)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (weights(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(-2, -3)

    def forward(self, x):
        q, k, v = applied(self.q, x), applied(self.k, x), applied(self.v, x)
        q_heads, k_heads, v_heads = self.heads(q), self.heads(k), self.heads(v)
        length = x.shape[-2]
        numbers = torch.arange(length, device="cuda")
        positions = numbers.expand(x.shape[0], length)
        rotary = Rotary(WIDTH // HEADS, length)
        q_rotated = rotary(q_heads, positions)
        k_rotated = rotary(k_heads, positions)
        mask = torch.tril(torch.ones((length, length), device="cuda", dtype=torch.bool))
        mixed = attend(q_rotated, k_rotated, v_heads, mask)
        joined = mixed.transpose(-2, -3).flatten(-2)
        out = applied(self.out, joined)
        return out


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = weights(WIDTH_INNER, WIDTH), weights(WIDTH, WIDTH_INNER)
        self.gate = weights(WIDTH_INNER, WIDTH)

    def forward(self, x):
        up = applied(self.up, x)
        gate = applied(self.gate, x)
        active = up * torch.sigmoid(up)
        product = active * gate
        return applied(self.down, product)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.attention = Norm(), Attention()
        self.norm_inner, self.inner = Norm(), Gated()

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        x = x + self.inner(self.norm_inner(x))
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = weights(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = Norm(), weights(VOCABULARY, WIDTH)

    def forward(self, tokens):
        x = self.embedding[tokens]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        scores = applied(self.head, x)
        return scores


class Adam(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"rate": 1e-3})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["count"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                m, v = state["m"], state["v"]
                state["count"] += 1
                gradient = p.grad.data
                m.mul_(0.9).add_(gradient, alpha=0.1)
                v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                size = v.sqrt().add_(1e-8)
                p.data.addcdiv_(m, size, value=-group["rate"])
                p.data.add_(p.data, alpha=-1e-5)


with torch.device("meta"):
    model = Model()
model.to_empty(device="cuda")
optimizer = Adam(model.parameters())
tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT), device="cuda")
for _ in range(STEPS):
    scores = model(tokens)
    loss = scores.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
scores = model(tokens)
