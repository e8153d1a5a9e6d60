# SPDX-License-Identifier: MIT
"""A GPT-2 of 124 M parameters, trained on made-up tokens; prints CPU seconds per step."""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, DIM, LAYERS, HEADS, LENGTH = 50257, 768, 12, 12, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(DIM, dim=2)
        q, k, v = (t.view(batch, length, HEADS, -1).transpose(1, 2) for t in (q, k, v))
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, DIM), nn.Embedding(LENGTH, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def main():
    batch, steps = int(sys.argv[1]), int(sys.argv[2])
    with torch.device("cuda"):
        model = Gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.zeros(batch, LENGTH, dtype=torch.long, device="cuda")
    seconds = []
    for _ in range(steps):
        begin = time.process_time()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.process_time() - begin)
    print("seconds", *(f"{s:.5f}" for s in seconds))


main()
