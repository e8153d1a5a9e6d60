# SPDX-License-Identifier: MIT
"""allot replay: checks, replays under other conditions, JSON, what cannot be replayed, wrong options."""

import json
import pickle
import re

import pytest

from conftest import ROOT, run_command

EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
MIB = 1 << 20


def replay(*options, code=0, file=EXAMPLE):
    return run_command("replay", *options, file, code=code)


def replay_json(*options, code=0, file=EXAMPLE):
    return json.loads(replay("--json", *options, code=code, file=file).stdout)


def test_a_check_says_how_many_placements_are_equal():
    text = replay("--check").stdout
    assert "9337 of 9337 placements equal; 27308 of 27308 events equal" in text
    assert "135 taken, 59 freed" in text
    limited = replay("--check", "--limit", "11264MiB").stdout
    assert "9337 of 9337 placements equal" in limited


def test_a_check_under_other_settings_shows_the_first_difference():
    text = replay("--check", "--model", "torch:roundup_power2_divisions:4", code=1).stdout
    assert "event 0: another size: recorded segment_alloc of 148.0 MiB" in text
    assert "model segment_alloc of 160.0 MiB" in text
    assert "> " in text
    check = replay_json("--check", "--model", "torch:roundup_power2_divisions:4", code=1)
    assert check["schema"] == "allot.check/1"
    assert not check["equal"]
    assert check["difference"]["event"] == 0
    assert check["difference"]["model"]["size"] == 160 * MIB
    assert check["difference"]["recorded"][0]["action"] == "segment_alloc"


def test_a_wrong_limit_is_a_difference():
    text = replay("--check", "--limit", "10500MiB", code=1).stdout
    assert "placements equal" in text
    assert "event " in text


def test_a_single_replay_in_words():
    text = " ".join(replay("--limit", "11GiB").stdout.split())
    assert "torch: OOM 27107" in text
    assert "no single range is large enough" in text
    assert "peak reserved 10.29 GiB" in text
    assert "retries 3" in text
    assert re.search(r"driver calls \d+ \(\d+ to take, \d+ to give\)", text)
    assert "No limit is given" not in text


def test_a_run_that_died_is_not_replayed_without_its_limit_in_silence():
    text = " ".join(replay().stdout.split())
    assert "No limit is given" in text
    assert "about 11.00 GiB: --limit 11264MiB" in text
    assert replay_json()["recorded"]["oom_limit"] == 11264 * MIB


@pytest.mark.parametrize("given, model", [("cudaMallocAsync", "async"), ("rmm", "rmm:pool")])
def test_models_have_their_usual_names_too(given, model):
    assert replay_json("-m", given)["replays"] == replay_json("-m", model)["replays"]


def test_several_models_in_a_table():
    text = replay("-l", "11GiB", "-m", "torch", "-m", "torch:expandable_segments:True", "-m",
                  "async").stdout
    lines = text.splitlines()
    assert any(line.split()[-1] == "torch" and "OOM 27107" in line for line in lines if line.strip())
    assert all(len(line) <= 100 for line in lines)
    below = next(n for n, line in enumerate(lines) if line.endswith("expandable_segments:True"))
    assert lines[below - 1].split()[0] == "finishes"
    assert "* a model for comparison, not exact" in text


def test_json_of_replays():
    result = replay_json("-l", "12GiB", "-m", "torch:expandable_segments:True", "-m", "torch",
                         "--samples", "20")
    assert result["schema"] == "allot.replay/1"
    assert result["limit"] == 12 << 30
    assert result["fraction"] is None
    assert result["recorded"]["allocations"] == 9337
    first, second = result["replays"]
    assert first["model"] == "torch:expandable_segments:True"
    assert first["exact"] and first["finished"] and first["oom"] is None
    assert second["model"] == "torch"
    assert 1 < len(first["timeline"]) <= 20
    events = [sample["event"] for sample in first["timeline"]]
    assert events == sorted(events)
    assert max(s["reserved"] for s in first["timeline"]) <= first["reserved_peak"]
    failed = replay_json("-l", "9GiB")["replays"][0]
    assert not failed["finished"]
    assert failed["oom_count"] == 1
    assert failed["oom"]["size"] > 0


def test_a_replay_can_go_on_after_a_failure():
    stopped = replay_json("-l", "9GiB")["replays"][0]
    going_on = replay_json("-l", "9GiB", "--continue")["replays"][0]
    assert going_on["allocations"] > stopped["allocations"]
    assert going_on["oom"] == stopped["oom"]


@pytest.mark.parametrize("options, part", [
    (["--limit", "much"], "--limit much"),
    (["--limit", "0"], "--limit 0"),
    (["--fraction", "0.5"], "needs --limit"),
    (["--limit", "1GiB", "--fraction", "1.5"], "--fraction 1.5"),
    (["--limit", "1GiB", "--fraction", "x"], "--fraction x"),
    (["--model", "nonsense"], "unknown model"),
    (["--model", "torch:max_split_size_mb:1"], "at least 20"),
    (["--check", "--model", "async"], "torch:..."),
    (["--check", "--model", "torch", "--model", "torch"], "one --model"),
    (["--check", "--continue"], "without --check"),
    (["--samples", "-1"], "whole number"),
    (["--limit", "1GiB", "--fraction", "0x1"], "--fraction 0x1"),
    (["--device", "7"], "no device 7"),
])
def test_wrong_options_are_named(options, part):
    result = replay(*options, code=2)
    assert result.stdout == ""
    assert part in result.stderr


def test_one_file_is_wanted():
    assert "one FILE" in run_command("replay", code=2).stderr


def snapshot(tmp_path, trace, segments=()):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": list(segments), "device_traces": [trace]}))
    return path


def entry(action, addr, size):
    return {"action": action, "addr": addr, "size": size, "stream": 0}


def test_a_history_that_is_missing_has_its_own_exit_code(tmp_path):
    block = {"address": 4096, "size": 2 * MIB, "requested_size": 0, "state": "inactive"}
    segment = {"device": 0, "address": 4096, "total_size": 2 * MIB, "allocated_size": 0,
               "active_size": 0, "stream": 0, "segment_type": "small", "blocks": [block]}
    result = replay("--check", code=5, file=snapshot(tmp_path, [], [segment]))
    assert "cannot be replayed: no allocations were recorded" in result.stderr


def test_left_out_kinds_and_contradictions_are_said(tmp_path):
    frees = [entry("free_requested", 4096, 512), entry("free_completed", 4096, 512)]
    result = replay(code=5, file=snapshot(tmp_path, frees))
    assert "left out" in result.stderr
    twice = [entry("alloc", 4096, 512), entry("alloc", 4096, 512)]
    result = replay(code=5, file=snapshot(tmp_path, twice))
    assert "event 1 (alloc at 0x1000, 512 bytes): the address is still in use" in result.stderr


def test_a_small_recording_by_hand(tmp_path):
    base = 0x7F0000000000
    trace = [entry("segment_alloc", base, 2 * MIB), entry("alloc", base, 1000),
             entry("alloc", base + 1024, 512), entry("free_requested", base, 1000),
             entry("free_completed", base, 1000), entry("alloc", base, 600)]
    block = {"address": base, "size": 1024, "requested_size": 600, "state": "active_allocated"}
    rest = {"address": base + 1536, "size": 2 * MIB - 1536, "requested_size": 0,
            "state": "inactive"}
    middle = {"address": base + 1024, "size": 512, "requested_size": 512,
              "state": "active_allocated"}
    segment = {"device": 0, "address": base, "total_size": 2 * MIB, "allocated_size": 1536,
               "active_size": 1536, "requested_size": 1112, "stream": 0, "segment_type": "small",
               "segment_pool_id": (0, 0), "is_expandable": False,
               "blocks": [block, middle, rest]}
    path = snapshot(tmp_path, trace, [segment])
    assert "3 of 3 placements equal" in replay("--check", file=path).stdout
    trace[-1]["addr"] = base + 1536
    block["state"] = "inactive"
    rest["size"] -= 1024
    rest["address"] += 1024
    moved = {"address": base + 1536, "size": 1024, "requested_size": 600,
             "state": "active_allocated"}
    segment["blocks"] = [block, middle, moved, rest]
    result = replay("--check", file=snapshot(tmp_path, trace, [segment]), code=1).stdout
    assert "2 of 3 placements equal" in result
    assert "event 5: another address" in result
