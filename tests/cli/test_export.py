# SPDX-License-Identifier: MIT
"""allot export: every format is what its readers expect; bad input and output are named."""

import csv
import gzip
import io
import json
import pickle
import pickletools
import re

import pytest

FINETUNE = "oracle/finetune_11gib_oom.pickle.gz"

# What PyTorch's viewer looks at.
SEGMENT_KEYS = {
    "device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
    "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks",
}
BLOCK_KEYS = {"address", "size", "requested_size", "state", "frames"}
ENTRY_KEYS = {"action", "addr", "size", "stream", "time_us", "frames"}
FRAME_KEYS = {"name", "filename", "line"}


class PlainUnpickler(pickle.Unpickler):
    """Plain data only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"refused: {module}.{name}")


def load(data: bytes):
    return PlainUnpickler(io.BytesIO(data)).load()


def without_empty(snapshot):
    """Parts that a version of PyTorch writes although they are empty."""
    return {key: value for key, value in snapshot.items() if value or not key.startswith("host_")}


@pytest.mark.parametrize("name", [
    FINETUNE, "oracle/classic_pools.pickle.gz", "oracle/expandable_tight.pickle.gz",
])
def test_a_snapshot_is_written_as_pytorch_wrote_it(run, data, tmp_path, name):
    source = data(name)
    run("export", source, "-o", tmp_path / "out.pickle")
    before = load(gzip.decompress(source.read_bytes()))
    after = load((tmp_path / "out.pickle").read_bytes())
    assert without_empty(before) == without_empty(after)


def test_the_keys_of_the_viewer_are_there(run, data):
    snapshot = load(run("export", data(FINETUNE), "--to", "torch-pickle", text=False).stdout)
    assert {"segments", "device_traces", "allocator_settings", "external_annotations"} <= set(snapshot)
    for segment in snapshot["segments"]:
        assert SEGMENT_KEYS <= set(segment)
        for block in segment["blocks"]:
            assert BLOCK_KEYS <= set(block) | {"frames"}
            assert block["state"] in ("active_allocated", "active_pending_free", "inactive")
    entries = snapshot["device_traces"][0]
    for entry in entries:
        assert ENTRY_KEYS - {"addr"} <= set(entry)
        assert ("device_free" if entry["action"] == "oom" else "addr") in entry
        for frame in entry["frames"]:
            assert set(frame) == FRAME_KEYS
    assert isinstance(snapshot["allocator_settings"]["roundup_power2_divisions"], dict)


# Opcodes that PyTorch's viewer knows, of those that can be in such a file.
VIEWER_OPCODES = {
    "PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS", "APPENDS", "MEMOIZE", "BINGET",
    "LONG_BINGET", "SHORT_BINUNICODE", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1",
    "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE", "TUPLE2",
}


def check_viewer(pickled):
    """The viewer knows every opcode, and no list is too long for it."""
    lists = []  # dicts since each open MARK, the innermost last
    for opcode, _, _ in pickletools.genops(pickled):
        assert opcode.name in VIEWER_OPCODES
        if opcode.name == "MARK":
            lists.append(0)
        elif opcode.name == "APPENDS":
            assert lists.pop() <= 1000  # it passes them as arguments of one call
        elif opcode.name == "SETITEMS":
            lists.pop()
            if lists:
                lists[-1] += 1


@pytest.mark.parametrize("name", [
    FINETUNE, "oracle/classic_pools.pickle.gz", "oracle/expandable_pools.pickle.gz",
])
def test_the_viewer_can_unpickle_it(run, data, name):
    check_viewer(run("export", data(name), "--to", "torch-pickle", text=False).stdout)


def test_the_viewer_can_unpickle_long_texts_and_wide_numbers(run, tmp_path):
    table = tmp_path / "wide.csv"
    table.write_text("device,event,address,size_requested,time_ns,stream,pool,user_metadata,stack\n"
                     f'gpu:0,alloc,{2**64 - 512},{2**63},{-2**62},{2**40},1:{2**33},"{"x" * 300}","f|a.py|1"\n')
    pickled = run("export", table, "--to", "torch-pickle", text=False).stdout
    check_viewer(pickled)
    entry = load(pickled)["device_traces"][0][0]
    assert (entry["addr"], entry["size"], entry["stream"]) == (2**64 - 512, 2**63, 2**40)
    assert entry["user_metadata"] == "x" * 300


def test_folded_stacks_add_up_to_the_peak(run, data):
    lines = run("export", data(FINETUNE), "--to", "folded").stdout.splitlines()
    total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    assert total >> 20 == 9287  # PyTorch's own max_memory_allocated of this run
    assert all(re.fullmatch(r"[^;]+:\d+\)(;[^;]+:\d+\))* \d+|\(no stack\) \d+", line) for line in lines)


def test_perfetto_sees_counters_slices_and_the_oom(run, data):
    trace = json.loads(run("export", data(FINETUNE), "--to", "chrome").stdout)
    events = trace["traceEvents"]
    peaks = {
        name: max(e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == name) >> 20
        for name in ("allocated", "reserved")
    }
    assert peaks == {"allocated": 9287, "reserved": 10536}
    open_slices = {}
    for event in events:
        if event["ph"] in "be":
            key = (event["cat"], event["id"], event["name"])
            open_slices[key] = open_slices.get(key, 0) + (1 if event["ph"] == "b" else -1)
    assert set(open_slices.values()) == {0}
    assert [e["name"] for e in events if e["ph"] == "i"] == ["out of memory: asked 3.07 GiB"]
    assert {e["name"] for e in events if e.get("cat") == "annotation"} >= {
        "Optimizer.step#AdamW.step"}
    assert min(e["ts"] for e in events if e["ph"] != "M") == 0


def chrome_slices(run, path):
    events = json.loads(run("export", path, "--to", "chrome").stdout)["traceEvents"]
    return [event for event in events if event.get("cat") == "allocation" and event["ph"] == "b"]


def test_perfetto_sees_the_line_of_the_user(run, root):
    slices = chrome_slices(run, root / "examples/finetune_11gib_oom.pickle.gz")
    names = {event["name"] for event in slices}
    assert {"finetune.py:64 (main)", "finetune.py:41 (forward)"} <= names
    assert all(re.match(r"finetune\.py:\d+ \(\w+\)$|\(no ", name) for name in names)
    parameters = [event for event in slices if event["name"] == "finetune.py:64 (main)"]
    assert parameters[0]["args"]["stack"].split("\n")[-2:] == [
        "main (/app/finetune.py:64)", "<module> (/app/finetune.py:89)"]


def test_perfetto_sees_python_and_cpp_apart_and_no_unwinder(run, tmp_path):
    frames = [("torch::unwind::unwind()", "??", 0),
              ("torch::CapturedTraceback::gather(bool)", "??", 0),
              ("at::detail::empty_cuda(long)", "/src/empty.cpp", 12),
              ("at::_ops::mm::call(at::Tensor const&)", "??", 0),
              ("<lambda>", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1098),
              ("main", "/home/me/train.py", 7),
              ("__libc_start_main", "??", 0)]
    entry = {"action": "alloc", "addr": 512, "size": 512, "stream": 0, "time_us": 1,
             "frames": [dict(zip(("name", "filename", "line"), frame)) for frame in frames]}
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[entry]]}))
    [event] = chrome_slices(run, path)
    assert event["name"] == "train.py:7 (main)"
    assert event["args"]["stack"].split("\n") == [
        "<lambda> (/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1098)",
        "main (/home/me/train.py:7)"]
    assert event["args"]["stack_native"].split("\n") == [
        "at::detail::empty_cuda(long) (/src/empty.cpp:12)",
        "at::_ops::mm::call(at::Tensor const&)", "__libc_start_main"]


def test_csv_is_a_table(run, data):
    text = run("export", data(FINETUNE), "--to", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["device"] == "gpu:0" and rows[0]["event"] == "segment_alloc"
    assert sum(row["event"] == "oom" for row in rows) == 1
    assert rows[0]["stack"].endswith("<module>|/app/finetune.py|89")


def test_formats_convert_into_each_other(run, data, tmp_path):
    run("export", data(FINETUNE), "-o", tmp_path / "a.allot")
    run("export", tmp_path / "a.allot", "-o", tmp_path / "b.pickle.gz")
    run("export", tmp_path / "b.pickle.gz", "-o", tmp_path / "c.allot")
    direct = run("export", data(FINETUNE), "--to", "csv").stdout
    assert run("export", tmp_path / "c.allot", "--to", "csv").stdout == direct
    assert (tmp_path / "b.pickle.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (tmp_path / "a.allot").stat().st_size < data(FINETUNE).stat().st_size
    run("export", data(FINETUNE), "-o", tmp_path / "d.csv")
    assert run("export", tmp_path / "d.csv", "--to", "csv").stdout == direct


def test_a_file_is_not_replaced_by_its_own_export(run, tmp_path):
    path = tmp_path / "t.csv"
    text = "device,event,size_rounded,stream\ngpu:0,alloc,512,0\n"
    path.write_text(text)
    run("export", path, "-o", path, code=2)
    assert path.read_text() == text
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_a_failed_export_leaves_the_old_file(run, tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("device,event,size_rounded,stream\ngpu:0,alloc,512,0\n")
    target = tmp_path / "out.pickle"
    target.write_text("old")
    result = run("export", source, "-o", target, code=3)
    assert "needs addresses" in result.stderr
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.pickle", "t.csv"]


def test_usage_errors_say_what_is_missing(run, tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("device,event,size_rounded,stream\ngpu:0,alloc,512,0\n")
    assert "name one trace" in run("export", "--to", "csv", code=2).stderr
    assert "--to" in run("export", source, code=2).stderr
    assert "--to" in run("export", source, "-o", tmp_path / "x.dat", code=2).stderr
    written = "written are torch-pickle, chrome, allot, csv, folded\n"
    unknown = run("export", source, "--to", "yaml", code=2).stderr
    assert f'--to yaml: unknown format; {written}' in unknown
    for name in ("rmm-csv", "torch-json", "auto"):
        result = run("export", source, "--to", name, code=2)
        assert f"--to {name}: not a format to write; {written}" in result.stderr


@pytest.mark.parametrize("ending", ["pickle", "pkl", "json", "allot", "csv", "folded"])
def test_a_format_may_be_named_by_the_ending_of_its_files(run, root, tmp_path, ending):
    source = root / "examples/finetune_11gib_oom.pickle.gz"
    run("export", source, "-o", tmp_path / f"by_name.{ending}")
    run("export", source, "--to", ending, "-o", tmp_path / "by_option")
    assert (tmp_path / "by_option").read_bytes() == (tmp_path / f"by_name.{ending}").read_bytes()


def test_the_formats_to_write_are_those_of_the_help(run, root):
    source = root / "examples/finetune_11gib_oom.pickle.gz"
    text = re.search(r"--to=FORMAT(.*?);", run("export", "--help").stdout, re.DOTALL)[1]
    names = re.split(r"[,\s]+(?:or\s+)?", text.strip())
    assert len(names) == 5
    for name in names:
        run("export", source, "--to", name, "-o", "/dev/null")


def test_output_that_cannot_be_written_is_a_failure(run, tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("device,event,size_rounded,stream\ngpu:0,alloc,512,0\n")
    result = run("export", source, "-o", tmp_path / "no" / "t.csv", code=4)
    assert "No such file or directory" in result.stderr
    assert "No space left" in run("export", source, "--to", "csv", "-o", "/dev/full", code=4).stderr


@pytest.mark.parametrize("content, message", [
    (b"", "byte 0: the file is empty"),
    (b"hello, world\n", "not a memory trace of a known format"),
    (b"\x89ALLOT\r\n\x01\0\0\0\0\0\0\0META", "byte 20: the file ends too early"),
    (b'{"traceEvents": []}', "profile_memory=True"),
    (b'{"traceEvents": [', "byte 17: the file ends inside the JSON text"),
    (b"Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.1,allocate,0x1\n",
     "line 2 (byte 39): a row of six fields"),
    (b"[[1, 2, 3]]", "byte 10: a row [time, action 1 to 4, bytes, category 0 to 7]"),
    (b'{"Total": {}, "MemoryInfo": {}}', "the dump lists no block"),
    (b"REPLAY,allocate,x,0x1,0x2\n", "line 1 (byte 0): allocate: size"),
])
def test_bad_input_is_refused_with_its_place(run, tmp_path, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content)
    result = run("export", path, "--to", "csv", code=3)
    assert f"allot: {path}: " in result.stderr
    assert message in result.stderr
    assert result.stdout == ""
