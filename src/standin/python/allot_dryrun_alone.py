# SPDX-License-Identifier: MIT
"""One rank of a job without the others.

The stand-in answers NCCL's collectives by the rule that every rank holds this rank's data; here is what
needs Python: the store that ranks meet at, the sizes of groups that are split off, groups of the host,
and starting one process where a program starts many.
"""

import ctypes
import os
import sys


def wanted():
    """(rank, world) that `allot dryrun --world N --rank R` asked for; None without it."""
    text = os.environ.get("ALLOT_DRYRUN_ALONE")
    if not text:
        return None
    rank, world = text.split("/")
    return int(rank), int(world)


def take_rank():
    """Before the program: torchrun starts one process per rank, of which one plays the rank."""
    rank, world = wanted()
    if os.environ.get("TORCHELASTIC_RUN_ID"):
        given, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if given != (rank if rank < count else 0):
            os._exit(0)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")


def make_store(dist):
    class Store(dist.Store):
        """Where ranks meet: what the others would have put there is as good as any other text."""

        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            return self.values.get(key, b"\7" * 128)  # the size of NCCL's unique id

        def compare_set(self, key, expected, desired):
            self.set(key, desired)
            return self.values[key]

        def add(self, key, amount):
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            return total

        def check(self, keys):
            return all(key in self.values for key in keys)  # nobody else signals anything

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def wait(self, *_):
            return None

        def set_timeout(self, *_):
            return None

    return Store()


def make_host_group(torch):
    """What stands for gloo: collectives that succeed at once."""
    from torch._C._distributed_c10d import FakeProcessGroup

    create = getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)
    FakeProcessGroup._set_sequence_number_for_group = lambda self: None  # up to 2.11 it has none

    class IsFake(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, FakeProcessGroup)

    class LoneGroup(metaclass=IsFake):
        def __new__(cls, store, rank, size, *args, **kwargs):
            return create(rank, size)

    return LoneGroup


def install(torch, replace_everywhere):
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d

    rank, world = wanted()
    split_size = ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), "allot_standin_split_size")
    store = make_store(dist)  # kept by the functions below: C++ alone would not keep its methods
    init, new_group = c10d.init_process_group, c10d._new_process_group_helper
    split = getattr(c10d, "split_group", None)

    def init_process_group(*args, **kwargs):
        kwargs.pop("init_method", None)
        kwargs.update(store=store, rank=rank, world_size=world)
        return init(*args[:1], **kwargs)

    def new_process_group(group_size, *args, **kwargs):
        split_size.value = group_size
        return new_group(group_size, *args, **kwargs)

    def split_group(parent_pg=None, split_ranks=None, *args, **kwargs):
        own = dist.get_rank(parent_pg)
        split_size.value = max((len(r) for r in split_ranks or [] if own in r), default=0)
        return split(parent_pg, split_ranks, *args, **kwargs)

    replace_everywhere(init, init_process_group)
    replace_everywhere(new_group, new_process_group)
    if split is not None:
        replace_everywhere(split, split_group)
    if hasattr(c10d, "monitored_barrier"):
        replace_everywhere(c10d.monitored_barrier, lambda *args, **kwargs: None)
    if hasattr(c10d, "ProcessGroupGloo"):
        replace_everywhere(c10d.ProcessGroupGloo, make_host_group(torch))
    spawn_one(torch, rank, replace_everywhere)


def spawn_one(torch, rank, replace_everywhere):
    """A program that starts its own ranks runs the one here, in the process itself."""
    import torch.multiprocessing

    spawning = sys.modules["torch.multiprocessing.spawn"]  # the function hides the module

    def start_processes(fn, args=(), nprocs=1, *more, **kwargs):
        fn(rank if rank < nprocs else 0, *args)

    def spawn(fn, args=(), nprocs=1, *more, **kwargs):
        start_processes(fn, args, nprocs)

    replace_everywhere(spawning.start_processes, start_processes)
    replace_everywhere(spawning.spawn, spawn)
