# SPDX-License-Identifier: MIT
"""One rank of a job without the others.

The stand-in answers NCCL's collectives by the rule that every rank holds this rank's data; here is what
needs Python: the store that ranks meet at, and what pickled objects are exchanged.
"""

import ctypes
import os


def run_rank_alone(torch):
    """Let one rank of a job run without the others: nobody is waited for.

    The store that ranks meet at becomes one of this process, objects are gathered from copies of this
    rank's, and the stand-in is told how many ranks a group has that is split off.
    """
    if not torch.distributed.is_available():
        return
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d

    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    split_size = ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), "allot_standin_split_size")
    originals = {
        name: getattr(c10d, name)
        for name in ("init_process_group", "_new_process_group_helper", "split_group")
        if hasattr(c10d, name)
    }

    class Store(dist.Store):
        """Where ranks meet: what the others would have put there is as good as any other text."""

        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            return self.values.get(key, b"\7" * 128)  # the size of NCCL's unique id

        def add(self, key, amount):
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            return total

        def check(self, keys):
            return True

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def wait(self, *_):
            return None

        def set_timeout(self, *_):
            return None

    store = Store()  # lives as long as the functions below: C++ alone would not keep its methods

    def init_process_group(*args, **kwargs):
        kwargs.pop("init_method", None)
        kwargs.update(store=store, rank=rank, world_size=world)
        return originals["init_process_group"](*args[:1], **kwargs)

    def all_gather_object(object_list, obj, group=None):
        for i in range(dist.get_world_size(group)):
            object_list[i] = obj

    def new_process_group(group_size, *args, **kwargs):
        split_size.value = group_size
        return originals["_new_process_group_helper"](group_size, *args, **kwargs)

    def split_group(parent_pg=None, split_ranks=None, *args, **kwargs):
        split_size.value = max((len(r) for r in split_ranks or [] if rank in r), default=0)
        return originals["split_group"](parent_pg, split_ranks, *args, **kwargs)

    replacements = {
        "init_process_group": init_process_group,
        "all_gather_object": all_gather_object,
        "_new_process_group_helper": new_process_group,
        "split_group": split_group,
    }
    for name, replacement in replacements.items():
        for module in (c10d, dist):
            if hasattr(module, name):
                setattr(module, name, replacement)
