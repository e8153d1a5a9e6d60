# SPDX-License-Identifier: MIT
"""Three training steps of a small language model, as behind snapshot a8 (torch 2.6.0).

Recorded from an empty allocator: every segment and block of the program is in the snapshot. The loss
looks at the last token only; rotary tables and the mask come from the CPU in every layer.
"""

import math
import sys

import torch
from torch import nn

VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS, WIDTH_INNER = 10000, 256, 512, 4, 16, 1344
BATCH = 10
TOKENS = int(sys.argv[1]) if len(sys.argv) > 1 else 200


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, device="cuda"))
        nn.init.normal_(self.weight)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH, device="cuda"))

    def forward(self, x):
        size = torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-5)
        return x / size * self.weight


class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        frequencies = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(CONTEXT), frequencies)
        self.register_buffer("sine", torch.sin(angles), persistent=False)
        self.register_buffer("cosine", torch.cos(angles), persistent=False)

    def forward(self, x):
        positions = torch.arange(x.shape[-2])
        sine = self.sine[positions].to("cuda").unsqueeze(-1)
        cosine = self.cosine[positions].to("cuda").unsqueeze(-1)
        pairs = x.unflatten(-1, (-1, 2))
        first = cosine * pairs[..., :1] - sine * pairs[..., 1:]
        second = sine * pairs[..., :1] + cosine * pairs[..., 1:]
        return torch.cat([first, second], dim=-1).flatten(-2)


def softmax(x):
    largest, _ = torch.max(x, dim=-1, keepdim=True)
    return torch.exp(x - largest) / torch.sum(torch.exp(x - largest), dim=-1, keepdim=True)


def attend(q, k, v, mask):
    mask = mask.to("cuda")
    products = torch.einsum("...qd,...kd->...qk", q, k)
    scores = products / torch.sqrt(torch.tensor(q.shape[-1], device="cuda"))
    scores = scores.masked_fill_(~mask.bool(), -math.inf)
    weights = softmax(scores)
    return torch.einsum("...qk,...kd->...qd", weights, v)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary(WIDTH // HEADS)
        self.q, self.k, self.v, self.out = (Linear(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(-2, -3)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        q = self.rotary(q)
        k = self.rotary(k)
        mask = torch.tril(torch.ones(x.shape[-2], x.shape[-2]))
        mixed = attend(q, k, v, mask)
        mixed = mixed.transpose(-2, -3).flatten(-2)
        mixed = self.out(mixed)
        return mixed


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = Linear(WIDTH, WIDTH_INNER)
        self.down = Linear(WIDTH_INNER, WIDTH)
        self.gate = Linear(WIDTH, WIDTH_INNER)

    def forward(self, x):
        up = self.up(x)
        active = up * torch.sigmoid(up)
        gate = self.gate(x)
        product = active * gate
        return self.down(product)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_inner = Norm(), Norm()
        self.attention, self.inner = Attention(), Gated()

    def forward(self, x):
        normal = self.norm_attention(x)
        attended = self.attention(normal)
        middle = attended + x
        normal_middle = self.norm_inner(middle)
        inner = self.inner(normal_middle)
        return inner + middle


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(VOCABULARY, WIDTH, device="cuda"))
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = Norm(), Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding[tokens]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


class Adam(torch.optim.Optimizer):
    """Adam without operations in place: every moment and parameter is a new tensor in each step."""

    def __init__(self, parameters):
        super().__init__(parameters, {"rate": 1e-3})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"m": torch.zeros_like(p.data), "v": torch.zeros_like(p.data)}

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                gradient = p.grad.data
                m = self.state[p]["m"]
                m_new = 0.9 * m + 0.1 * gradient
                self.state[p]["m"] = m_new
                v = self.state[p]["v"]
                v_new = 0.999 * v + 0.001 * gradient**2
                self.state[p]["v"] = v_new
                p.data = p.data - group["rate"] * (m_new / (torch.sqrt(v_new) + 1e-8))
                p.data = p.data - 0.0 * p.data


def loss_of(scores, labels):
    largest, _ = torch.max(scores, dim=-1, keepdim=True)
    logarithms = scores - largest - torch.log(
        torch.sum(torch.exp(scores - largest), dim=-1, keepdim=True)
    )  # fmt: skip
    chosen = torch.zeros_like(logarithms)
    chosen.scatter_(-1, labels.unsqueeze(-1), 1)
    return -torch.sum(chosen * logarithms) / scores.shape[0]


model = Model()
optimizer = Adam(model.parameters())
tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS)).to("cuda")
labels = torch.randint(0, VOCABULARY, (BATCH,)).to("cuda")
for _ in range(3):
    optimizer.zero_grad()
    scores = model(tokens)
    last = scores[:, -1, :]
    loss = loss_of(last, labels)
    loss.backward()
    optimizer.step()
