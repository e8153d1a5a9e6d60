# SPDX-License-Identifier: MIT
"""allot bench: every strategy and every figure of the device is there; what is wrong is refused."""

import json

from conftest import run_command

STRATEGIES = ["first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive"]


def run(*arguments, **options):
    return run_command("bench", *arguments, **options)


def document(*arguments):
    return json.loads(run("--quick", "--json", *arguments).stdout)


def test_all_strategies_are_measured_on_the_host():
    found = document()
    assert found["schema"] == "allot.bench/1"
    assert [row["strategy"] for row in found["strategies"]] == STRATEGIES
    for row in found["strategies"]:
        assert [w["workload"] for w in row["workloads"]] == ["W1", "W3", "W4"]
        assert all(w["ns"] > 0 for w in row["workloads"])
        assert row["heap_ns"] > 0
        assert row["heap_reserved_ratio"] >= 1
    assert all(value > 0 for value in found["rates"].values())
    assert found["compaction"]["plan_blocks"] == 8192
    assert found["compaction"]["plan_ns"] > 0
    assert found["compaction"]["move_bytes_per_s"] > 0
    assert [row["thread_count"] for row in found["threads"]] == [1, 2, 4]
    assert all(row["pairs_per_s"] > 0 for row in found["threads"])


def test_a_device_without_cost_has_no_rates():
    found = document("--device", "null")
    assert set(found["rates"].values()) == {0}
    assert found["compaction"]["move_bytes_per_s"] == 0


def test_text_has_a_row_for_each_strategy():
    lines = run("--quick", "-d", "simulated,gpu:rtx4090").stdout.splitlines()
    assert "RTX 4090" in lines[0]
    assert [line.split()[0] for line in lines[3:9]] == STRATEGIES


def test_what_is_wrong_is_refused():
    assert "character 6" in run("--device", "host,what:1", code=2).stderr
    assert "no arguments" in run("x", code=2).stderr
    assert run("--device", "null:7", code=4).stdout == ""
