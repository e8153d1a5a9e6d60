# SPDX-License-Identifier: MIT
"""allot gpu and the arguments of allot dryrun, without a program to run."""

import json
import os
import stat

import pytest

from conftest import IS_INSTRUMENTED

needs_plain_build = pytest.mark.skipif(
    IS_INSTRUMENTED, reason="an instrumented stand-in cannot be loaded into other programs"
)


def test_all_cards_are_listed_by_rising_memory(run):
    lines = run("gpu", "list").stdout.splitlines()
    assert len(lines) >= 27
    cards = json.loads(run("gpu", "--json", "list").stdout)
    assert [card["id"] for card in cards] == [line.split()[0] for line in lines[1:]]
    assert [c["memory_total"] for c in cards] == sorted(c["memory_total"] for c in cards)
    for card in cards:
        assert card["memory_context"] < card["memory_total"] // 4
        assert card["sm_threads"] % 32 == 0 and card["sm_count"] > 0


def test_names_are_found_in_any_spelling(run):
    assert run("gpu", "show", "RTX 4090").stdout == run("gpu", "show", "rtx4090").stdout
    result = run("gpu", "show", "4090", code=3)
    assert "similar: rtx4090" in result.stderr


def test_estimates_are_marked(run):
    text = run("gpu", "show", "l4").stdout
    line = next(line for line in text.splitlines() if "memory_total" in line)
    assert "unknown: an estimate" in line


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
