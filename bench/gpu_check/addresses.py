# SPDX-License-Identifier: MIT
"""Allocates and frees device memory through the driver, always the same, and prints where it lies.

usage: addresses.py ADDRESSES    writes a JSON list of [bytes, address], one per allocation
"""

import ctypes
import json
import random
import sys

MIB = 1 << 20
SIZES = [2 * MIB, 2 * MIB, 2 * MIB, 12 * MIB, 20 * MIB, 20 * MIB, 26 * MIB, 40 * MIB, 64 * MIB,
         78 * MIB, 172 * MIB, 256 * MIB]  # fmt: skip
LIVE_MAX_BYTES = 2 << 30
STEPS = 600


def main():
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(driver, name)(*arguments)
        if status != 0:
            sys.exit(f"{name}: CUDA error {status}")

    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    chance = random.Random(1)
    live, placed = [], []
    for _ in range(STEPS):
        size = chance.choice(SIZES)
        if live and (chance.random() < 0.4 or sum(s for s, _ in live) + size > LIVE_MAX_BYTES):
            _, address = live.pop(chance.randrange(len(live)))
            call("cuMemFree_v2", ctypes.c_uint64(address))
            continue
        place = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
        live.append((size, place.value))
        placed.append((size, place.value))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(placed, file)


if __name__ == "__main__":
    main()
