# SPDX-License-Identifier: MIT
"""Every verb that reads files, given what is no good trace: exit code, message, no output, no crash."""

import gzip
import os
import pickle

import pytest

from conftest import list_verbs, run_command

# What a verb needs on its command line beside a file; nothing for most.
ARGUMENTS = {"export": ["--to", "csv"]}
FILES = {"diff": 2, "ranks": 2}


def verbs_that_read():
    return [verb for verb in list_verbs() if "FILE" in run_command(verb, "--help").stdout
            .split("Usage:")[1].splitlines()[0]]


class RunsCode:
    """Pickled as a call of a function: what a reader must refuse."""

    def __reduce__(self):
        return (print, ("code was run",))


CONTENT = {
    "empty": b"",
    "garbage": bytes(range(256)) * 40,
    "text": b"this is no trace\n" * 10,
    "other_pickle": pickle.dumps([1, 2, 3]),
    "code_in_pickle": pickle.dumps({"segments": [], "device_traces": [[RunsCode()]]}),
    "other_json": b'{"name": "allot", "private": true}',
    "broken_json": b'{"segments": [',
    "gzip_of_nothing": gzip.compress(b""),
    "half_a_gzip": gzip.compress(bytes(range(256)) * 40)[:200],
}


@pytest.fixture(scope="module", params=list(CONTENT))
def bad_file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / request.param
    path.write_bytes(CONTENT[request.param])
    return path


def run_on(verb, path, code):
    return run_command(verb, *ARGUMENTS.get(verb, []), *[path] * FILES.get(verb, 1), code=code)


def test_bad_content_is_refused_with_its_place(bad_file):
    for verb in verbs_that_read():
        result = run_on(verb, bad_file, 3)
        assert result.stdout == "", verb
        assert result.stderr.startswith(f"allot: {bad_file}: "), verb
        assert "byte " in result.stderr or "line " in result.stderr, (verb, result.stderr)
        assert result.stderr.count("\n") == 1, (verb, result.stderr)


def test_code_in_a_pickle_is_named_and_not_run(tmp_path):
    path = tmp_path / "evil.pickle"
    path.write_bytes(CONTENT["code_in_pickle"])
    for verb in verbs_that_read():
        result = run_on(verb, path, 3)
        assert "code was run" not in result.stdout
        assert "refused" in result.stderr, (verb, result.stderr)


def test_example_cut_anywhere_is_refused(root, tmp_path):
    whole = gzip.decompress((root / "examples/finetune_11gib_oom.pickle.gz").read_bytes())
    path = tmp_path / "cut.pickle"
    for verb in verbs_that_read()[:1]:  # Reading is the same for all.
        for size in (1, 2, 10, 1000, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            result = run_on(verb, path, 3)
            assert "byte " in result.stderr, (size, result.stderr)


def test_what_is_no_file_is_refused(tmp_path):
    for verb in verbs_that_read():
        assert "No such file" in run_on(verb, tmp_path / "missing", 3).stderr
        assert "directory" in run_on(verb, tmp_path, 3).stderr


def test_no_file_is_a_usage_error():
    for verb in verbs_that_read():
        result = run_command(verb, *ARGUMENTS.get(verb, []), code=2)
        assert result.stdout == ""
        assert f"try: allot {verb} --help" in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_reported(root):
    example = root / "examples/finetune_11gib_oom.pickle.gz"
    for verb in list_verbs():
        arguments = [example] * FILES.get(verb, 1) if verb in verbs_that_read() else ["bash"]
        with open("/dev/full", "w", encoding="ascii") as full:
            result = run_command(verb, *ARGUMENTS.get(verb, []), *arguments, code=4, stdout=full)
        assert "No space left on device" in result.stderr, (verb, result.stderr)
