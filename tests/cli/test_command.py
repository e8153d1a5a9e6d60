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
    assert "did you mean" not in result.stderr
    assert "try: allot --help" in result.stderr


@pytest.mark.parametrize("typed, meant", [
    ("expalin", "explain"), ("advice", "advise"), ("dif", "diff"), ("insp", "inspect"),
    ("Replay", "replay"),
])
def test_a_mistyped_verb_is_guessed(run, typed, meant):
    assert f"did you mean {meant}?" in run(typed, "file", code=2).stderr
    assert f"did you mean {meant}?" in run("help", typed, code=2).stderr


@pytest.mark.parametrize("typed, meant", [
    ("--limt", "--limit"), ("--lmit=12GiB", "--limit"), ("--htlm", "--html"), ("--out", "--output"),
    ("--hlep", "--help"), ("--devices=0", "--device"),
])
def test_a_mistyped_option_is_guessed(run, typed, meant):
    result = run("explain", typed, code=2)
    assert f"{typed}: unknown option; did you mean {meant}?" in result.stderr


def test_help_with_a_verb_is_that_verb_s_help(run):
    for verb in list_verbs():
        assert run("help", verb).stdout == run(verb, "--help").stdout
        assert run("--help", verb).stdout == run(verb, "--help").stdout


def test_help_fits_80_columns_and_has_no_empty_heading(run):
    for arguments in [["--help"], *([verb, "--help"] for verb in list_verbs())]:
        lines = run(*arguments).stdout.split("\n")
        assert max(map(len, lines)) <= 80, arguments
        for line, after in zip(lines, lines[1:]):
            assert not re.fullmatch(r"\S.*:", line) or after.startswith("  "), (arguments, line)


def test_descriptions_keep_half_of_the_width(run):
    """A long placeholder would push them to the right."""
    for verb in list_verbs():
        for match in re.finditer(r"^ +-.*?\S(  +)\S", run(verb, "--help").stdout, re.MULTILINE):
            assert len(match[0]) <= 40, (verb, match[0])


def test_summaries_are_sentences_of_one_form(run):
    for verb in list_verbs():
        summary = run(verb, "--help").stdout.splitlines()[0].removeprefix(f"allot {verb}: ")
        assert f"  {verb:<12} {summary}\n" in run("--help").stdout
        # An imperative: "Show", "Find".
        assert re.fullmatch(r"[A-Z][a-z]*[^s.] [^.]*[^.]", summary), (verb, summary)


def test_every_verb_helps_and_refuses_unknown_options(run):
    for verb in list_verbs():
        text = run(verb, "--help").stdout
        assert text.startswith(f"allot {verb}: ")
        assert "--help" in text
        result = run(verb, "--no-such-option", code=2)
        assert "--no-such-option" in result.stderr
        assert f"try: allot {verb} --help" in result.stderr


@pytest.mark.parametrize("verb", ["advise", "explain", "replay"])
def test_a_limit_without_its_unit_is_refused(run, root, verb):
    trace = root / "examples/finetune_11gib_oom.pickle.gz"
    for limit, size in [("12", "12 B"), ("11264", "11.0 KiB"), ("0", "0 B")]:
        error = run(verb, trace, "--limit", limit, code=2).stderr
        assert f"--limit {limit}: {size} is too little for a device" in error
        assert f"with a unit: {limit}GiB" in error or limit == "0"
    error = run(verb, trace, "--limit", "12KiB", code=2).stderr
    assert "--limit 12KiB: 12.0 KiB is too little for a device" in error
    assert "unit" not in error
    error = run(verb, trace, "--limit", "12 potatoes", code=2).stderr
    assert "--limit 12 potatoes: " in error and "a unit was expected: B, or KiB, MiB, GiB, TiB" in error
