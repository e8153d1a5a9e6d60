# SPDX-License-Identifier: MIT
"""The command itself: usage, version, unknown verbs and options."""

import re

import pytest

from conftest import list_verbs


def test_no_verb_is_a_usage_error(run):
    result = run(code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("usage: allot VERB")


@pytest.mark.parametrize("spelling", ["--help", "-h", "help"])
def test_help_goes_to_standard_output(run, spelling):
    result = run(spelling)
    assert result.stdout.startswith("usage: allot VERB")
    assert result.stderr == ""


def test_version_is_that_of_the_project(run, root):
    version = re.search(r"project\(allot VERSION (\S+)", (root / "CMakeLists.txt").read_text())
    assert run("--version").stdout == f"allot {version[1]}\n"


def test_unknown_verb_is_named(run):
    result = run("frobnicate", code=2)
    assert 'unknown verb "frobnicate"' in result.stderr


def test_every_verb_helps_and_refuses_unknown_options(run):
    for verb in list_verbs():
        text = run(verb, "--help").stdout
        assert text.startswith(f"allot {verb}: ")
        assert "--help" in text
        result = run(verb, "--no-such-option", code=2)
        assert "--no-such-option" in result.stderr
        assert f"try: allot {verb} --help" in result.stderr
