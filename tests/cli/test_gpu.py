# SPDX-License-Identifier: MIT
"""allot gpu and the arguments of allot dryrun, without a program to run."""

import ctypes
import json
import os
import re
import stat

import pytest

from conftest import HAS_STANDIN, command_path

STANDIN = command_path().resolve().parent / "standin"

needs_plain_build = pytest.mark.skipif(
    not HAS_STANDIN, reason="no stand-in, or an instrumented one, which other programs cannot load"
)


def cards_of(run):
    return json.loads(run("gpu", "--json", "list").stdout)["gpus"]


@pytest.fixture(autouse=True)
def no_imported_cards(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no_cards"))


def test_all_cards_are_listed_by_rising_memory(run):
    lines = run("gpu", "list").stdout.splitlines()
    assert len(lines) >= 27
    cards = cards_of(run)
    assert [card["id"] for card in cards] == [line.split()[0] for line in lines[1:]]
    assert [c["memory_total"] for c in cards] == sorted(c["memory_total"] for c in cards)
    for card in cards:
        for key in ("memory_context", "memory_context_12"):
            assert 1 << 26 < card[key] < card["memory_total"] // 4
        assert card["sm_threads"] % 32 == 0 and card["sm_count"] > 0


def test_names_are_found_in_any_spelling(run):
    assert run("gpu", "show", "RTX 4090").stdout == run("gpu", "show", "rtx4090").stdout
    result = run("gpu", "show", "4090", code=3)
    assert "similar: rtx4090" in result.stderr


KINDS = {"unknown", "guide", "sheet", "report", "probe", "file"}
NO_VALUES = {"schema", "id", "name", "sources"}


def values_of(profile):
    return {key: value for key, value in profile.items() if key not in NO_VALUES}


def test_every_value_has_a_source_and_estimates_are_marked(run):
    for card in cards_of(run):
        assert card["sources"].keys() == values_of(card).keys()
        for source in card["sources"].values():
            assert source["kind"] in KINDS
            if source["kind"] in ("guide", "sheet"):
                assert source["reference"].startswith("https://")
    text = run("gpu", "show", "l4").stdout
    values, sources = text.split("\nSources\n")
    line = next(line for line in values.splitlines() if "memory_total" in line)
    kind, number = re.search(r"bytes +(\w+) +(\[\d+\])", line).groups()
    assert kind == "unknown" and f"{number} unknown: an estimate" in sources


def test_sources_survive_an_import(run, tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(run("gpu", "--json", "show", "h100").stdout)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    run("gpu", "import", path, env=env)
    assert run("gpu", "--json", "show", "h100", env=env).stdout == path.read_text()


@needs_plain_build
def test_a_probe_writes_what_the_card_is(run, tmp_path):
    env = {"LD_LIBRARY_PATH": str(STANDIN)}
    for card in cards_of(run):
        probed = json.loads(run("gpu", "probe", env=env | {
            "ALLOT_STANDIN": f"gpu:{card['id']},devices:2"}).stdout)  # fmt: skip
        assert probed["name"] == card["name"]
        assert values_of(probed) == values_of(card)
        assert {source["kind"] for source in probed["sources"].values()} == {"probe"}


@needs_plain_build
def test_a_probed_profile_is_one_for_dry_runs(run, tmp_path):
    path = tmp_path / "own.json"
    env = {"LD_LIBRARY_PATH": str(STANDIN), "ALLOT_STANDIN": "gpu:t4,devices:2"}
    result = run("gpu", "probe", "--device", "1", "--id", "own", "-o", path, env=env)
    assert str(path) in result.stderr and result.stdout == ""
    assert json.loads(path.read_text())["id"] == "own"
    result = json.loads(run("dryrun", "--json", "--gpu", path, "--", "true", code=1).stdout)
    assert result["gpu"] == "own"


def has_a_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@needs_plain_build
def test_a_probe_without_a_gpu_says_so(run, tmp_path):
    if not has_a_driver():
        assert "no NVIDIA driver here" in run("gpu", "probe", code=4).stderr
    env = {"LD_LIBRARY_PATH": str(STANDIN), "ALLOT_STANDIN": "devices:1"}
    assert "no GPU 1: the driver has 1" in run("gpu", "probe", "-d", "1", code=4, env=env).stderr
    env["ALLOT_STANDIN"] = "devices:0"
    assert "CUDA_ERROR_NO_DEVICE" in run("gpu", "probe", code=4, env=env).stderr
    assert "--id" in run("gpu", "probe", "--id", "", code=2).stderr
    assert "--device" in run("gpu", "probe", "--device", "first", code=2).stderr


def test_an_imported_profile_is_known_by_its_id(run, tmp_path):
    own = {"schema": "allot-gpu/1", "id": "mine", "name": "Mine", "like": "h100",
           "memory_total": 1 << 36}  # fmt: skip
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(own))
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert "--gpu mine" in run("gpu", "import", path, env=env).stdout
    shown = json.loads(run("gpu", "--json", "show", "mine", env=env).stdout)
    assert shown["memory_total"] == 1 << 36 and shown["sm_count"] == 132
    assert run("gpu", "--json", "show", path).stdout == run(
        "gpu", "--json", "show", "mine", env=env).stdout  # fmt: skip
    assert run("gpu", "list", env=env).stdout.splitlines()[-1].split()[-2:] == ["Mine", "(imported)"]
    listed = json.loads(run("gpu", "--json", "list", env=env).stdout)
    assert listed["imported"] == 1 and listed["gpus"][-1] == shown
    assert "(imported)" not in run("gpu", "list").stdout
    (tmp_path / "config/allot/gpus/broken.json").write_text("{")
    raw = run("gpu", "list", env=env)
    assert "broken.json" in raw.stderr and "(imported)" in raw.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "other/1"}, "schema"),
        ({"id": ""}, '"id"'),
        ({"memory_total": -5}, '"memory_total"'),
        ({"memory_total": "much"}, '"memory_total"'),
        ({"memory_total": 0}, "out of range"),
        ({"sm_count": 10**9}, "out of range"),
        ({"like": "no-such-card"}, "no GPU profile"),
        ({"like": ""}, '"like"'),
        ({"sm_count": 7, "sources": {"sm_count": {"kind": "hearsay"}}}, '"sources"'),
        ({"sm_count": 7, "sources": {"sm_count": {"kind": "file", "reference": "x" * 300}}}, '"sources"'),
    ],
)
def test_bad_profiles_are_refused(run, tmp_path, change, said):
    own = {"schema": "allot-gpu/1", "id": "mine", "name": "Mine", "like": "h100"}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(own | change))
    result = run("gpu", "show", path, code=3)
    assert str(path) in result.stderr and said in result.stderr


def test_what_is_no_json_is_refused(run, tmp_path):
    path = tmp_path / "profile.json"
    for content in (b"", b"{", b"[1, 2]", bytes(range(256)), b" " * (1 << 17)):
        path.write_bytes(content)
        assert str(path) in run("gpu", "show", path, code=3).stderr


@needs_plain_build
def test_a_dry_run_needs_a_command_that_exists(run):
    assert "a command is needed" in run("dryrun", code=2).stderr
    assert "no-such-command" in run("dryrun", "--", "no-such-command", code=2).stderr
    assert "no GPU profile" in run("dryrun", "--gpu", "abacus", "--", "true", code=2).stderr
    assert "--events" in run("dryrun", "--events", "never", "--", "true", code=2).stderr
    assert "--gpus" in run("dryrun", "--gpus", "0", "--", "true", code=2).stderr


@needs_plain_build
def test_a_program_that_is_not_python_is_incomplete(run, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    result = run("dryrun", "--", program, code=1)
    assert result.stdout.startswith("hello\nTRACKING INCOMPLETE")


@needs_plain_build
def test_nothing_is_left_behind(run, tmp_path):
    run("dryrun", "--", "true", code=1, env={"TMPDIR": str(tmp_path)})
    assert os.listdir(tmp_path) == []


@needs_plain_build
def test_a_failing_program_is_not_called_fitting(run):
    result = run("dryrun", "--json", "--", "sh", "-c", "exit 7", code=4)
    assert json.loads(result.stdout)["exit_code"] == 7
