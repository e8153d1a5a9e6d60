# SPDX-License-Identifier: MIT
"""Objects that ranks exchange through the device.

torch sends the lengths of pickled objects through device memory and computes with them there, which a
dry run does not. Here they are read first and computed with on the host; everything else, also what is
allocated on the device, is as torch does it.

A rank alone has its own objects only: those of others are copies of these where a call gives them, and
what the caller's list holds where it does not.
"""

import ctypes
import functools
import io
import pickle
import sys

NAMES = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
         "send_object_list", "recv_object_list")  # fmt: skip


class Objects:
    """The object collectives of torch.distributed, for groups whose objects pass the device."""

    def __init__(self, torch, is_alone):
        import torch.distributed as dist
        import torch.distributed.distributed_c10d as c10d

        self.torch, self.dist, self.c10d, self.is_alone = torch, dist, c10d, is_alone

    def install(self):
        for name in NAMES:
            original = getattr(self.c10d, name, None)
            if original is not None:
                replace_everywhere(original, self.wrap(original, getattr(self, name)))

    def wrap(self, original, own):
        """Groups of the host, and ranks outside of a group, are torch's."""

        @functools.wraps(original)
        def call(*args, group=None, device=None, **kwargs):
            position = {"all_gather_object": 2, "gather_object": 3, "scatter_object_list": 3}
            index = position.get(original.__name__, 2)
            if len(args) > index:
                args, group = args[:index], args[index]
            options = dict(kwargs, group=group)
            if device is not None:
                options["device"] = device
            place = device or self.device_of(group)
            if place is None or self.torch.device(place).type != "cuda":
                return original(*args, **options)
            kwargs.pop("weights_only", None)
            kwargs.pop("use_batch", None)
            return own(*args, group=group, **kwargs)

        return call

    def device_of(self, group):
        if group is self.dist.GroupMember.NON_GROUP_MEMBER:
            return None
        place = self.c10d._get_object_coll_device(group)
        return "cuda" if place == "cuda" else None

    # ---- bytes on the device ----

    def put(self, data):
        buffer = bytearray(data) or bytearray(1)
        return self.torch.frombuffer(buffer, dtype=self.torch.uint8).to("cuda")

    def put_lengths(self, lengths):
        return self.torch.tensor(lengths, dtype=self.torch.long).to("cuda")

    def get(self, tensor):
        host = tensor.cpu().contiguous()
        return ctypes.string_at(host.data_ptr(), host.numel() * host.element_size())

    def get_lengths(self, tensor):
        return tensor.cpu().tolist()

    def empty(self, count):
        return self.torch.empty(count, dtype=self.torch.uint8, device="cuda")

    def root(self, group, rank, group_rank):
        """Rank in the group of a rank that a caller gave in either way."""
        if group_rank is not None:
            return group_rank
        rank = 0 if rank is None else rank
        return rank if group is None else self.dist.get_group_rank(group, rank)

    def global_rank(self, group, rank):
        return rank if group is None else self.dist.get_global_rank(group, rank)

    # ---- collectives ----

    def gather_lengths(self, own, group):
        count = self.dist.get_world_size(group)
        all_lengths = self.torch.zeros(count, dtype=self.torch.long, device="cuda")
        self.dist.all_gather_into_tensor(all_lengths, self.put_lengths([len(own)]), group=group)
        return self.get_lengths(all_lengths)

    def padded(self, data, length):
        return self.put(data + bytes(length - len(data)))

    def all_gather_object(self, object_list, obj, group=None):
        own = to_bytes(obj)
        lengths = self.gather_lengths(own, group)
        size = max(lengths)
        everything = self.empty(size * len(lengths))
        self.dist.all_gather_into_tensor(everything, self.padded(own, size), group=group)
        data = self.get(everything)
        for i, length in enumerate(lengths):
            object_list[i] = from_bytes(data[i * size : i * size + length])

    def gather_object(self, obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        own = to_bytes(obj)
        root = self.root(group, dst, group_dst)
        lengths = self.gather_lengths(own, group)
        size = max(lengths)
        is_root = self.dist.get_rank(group) == root
        everything = self.empty(size * len(lengths)) if is_root else None
        parts = list(everything.split(size)) if is_root else None
        self.dist.gather(self.padded(own, size), parts, dst=self.global_rank(group, root),
                         group=group)  # fmt: skip
        for i, length in enumerate(lengths if is_root else []):
            object_gather_list[i] = from_bytes(self.get(parts[i])[:length])

    def broadcast_object_list(self, object_list, src=None, group=None, group_src=None):
        root = self.root(group, src, group_src)
        is_root = self.dist.get_rank(group) == root
        source = self.global_rank(group, root)
        pieces = [to_bytes(obj) for obj in object_list] if is_root or self.is_alone else None
        lengths = self.put_lengths([len(p) for p in pieces] if pieces else [0] * len(object_list))
        self.dist.broadcast(lengths, src=source, group=group)
        known = [len(p) for p in pieces] if pieces else self.get_lengths(lengths)
        content = self.put(b"".join(pieces)) if pieces else self.empty(sum(known))
        self.dist.broadcast(content, src=source, group=group)
        if pieces is None:
            take_apart(self.get(content), known, object_list)

    def scatter_object_list(self, scatter_object_output_list, scatter_object_input_list=None,
                            src=None, group=None, group_src=None):  # fmt: skip
        root = self.root(group, src, group_src)
        own_rank = self.dist.get_rank(group)
        is_root = own_rank == root
        if self.is_alone and not is_root:
            given = scatter_object_input_list
            scatter_object_output_list[0] = given[own_rank] if given else None
            return
        source = self.global_rank(group, root)
        pieces = [to_bytes(obj) for obj in scatter_object_input_list] if is_root else []
        lengths = self.put_lengths([len(p) for p in pieces] or [0] * self.dist.get_world_size(group))
        self.dist.broadcast(lengths, src=source, group=group)
        known = self.get_lengths(lengths) if not is_root else [len(p) for p in pieces]
        size = max(known)
        part = self.empty(size)
        inputs = [self.padded(piece, size) for piece in pieces] if is_root else None
        self.dist.scatter(part, inputs, src=source, group=group)
        data = pieces[own_rank] if is_root else self.get(part)[: known[own_rank]]
        scatter_object_output_list[0] = from_bytes(data)

    def send_object_list(self, object_list, dst=None, group=None, group_dst=None):
        target = self.global_rank(group, self.root(group, dst, group_dst))
        pieces = [to_bytes(obj) for obj in object_list]
        self.dist.send(self.put_lengths([len(p) for p in pieces]), dst=target, group=group)
        self.dist.send(self.put(b"".join(pieces)), dst=target, group=group)

    def recv_object_list(self, object_list, src=None, group=None, group_src=None):
        if self.is_alone:
            sys.stderr.write("allot: one rank alone cannot know the objects that another one sends: "
                             "the list keeps what it holds\n")  # fmt: skip
            return src
        source = self.global_rank(group, self.root(group, src, group_src))
        lengths = self.put_lengths([0] * len(object_list))
        self.dist.recv(lengths, src=source, group=group)
        known = self.get_lengths(lengths)
        content = self.empty(sum(known))
        self.dist.recv(content, src=source, group=group)
        take_apart(self.get(content), known, object_list)
        return source


def to_bytes(obj):
    file = io.BytesIO()
    pickle.Pickler(file).dump(obj)
    return file.getvalue()


def from_bytes(data):
    """Of the program's own ranks: it would read them itself."""
    return pickle.Unpickler(io.BytesIO(data)).load()


def take_apart(data, lengths, into):
    at = 0
    for i, length in enumerate(lengths):
        into[i] = from_bytes(data[at : at + length])
        at += length


def replace_everywhere(original, replacement):
    """Under each name that a module of torch has for a function."""
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            for key, value in list(vars(module).items()):
                if value is original:
                    setattr(module, key, replacement)


def install(torch, is_alone):
    Objects(torch, is_alone).install()
