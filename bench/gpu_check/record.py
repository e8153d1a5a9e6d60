# SPDX-License-Identifier: MIT
"""Runs a program with its memory recorded from the start, as a dry run records it.

usage: record.py SNAPSHOT FIGURES PROGRAM

FIGURES is JSON, in bytes: `context` is what CUDA took before the first allocation, `outside` what is
taken at the end and not reserved by PyTorch: context, kernels, and the libraries' own memory.
"""

import json
import runpy
import sys

import torch


def taken():
    free, total = torch.cuda.mem_get_info()
    return total - free


def main():
    snapshot, figures, program = sys.argv[1:4]
    sys.argv = [program]
    before = taken()
    torch.cuda.memory._record_memory_history(max_entries=10_000_000, stacks="python")
    values = runpy.run_path(program)  # keeps what the program holds until the snapshot is written
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(snapshot)
    outside = taken() - torch.cuda.memory_reserved()
    with open(figures, "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "cuda": torch.version.cuda, "context": before,
                   "outside": outside}, file)  # fmt: skip
    del values


if __name__ == "__main__":
    main()
