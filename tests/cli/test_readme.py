# SPDX-License-Identifier: MIT
"""The README shows what happens.

Convention for README.md:
- A block fenced as ```sh holds commands. Each is run as it stands, in a copy of the project's tree,
  with `allot` being the command under test. Blocks that build or install (make, cmake, apt, git
  clone, pip) are told by their first word and are not run here: `make check` is doing it.
- A block fenced as ```console holds commands after "$ " and what they print. They are run like the
  others, and the output must be the same. "..." on a line of its own stands for any number of
  lines. Figures of time and rate (12 ms, 3.4 s, 250 MB/s) may differ.
- Exit codes 0 and 1 are fine ("done", "done and something was found").
- A block fenced as ```c is a part of a program in examples, which is compiled and run by the tests.
- Any other block (python, cmake, text) is not run, nor is one fenced as ```sh skip.
- A block fenced as ```sh torch or ```console torch needs PyTorch: it is run the same way where
  ALLOT_TORCH_PYTHON names a Python that has it (`python` in the commands), else skipped.
A command that names a file in ../shared or a snapshot of the reader's own (snapshot.pickle) runs on
the example.
"""

import os
import re
import subprocess

import pytest

from conftest import ROOT, command_path

README = ROOT / "README.md"
PYTHON = os.environ.get("ALLOT_TORCH_PYTHON", "").split(":")[0]
EXAMPLE = "examples/finetune_11gib_oom.pickle.gz"
BUILDS = ("make", "cmake", "apt", "apt-get", "sudo", "git", "pip", "cd", "ctest", ".ci/run")
TIME = re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|us|ms|s|min|MB/s|MiB/s|GB/s|GiB/s)\b")


def blocks(kind):
    text = README.read_text() if README.exists() else ""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block):
    """Command lines of a block, continued lines joined, comments dropped."""
    lines = block.replace("\\\n", " ").splitlines()
    lines = [re.sub(r"\s+#.*$", "", line).strip() for line in lines if not line.startswith("#")]
    return [line for line in lines if line and line.split()[0] not in BUILDS]


def examples(block):
    """(command, expected output) pairs of a console block."""
    parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [tuple(part.partition("\n")[::2]) for part in parts]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder that looks like the project's to a command, where it may write."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("examples", "docs", "include", "README.md"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "snapshot.pickle").symlink_to(ROOT / EXAMPLE)
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "allot").symlink_to(command_path().resolve())
    if PYTHON:  # a link would not find its environment
        (binaries / "python").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
        (binaries / "python").chmod(0o755)
    return folder


def run_line(tree, line):
    line = re.sub(r"(?:\./)?build/\w+/allot\b", "allot", line)
    variables = dict(os.environ, PATH=f"{tree / 'bin'}:{os.environ['PATH']}", NO_COLOR="1")
    result = subprocess.run(
        ["bash", "-c", line], cwd=tree, env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert result.returncode in (0, 1), f"{line}\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
    return result.stdout


def matches(expected, actual):
    """Whether the output is the one shown: times may differ, "..." stands for any lines."""
    def plain(text):
        return "\n".join(re.sub(r" +", " ", TIME.sub("TIME", line)).rstrip()
                         for line in text.strip("\n").splitlines())

    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() in ("...", "…") else re.escape(line + "\n")
        for line in plain(expected).splitlines()
    )
    return re.fullmatch(pattern, plain(actual) + "\n") is not None


def test_matching_is_strict_but_for_times_and_gaps():
    assert matches("a 12 ms\n...\nz\n", "a 13 ms\nb\nc\nz\n")
    assert matches("...\nz\n", "z\n")
    assert not matches("a\n", "b\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("1.2 GiB\n", "1.3 GiB\n")


def check_commands(tree, kind):
    for block in blocks(kind):
        for line in commands(block):
            run_line(tree, line)


def check_output(tree, kind):
    for block in blocks(kind):
        for line, expected in examples(block):
            if line.split()[0] in BUILDS:
                continue
            actual = run_line(tree, line)
            assert matches(expected, actual), f"$ {line}\n{actual}\n--- README.md shows\n{expected}"


def test_commands_run(tree):
    check_commands(tree, "sh")


def test_output_shown_is_current(tree):
    check_output(tree, "console")


@pytest.mark.skipif(not PYTHON, reason="no Python with torch: ALLOT_TORCH_PYTHON is not set")
def test_dry_runs_shown_are_current(tree):
    check_commands(tree, "sh torch")
    check_output(tree, "console torch")


def test_c_shown_is_part_of_the_example():
    def lines(text):
        return "\n".join(line.strip() for line in text.splitlines())

    programs = [lines(path.read_text()) for path in (ROOT / "examples").glob("*.c")]
    assert blocks("c")
    for block in blocks("c"):
        assert any(lines(block) in program for program in programs), block


def test_links_to_files_lead_somewhere():
    text = README.read_text() if README.exists() else ""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target


def test_documents_link_to_files_that_exist():
    for path in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), (path.name, target)


def test_every_document_is_in_the_list():
    listed = (ROOT / "docs/README.md").read_text()
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in listed, path.name
