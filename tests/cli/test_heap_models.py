# SPDX-License-Identifier: MIT
"""allot replay --model heap:...: a heap of allot's own under the requests of recordings: made here and
worked out by hand, the example, and the shared data."""

import json

import pytest
from conftest import ROOT, run_command
from made_snapshot import Program, training

MIB = 1 << 20
EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
STRATEGIES = ("first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive")
MODES = ("", ":blocks=handles", ":mode=segments", ":mode=segments,blocks=handles,compact=full")
EVERY = [f"heap:{strategy}{mode}" for strategy in STRATEGIES for mode in MODES]
SEGMENTS = "heap:first-fit:mode=segments,segment=4MiB"


def replays(file, *models, limit=None, options=()):
    """Results by model string as given."""
    arguments = [part for model in models for part in ("--model", model)]
    if limit is not None:
        arguments += ["--limit", limit]
    document = json.loads(run_command("replay", "--json", *arguments, *options, file).stdout)
    return dict(zip(models, document["replays"], strict=True))


def replay(file, model, **given):
    return replays(file, model, **given)[model]


@pytest.fixture
def scattered(tmp_path):
    """Eight blocks of 1 MiB of which every other one goes, then one of 2 MiB."""
    program = Program()
    for n in range(8):
        program.alloc(n, MIB)
    program.free(0, 2, 4, 6)
    program.alloc("large", 2 * MIB)
    return program.write(tmp_path / "scattered.pickle")


def test_what_is_reserved_is_what_one_works_out_by_hand(scattered):
    # Two segments of four blocks each, and a third for the large one; or granules up to 10 MiB.
    assert replay(scattered, SEGMENTS)["reserved_peak"] == 12 * MIB
    mapped = replay(scattered, "heap:first-fit")
    assert mapped["reserved_peak"] == 10 * MIB and mapped["requested_peak"] == 8 * MIB
    assert mapped["finished"] and not mapped["exact"]
    assert mapped["compactions"] == mapped["copied_bytes"] == mapped["copied_ns"] == 0


def test_handles_move_where_a_request_would_fail(scattered):
    kept = replay(scattered, SEGMENTS, limit="8MiB")
    assert not kept["finished"] and kept["oom"]["fragmented"]
    moved = replay(scattered, f"{SEGMENTS},blocks=handles,compact=forced", limit="8MiB")
    assert moved["finished"] and moved["compactions"] == 1 and moved["copied_bytes"] == MIB
    assert moved["copied_ns"] > 0
    text = run_command("replay", "-m", f"{SEGMENTS},blocks=handles,compact=forced", "-l", "8MiB",
                       scattered).stdout
    assert "compactions      1, 1.0 MiB copied in 0.0 ms" in text
    assert "(allot's own strategy): finishes" in text


def test_the_device_says_how_long_copies_take(scattered):
    times = [replay(scattered, f"{SEGMENTS},blocks=handles,compact=forced,gpu={gpu}",
                    limit="8MiB")["copied_ns"] for gpu in ("h100", "t4")]
    assert times[0] < times[1]


def test_a_block_in_use_on_another_stream_stays_until_it_is_done(tmp_path):
    def reserved(complete_first):
        program = Program()
        program.alloc("a", 8 * MIB)
        complete = program.free_later("a")
        if complete_first:
            complete()
        program.alloc("b", 8 * MIB)
        if not complete_first:
            complete()
        file = program.write(tmp_path / "shared.pickle")
        found = replays(file, "heap", "heap:tlsf:blocks=handles")
        return [result["reserved_peak"] // MIB for result in found.values()]

    assert reserved(complete_first=True) == [8, 8]
    assert reserved(complete_first=False) == [16, 16]


def test_live_ranges_fit_into_what_is_reserved_at_every_moment(tmp_path):
    file = training(layers=6, iterations=4).write(tmp_path / "training.pickle")
    for result in replays(file, *EVERY, options=("--samples", 300)).values():
        assert result["finished"]
        assert result["requested_peak"] <= result["allocated_peak"] <= result["reserved_peak"]
        for sample in result["timeline"]:
            assert sample["allocated"] <= sample["active"] <= sample["reserved"]
            assert sample["free_largest"] <= sample["reserved"] - sample["active"]


@pytest.mark.parametrize("limit", ["10GiB"])
def test_handles_finish_where_pointers_do_not(limit):
    found = replays(EXAMPLE, "heap:first-fit:mode=segments",
                    "heap:first-fit:mode=segments,blocks=handles,compact=full", limit=limit)
    pointers, handles = found.values()
    assert not pointers["finished"] and pointers["oom"]["fragmented"]
    assert handles["finished"] and handles["compactions"] > 0
    assert handles["reserved_peak"] <= 10 << 30


def test_the_example_finishes_in_virtual_memory():
    found = replays(EXAMPLE, "torch", "heap", limit="11264MiB")
    assert not found["torch"]["finished"]
    assert found["heap"]["finished"] and found["heap"]["times_live"] < 1.05


@pytest.mark.parametrize("name", ["finetune_80gib", "classic_streams_tight", "classic_pools"])
def test_recordings_of_real_allocators(data, name):
    file = data(f"oracle/{name}.pickle.gz")
    found = replays(file, "torch", *EVERY)
    live = found["torch"]["requested_peak"]
    for result in found.values():
        assert result["finished"] and result["reserved_peak"] >= live
    assert found["heap:first-fit"]["reserved_peak"] < found["torch"]["reserved_peak"]


def test_two_runs_say_the_same():
    arguments = ("replay", "--json", "-m", "heap:adaptive:blocks=handles,compact=full", "-l", "10GiB",
                 "--samples", "50", EXAMPLE)
    assert run_command(*arguments).stdout == run_command(*arguments).stdout
