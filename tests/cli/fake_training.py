# SPDX-License-Identifier: MIT
"""Stands in for a PyTorch program in a dry run: needs memory by a rule, writes the same reports.

usage: python -I fake_training.py FOLDER EXPRESSION [VALUE]

EXPRESSION gives the MiB that the program needs; it may use `value`, `conf` (the settings) and `gpu`.
FOLDER/cards.json is the list of cards; FOLDER/runs gets a line for each run; FOLDER/snapshot, if there
is one, becomes the run's. Further names in FOLDER change what happens: see below.
"""

import json
import os
import pathlib
import sys
import time

MIB = 1 << 20


def settings():
    pairs = (pair.partition(":") for pair in os.environ["ALLOT_STANDIN"].split(","))
    return {key: value for key, _, value in pairs}


def main(folder, expression, value="0"):
    told = settings()
    conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    cards = {card["id"]: card for card in json.loads((folder / "cards.json").read_text())["gpus"]}
    gpu = told.get("gpu", "")
    total = int(told.get("limit", 0)) or cards[gpu]["memory_total"]
    context = 0 if "limit" in told else cards[gpu]["memory_context"]
    names = {"value": int(value), "conf": conf, "gpu": gpu, "total": total // MIB}
    need = int(eval(expression, names)) * MIB
    fits = need + context <= total
    print(f"output with {value}, input {sys.stdin.read()!r}", flush=True)
    with (folder / "runs").open("a") as log:
        print(value, total // MIB, conf, file=log)

    def told_to(name):
        path = folder / name
        return path.exists() and value in path.read_text().split()

    if told_to("sleep"):
        time.sleep(60)
    failed = told_to("fail")
    taken = need if fits else total - context
    # Fragmentation: a tenth of what is reserved is not allocated, unless memory is short.
    allocated = min(taken, need * 9 // 10)
    device = {"device": 0, "allocated_peak": allocated, "requested_peak": allocated,
              "reserved_peak": taken, "retries": 2 * told_to("retry")}  # fmt: skip
    oom = {"device": 0, "size": 5 * MIB, "free": 0, "allocated": allocated, "reserved": taken,
           "line": "/some/where/train.py:7 (step)", "step": 2}  # fmt: skip
    reads = {"count": 3, "bytes": 12, "small": 3, "stopped": False, "values": {"train.py:9": 3},
             "rules": {"train.py:9": 0, "train.py:11": 2}}
    said = folder / "exception"
    exception = {"type": "E", "text": said.read_text(), "line": "train.py:7"} if said.exists() else None
    found = "set:here" if (folder / "own_conf").exists() else conf
    process = {"torch": "2.15.0", "cuda": "13.0", "conf": found, "steps": 3, "devices": [device],
               "oom": [] if fits else [oom], "exception": exception, "problems": [],
               "finished": True}  # fmt: skip
    size = {"name": "cuDNN workspaces", "basis": "unknown" if told_to("unknown") else "table",
            "workspace": "cudnn", "taken": False, "calls": 2, "largest": 0, "most": 0}  # fmt: skip
    nccl = []
    if (folder / "nccl").exists() and "limit" not in told:
        nccl = [{"name": "buffers", "basis": "rule", "source": "a guess", "workspace": "nccl",
                 "taken": True, "calls": 2, "largest": 50 * MIB, "most": 50 * MIB}]  # fmt: skip
    standin = {
        "devices": [{"total": total, "peak": taken + context, "context": context}],
        "pinned_peak": 0, "reads": reads, "missing": [],
        "guessed": {}, "sizes": [size, *nccl],
    }  # fmt: skip
    reports = pathlib.Path(os.environ["ALLOT_DRYRUN"])
    pid = os.getpid()
    (reports / f"{pid}.json").write_text(json.dumps(process))
    (reports / f"standin.{pid}").write_text(json.dumps(standin))
    if (folder / "snapshot").exists():
        (reports / f"{pid}.pickle").write_bytes((folder / "snapshot").read_bytes())
    return 7 if failed else 0 if fits else 1


sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
