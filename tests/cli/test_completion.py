# SPDX-License-Identifier: MIT
"""Completion scripts: accepted by their shells, and completing what --help lists."""

import re
import shutil
import subprocess

import pytest

from conftest import list_options, list_verbs


def long_options(verb):
    return {option for option in list_options(verb) if option.startswith("--")}


@pytest.fixture
def script(run, tmp_path):
    def write(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell}")
        path = tmp_path / f"completion.{shell}"
        path.write_text(run("completion", shell).stdout)
        return path

    return write


def shell_out(*args):
    result = subprocess.run(args, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.split("\n")[:-1]


def bash_complete(path, *words):
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f". {path}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _allot; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return [word for word in shell_out("bash", "--norc", "-c", program) if word]


def fish_complete(path, line):
    program = f"source {path}; complete -C '{line}'"
    return [text.split("\t")[0] for text in shell_out("fish", "--no-config", "-c", program)]


def test_bash_completes_verbs(script):
    path = script("bash")
    assert set(list_verbs()) <= set(bash_complete(path, "allot", ""))
    assert bash_complete(path, "allot", "comple") == ["completion"]


def test_bash_completes_every_option_of_every_verb(script):
    path = script("bash")
    for verb in list_verbs():
        assert set(bash_complete(path, "allot", verb, "--")) == long_options(verb), verb
        assert bash_complete(path, "allot", verb, "some") == []


def test_fish_completes_verbs(script):
    found = fish_complete(script("fish"), "allot ")
    assert set(list_verbs()) <= set(found)


def test_fish_completes_every_option_of_every_verb(script):
    path = script("fish")
    for verb in list_verbs():
        found = {word.rstrip("=") for word in fish_complete(path, f"allot {verb} --")}
        assert found == long_options(verb), verb


def test_zsh_accepts_the_script(script):
    path = script("zsh")
    shell_out("zsh", "-f", "-n", str(path))
    text = path.read_text()
    for verb in list_verbs():
        part = text.split(f"    {verb})\n")[1].split(";;")[0]
        assert set(re.findall(r"[{,'](--[a-z][\w-]*)=?[}\[]", part)) == long_options(verb), verb


def test_zsh_loads_the_script_as_a_completion(script):
    path = script("zsh")
    program = (
        f"autoload -Uz compinit && compinit -u -D && . {path} && print -r -- $_comps[allot]"
    )
    assert shell_out("zsh", "-f", "-c", program) == ["_allot"]


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["bash", "zsh"]])
def test_wrong_shells_are_usage_errors(run, arguments):
    result = run("completion", *arguments, code=2)
    assert result.stdout == ""
    assert "bash, zsh or fish" in result.stderr
