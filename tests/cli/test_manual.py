# SPDX-License-Identifier: MIT
"""Man pages: one per verb, saying the same as --help, and well-formed."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, list_options, list_verbs

MANUAL = ROOT / "docs/man"
BUILT = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build/dev")) / "docs/man"


def page_options(text):
    """Spellings of options in the headings of the section OPTIONS."""
    section = re.search(r"^# OPTIONS\n(.*?)(?=^# |\Z)", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\*-.*$", section[1], re.MULTILINE) if section else []
    return set(re.findall(r"\*(--?[A-Za-z][\w-]*)", "\n".join(lines).replace("\\", "")))


def test_every_verb_has_a_page_and_every_page_a_verb():
    pages = {path.name for path in MANUAL.glob("*.scd")}
    assert pages == {"allot.1.scd"} | {f"allot-{verb}.1.scd" for verb in list_verbs()}
    listed = set(re.findall(r"\ballot(?:-[a-z]+)?\b", re.search(
        r"set\(pages ([^)]*)\)", (MANUAL / "CMakeLists.txt").read_text())[1]))
    assert {f"{page}.1.scd" for page in listed} == pages


def test_pages_and_help_have_the_same_options():
    for verb in list_verbs():
        text = (MANUAL / f"allot-{verb}.1.scd").read_text()
        assert page_options(text) == list_options(verb), verb


def test_pages_have_the_names_of_the_help(run):
    for verb in list_verbs():
        text = (MANUAL / f"allot-{verb}.1.scd").read_text()
        name = re.search(rf"^# NAME\n\nallot-{verb} - (.*)$", text, re.MULTILINE)[1]
        assert run(verb, "--help").stdout.startswith(f"allot {verb}: {name[0].upper()}{name[1:]}\n")


def test_exit_code_1_is_in_the_help_of_the_verbs_that_give_it(run):
    for verb in list_verbs():
        text = (MANUAL / f"allot-{verb}.1.scd").read_text()
        status = re.search(r"^# EXIT STATUS\n(.*?)(?=^# |\Z)", text, re.MULTILINE | re.DOTALL)[1]
        assert ("*1*" in status) == ("\nExit code 1: " in run(verb, "--help").stdout), verb


def test_the_first_page_lists_every_verb():
    text = (MANUAL / "allot.1.scd").read_text()
    section = re.search(r"^# VERBS\n(.*?)^# ", text, re.MULTILINE | re.DOTALL)[1]
    assert re.findall(r"^\*([a-z]+)\*$", section, re.MULTILINE) == list_verbs()
    for verb in list_verbs():
        assert f"*allot-{verb}*(1)" in section


def test_pages_are_formatted_without_a_warning():
    if shutil.which("man") is None:
        pytest.skip("no man")
    for verb in ["", *list_verbs()]:
        page = BUILT / (f"allot-{verb}.1" if verb else "allot.1")
        result = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
            capture_output=True, text=True, check=False, env=dict(os.environ, MANWIDTH="80"),
        )
        assert result.returncode == 0 and result.stderr == "", (page, result.stderr)
