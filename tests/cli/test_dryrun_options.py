# SPDX-License-Identifier: MIT
"""Options of a dry run that are wrong are told before anything runs."""

import os
import sys

import pytest

from conftest import HAS_STANDIN, command_path


@pytest.fixture
def refused(run, tmp_path):
    """refused(options..., code=) is what is said; the program must not have run."""

    def call(*options, code=2, **others):
        mark = tmp_path / "it_ran"
        program = f"open({str(mark)!r}, 'w')"
        result = run("dryrun", *options, "--", sys.executable, "-c", program, code=code, **others)
        assert not mark.exists() and result.stdout == ""
        return result.stderr

    return call


@pytest.mark.parametrize(
    "rule", ["maybe", "flip:0", "flip:", "flip:2x", "train.py:7=maybe", "train.py=true", "=true"]
)
def test_a_wrong_rule_is_wrong_usage(refused, rule):
    assert f"--booleans {rule}: want likely, false, true, flip:N" in refused("--booleans", rule)


def test_two_rules_in_one_are_wrong_usage(refused):
    assert "one rule at a time" in refused("--booleans", "a.py:1=true,b.py:2=true")


@pytest.mark.parametrize("option", ["--record", "--html"])
def test_a_file_that_cannot_be_written_is_told_first(refused, tmp_path, option):
    path = tmp_path / "missing" / "file"
    assert f"{path}: No such file or directory" in refused(option, path, code=4)
    assert f"{tmp_path}: Is a directory" in refused(option, tmp_path, code=4)


def test_a_limit_without_its_unit_is_asked_about(refused):
    said = refused("--limit", "500")
    assert "500 B is less than the 2.0 MiB" in said and "did you mean 500MiB?" in said
    said = refused("--limit", "500KiB")
    assert "500.0 KiB is less than" in said and "did you mean" not in said


def test_units_that_are_none(refused):
    assert "--assert-peak: size" in refused("--assert-peak", "12 potatoes")
    assert "a unit was expected: B, or KiB, MiB, GiB" in refused("--limit", "12 potatoes")


@pytest.mark.skipif(not HAS_STANDIN, reason="no stand-in, or an instrumented one")
@pytest.mark.parametrize("name", ["with blank", "with:colon"])
def test_a_standin_that_could_not_be_loaded_is_told(refused, tmp_path, name):
    os.symlink(command_path().resolve().parent / "standin", tmp_path / name)
    said = refused(code=4, env={"ALLOT_STANDIN_DIR": str(tmp_path / name)})
    assert f"{tmp_path / name}: the path of the stand-in may have no blank" in said


@pytest.mark.skipif(not HAS_STANDIN, reason="no stand-in, or an instrumented one")
def test_a_folder_that_could_not_be_passed_on_is_told(refused, tmp_path):
    folder = tmp_path / "a,b"
    folder.mkdir()
    assert f"TMPDIR={folder}: a path without a comma" in refused(code=4, env={"TMPDIR": str(folder)})
    assert list(folder.iterdir()) == []
