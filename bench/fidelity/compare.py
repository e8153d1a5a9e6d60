# SPDX-License-Identifier: MIT
"""Compares two memory snapshots of the same program: its events, its placements, its peaks.

Both are read by the `allot` command: a snapshot from elsewhere is never unpickled here.

An event is what happened and its size. Addresses are compared apart from them: two runs place alike
where one renaming of addresses turns the one into the other.
"""

import csv
import dataclasses
import difflib
import io
import json
import subprocess
import sys

MEASURES = ("requested", "allocated", "reserved")

csv.field_size_limit(sys.maxsize)  # a stack with C++ frames is long


@dataclasses.dataclass(frozen=True)
class Event:
    kind: str
    size: int
    address: int

    def what(self):
        return self.kind, self.size


@dataclasses.dataclass(frozen=True)
class Trace:
    events: list[Event]
    peaks: dict[str, int]  # bytes, by measure


@dataclasses.dataclass(frozen=True)
class Comparison:
    total: int  # events of the first trace
    identical: int  # of them in the second one too, in the same order
    surplus: int  # events that only the second one has
    placed: int  # allocations of the first trace
    placed_alike: int
    errors: dict[str, int]  # bytes: the second's peak minus the first's
    difference: str | None  # the first event that differs

    def is_exact(self):
        return self.identical == self.total and self.surplus == 0


def read(allot, path):
    """The trace of the first device that has events."""
    text = output_of(allot, "export", "--to", "csv", path)
    rows = list(csv.DictReader(io.StringIO(text)))
    device = next((row["device"] for row in rows), None)
    events = [
        Event(row["event"], int(row["size_requested"]), int(row["address"] or 0))
        for row in rows
        if row["device"] == device and row["event"] != "snapshot"
    ]
    devices = json.loads(output_of(allot, "inspect", "--json", path))["devices"]
    measures = next((d["measures"] for d in devices if d["event_count"] > 0), {})
    return Trace(events, {name: measures[name]["peak"] for name in MEASURES})


def output_of(allot, *arguments):
    command = [str(allot), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


def compare(first, second):
    matches = matching_blocks([e.what() for e in first.events], [e.what() for e in second.events])
    identical = sum(size for _, _, size in matches)
    placed, placed_alike = placements(first.events, second.events, matches)
    return Comparison(
        total=len(first.events),
        identical=identical,
        surplus=len(second.events) - identical,
        placed=placed,
        placed_alike=placed_alike,
        errors={name: second.peaks[name] - first.peaks[name] for name in first.peaks},
        difference=first_difference(first.events, second.events),
    )


def matching_blocks(first, second):
    """Rows of (start in first, start in second, length); what both begin and end with is quick."""
    start = common_length(first, second)
    left, right = first[start:], second[start:]
    end = common_length(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    inner = difflib.SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return [
        (0, 0, start),
        *((start + i, start + j, size) for i, j, size in inner),
        (len(first) - end, len(second) - end, end),
    ]


def common_length(first, second):
    for i, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return i
    return min(len(first), len(second))


def placements(first, second, matches):
    """How many allocations there are, and how many of them follow one renaming of addresses."""
    there, back = {}, {}
    alike = 0
    for i, j, size in matches:
        for left, right in zip(first[i : i + size], second[j : j + size], strict=True):
            if left.kind != "alloc":
                continue
            new = there.setdefault(left.address, right.address)
            old = back.setdefault(right.address, left.address)
            alike += new == right.address and old == left.address
    return sum(event.kind == "alloc" for event in first), alike


def first_difference(first, second):
    i = common_length([e.what() for e in first], [e.what() for e in second])
    if i == len(first) == len(second):
        return None
    left, right = (
        f"{events[i].kind} of {events[i].size}" if i < len(events) else "the end"
        for events in (first, second)
    )
    return f"event {i}: {left}, here {right}"
