# SPDX-License-Identifier: MIT
"""A training step after five to warm up, as behind snapshot a10 (torch 2.11.0, Windows).

The snapshot holds the sixth step: its 216 segments are from before. Gradients are never dropped.
"""

import lm
import torch

BATCH, CONTEXT = 32, 256

model = lm.on_the_device(context=CONTEXT, width=768, inner=3072, layers=12, heads=12)
tokens = torch.randint(0, lm.VOCABULARY, (BATCH, CONTEXT)).to("cuda")
targets = torch.randint(0, lm.VOCABULARY, (BATCH, CONTEXT)).to("cuda")
for _ in range(6):
    scores = model(tokens)
    loss = lm.loss_of(scores, targets)
    loss.backward()
    torch.cuda.synchronize()
