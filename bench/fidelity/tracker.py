#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's own estimate of a program's peak is: its MemTracker, on tensors without values.

usage: tracker.py PROGRAM    prints the peak of the first card in bytes

The tracker adds up the tensors that live, and knows neither the allocator nor the libraries'
workspaces. It wants to be told where a step ends, and cannot follow parameters that are replaced.
"""

import runpy
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker


def apply(module, change, recurse=True):
    """As the original, which cannot exchange the data of parameters that have no values."""
    for child in module.children() if recurse else ():
        apply(child, change)
    for name, value in module.named_parameters(recurse=False):
        module._parameters[name] = torch.nn.Parameter(change(value))
    for name, value in module.named_buffers(recurse=False):
        module._buffers[name] = change(value)
    return module


def main():
    tracker = MemTracker()
    original = torch.Tensor.backward

    def backward(*args, **kwargs):
        original(*args, **kwargs)
        tracker.reset_mod_stats()

    torch.Tensor.backward = backward
    torch.cuda.synchronize = tracker.reset_mod_stats
    torch.nn.Module._apply = apply
    program = sys.argv.pop(1)
    with FakeTensorMode(allow_non_fake_inputs=True), tracker:
        runpy.run_path(program)
    for device, sizes in tracker.get_tracker_snapshot("peak").items():
        if device.type == "cuda":
            print(sizes["Total"])


if __name__ == "__main__":
    main()
