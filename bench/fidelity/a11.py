# SPDX-License-Identifier: MIT
"""A forward pass after five to warm up, as behind snapshot a11 (torch 2.11.0, NVIDIA B200).

Expandable segments; the snapshot holds the sixth pass.
"""

import lm
import torch

BATCH, CONTEXT = 4, 128


def batch():
    """The targets are made and not used."""
    text = torch.randint(0, lm.VOCABULARY, (BATCH, CONTEXT + 1))
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    tokens, targets = tokens.to("cuda"), targets.to("cuda")
    return tokens


@torch.no_grad()
def step():
    result = model(tokens)  # noqa: F841: freed when the step is over, not before
    torch.cuda.synchronize()


model = lm.on_the_device(context=CONTEXT, width=2560, inner=10240, layers=32, heads=32)
tokens = batch()
for _ in range(6):
    step()
