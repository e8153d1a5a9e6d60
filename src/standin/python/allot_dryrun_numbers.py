# SPDX-License-Identifier: MIT
"""What a number that the program reads from the device is for.

The stand-in sees a copy of some bytes. Whether they are an integer, which may become a size, a float,
which is most often printed, or a tensor that PyTorch prints, is known here and told to it.
"""

import ctypes
import functools

UNKNOWN, FLOAT, INTEGER, PRINTED = range(4)  # as in src/standin/reads.h
READERS = ("item", "tolist", "__int__", "__index__", "__float__")


def install(torch):
    tell = ctypes.PyDLL("libcuda.so.1").allot_standin_reading
    for name in READERS:
        replace(torch.Tensor, name, tell, lambda tensor: purpose_of(torch, tensor))
    replace(torch.Tensor, "__format__", tell, lambda _: PRINTED)
    replace(torch._tensor_str, "_str", tell, lambda _: PRINTED)


def purpose_of(torch, tensor):
    if not tensor.is_cuda or tensor.dtype is torch.bool:
        return UNKNOWN
    return FLOAT if tensor.is_floating_point() or tensor.is_complex() else INTEGER


def replace(owner, name, tell, find_purpose):
    original = getattr(owner, name)

    @functools.wraps(original)
    def read(tensor, *args, **kwargs):
        before = tell(find_purpose(tensor))
        if before == PRINTED:
            tell(before)
        try:
            return original(tensor, *args, **kwargs)
        finally:
            tell(before)

    setattr(owner, name, read)
