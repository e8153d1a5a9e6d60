# SPDX-License-Identifier: MIT
"""allot compact: memory of a moment, and whole traces through a heap, made here and worked out by
hand; the example, and the shared data."""

import json
import pickle

import pytest
from conftest import ROOT, run_command
from made_snapshot import BASE, Program, training

MIB = 1 << 20
EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"


def compact(*arguments):
    document = json.loads(run_command("compact", "--json", *arguments).stdout)
    assert document.pop("schema") == "allot.compact/1"
    return document


def state_only(path, *segments):
    """A snapshot of segments, each a list of sizes in MiB; negative: free."""
    described = []
    for n, sizes in enumerate(segments):
        address, blocks = BASE + n * (1 << 30), []
        at = address
        for size in sizes:
            blocks.append({"address": at, "size": abs(size) * MIB, "requested_size": abs(size) * MIB,
                           "state": "active_allocated" if size > 0 else "inactive"})
            at += abs(size) * MIB
        used = sum(size for size in sizes if size > 0) * MIB
        described.append({"device": 0, "address": address, "total_size": at - address, "stream": 0,
                          "allocated_size": used, "active_size": used, "segment_type": "large",
                          "blocks": blocks})
    path.write_bytes(pickle.dumps({"segments": described, "device_traces": [[]]}))
    return path


@pytest.fixture
def halves(tmp_path):
    """Two segments of 8 MiB, half full each, in pieces of 2 MiB."""
    return state_only(tmp_path / "halves.pickle", [2, -2, 2, -2], [-2, 2, -2, 2])


# ---- one moment


def test_two_halves_become_one_whole(halves):
    found = compact(halves)
    assert found["kind"] == "state" and found["event"] is None
    assert found["before"] == {"reserved": 16 * MIB, "segments": 2, "releasable": 0,
                               "free_largest": 2 * MIB, "fragmentation": pytest.approx(0.75)}
    assert found["after"]["segments"] == 1 and found["after"]["releasable"] == 8 * MIB
    assert found["after"]["reserved"] == 8 * MIB
    assert found["moves"] == 2 and found["moved_bytes"] == 4 * MIB
    assert found["benefit"] == 4 * MIB and found["active"] == 8 * MIB
    text = run_command("compact", halves).stdout
    assert "to move: 2 blocks, 4.0 MiB" in text
    assert "may move; those of the recorded program may not have been" in text
    assert "compacted: what is left once the empty segments are given back" in text
    now, compacted = text.splitlines()[-2:]
    assert now.split() == ["now", ("█" * 8 + "·" * 8) * 2 + ("·" * 8 + "█" * 8) * 2]
    assert compacted.split() == ["compacted", "█" * 32] # The second segment is gone.


def test_what_is_full_or_empty_is_left_alone(tmp_path):
    found = compact(state_only(tmp_path / "full.pickle", [4, 4], [8]))
    assert found["moves"] == 0 and found["benefit"] == 0
    found = compact(state_only(tmp_path / "empty.pickle", [-8], [8]))
    assert found["moves"] == 0
    assert found["before"]["releasable"] == 8 * MIB and found["after"]["reserved"] == 8 * MIB
    assert compact(state_only(tmp_path / "nothing.pickle", [1]))["before"]["segments"] == 1


def test_the_rate_says_how_long_it_takes(halves):
    slow = compact("--copy-rate", "1MiB", halves)
    assert slow["moved_ns"] == pytest.approx(4e9, rel=0.01)
    assert slow["copy_bytes_per_s"] == MIB
    rates = [compact("--gpu", gpu, halves)["copy_bytes_per_s"] for gpu in ("h100", "t4")]
    assert rates[0] > rates[1]


def test_streams_and_pools_stay_apart(tmp_path):
    path = state_only(tmp_path / "streams.pickle", [2, -2, 2, -2], [-2, 2, -2, 2])
    snapshot = pickle.loads(path.read_bytes())
    snapshot["segments"][1]["stream"] = 7
    path.write_bytes(pickle.dumps(snapshot))
    assert compact(path)["after"]["segments"] == 2


def test_the_moment_is_chosen(tmp_path):
    program = Program()
    for n in range(8):
        program.alloc(n, 2 * MIB)
    program.free(0, 2, 4, 6)
    file = program.write(tmp_path / "scattered.pickle")
    full = compact("--at", "8", file)
    assert full["event"] == 8 and full["active"] == 16 * MIB and full["moves"] == 0
    end = compact(file)
    assert end["active"] == 8 * MIB and end["moves"] > 0
    assert end["after"]["free_largest"] == 8 * MIB
    assert "before its first event" in run_command("compact", "--at", "start", file).stdout


def test_an_out_of_memory_says_whether_it_would_fit():
    found = compact(EXAMPLE)
    assert found["failed_request"] > 3 << 30 and found["event"] == 27107
    assert found["after"]["segments"] < found["before"]["segments"]
    text = run_command("compact", EXAMPLE).stdout
    assert "The request of 3.07 GiB that failed here" in text


# ---- a whole trace


def test_a_request_fits_after_compaction(tmp_path):
    program = Program()
    for n in range(64):
        program.alloc(n, MIB)
    program.free(*range(0, 64, 2))
    program.alloc("large", 16 * MIB)
    file = program.write(tmp_path / "scattered.pickle")
    for when in ("forced", "full", "auto"):
        found = compact("--simulate", "--limit", "64MiB", "--when", when, file)
        assert found["kind"] == "simulation" and found["requests"] == 65
        assert found["without"]["oom_count"] == 1 and found["with"]["oom_count"] == 0
        assert found["without"]["compactions"] == []
        (compaction,) = found["with"]["compactions"]
        assert compaction["moved_bytes"] == found["with"]["moved_bytes"] > 0
        assert compaction["event"] == 64 + 64 + 1
        assert found["moved_ns"] > 0
    text = run_command("compact", "--simulate", "--limit", "64MiB", file).stdout
    assert "Requests that fail: 1 with giving back alone, 0 with it." in text
    text = run_command("compact", "--simulate", "--limit", "64MiB", "--when", "forced", file).stdout
    assert "Requests that fail: 1 without it, 0 with it." in text


def test_what_fails_is_counted_in_the_run_that_is_compared_with():
    arguments = ("compact", "--simulate", "--limit", "9GiB", EXAMPLE)
    found = compact(*arguments[1:])
    trimmed, with_ = (found[run]["oom_count"] for run in ("trimmed", "with"))
    assert trimmed < found["without"]["oom_count"]
    text = run_command(*arguments).stdout
    assert f"Requests that fail: {trimmed} with giving back alone, {with_} with it." in text


def test_a_request_that_no_compaction_helps_is_not_called_served(tmp_path):
    program = Program()
    program.alloc("vast", 64 * MIB)
    file = program.write(tmp_path / "vast.pickle")
    text = run_command("compact", "--simulate", "--when", "forced", "--limit", "32MiB", file).stdout
    assert "Nothing was compacted: it would not have made room for what failed." in text
    assert "no request needed it" not in text


def test_a_trace_without_addresses_is_not_said_to_have_a_state(tmp_path):
    event = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1,
             "args": {"Device Type": 1, "Device Id": 0, "Bytes": 1024, "Total Allocated": 1024,
                      "Total Reserved": 2048}}
    path = tmp_path / "bare.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    said = run_command("compact", "--simulate", path, code=5).stderr
    assert "no addresses" in said and "without --simulate" not in said


def test_without_a_limit_nothing_is_forced(tmp_path):
    file = training(layers=4, iterations=2).write(tmp_path / "training.pickle")
    text = run_command("compact", "--simulate", "--when", "forced", file).stdout
    assert "Nothing was compacted: without --limit no request fails" in text


def test_the_limit_of_a_run_that_died_is_named():
    assert "ran out of memory; its limit was" in run_command("compact", "--simulate", EXAMPLE).stdout
    text = run_command("compact", "--simulate", "--limit", "10GiB", EXAMPLE).stdout
    assert "its limit was" not in text


def test_training_reserves_less():
    found = compact("--simulate", EXAMPLE)
    without, with_, trimmed = found["without"], found["with"], found["trimmed"]
    assert with_["reserved_peak"] <= trimmed["reserved_peak"] < 0.6 * without["reserved_peak"]
    assert trimmed["compactions"] == [] and trimmed["moved_bytes"] == 0
    assert with_["active_peak"] == without["active_peak"] <= with_["reserved_peak"]
    assert with_["in_pieces_mean"] < without["in_pieces_mean"]
    events = [[sample["event"] for sample in run["timeline"]] for run in (without, with_)]
    assert events[0] == events[1] and len(events[0]) > 100
    assert with_["moved_bytes"] == sum(c["moved_bytes"] for c in with_["compactions"])
    assert all(a["free_largest_without"] < a["free"] for a in found["worst"])
    replayed = json.loads(run_command("replay", "--json", "-m", with_["model"], EXAMPLE).stdout)
    assert replayed["replays"][0]["reserved_peak"] == with_["reserved_peak"]
    assert replayed["replays"][0]["copied_bytes"] == with_["moved_bytes"]


@pytest.mark.parametrize("when", ["auto", "steps"])
def test_two_runs_say_the_same(when):
    arguments = ("compact", "--simulate", "--when", when, "--limit", "10GiB", EXAMPLE)
    assert run_command(*arguments).stdout == run_command(*arguments).stdout


@pytest.mark.parametrize("options", [
    ("--mode", "virtual"), ("--strategy", "best-fit"), ("--strategy", "buddy"),
    ("--strategy", "adaptive", "--mode", "virtual", "--threshold", "5"), ("--when", "full"),
    ("--when", "steps"), ("--when", "steps", "--step", "50us", "--threshold", "10"),
])
def test_every_kind_of_heap_is_simulated(options):
    found = compact("--simulate", *options, EXAMPLE)
    assert found["with"]["oom_count"] == 0
    text = run_command("compact", "--simulate", *options, EXAMPLE).stdout
    assert "peak reserved" in text and "memory after event" in text


def test_a_step_moves_no_more_than_its_time_allows():
    found = compact("--simulate", "--when", "steps", "--step", "1ms", "--copy-rate", "20GiB", EXAMPLE)
    steps = found["with"]["compactions"]
    budget = 20 * (1 << 30) // 1000 + 1
    assert len(steps) > 10
    # A block that is larger than a step moves alone.
    assert all(step["moved_bytes"] <= budget or step["moves"] == 1 for step in steps)
    assert found["copy_bytes_per_s"] == 20 << 30


def test_a_state_is_shown_where_there_is_no_history(halves):
    result = run_command("compact", "--simulate", halves)
    assert "no history to simulate, only its state" in result.stderr
    assert "to move: 2 blocks" in result.stdout


def test_output_goes_to_a_file(tmp_path, halves):
    out = tmp_path / "out.json"
    assert run_command("compact", "--json", "-o", out, halves).stdout == ""
    assert json.loads(out.read_text())["moves"] == 2


@pytest.mark.parametrize("arguments, says", [
    (["--limit", "1GiB"], "--limit is for --simulate"),
    (["--when", "full"], "--when is for --simulate"),
    (["--simulate", "--at", "oom"], "--at is for one moment"),
    (["--simulate", "--when", "full", "--threshold", "10"], "--threshold is for --when auto and steps"),
    (["--simulate", "--step", "1ms"], "--step is for --when steps"),
    (["--simulate", "--when", "steps", "--step", "1"], "--step 1: want a time above 0"),
    (["--simulate", "--when", "steps", "--step", "-1ms"], "--step -1ms: want a time above 0"),
    (["--simulate", "--when", "steps", "--step", "0s"], "--step 0s: want a time above 0"),
    (["--simulate", "--when", "steps", "--step", "1e400s"], "want a time above 0"),
    (["--simulate", "--when", "often"], "--when often: want one of auto|steps|full|forced"),
    (["--simulate", "--when", ""], "--when : want one of"),
    (["--simulate", "--mode", "vm"], "--mode vm: want one of segments|virtual"),
    (["--simulate", "--threshold", "0"], "above 0, up to 100"),
    (["--copy-rate", "0"], "--copy-rate 0: want a size above 0"),
    (["--gpu", "abacus"], 'no GPU profile "abacus"'),
])
def test_wrong_options_are_usage_errors(halves, arguments, says):
    result = run_command("compact", *arguments, halves, code=2)
    assert says in result.stderr and result.stdout == ""


def test_files_of_other_allocators_have_states_too(data):
    for name in ("u1_umpire_replay.json", "v1_vma_dump.json", "a5_state_16gib_kv.pickle"):
        found = compact(data(f"snapshots/{name}"))
        assert found["after"]["reserved"] <= found["before"]["reserved"]


def test_memory_of_unknown_places_is_told(tmp_path):
    entries = [{"action": "alloc", "addr": (1 + i) << 30, "size": MIB, "stream": 0} for i in range(3)]
    path = tmp_path / "lost.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [entries]}))
    assert "no segments are known" in run_command("compact", path, code=5).stderr


def test_more_memory_than_there_is_is_refused(tmp_path):
    path = state_only(tmp_path / "vast.pickle", [1])
    snapshot = pickle.loads(path.read_bytes())
    segment = snapshot["segments"][0]
    segment["total_size"] = segment["blocks"][0]["size"] = 1 << 46
    path.write_bytes(pickle.dumps(snapshot))
    assert "more memory than any device has" in run_command("compact", path, code=3).stderr


def test_a_page_is_written(tmp_path, halves):
    for name, arguments in (("state", [halves]), ("trace", ["--simulate", EXAMPLE])):
        page = tmp_path / f"{name}.html"
        run_command("compact", "--html", page, *arguments)
        assert page.read_text().startswith("<!DOCTYPE html>") and page.stat().st_size > 30_000
