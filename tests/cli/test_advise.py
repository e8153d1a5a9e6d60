# SPDX-License-Identifier: MIT
"""allot advise: the table, JSON, the page, options that make no sense, files that cannot be advised on."""

import base64
import json
import re
import subprocess
import zlib

import pytest

from conftest import ROOT, run_command

EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
MIB = 1 << 20
GIB = 1 << 30


def advise(*options, code=0, file=EXAMPLE):
    return run_command("advise", *options, file, code=code)


def advise_json(*options, code=0, file=EXAMPLE):
    return json.loads(advise("--json", *options, code=code, file=file).stdout)


def test_the_text_says_why_and_what_to_set():
    text = advise().stdout
    flat = " ".join(text.split())
    assert "Set: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" in text
    assert "fragmentation" in flat
    assert "finetune.py:41" in flat
    assert "limit 11.00 GiB (inferred)" in flat
    assert "9337 of 9337 recorded placements equal" in flat
    assert "PYTORCH_ALLOC_CONF" in flat
    assert "\033" not in text


def test_json_has_the_same_in_exact_bytes():
    advice = advise_json()
    assert advice["schema"] == "allot.advise/1"
    assert advice["verdict"] == "change"
    assert advice["recommended"] == "expandable_segments:True"
    assert advice["limit"] == {"size": 11264 * MIB, "source": "inferred", "fraction": 1.0}
    assert advice["fidelity"] == {"placements": 9337, "placements_equal": 9337}
    assert advice["recording"]["oom_event"] == 27107
    present, best = advice["rows"][0], advice["rows"][advice["recommended_row"]]
    assert present["setting"] == "" and not present["finishes"]
    assert present["stop_event"] == 27107
    assert best["setting"] == advice["recommended"] and best["finishes"]
    assert best["stop_event"] is None
    assert best["limit_min"] <= advice["limit"]["size"] < present["limit_min"]
    assert all(row["setting"] != "" for row in advice["rows"][1:])
    assert advice["lines"][0]["size"] >= advice["lines"][-1]["size"]


def test_a_recommended_limit_is_enough_and_one_step_less_was_seen_to_fail():
    advice = advise_json()
    best = advice["rows"][advice["recommended_row"]]
    enough = advise_json("--limit", best["limit_min"], "--try", best["setting"])
    row = next(r for r in enough["rows"] if r["setting"] == best["setting"])
    assert row["finishes"]
    less = advise_json("--limit", best["limit_min"] - 2 * MIB, "--try", best["setting"])
    row = next(r for r in less["rows"] if r["setting"] == best["setting"])
    assert not row["finishes"]


def test_settings_that_are_asked_for_have_rows():
    advice = advise_json("--try", "max_split_size_mb:128", "--try", "roundup_power2_divisions:8")
    rows = {row["setting"]: row for row in advice["rows"]}
    assert rows["max_split_size_mb:128"]["finishes"]
    assert not rows["roundup_power2_divisions:8"]["finishes"]


def test_a_limit_below_what_is_live_ends_the_search():
    advice = advise_json("--limit", "4GiB", code=1)
    assert advice["verdict"] == "nothing_helps"
    assert advice["recommended"] is None and advice["recommended_row"] is None
    assert advice["recording"]["live_peak"] > 4 * GIB
    assert "finetune.py:" in advice["reason"] + advice["lines"][0]["line"]
    text = " ".join(advise("--limit", "4GiB", code=1).stdout.split())
    assert "No setting helps: it needs 9.78 GiB, and the limit is 4.00 GiB." in text
    assert "tried 1 setting in" in text


def test_a_limit_between_two_steps_of_the_search_ends_it():
    need = advise_json()["rows"][0]["limit_min"]
    given = advise_json("--limit", need + MIB)
    assert given["rows"][0]["limit_min"] == need


def strategies_by_model(advice):
    return {row["model"]: row for row in advice["strategies"]}


def test_allots_own_strategies_stand_apart_from_the_settings():
    advice = advise_json()
    found = strategies_by_model(advice)
    names = ("first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive")
    assert list(found) == [f"space:{name}:mode={mode}" for mode in ("vm", "segments")
                           for name in names]
    assert not any("space" in row["setting"] for row in advice["rows"])
    assert advice["recommended"] == "expandable_segments:True"
    mapped, torch = found["space:first-fit:mode=vm"], advice["rows"][advice["recommended_row"]]
    assert mapped["finishes"] and mapped["stop_event"] is None
    assert advice["recording"]["live_peak"] <= mapped["limit_min"] < torch["limit_min"]
    assert mapped["saving"] == advice["rows"][0]["limit_min"] - mapped["limit_min"]
    assert not found["space:buddy:mode=vm"]["finishes"]


def test_the_strategies_are_listed_whatever_the_top():
    text = advise("--top", "1").stdout
    assert "What allot's own strategies would reserve" in text
    assert "no setting of PyTorch gives these" in " ".join(text.split())
    assert len(re.findall(r"^  (?:finishes|OOM \d+) .* space:\S+$", text, re.MULTILINE)) == 12


def test_a_strategy_does_what_replay_shows():
    advice = advise_json()
    found = strategies_by_model(advice)

    def replay(model, limit=None):
        options = ["--limit", limit] if limit else []
        result = run_command("replay", "--json", "--model", model, *options, EXAMPLE)
        return json.loads(result.stdout)["replays"][0]

    for model in ("space:first-fit:mode=vm", "space:first-fit:mode=segments"):
        row, within = found[model], replay(model, advice["limit"]["size"])
        assert within["model"].startswith(model)
        assert within["finished"] == row["finishes"]
        assert within["reserved_peak"] == row["peak_reserved"]
        assert (within["oom"] or {"event": None})["event"] == row["stop_event"]
        assert replay(model)["reserved_peak"] == row["roomy_reserved"]
        assert replay(model, row["limit_min"])["finished"]
        assert not replay(model, row["limit_min"] - 2 * MIB)["finished"]


def test_strategies_are_shown_where_no_setting_helps():
    advice = advise_json("--limit", "4GiB", code=1)
    found = strategies_by_model(advice)
    assert not any(row["finishes"] for row in found.values())
    assert all(row["limit_min"] >= advice["recording"]["live_peak"] for row in found.values())


def test_the_page_has_the_strategies_in_a_table_of_their_own(tmp_path):
    advise("--html", tmp_path / "a.html")
    tables = {table["title"]: table for table in page_header(tmp_path / "a.html")["tables"]}
    ours = tables["What allot's own strategies would reserve"]
    assert ours["columns"][0] == {"name": "model", "kind": "code"}
    assert [row["cells"][0] for row in ours["rows"]][:2] == ["space:first-fit:mode=vm",
                                                             "space:best-fit:mode=vm"]
    assert len(ours["rows"]) == 12


def test_a_fraction_brings_collection_in():
    advice = advise_json("--limit", "12GiB", "--fraction", "0.9", "--top", "50")
    assert advice["limit"]["fraction"] == 0.9
    assert not any("was not tried" in note for note in advice["notes"])


def test_top_limits_the_rows_of_the_text():
    def rows(top):
        text = advise("--top", top).stdout
        return len(re.findall(r"^  (?:now|\d+)(?: try)?(?: <-)? +(?:finishes|OOM)", text, re.MULTILINE))

    assert rows(1) == 2
    assert rows(3) == 4


def test_settings_asked_for_are_shown_below_the_top():
    text = advise("--top", "1", "--try", "roundup_power2_divisions:8").stdout
    row = re.search(r"^  \d+ try +OOM \d+ .*\n? +roundup_power2_divisions:8$", text, re.MULTILINE)
    assert row, text


def test_saving_is_less_memory_than_now():
    advice = advise_json("--limit", "24GiB")
    now, best = advice["rows"][0], advice["rows"][advice["recommended_row"]]
    assert advice["saving_of"] == "peak_reserved"
    assert best["saving"] == now["peak_reserved"] - best["peak_reserved"] > 8 * GIB
    advice = advise_json()
    now, best = advice["rows"][0], advice["rows"][advice["recommended_row"]]
    assert advice["saving_of"] == "limit_min"
    assert best["saving"] == now["limit_min"] - best["limit_min"] > GIB


def page_header(path):
    """The JSON that a page carries: a zlib stream of its length, the JSON, and columns."""
    packed = re.search(r'id="data">([^<]*)<', path.read_text()).group(1)
    data = zlib.decompress(base64.b64decode(packed))
    return json.loads(data[4:4 + int.from_bytes(data[:4], "little")])


LIST = "expandable_segments:True,roundup_power2_divisions:[256:16,512:0,>:16]"


@pytest.mark.parametrize("options", [(), ("--limit", "10GiB"), ("--limit", "24GiB"), ("--try", LIST)])
def test_lines_are_at_most_100_columns(options):
    text = advise(*options).stdout
    for line in text.splitlines():
        assert len(line) <= 100 or "PYTORCH_CUDA_ALLOC_CONF=" in line, line
        assert line == line.rstrip()
    if options[:1] == ("--try",):
        assert re.search(r"^ +" + re.escape(LIST) + "$", text, re.MULTILINE)


def test_what_is_to_be_pasted_is_quoted_for_a_shell():
    text = advise("--limit", "10200MiB").stdout
    line = re.search(r"^Set: (PYTORCH_CUDA_ALLOC_CONF=.*)$", text, re.MULTILINE).group(1)
    setting = advise_json("--limit", "10200MiB")["recommended"]
    assert ">" in setting
    shown = subprocess.run(
        ["sh", "-c", line + '; printf "%s" "$PYTORCH_CUDA_ALLOC_CONF"'],
        capture_output=True, text=True, check=True,
    ).stdout
    assert shown == setting


def test_the_page_has_the_columns_of_the_text(tmp_path):
    advise("--html", tmp_path / "a.html")
    text = advise().stdout
    header = re.search(r"^ +outcome .*setting$", text, re.MULTILINE).group(0).split()
    columns = page_header(tmp_path / "a.html")["advice"]["columns"]
    assert sorted(column["name"] for column in columns) == sorted(header)


def test_threads_do_not_change_the_output():
    assert advise("--json", "--threads", "1").stdout == advise("--json", "--threads", "4").stdout


def test_html_and_output_are_written(tmp_path):
    page, text = tmp_path / "a.html", tmp_path / "a.txt"
    assert advise("--html", page, "--output", text).stdout == ""
    assert "expandable_segments:True" in text.read_text()
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert advise("--html", tmp_path / "no" / "a.html", code=4).stderr


@pytest.mark.parametrize(
    "options, says",
    [
        (["--limit", "many"], "--limit many"),
        (["--limit", "0"], "--limit 0"),
        (["--limit", "99999999999999999999GiB"], "--limit"),
        (["--limit", "8GiB", "--fraction", "1.5"], "--fraction 1.5"),
        (["--limit", "8GiB", "--fraction", "nan"], "--fraction nan"),
        (["--fraction", "0.5"], "--limit"),
        (["--try", "max_split_size_mb:12x"], "--try max_split_size_mb:12x"),
        (["--try", "no_such_setting:1"], "no_such_setting"),
        (["--threads", "-1"], "--threads"),
        (["--device", "7"], "no device 7"),
    ],
)
def test_wrong_options_are_usage_errors(options, says):
    result = advise(*options, code=2)
    assert says in result.stderr
    assert result.stdout == ""


def test_one_file_is_needed():
    run_command("advise", code=2)
    run_command("advise", EXAMPLE, EXAMPLE, code=2)


def test_a_file_without_history_is_told_so(tmp_path):
    state = tmp_path / "state.json"
    state.write_text(json.dumps({
        "segments": [{
            "device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 512,
            "active_size": 512, "stream": 0, "segment_type": "small",
            "blocks": [{"size": 512, "address": 4096, "state": "active_allocated"},
                       {"size": 2096640, "address": 4608, "state": "inactive"}],
        }],
        "device_traces": [[]],
    }))
    advice = advise_json(file=state)
    assert advice["verdict"] == "cannot_say"
    assert advice["rows"] == []
    assert advice["strategies"] == []
    assert "No advice is possible" in advise(file=state).stdout
