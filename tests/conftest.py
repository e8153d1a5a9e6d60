# SPDX-License-Identifier: MIT
"""What all Python tests share: running the command, the project's folder, the shared data."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SANITIZER_EXIT = 86
# Such a build takes memory of its own.
IS_INSTRUMENTED = any(
    name in os.environ.get("ALLOT_BUILD", "") for name in ("asan", "tsan", "fuzz", "coverage")
)


def command_path() -> pathlib.Path:
    return pathlib.Path(os.environ.get("ALLOT", ROOT / "build/dev/allot"))


# Whether there is a stand-in for CUDA that can be loaded into programs of others.
HAS_STANDIN = not IS_INSTRUMENTED and (command_path().parent / "standin/libcuda.so.1").exists()


def run_command(*args, code=0, stdin=None, stdout=None, env=None, cwd=None, timeout=300, text=True):
    """Run `allot ARGS...` and check its exit code.

    code: the expected exit code, a tuple of them, or None for any.
    env: variables set on top of the present ones. stdin: text (or bytes, with text=False) or None.
    stdout: an open file to write to, instead of into the result.
    Returns the subprocess.CompletedProcess with stdout and stderr.
    """
    variables = dict(os.environ, NO_COLOR="1", **(env or {}))
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        # A report must never look like one of the command's own exit codes.
        variables[name] = f"{variables.get(name, '')}:exitcode={SANITIZER_EXIT}"
    result = subprocess.run(
        [str(command_path()), *map(str, args)],
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        text=text,
        env=variables,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    expected = code if isinstance(code, tuple) else (code,)
    if (code is not None and result.returncode not in expected) or result.returncode in (
        SANITIZER_EXIT,
    ) or result.returncode < 0:
        pytest.fail(
            f"allot {' '.join(map(str, args))}: exit {result.returncode}, expected {code}\n"
            f"--- standard output\n{(result.stdout or '')[-3000:]}\n"
            f"--- standard error\n{result.stderr[-6000:]}",
            pytrace=False,
        )
    return result


def list_verbs():
    """Every verb, as `allot --help` lists them."""
    text = run_command("--help").stdout
    return re.findall(r"^  (\S+) +\S", text.split("verbs:")[1], re.MULTILINE)


def list_options(verb):
    """Spellings of a verb's options, short and long, from the left column of its --help."""
    found = set()
    for line in run_command(verb, "--help").stdout.splitlines():
        match = re.match(r"^ +(-\S.*?)(?:  |$)", line)
        if match:
            found |= set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", match[1]))
    return found


@pytest.fixture
def run():
    """The function run_command()."""
    return run_command


@pytest.fixture
def plain_standin():
    """Skips the test where no stand-in can be loaded into programs of others."""
    if not HAS_STANDIN:
        pytest.skip("no stand-in, or an instrumented one, which other programs cannot load")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data():
    """data("oracle/x.pickle.gz"): path of a file of the shared data; skips the test if absent."""

    def find(relative: str) -> pathlib.Path:
        folder = os.environ.get("ALLOT_TEST_DATA")
        path = (pathlib.Path(folder) if folder else ROOT.parent / "shared/data") / relative
        if not path.exists():
            pytest.skip(f"shared data not there: {relative}")
        return path

    return find


def pytest_unconfigure(config):
    """End with the same line as the test programs in C."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    count = {name: len(reporter.stats.get(name, [])) for name in reporter.stats}
    failed = count.get("failed", 0) + count.get("error", 0)
    passed = count.get("passed", 0) + count.get("xfailed", 0)
    print(f"\n{passed} passed, {failed} failed, {count.get('skipped', 0)} skipped")
