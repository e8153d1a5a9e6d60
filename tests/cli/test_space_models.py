# SPDX-License-Identifier: MIT
"""allot replay --model space:...: what allot's own strategies reserve, on recordings made here whose
outcome is worked out by hand, on the example and on the shared data."""

import json

import pytest
from conftest import ROOT, run_command
from made_snapshot import Program, training

MIB = 1 << 20
EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
STRATEGIES = ("first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive")
MODES = ("", ":mode=segments", ":streams=apart", ":mode=segments,streams=apart")
EVERY = [f"space:{strategy}{mode}" for strategy in STRATEGIES for mode in MODES]


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
def holes(tmp_path):
    """3 MiB and 1 MiB, the first freed, then 2 MiB and 4 MiB."""
    program = Program()
    program.alloc("a", 3 * MIB)
    program.alloc("b", 1 * MIB)
    program.free("a")
    program.alloc("c", 2 * MIB)
    program.alloc("d", 4 * MIB)
    return program.write(tmp_path / "holes.pickle")


# What is reserved and allocated at the peak, in MiB.
BY_HAND = [
    # c at 0, d does not fit below b and goes to 4: granules up to 8.
    ("space:first-fit", 8, 7),
    ("space:best-fit", 8, 7),
    ("space:tlsf", 8, 7),
    # a has 4, so b lies at 4 and c at 6; d gets the place of a.
    ("space:buddy", 8, 7),
    ("space:first-fit:mode=segments", 64, 7),
    # c beside b in the first segment, d needs a second one.
    ("space:first-fit:mode=segments,segment=4MiB", 8, 7),
    # A segment of 4 for a, which leaves room for b; one of 4 for d.
    ("space:first-fit:mode=segments,segment=2MiB", 8, 7),
    # a takes all of the first segment, b begins a second; c gets the place of a, d a third.
    ("space:buddy:mode=segments,segment=4MiB", 12, 7),
]


@pytest.mark.parametrize("model, reserved, allocated", BY_HAND)
def test_what_is_reserved_is_what_one_works_out_by_hand(holes, model, reserved, allocated):
    result = replay(holes, model)
    assert result["finished"] and not result["exact"]
    assert result["reserved_peak"] == reserved * MIB
    assert result["allocated_peak"] == allocated * MIB
    assert result["requested_peak"] == 7 * MIB
    assert result["times_live"] == pytest.approx(reserved / 7)
    assert result["times_recorded"] == pytest.approx(reserved / 10)


def test_a_replay_says_how_much_is_reserved_for_what_is_live(holes):
    text = run_command("replay", "--model", "space:first-fit", holes).stdout
    assert "space:first-fit:mode=vm (allot's own strategy): finishes" in text
    assert "1.14x what is live at once, 0.80x what was reserved when recorded" in text
    text = run_command("replay", "-m", "torch", "-m", "space:first-fit", holes).stdout
    rows = text.split("model\n")[1].split("  reserved, allocated:")[0]
    ours = rows.split("torch")[1].split()
    assert ours[:11] == ["finishes", "8.0", "MiB", "7.0", "MiB", "1.14x", "0.80x", "0", "%", "2", "0"]
    assert ours[-2:] == ["space:first-fit:mode=vm", "+"]
    assert "+ a strategy of allot's own, no setting of PyTorch" in text
    assert "not exact" not in text


def test_granules_are_unmapped_only_when_memory_is_short(holes):
    roomy = replay(holes, "space:first-fit", limit="8MiB")
    assert roomy["finished"] and roomy["retries"] == 0 and roomy["driver_frees"] == 0


def test_streams_share_free_memory_or_are_apart(tmp_path):
    program = Program()
    program.alloc("a", 8 * MIB, stream=1)
    program.free("a")
    program.alloc("b", 8 * MIB, stream=1)
    program.free("b")
    program.alloc("c", 8 * MIB, stream=2)
    file = program.write(tmp_path / "streams.pickle")
    found = replays(file, "space:tlsf", "space:tlsf:streams=apart",
                    "space:tlsf:mode=segments,segment=8MiB",
                    "space:tlsf:mode=segments,segment=8MiB,streams=apart")
    assert [result["reserved_peak"] // MIB for result in found.values()] == [8, 16, 8, 16]
    assert all(result["finished"] for result in replays(file, *found, limit="8MiB").values())


def test_a_block_in_use_on_another_stream_is_free_when_its_event_completes(tmp_path):
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
        return replay(file, "space:first-fit")["reserved_peak"] // MIB

    assert reserved(complete_first=True) == 8
    assert reserved(complete_first=False) == 16


def test_an_out_of_memory_names_its_event_and_kind(tmp_path):
    program = Program()
    for n in range(6):
        program.alloc(n, MIB)
    program.free(0, 2, 4)
    program.alloc("large", 2 * MIB)
    file = program.write(tmp_path / "oom.pickle")
    # The segment is event 0, six allocs and three pairs of frees follow.
    scattered = replay(file, "space:first-fit", limit="6MiB")
    assert not scattered["finished"]
    assert scattered["oom"] == {"event": 13, "size": 2 * MIB, "reserved": 6 * MIB,
                                "allocated": 3 * MIB, "fragmented": True}
    text = " ".join(run_command("replay", "-m", "space:first-fit", "-l", "6MiB", file).stdout.split())
    assert "request of 2.0 MiB at event 13 fails with 6.0 MiB reserved and 3.0 MiB" in text
    assert "no single range is large enough" in text
    lacking = replay(file, "space:first-fit", limit="4MiB")
    assert lacking["oom"] == {"event": 5, "size": MIB, "reserved": 4 * MIB, "allocated": 4 * MIB,
                              "fragmented": False}
    in_segments = replay(file, "space:first-fit:mode=segments", limit="6MiB")
    assert in_segments["oom"]["event"] == 13 and in_segments["oom"]["fragmented"]


def test_live_ranges_fit_into_what_is_reserved_at_every_moment(tmp_path):
    file = training(layers=6, iterations=4).write(tmp_path / "training.pickle")
    for result in replays(file, *EVERY, options=("--samples", 300)).values():
        assert result["finished"]
        assert result["requested_peak"] <= result["allocated_peak"] <= result["reserved_peak"]
        for sample in result["timeline"]:
            assert sample["allocated"] <= sample["active"] <= sample["reserved"]
            assert sample["free_largest"] <= sample["reserved"] - sample["active"]


def test_training_needs_little_more_than_is_live(tmp_path):
    file = training(layers=16, iterations=8).write(tmp_path / "training.pickle")
    found = replays(file, "space:first-fit", "torch", "torch:expandable_segments:True")
    ours, *others = (result["times_live"] for result in found.values())
    assert 1 <= ours < 1.01
    assert all(ours <= other for other in others)


def test_virtual_memory_finishes_where_pytorch_died():
    found = replays(EXAMPLE, "torch", "space:first-fit", limit="11264MiB")
    assert not found["torch"]["finished"]
    assert found["space:first-fit"]["finished"]
    # Most bytes live at once are 9.78 GiB.
    assert found["space:first-fit"]["times_live"] < 1.05


@pytest.mark.parametrize("name", ["finetune_80gib", "classic_streams_tight", "classic_pools"])
def test_recordings_of_real_allocators(data, name):
    file = data(f"oracle/{name}.pickle.gz")
    found = replays(file, "torch", "torch:expandable_segments:True", *EVERY)
    live = found["torch"]["requested_peak"]
    for result in found.values():
        assert result["finished"] and result["reserved_peak"] >= live
    mapped = found["space:first-fit"]["reserved_peak"]
    assert mapped <= found["torch:expandable_segments:True"]["reserved_peak"] <= (
        found["torch"]["reserved_peak"])
    assert mapped < 1.05 * live
    for strategy in ("first-fit", "best-fit", "tlsf", "tiered"):
        tight = replay(file, f"space:{strategy}", limit=int(1.01 * live))
        assert tight["finished"], strategy
