# SPDX-License-Identifier: MIT
"""A decoder of 6.7 G parameters in bfloat16 (the shapes of Llama 7B), trained on made-up tokens.

Prints CPU seconds per step, and how much resident memory the process has beyond what its imports took.
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, DIM, HIDDEN, LAYERS, HEADS, LENGTH = 32000, 4096, 11008, 32, 32, 2048


def resident_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.q, self.k = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.v, self.o = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        h = self.norm1(x)
        q, k, v = (
            layer(h).view(batch, length, HEADS, -1).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attention.transpose(1, 2).reshape(batch, length, DIM))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, ids, labels):
        x = self.tokens(ids)
        angles = torch.arange(LENGTH, device=x.device)[:, None] * torch.rand(
            1, DIM // HEADS, device=x.device
        )
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def import_all():
    """A step of the smallest model: what torch imports only when it is used is imported then."""
    model = nn.Linear(1, 1, device="cuda")
    model(torch.zeros(1, 1, device="cuda")).sum().backward()
    torch.optim.AdamW(model.parameters()).step()
    torch.cuda.synchronize()


def main():
    steps = int(sys.argv[1])
    import_all()
    after_imports = resident_mib()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.zeros(1, LENGTH, dtype=torch.long, device="cuda")
    seconds = []
    for _ in range(steps):
        begin = time.process_time()
        loss = model(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.process_time() - begin)
    print("seconds", *(f"{s:.5f}" for s in seconds))
    print("parameters", sum(p.numel() for p in model.parameters()))
    print(f"resident {resident_mib() - after_imports:.1f} MiB beyond {after_imports:.1f} MiB")


main()
