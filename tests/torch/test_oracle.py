# SPDX-License-Identifier: MIT
"""Recordings of the real allocator, made again on the stand-in: every event has to be equal."""

import gzip
import pickle
import re

import pytest

# Name, setting, memory in MiB, fraction, kind of program, seed.
RANDOM_PROGRAMS = [
    ("classic_tight", "", 7000, None, "empty", 101),
    ("classic_streams_tight", "", 8000, None, "streams_empty", 102),
    ("classic_pools", "", 40960, None, "streams_pools_empty", 103),
    ("gc08_maxsplit", "garbage_collection_threshold:0.8,max_split_size_mb:256", 8000, "1.0",
     "streams", 108),
    ("expandable_maxsplit_gc", "expandable_segments:True,max_split_size_mb:64,"
     "garbage_collection_threshold:0.8", 8000, "0.95", "streams_empty", 114),
    ("expandable_pools", "expandable_segments:True", 40960, None, "streams_pools_empty", 115),
]  # fmt: skip


class PlainUnpickler(pickle.Unpickler):
    """Loads plain data only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def events(path):
    """Action, size and address of every event, addresses counted from the lowest."""
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        trace = PlainUnpickler(file).load()["device_traces"][0]
    lowest = min(e["addr"] for e in trace if e["action"] in ("segment_alloc", "segment_map"))
    return [
        (e["action"], e["size"], None if e["action"] == "oom" else e["addr"] - lowest)
        for e in trace
    ]


@pytest.mark.parametrize("program", RANDOM_PROGRAMS, ids=lambda p: p[0])
def test_random_programs_repeat_every_event(on_the_oracle, data, tmp_path, program):
    name, setting, limit, fraction, kind, seed = program
    script, expected = data("oracle/random_program.py"), data(f"oracle/{name}.pickle.gz")
    out = tmp_path / "out.pickle"
    on_the_oracle(limit, setting, script, out, seed, 6000, kind, *([fraction] if fraction else []))
    assert events(out) == events(expected)


@pytest.mark.parametrize(
    ("setting", "limit", "expected"),
    [
        ("", 11264, "steps 6 peak allocated 9287 reserved 10536 retries 3"),
        ("", 81920, "steps 13 peak allocated 10027 reserved 19880 retries 0"),
        ("expandable_segments:True", 11264, "steps 13 peak allocated 10011 reserved 11050 retries 0"),
        ("max_split_size_mb:512", 12288, "steps 13 peak allocated 10031 reserved 12272 retries 2"),
    ],
)
def test_the_fine_tuning_run_has_the_figures_of_the_oracle(
    on_the_oracle, data, setting, limit, expected
):
    script = data("oracle/finetune.py")
    arguments = "--dim 768 --layers 12 --heads 12 --steps 14 --out out.pickle".split()
    assert re.search(f"^{expected}$", on_the_oracle(limit, setting, script, *arguments),
                     re.MULTILINE)  # fmt: skip
