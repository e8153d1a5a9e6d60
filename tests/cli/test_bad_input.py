# SPDX-License-Identifier: MIT
"""Every verb that reads files, given what is no good trace: exit code, message, no output, no crash."""

import gzip
import json
import os
import pickle
import re

import pytest

from conftest import HAS_STANDIN, list_verbs, run_command

# What a verb needs on its command line beside a file; nothing for most.
ARGUMENTS = {"bench": ["--quick", "--device", "null"], "export": ["--to", "csv"]}
FILES = {"diff": 2, "ranks": 2}
# What the others work on.
OPERANDS = {"bench": [], "completion": ["bash"], "doctor": [], "dryrun": ["true"], "gpu": ["list"]}


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


def test_an_entry_that_stands_in_two_places_is_refused(tmp_path):
    entry = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": []}
    other = dict(entry, addr=8192)
    for number, entries in enumerate(([entry] * 1000, [entry, other] * 2, [other, entry, other])):
        path = tmp_path / f"{number}.pickle"
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": [entries]}))
        for verb in verbs_that_read():
            assert "more than one place" in run_on(verb, path, 3).stderr


@pytest.mark.parametrize("opcode", [b"]", b"}", b"N", b"\x94", b"\x85"])
def test_a_small_file_of_endless_values_is_refused(tmp_path, opcode):
    path = tmp_path / "bomb.pickle.gz"
    path.write_bytes(gzip.compress(b"\x80\x04N" + opcode * (40 << 20) + b".", 9))
    result = run_command("inspect", path, code=3)
    assert "so small a file" in result.stderr, result.stderr


def test_names_do_nothing_to_a_terminal(tmp_path):
    names = ["\x1b[31mred", "a\rb", "\x9b31m", "\u202egnp.exe", "\u2066x", "\udc80", "line\u2028two",
             "\x7f", "\x00"]
    entries = [{"action": "alloc", "addr": (1 + i) << 20, "size": 512, "stream": 0,
                "user_metadata": name, "frames": [{"filename": name, "name": name, "line": 1 + i}]}
               for i, name in enumerate(names)]
    path = tmp_path / "names.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [entries]}))
    for verb in verbs_that_read():
        if verb == "export":
            continue
        result = run_on(verb, path, None)
        shown = result.stdout + result.stderr
        harmful = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", shown)
        assert not harmful, (verb, harmful)


def long_names(count):
    name = "n" * 100_000
    return [{"action": "alloc", "addr": (1 + i) << 20, "size": 512, "stream": 0,
             "frames": [{"filename": name, "name": name, "line": 1 + i}]} for i in range(count)]


def test_a_long_name_on_many_lines_is_cut(tmp_path):
    path = tmp_path / "long.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [long_names(3000)]}))
    groups = json.loads(run_command("explain", "--json", path).stdout)["groups"]
    assert len(groups["line"] if isinstance(groups, dict) else groups) > 0
    text = run_command("explain", path).stdout
    assert max(len(line) for line in text.splitlines()) < 1000


NUMBERS = {"--device": ["-1", "", "x", "1.5", "4294967295", "99999999999999999999"],
           "--top": ["0", "-1", "", "x", "1099511627776"],
           "--steps": ["0", "-1", "", "x"], "--threads": ["-1", "", "x", "4294967296"],
           "--samples": ["-1", "", "x", "4294967296"],
           "--limit": ["0", "-1", "", "1e30", "NaN", "16777216TiB"],
           "--min": ["-1", "", "inf"], "--tolerance": ["-1", "", "nan", "inf", "0x1", "1e400"]}


@pytest.mark.parametrize("option", list(NUMBERS))
def test_a_wrong_number_is_a_usage_error(root, option):
    example = root / "examples/finetune_11gib_oom.pickle.gz"
    verbs = [verb for verb in verbs_that_read()
             if f"{option}=" in run_command(verb, "--help").stdout]
    assert verbs
    for verb in verbs:
        for value in NUMBERS[option]:
            result = run_command(verb, option, value, *[example] * FILES.get(verb, 1), code=2)
            assert result.stdout == "", (verb, value)
            assert f"{option} {value}: " in result.stderr, (verb, value, result.stderr)


def test_what_cannot_be_represented_is_cut(root):
    example = root / "examples/finetune_11gib_oom.pickle.gz"
    samples = json.loads(run_command("replay", "--json", "--samples", "4294967294", example,
                                     code=None).stdout)["replays"][0]["timeline"]
    assert 1 < len(samples) < 100_000
    result = run_command("advise", "--limit", "1GiB", "--fraction", "1e-300", example, code=2)
    assert "less than any segment" in result.stderr


def test_no_report_overwrites_its_input(root, tmp_path):
    example = (root / "examples/finetune_11gib_oom.pickle.gz").read_bytes()
    path = tmp_path / "input.pickle.gz"
    path.write_bytes(example)
    (tmp_path / "link").symlink_to(path)
    for verb in verbs_that_read():
        for option in ("--output", "--html"):
            if f"{option}=" not in run_command(verb, "--help").stdout:
                continue
            for output in (path, tmp_path / "link"):
                result = run_command(verb, *ARGUMENTS.get(verb, []), option, output,
                                     *[path] * FILES.get(verb, 1), code=2)
                assert "is the input" in result.stderr
                assert path.read_bytes() == example


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_reported(root):
    example = root / "examples/finetune_11gib_oom.pickle.gz"
    for verb in list_verbs():
        if verb == "dryrun" and not HAS_STANDIN:
            continue  # such a stand-in cannot be loaded into other programs
        arguments = OPERANDS.get(verb, [example] * FILES.get(verb, 1))
        with open("/dev/full", "w", encoding="ascii") as full:
            result = run_command(verb, *ARGUMENTS.get(verb, []), *arguments, code=4, stdout=full)
        assert "No space left on device" in result.stderr, (verb, result.stderr)
