# SPDX-License-Identifier: MIT
"""inspect, explain, leaks, diff and ranks from end to end."""

import base64
import json
import pickle
import re
import zlib

import pytest

from conftest import ROOT, run_command

EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
MIB = 1 << 20


def run_json(*args, code=0):
    return json.loads(run_command(*args, "--json", code=code).stdout)


def page_document(path):
    """The JSON document in a page."""
    text = re.search(r'id="data">([^<]*)<', path.read_text()).group(1)
    data = zlib.decompress(base64.b64decode(text))
    return json.loads(data[4:4 + int.from_bytes(data[:4], "little")])


def frame(path, line, name="main"):
    return {"filename": path, "line": line, "name": name}


def make_snapshot(path, kept=0, steps=10, text="/app/train.py"):
    """A loop that keeps `kept` bytes in every step, as a PyTorch snapshot."""
    base = 0x7F0000000000
    entries = [{"action": "segment_alloc", "addr": base, "size": 400 * MIB, "stream": 0}]
    notes = []
    live = []

    def entry(action, addr, size, line):
        entries.append({"action": action, "addr": addr, "size": size, "stream": 0,
                        "time_us": 1000 + len(entries), "frames": [frame(text, line)]})

    entries[0].update(time_us=1000, frames=[])
    for step in range(steps):
        entry("alloc", base, 20 * MIB, 20)
        if kept:
            addr = base + (20 + 10 * step) * MIB
            entry("alloc", addr, kept, 30)
            live.append((addr, kept))
        entry("free_requested", base, 20 * MIB, 20)
        entry("free_completed", base, 20 * MIB, 20)
        for stage in ("START", "END"):
            notes.append({"name": "Optimizer.step#SGD.step", "stage": stage, "device": 0,
                          "time_us": 1001 + len(entries)})
    blocks = []
    at = base
    for addr, size in live:
        if addr > at:
            blocks.append({"address": at, "size": addr - at, "requested_size": 0,
                           "state": "inactive", "frames": []})
        blocks.append({"address": addr, "size": size, "requested_size": size,
                       "state": "active_allocated", "frames": [frame(text, 30)]})
        at = addr + size
    blocks.append({"address": at, "size": base + 400 * MIB - at, "requested_size": 0,
                   "state": "inactive", "frames": []})
    active = sum(size for _, size in live)
    segment = {"device": 0, "address": base, "total_size": 400 * MIB, "allocated_size": active,
               "active_size": active, "requested_size": active, "stream": 0,
               "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
               "frames": [], "blocks": blocks}
    path.write_bytes(pickle.dumps({
        "segments": [segment], "device_traces": [entries], "external_annotations": notes,
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}}))
    return path


# ---- inspect


def test_inspect_gives_the_figures_torch_reported():
    document = run_json("inspect", EXAMPLE)
    assert document["schema"] == "allot.inspect/1"
    (device,) = document["devices"]
    assert device["measures"]["reserved"]["peak"] // MIB == 10536
    assert device["measures"]["allocated"]["peak"] // MIB == 9287
    assert device["counts"]["oom"] == 1
    assert device["at_end"]["reserved"] == device["segments"]["large_size"] + \
        device["segments"]["small_size"]
    assert document["conf"] == ""
    assert document["settings"]["roundup_power2_divisions.256"] == 0


def test_inspect_text_has_the_peaks_and_what_comes_next():
    text = run_command("inspect", EXAMPLE).stdout
    assert "10.29 GiB" in text and "9.07 GiB" in text
    assert "allot explain says why" in text


def test_inspect_lists_streams_and_pools(data):
    document = run_json("inspect", data("oracle/classic_pools.pickle.gz"))
    (device,) = document["devices"]
    assert len(device["streams"]) == 4
    assert [0, 0] in [pool["id"] for pool in device["pools"]]
    for key in ("streams", "pools"):
        assert sum(share["active_end"] for share in device[key]) == device["at_end"]["active"]
        assert sum(share["reserved_end"] for share in device[key]) == device["at_end"]["reserved"]


def test_inspect_reads_every_file_of_the_shared_data(data):
    for folder in ("snapshots", "oracle"):
        for path in sorted(data(folder).iterdir()):
            if path.suffix in (".pickle", ".gz", ".json") and path.name != "README.md":
                run_json("inspect", path)
                run_command("inspect", path)


def test_traces_of_other_allocators_are_not_rounded_by_pytorchs_rules(tmp_path):
    path = tmp_path / "rmm.csv"
    path.write_text("Thread,Time,Action,Pointer,Size,Stream\n"
                    "1,10:00:00.000001,allocate,0x1000,100,0x0\n"
                    "1,10:00:00.000002,allocate,0x2000,1000,0x0\n"
                    "1,10:00:00.000003,free,0x1000,100,0x0\n")
    document = run_json("inspect", path)
    assert document["devices"][0]["measures"]["allocated"]["peak"] == 1100
    assert document["conf"] is None
    text = run_command("inspect", path).stdout
    assert "records none of PyTorch's" in text and "free_requested" not in text


# ---- explain


def test_explain_says_why_the_run_died():
    result = run_command("explain", EXAMPLE, code=1)
    for part in ("asked for      3.07 GiB", "driver had     2.38 GiB free", "verdict: fragmented",
                 "finetune.py:74 (main)", "expandable_segments:True", "next: allot advise"):
        assert part in result.stdout
    oom = run_json("explain", EXAMPLE, code=1)["oom"]
    assert oom["requested"] == 3293642752 and oom["device_free"] == 2552233984
    assert oom["verdict"] == "fragmented"
    assert oom["compacted_largest"] >= oom["requested"]
    needed = oom["pins"][: oom["pin_needed"]]
    assert needed and oom["device_free"] + sum(pin["size"] for pin in needed) >= oom["requested"]


def test_explain_rebuilds_the_state_before_unwinding(data):
    path = data("snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle")
    document = run_json("explain", path)
    assert document["oom"]["event"] == 421
    assert document["oom"]["requested"] == 5308694528
    assert document["oom"]["device_free"] == 95682560
    assert document["oom"]["verdict"] == "exhausted"
    assert document["state"]["active"] == 84063358976
    assert run_json("explain", path, "--limit", "160GiB")["oom"]["verdict"] == "outside"


@pytest.mark.parametrize("by", ["line", "stack", "category", "stream", "pool"])
def test_groups_add_up_to_the_active_bytes(by):
    document = run_json("explain", EXAMPLE, "--at", "peak", "--by", by)
    assert document["oom"] is None
    assert document["group_count"] == len(document["groups"])
    for groups in (document["groups"], document["categories"]):
        assert sum(group["size"] for group in groups) == document["state"]["active"]
        assert sum(group["count"] for group in groups) == document["state"]["allocation_count"]
        assert abs(sum(group["share"] for group in groups) - 1) < 1e-6


def test_moments_name_the_same_event_in_several_ways():
    peak = run_json("explain", EXAMPLE, "--at", "peak")["state"]["event"]
    for moment in (str(peak), f"event:{peak}", "peak:active"):
        assert run_json("explain", EXAMPLE, "--at", moment)["state"]["event"] == peak
    assert run_json("explain", EXAMPLE, "--at", "start")["state"]["event"] is None
    assert run_json("explain", EXAMPLE, "--at", "oom:1", code=1)["state"]["event"] == 27107


@pytest.mark.parametrize("args, code, message", [
    (["--at", "yesterday"], 2, 'moment "yesterday"'),
    (["--at", "oom:2"], 3, "the trace has 1 oom event"),
    (["--at", "99999999"], 3, "the trace has 27308 events"),
    (["--by", "size"], 2, "line, stack, category, stream or pool"),
    (["--limit", "much"], 2, 'size "much"'),
    (["--device", "7"], 2, "no device 7; the file has 0"),
    (["--device", "x"], 2, "want a whole number"),
])
def test_wrong_options_are_refused(args, code, message):
    result = run_command("explain", EXAMPLE, *args, code=code)
    assert result.stdout == "" and message in result.stderr


def test_installed_code_can_be_called_ones_own(tmp_path):
    path = make_snapshot(tmp_path / "a.pickle", MIB,
                         text="/v/lib/python3.11/site-packages/mine/net.py")
    label = run_json("explain", path, "--at", "end")["groups"][0]["label"]
    assert label == "mine/net.py:30 (main)"
    own = run_json("explain", path, "--at", "end", "--own", "/v/lib/python3.11/site-packages/mine")
    assert own["groups"][0]["label"] == label


def test_names_cannot_speak_to_the_terminal(tmp_path):
    path = make_snapshot(tmp_path / "a.pickle", MIB, text="/app/\x1b]0;owned\x07train.py")
    text = run_command("explain", path, "--at", "end").stdout
    assert "\x1b" not in text and "\x07" not in text
    assert run_json("explain", path, "--at", "end")["groups"][0]["line"]["file"] == \
        "/app/\x1b]0;owned\x07train.py"


def test_what_the_blocks_in_the_way_hold_adds_up():
    text = run_command("explain", EXAMPLE, code=1).stdout
    oom = run_json("explain", EXAMPLE, code=1)["oom"]
    assert not oom["pin_is_range"] and oom["pin_needed"] == 1
    (segment,) = oom["pins"][:1]
    assert oom["device_free"] + segment["size"] >= oom["requested"]
    assert "1 segment of 1.51 GiB would go back to the driver" in text
    assert "2.38 GiB + 1.51 GiB =" in text and "1 blocks" not in text


def test_a_little_free_memory_is_not_called_fragmented(data):
    path = data("snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle")
    text = run_command("explain", path, "--limit", "80GiB").stdout
    assert "(0.2 % of it)" in text and "external fragmentation" not in text
    assert text.index("that this request may use") < text.index("more lie in segments") \
        < text.index("held outside")
    assert "--limit" not in text
    assert "(--limit tells its size)" in re.sub(r"\s+", " ", run_command("explain", path).stdout)


def test_a_line_with_several_categories_is_mostly_of_one(data):
    path = data("snapshots/t2_memory_timeline.raw.gz")
    text = run_command("explain", path).stdout
    assert "mostly gradient" in text
    (group,) = run_json("explain", path)["groups"]
    assert group["category"] == "gradient" and 0.8 < group["category_share"] < 0.9


def test_reports_fit_in_100_columns(data):
    for path in sorted(data("snapshots").iterdir()):
        if path.suffix in (".pickle", ".gz"):
            for verb in ("inspect", "explain", "leaks"):
                for line in run_command(verb, path, code=None).stdout.splitlines():
                    assert len(line) <= 100 or str(path) in line, line


def test_the_page_counts_all_free_memory_and_folds_defaults_away(tmp_path):
    page = tmp_path / "page.html"
    run_command("explain", EXAMPLE, "--html", page, code=1)
    document = page_document(page)
    assert document["verdict"]["headline"] == "Out of memory by fragmentation: 3.07 GiB asked, " \
        "4.28 GiB free in all, but no piece that large"
    (settings,) = document["tables"]
    assert settings["title"] == "Allocator settings" and len(settings["rows"]) > 20
    assert {row["state"] for row in settings["rows"]} == {"default"}


def test_output_and_page_go_to_files(tmp_path):
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    result = run_command("explain", EXAMPLE, "--json", "-o", report, "--html", page, code=1)
    assert result.stdout == ""
    assert json.loads(report.read_text())["schema"] == "allot.explain/1"
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    missing = run_command("explain", EXAMPLE, "-o", tmp_path / "no/such/file", code=4)
    assert "no/such/file" in missing.stderr


# ---- leaks


def test_a_leak_is_found_and_named(tmp_path):
    path = make_snapshot(tmp_path / "leaking.pickle", kept=2 * MIB)
    document = run_json("leaks", path, code=1)
    assert document["steps_from"] == "annotations" and document["leak_count"] == 1
    first = document["stacks"][0]
    assert first["label"] == "train.py:30 (main)" and first["is_leak"]
    assert first["size_per_step"] == 2 * MIB and first["count"] == 10
    assert "leaks: they grow" in run_command("leaks", path, code=1).stdout
    run_command("leaks", path, "--min", "3MiB")
    run_command("leaks", path, "--steps", "5", code=1)
    run_command("leaks", path, "--steps", "-1", code=2)


def test_no_leak_is_no_leak(tmp_path):
    assert "no leak" in run_command("leaks", make_snapshot(tmp_path / "a.pickle")).stdout
    assert run_json("leaks", EXAMPLE)["leak_count"] == 0


# ---- diff


def test_diff_finds_the_line_that_grew(tmp_path):
    a = make_snapshot(tmp_path / "a.pickle", kept=1 * MIB)
    b = make_snapshot(tmp_path / "b.pickle", kept=3 * MIB, text="/elsewhere/train.py")
    document = run_json("diff", a, b, code=1)
    assert document["is_worse"]
    assert document["lines"][0] == {"label": "train.py:30 (main)", "size_a": 10 * MIB,
                                    "size_b": 30 * MIB, "count_a": 10, "count_b": 10}
    assert not run_json("diff", b, a)["is_worse"]
    run_command("diff", "--tolerance", "200", a, b)
    assert "B needs more memory than A" in run_command("diff", a, b, code=1).stdout


def test_diff_shows_settings_and_segments(data):
    document = run_json("diff", data("oracle/finetune_80gib.pickle.gz"),
                        data("oracle/finetune_expandable_11gib.pickle.gz"))
    assert {"key": "expandable_segments", "a": "False", "b": "True"} in document["settings"]
    assert "expandable" in [row["label"] for row in document["segments"]]


def test_a_run_that_died_is_said_to_be_unfinished(data):
    whole = data("oracle/finetune_80gib.pickle.gz")
    text = run_command("diff", EXAMPLE, whole).stdout
    assert "A ran out of memory and B did not" in text and "B needs more" not in text
    text = run_command("diff", whole, EXAMPLE, code=1).stdout
    assert "B ran out of memory and A did not" in text and "free at peak allocated" in text


def test_diff_needs_two_files():
    assert "two files" in run_command("diff", EXAMPLE, code=2).stderr


# ---- ranks


def test_a_rank_that_needs_more_stands_out(tmp_path):
    paths = [make_snapshot(tmp_path / f"rank{i}.pickle", kept=9 * MIB if i == 2 else MIB)
             for i in range(5)]
    document = run_json("ranks", *paths, code=1)
    assert [rank["is_outlier"] for rank in document["ranks"]] == [False, False, True, False, False]
    assert "stands out" in run_command("ranks", *paths, code=1).stdout
    run_command("ranks", *paths[:2])
    assert "two or more" in run_command("ranks", paths[0], code=2).stderr


def test_a_rank_that_reserves_more_stands_out_and_keeps_its_name(data):
    names = ["finetune_80gib.pickle.gz", "finetune_11gib_oom.pickle.gz",
             "finetune_expandable_11gib.pickle.gz"]
    text = run_command("ranks", *(data("oracle/" + name) for name in names), code=1).stdout
    row = next(line for line in text.splitlines() if names[0] in line)
    assert "19.41 GiB" in row and "reserved" in row
    assert all(name in text for name in names)
