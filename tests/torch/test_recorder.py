# SPDX-License-Identifier: MIT
"""Watching imports, without torch: what the recorder does to a program that imports in odd ways."""

import importlib.util
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "standin" / "python" / "allot_dryrun.py"
NAME = "allot_test_watched"


@pytest.fixture
def recorder():
    spec = importlib.util.spec_from_file_location("allot_dryrun_tested", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def watched(recorder, tmp_path, monkeypatch):
    """The file of a module that is watched, and what was called back."""
    calls = []
    finder = recorder.AfterImport(NAME, lambda: calls.append("before"), lambda m: calls.append(m))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / f"{NAME}.py", calls
    sys.modules.pop(NAME, None)


def test_an_import_that_failed_is_watched_when_it_is_tried_again(watched):
    file, calls = watched
    file.write_text("raise ImportError('not yet')")
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module(NAME)
    file.write_text("there = True")
    importlib.invalidate_caches()
    assert calls == ["before", importlib.import_module(NAME)]


def test_a_module_that_is_looked_for_twice_and_loaded_twice_is_told_once(watched):
    file, calls = watched
    file.write_text("there = True")
    specs = [importlib.util.find_spec(NAME) for _ in range(2)]
    modules = [importlib.util.module_from_spec(spec) for spec in specs]
    for spec, module in zip(specs, modules):
        spec.loader.exec_module(module)
        assert module.there
    assert calls == ["before", modules[0]]


def test_a_child_of_fork_has_a_report_of_its_own(recorder, tmp_path, monkeypatch):
    monkeypatch.setenv("ALLOT_DRYRUN", str(tmp_path))
    own = recorder.Recorder()
    own.guard("something", lambda: 1 / 0)
    own.assume("something else")
    own.peaks[0] = {"allocated_peak": 1 << 30}
    own.begin_again()
    assert own.result["problems"] == [] and own.result["assumptions"] == {} and own.peaks == {}
