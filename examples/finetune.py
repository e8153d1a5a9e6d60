# SPDX-License-Identifier: MIT
"""Fine-tunes a decoder on texts of varying length: a plain CUDA script that knows nothing of allot.

The texts are random tokens, what is measured is memory. Every 8 steps it is evaluated on the
longest texts, which is where memory is short.
"""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, dim))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary, dim, layers, heads, length_max):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(length_max, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.blocks(self.tokens(ids) + self.positions(places))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=6, help="texts per step")
    parser.add_argument("--length", type=int, default=960, help="longest text, tokens")
    parser.add_argument("--dim", type=int, default=1280)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--steps", type=int, default=24)
    args = parser.parse_args()

    vocabulary = 50257
    with torch.device("cuda"):
        model = Decoder(vocabulary, args.dim, args.layers, args.dim // 64, args.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    lengths = random.Random(1)

    def texts(batch, length):
        return torch.randint(vocabulary, (batch, length)).cuda()

    for step in range(args.steps):
        length = lengths.randint(args.length // 8, args.length)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(texts(args.batch, length))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 8 == 7:
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                model(texts(args.batch, args.length))


if __name__ == "__main__":
    main()
