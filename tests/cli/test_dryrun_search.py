# SPDX-License-Identifier: MIT
"""Searches over dry runs, with a program that stands in for PyTorch: fake_training.py."""

import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import HAS_STANDIN, ROOT, command_path

pytestmark = pytest.mark.skipif(
    not HAS_STANDIN, reason="no stand-in, or an instrumented one, which other programs cannot load"
)

PROGRAM = pathlib.Path(__file__).parent / "fake_training.py"
EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
MIB = 1 << 20


@pytest.fixture
def fake(run, tmp_path):
    """fake(options..., need=expression, code=) runs a search; returns JSON and the process."""
    (tmp_path / "cards.json").write_text(run("gpu", "--json", "list").stdout)

    def call(*options, need, code=0, argument="{v}", json_wanted=True, **others):
        (tmp_path / "runs").write_text("")
        result = run(
            "dryrun", *(["--json"] if json_wanted else []), *options, "--", sys.executable, "-I",
            PROGRAM, tmp_path, need, argument, code=code, **others,
        )  # fmt: skip
        if not json_wanted:
            return result
        return json.loads(result.stdout[result.stdout.index("{\n"):]), result

    return call


def runs_of(tmp_path):
    return [line.split(" ") for line in (tmp_path / "runs").read_text().splitlines()]


@pytest.mark.parametrize("base", [0, 100, 900])
@pytest.mark.parametrize("slope", [1, 7, 64, 500])
def test_a_straight_line_takes_few_runs(fake, tmp_path, base, slope):
    result, _ = fake("--sweep", "v=1..1000", "--limit", "2000MiB", need=f"{base}+{slope}*value")
    largest = min((2000 - base) // slope, 1000)
    assert result["sweep"] == {
        "name": "v", "largest": largest, "largest_calm": largest, "beyond": largest + 1 if largest < 1000 else None,
    }  # fmt: skip
    assert len(runs_of(tmp_path)) == len(result["runs"]) <= 7
    assert result["verdict"] == "fits" and result["is_finished"]


@pytest.mark.parametrize(
    "need",
    ["value*value", "100+value**3//1000", "1000*(value>777)+1000*(value>3)", "1500+value//100",
     "int(200*value**0.5)", "2001*(value>999)", "2001*(value>1)", "10+1995*(value>500)"],
)  # fmt: skip
def test_any_rising_need_is_found(fake, tmp_path, need):
    largest = max(v for v in range(1, 1001) if int(eval(need, {"value": v})) <= 2000)
    result, _ = fake("--sweep", "v=1..1000", "--limit", "2000MiB", need=need)
    assert result["sweep"]["largest"] == largest
    measured = {run["value"]: run["verdict"] for run in result["runs"]}
    assert measured[largest] == "fits"
    assert largest == 1000 or measured[largest + 1] == "out_of_memory"
    assert len(measured) == len(result["runs"]) <= 2 * math.log2(1000) + 4


@pytest.mark.parametrize(
    ("values", "largest", "beyond"),
    [("8..64..8", 40, 48), ("1,2,4,8,16,32,64", 32, 64), ("5", 5, None), ("3..40", 40, None),
     ("44..50", None, 44), ("0..100", 43, 44), ("0,43,44", 43, 44)],
)  # fmt: skip
def test_ranges_and_lists(fake, values, largest, beyond):
    code = 0 if largest is not None else 1
    result, _ = fake("--sweep", f"v={values}", "--limit", "1000MiB", need="23*value", code=code)
    assert (result["sweep"]["largest"], result["sweep"]["beyond"]) == (largest, beyond)


def test_the_value_stands_wherever_its_name_does(fake, tmp_path):
    fake("--sweep", "v=1..3", "--limit", "100MiB", need="{v}*30+value", argument="{v}")
    assert [run[0] for run in runs_of(tmp_path)] == ["1", "3"]


def test_the_table_shows_what_was_measured(fake):
    text = fake("--sweep", "v=1..64", "--limit", "100MiB", need="10*value", json_wanted=False).stdout
    assert "LARGEST THAT FITS: v=10 on" in text
    assert "v=11 does not" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("  v=") and "MiB" in line]
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), key=lambda v: int(v[2:]))
    assert "5.0 MiB at train.py:7 (step), after 2 steps" in text


def test_another_failure_ends_the_search(fake, tmp_path):
    (tmp_path / "fail").write_text("10")
    result, raw = fake("--sweep", "v=1..10", "--limit", "1000MiB", need="value", code=4)
    assert result["verdict"] == "failed" and result["exit_code"] == 7
    assert result["sweep"] == {
        "name": "v", "largest": 1, "largest_calm": 1, "beyond": None,
    }  # fmt: skip
    assert "output with 10," in raw.stderr


def test_what_is_not_known_is_an_upper_bound(fake, tmp_path):
    (tmp_path / "unknown").write_text(" ".join(map(str, range(65))))
    options = ("--sweep", "v=1..64", "--limit", "100MiB")
    result, _ = fake(*options, need="10*value", code=1)
    assert result["verdict"] == "incomplete" and result["sweep"]["largest"] == 10
    text = fake(*options, need="10*value", code=1, json_wanted=False).stdout
    assert "AT MOST: v=10" in text and "FITS" not in text


def test_what_is_not_known_is_a_lower_bound(fake, tmp_path):
    (tmp_path / "unknown").write_text("0")
    result, _ = fake("--fit", need="100", argument="0", code=1)
    assert result["verdict"] == "incomplete" and result["fits"][0]["limit_min"] == 100 * MIB
    text = fake("--fit", need="100", argument="0", code=1, json_wanted=False).stdout
    assert "AT LEAST 100 MiB" in text and "fits" not in text


def test_only_the_first_run_prints(fake, tmp_path):
    raw = fake("--sweep", "v=1..64", "--limit", "100MiB", need="10*value", json_wanted=False)
    assert raw.stdout.startswith("output with 1,")
    assert raw.stdout.count("output with") == 1 and raw.stderr == ""


def test_a_program_can_read_its_input_in_every_run(fake, tmp_path):
    """Here a pipe, which can be read once; later runs find it empty."""
    raw = fake("--sweep", "v=1,2", "--limit", "100MiB", need="10*value", json_wanted=False,
               stdin="words")  # fmt: skip
    assert "input 'words'" in raw.stdout


@pytest.mark.parametrize("extra", [0, 1, 5, 20])
def test_the_least_memory_is_found(fake, tmp_path, extra):
    """What is needed depends on the limit: less than what a run without one reserves."""
    need = f"2000 if total > 100000 else {1800 + extra}"
    result, _ = fake("--fit", "--gpu", "a100-80", need=need, argument="0")
    fit = result["fits"][0]
    assert fit["limit_min"] == (1800 + extra + extra % 2) * MIB
    assert fit["limit_calm"] == 2000 * MIB
    assert result["runs"][fit["run"]]["memory"] == fit["limit_min"]
    if extra != 0:
        below = result["runs"][fit["run_below"]]
        assert below["memory"] == fit["limit_min"] - 2 * MIB
        assert below["verdict"] == "out_of_memory"
    assert len(result["runs"]) <= 3 + math.log2(100)


def test_no_fragmentation_needs_one_more_run(fake):
    result, _ = fake("--fit", need="1999", argument="0")
    assert result["fits"][0]["limit_min"] == 2000 * MIB
    assert result["verdict"] == "fits"


def test_the_smallest_card_is_run(fake, run):
    cards = json.loads(run("gpu", "--json", "list").stdout)["gpus"]
    room = [c for c in cards if c["memory_total"] - c["memory_context"] >= 12000 * MIB]
    result, _ = fake("--fit", need=f"20000 if gpu == {room[0]['id']!r} else 12000", argument="0")
    assert result["fits"][0]["cards_refuted"] == 1
    assert result["fits"][0]["card"] == room[1]["id"]
    tried = [r["gpu"] for r in result["runs"] if r["purpose"] == "card"]
    assert tried == [room[0]["id"], room[1]["id"]]


def test_a_rule_that_answered_nothing_is_told(fake):
    result, _ = fake(need="1", argument="0")
    assert result["hints"] == ["--booleans train.py:9=...: no boolean was read at that line"]


def test_what_comes_on_top_of_the_least_memory_is_told(fake, run, tmp_path):
    (tmp_path / "nccl").touch()
    card = json.loads(run("gpu", "--json", "show", "rtx4090").stdout)
    left = (card["memory_total"] - card["memory_context"]) // MIB & ~1
    for need, said in ((left - 100, "are enough"), (left - 98, "are NOT enough")):
        text = fake("--gpu", "rtx4090", "--fit", need=str(need), argument="0", json_wanted=False).stdout
        assert "NCCL             50.0 MiB for each communicator (2 times) comes on top" in text
        assert [line for line in text.splitlines() if line.startswith("  rtx4090 ")][0].endswith(said)


def test_the_list_of_holders_is_that_of_explain(fake, run, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    options = ("--top", "2", "--by", "category")
    text = fake(*options, need="1", argument="0", json_wanted=False).stdout
    shown = run("explain", "--at", "peak", *options, EXAMPLE).stdout
    assert shown.splitlines()[-4:] == text.splitlines()[-4:]
    assert "--by: " in run("dryrun", "--by", "magic", "--", "true", code=2).stderr


def test_a_program_that_looks_at_the_memory_there_is_is_told(fake):
    result, _ = fake("--fit", need="total//10", argument="0")
    assert result["fits"][0]["is_unsteady"]
    assert "less may do" in fake("--fit", need="total//10", argument="0", json_wanted=False).stdout
    result, _ = fake("--fit", need="100", argument="0")
    assert not result["fits"][0]["is_unsteady"]


def test_what_no_device_holds_has_no_least_memory(fake):
    result, _ = fake("--fit", need="10**7", argument="0", code=1)
    assert result["verdict"] == "out_of_memory"
    assert result["fits"][0]["limit_min"] is None and len(result["runs"]) == 1


NEED_BY_CONF = "90 if 'expandable' in conf else 120 if conf else 100"


def test_settings_are_compared(fake, tmp_path):
    confs = ("--conf", "default", "--conf", "expandable_segments:True", "--conf", "")
    env = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    result, _ = fake(*confs, "--limit", "95MiB", need=NEED_BY_CONF, argument="0", code=1, env=env)
    assert [r["conf"] for r in result["runs"]] == ["", "expandable_segments:True", ""]
    assert [r["verdict"] for r in result["runs"]] == ["out_of_memory", "fits", "out_of_memory"]
    fake(*confs, "--limit", "100MiB", need=NEED_BY_CONF, argument="0", env=env)
    text = fake(*confs, "--limit", "95MiB", need=NEED_BY_CONF, argument="0", code=1,
                json_wanted=False).stdout  # fmt: skip
    assert text.splitlines()[1].startswith("SETTINGS COMPARED on")


def test_the_least_memory_of_each_settings(fake):
    confs = ("--conf", "default", "--conf", "expandable_segments:True")
    result, _ = fake("--fit", *confs, need=NEED_BY_CONF, argument="0")
    assert [fit["limit_min"] // MIB for fit in result["fits"]] == [100, 90]
    assert [fit["card"] is not None for fit in result["fits"]] == [False, True]
    assert result["reserved_peak"] == 90 * MIB


def test_one_settings_are_an_ordinary_run(fake):
    result, _ = fake("--conf", "a:1", "--limit", "120MiB", need=NEED_BY_CONF, argument="0")
    assert result["question"] == "one" and result["runs"][0]["conf_found"] == "a:1"


def test_a_program_that_sets_its_own_has_the_last_word(fake, tmp_path):
    (tmp_path / "own_conf").touch()
    confs = ("--conf", "a:1", "--conf", "set:here")
    lines = fake(*confs, need="1", argument="0", json_wanted=False).stdout.splitlines()
    assert ["the program itself set set:here" in line for line in lines[-2:]] == [True, False]


def test_a_peak_is_asserted_of_several_runs(fake):
    limit = ("--assert-peak", "95MiB")
    confs = ("--conf", "default", "--conf", "expandable_segments:True")
    fake(*confs, *limit, need=NEED_BY_CONF, argument="0", code=1)
    fake("--fit", *confs, *limit, need=NEED_BY_CONF, argument="0")
    fake("--fit", *limit, need="97", argument="0", code=1)
    fake("--sweep", "v=1..10", *limit, need="10*value", code=1)
    fake("--sweep", "v=1..9", *limit, need="10*value")


def test_the_settings_above_the_asserted_peak_are_named(fake):
    confs = ("--conf", "default", "--conf", "expandable_segments:True")
    _, raw = fake(*confs, "--assert-peak", "95MB", need=NEED_BY_CONF, argument="0", code=1)
    assert "--assert-peak 95MB is read as 95.0 MiB, 99614720 bytes" in raw.stderr
    above = [line for line in raw.stderr.splitlines() if "is above --assert-peak" in line]
    assert len(above) == 1 and "default: the peak" in above[0]


def test_a_remark_is_not_cut_before_its_reason(fake, tmp_path):
    (tmp_path / "fail").write_text("0")
    (tmp_path / "exception").write_text("RuntimeError: " + "option value " * 9 + "too small, >= 20")
    text = fake("--conf", "a:1", "--conf", "b:1", need="1", argument="0", code=4,
                json_wanted=False).stdout  # fmt: skip
    assert text.count("too small, >= 20") == 2


def test_the_roomy_run_is_kept_where_the_search_ends_early(fake, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    kept = tmp_path / "kept.pickle"
    fake("--fit", "--record", kept, need="100 if total > 100000 else 1//0", argument="0", code=1)
    assert kept.read_bytes() == EXAMPLE.read_bytes()


def test_advice_is_confirmed_by_a_run(fake, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    need = "20000 if not conf else 11000"
    result, _ = fake("--limit", "11GiB", need=need, argument="0", code=1)
    advice = result["advice"]
    assert result["verdict"] == "out_of_memory" and advice["verdict"] == "change"
    first = advice["trials"][0]
    assert advice["confirmed"] == first["setting"] and first["confirmed"]
    run = result["runs"][first["run"]]
    assert run["purpose"] == "confirm" and run["conf"] == first["setting"]
    assert len(result["runs"]) == 2


def test_advice_is_refuted_by_runs(fake, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    result, _ = fake("--limit", "11GiB", need="20000", argument="0", code=1)
    trials = result["advice"]["trials"]
    assert len(trials) >= 2 and not any(trial["confirmed"] for trial in trials)
    assert result["advice"]["confirmed"] is None and len(result["runs"]) == 1 + len(trials)
    text = fake("--limit", "11GiB", need="20000", argument="0", code=1, json_wanted=False).stdout
    assert text.count("refuted by a run: out of memory") == len(trials) and "use:" not in text


def test_advice_can_be_left_out_or_asked_for(fake, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    result, _ = fake("--limit", "11GiB", "--no-advise", need="20000", argument="0", code=1)
    assert result["advice"] is None and len(result["runs"]) == 1
    result, _ = fake("--limit", "30GiB", need="20000", argument="0")
    assert result["advice"] is None
    result, _ = fake("--limit", "30GiB", "--advise", need="20000", argument="0")
    assert result["advice"]["verdict"] in ("change", "keep")


def test_without_a_recording_there_is_no_advice(fake):
    result, _ = fake("--limit", "11GiB", need="20000", argument="0", code=1)
    assert result["advice"]["refusal"] == "the run left no recording"


def test_the_snapshot_of_the_answer_is_kept(fake, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "snapshot")
    kept = tmp_path / "kept"
    for options in (["--sweep", "v=1..64", "--limit", "100MiB"], ["--fit"],
                    ["--conf", "default", "--conf", "a:1"]):  # fmt: skip
        argument = "{v}" if "--sweep" in options else "0"
        fake(*options, "--record", kept, need="50+value", argument=argument)
        assert kept.read_bytes() == EXAMPLE.read_bytes()
        kept.unlink()


def test_nothing_is_left_behind(fake, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    for options in (["--sweep", "v=1..64", "--limit", "100MiB"], ["--fit"]):
        argument = "{v}" if "--sweep" in options else "0"
        fake(*options, need="50+value", argument=argument, env={"TMPDIR": str(folder)})
        assert os.listdir(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_with_what_is_known(fake, tmp_path, number):
    folder = tmp_path / "temporary"
    folder.mkdir()
    fake("--limit", "100MiB", need="1", argument="0")
    (tmp_path / "sleep").write_text("10")
    (tmp_path / "runs").write_text("")
    command = [command_path(), "dryrun", "--sweep", "v=1..10", "--limit", "100MiB", "--",
               sys.executable, "-I", PROGRAM, tmp_path, "value", "{v}"]  # fmt: skip
    with subprocess.Popen(
        list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=dict(os.environ, TMPDIR=str(folder)),
    ) as process:  # fmt: skip
        for _ in range(600):
            if len(runs_of(tmp_path)) == 2:
                break
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    assert "FITS, AND MORE MAY: v=1 " in out and "not finished" in out
    assert os.listdir(folder) == []
    assert len(runs_of(tmp_path)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sweep", "v"], "for example batch=1..64"),
        (["--sweep", "=1..2"], "for example batch=1..64"),
        (["--sweep", "{v}=1..2"], "for example batch=1..64"),
        (["--sweep", "v="], "rising whole numbers"),
        (["--sweep", "v=4..1"], "rising whole numbers"),
        (["--sweep", "v=1..4..0"], "rising whole numbers"),
        (["--sweep", "v=1..x"], "rising whole numbers"),
        (["--sweep", "v=-1..4"], "rising whole numbers"),
        (["--sweep", "v=2,1"], "rising whole numbers"),
        (["--sweep", "v=1,,2"], "rising whole numbers"),
        (["--sweep", "v=1..99999999999999999999"], "rising whole numbers"),
        (["--sweep", "w=1..4"], "the command has no {w}"),
        (["--sweep", "v=1..4", "--sweep", "w=1..4"], "one --sweep at a time"),
        (["--sweep", "v=1..4", "--fit"], "leave out --fit"),
        (["--sweep", "v=1..4", "--conf", "a", "--conf", "b"], "one --conf at most"),
        (["--fit", "--limit", "1GiB"], "leave out --limit"),
        (["--advise", "--fit"], "--advise is about one run"),
        (["--conf", "a"] * 17, "16 times"),
    ],
)
def test_questions_that_make_no_sense(run, options, said):
    assert said in run("dryrun", *options, "--", "true", "{v}", code=2).stderr


def test_what_fits_without_retries_is_told_beside_the_largest(fake, tmp_path):
    (tmp_path / "retry").write_text(" ".join(map(str, range(6, 10))))
    options = ("--sweep", "v=1..9", "--limit", "70MiB")
    result, _ = fake(*options, need="10*value")
    calm = max(run["value"] for run in result["runs"] if run["retries"] == 0 and run["value"] <= 7)
    assert result["sweep"]["largest"] == 7 and result["sweep"]["largest_calm"] == calm < 6
    text = fake(*options, need="10*value", json_wanted=False).stdout
    assert f"v={calm} is the largest that was run without" in text


def test_advice_that_runs_refute_leads_with_that(fake, tmp_path):
    (tmp_path / "snapshot").write_bytes(EXAMPLE.read_bytes())
    text = fake("--limit", "11GiB", need="20000", argument="1", json_wanted=False, code=1).stdout
    assert "advice: no setting was found, from replaying" in text
    assert "refuted it: " in text
