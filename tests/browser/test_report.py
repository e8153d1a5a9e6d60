# SPDX-License-Identifier: MIT
"""The HTML report in a browser, against figures counted from the traces in another way."""

import gzip
import pickle
import re
import sys
from collections import Counter

import pytest

import traces

OOM = "oracle/finetune_11gib_oom.pickle.gz"
ROOMY = "oracle/finetune_80gib.pickle.gz"
LARGE_EVENTS = 1_000_000


class PlainUnpickler(pickle.Unpickler):
    """Reads plain data only."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def read_events(path):
    with gzip.open(path) as file:
        return PlainUnpickler(file).load()["device_traces"][0]


def size_text(size):
    for unit, name, digits in ((1 << 30, "GiB", 2), (1 << 20, "MiB", 1), (1 << 10, "KiB", 1)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size} B"


def user_line(frames):
    for frame in frames:
        if "/torch/" not in frame["filename"] and frame["filename"].endswith(".py"):
            return f"{frame['filename'].split('/')[-1]}:{frame['line']}"
    return None


def rounded(size):
    return max(512, (size + 511) // 512 * 512)


@pytest.fixture
def make(run, reports):
    """make(verb, files..., name=): the report, written once; explain and diff may exit with 1."""

    def write(verb, *files, name, options=()):
        path = reports / name
        if not path.exists():
            run(verb, *files, "--html", path, *options, code=(0, 1))
        return path

    return write


@pytest.fixture
def oom_report(data, make):
    return make("explain", data(OOM), name="oom.html", options=("--at", "oom"))


@pytest.fixture(scope="session")
def large(reports):
    """(path of a trace with a million events, bytes in use after each)."""
    path = reports / "large.pickle"
    return path, traces.large_snapshot(path, LARGE_EVENTS)


@pytest.fixture
def large_report(large, make):
    return make("inspect", large[0], name="large.html")


def test_shows_the_peaks_of_the_recording(page, oom_report):
    page.open(oom_report)
    tiles = page.text(".tiles")
    assert "9.07 GiB" in tiles  # 9,287 MiB, by PyTorch's own statistics
    assert "10.29 GiB" in tiles  # 10,536 MiB
    assert "fragmentation" in page.text(".verdict")
    page.check_console()


def test_table_holds_what_the_events_add_up_to(page, oom_report, data):
    live, lines = {}, Counter()
    for event in read_events(data(OOM)):
        if event["action"] == "alloc":
            live[event["addr"]] = (user_line(event["frames"]), event["size"])
        elif event["action"] == "free_completed":
            del live[event["addr"]]
        elif event["action"] == "oom":
            break
    for line, size in live.values():
        lines[line] += rounded(size)
    page.open(oom_report)
    rows = [row.text.split("\n") for row in page.all(".groups tbody tr")]
    for row, (line, size) in zip(rows[:4], lines.most_common(4)):
        assert row[0] == line
        # A block may keep an unsplit rest of up to a MiB: compare the leading digits.
        shown = next(part for part in row if "GiB" in part or "MiB" in part).split()
        assert float(shown[0]) == pytest.approx(float(size_text(size).split()[0]), rel=0.02)
        assert shown[1] == size_text(size).split()[1]


def test_hovering_tells_group_size_event_and_stack(page, oom_report, data):
    events = read_events(data(OOM))
    live, total, peak, peak_event = {}, 0, 0, 0
    for n, event in enumerate(events):
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
            total += event["size"]
        elif event["action"] == "free_completed":
            total -= live.pop(event["addr"])
        if total > peak:
            peak, peak_event = total, n
    page.open(oom_report)
    share = (peak_event + 1.5) / (len(events) + 1)
    tips = [page.point_at(share + pixel / 800, 0.02) for pixel in (-1, 0, 1)]
    tip = next(tip for tip in tips if f"\n{peak_event:,} " in tip)
    assert "of 9.07 GiB" in tip
    assert "finetune.py:" in tip
    assert "library frame" in tip
    page.point_at(0.5, 0.02, click=True)
    assert page.text(".pin h2") == "Pinned"
    assert "finetune.py:" in page.text(".pin .stack")
    page.key("\ue00c")  # Escape
    assert page.text(".pin h2") == ""
    page.check_console()


def test_map_tells_blocks_and_free_ranges_apart(page, oom_report):
    page.open(oom_report)
    tips = [page.point_at(0.5, n / 24, chart=2) for n in range(1, 24)]
    blocks = [tip for tip in tips if "Address" in tip and "Lives" in tip]
    free = [tip for tip in tips if tip.startswith("free")]
    assert blocks and free
    assert re.search(r"Block\n?.*(MiB|GiB|KiB| B)", blocks[0])
    assert "Free range" in free[0] and "In segment of" in free[0]
    page.check_console()


def test_keys_and_buttons_choose_the_moment(page, oom_report, data):
    events = read_events(data(OOM))
    oom = next(n for n, event in enumerate(events) if event["action"] == "oom")
    page.open(oom_report)
    assert page.text(".groups h2") == f"Who holds memory at event {oom:,}"
    page.key("p")
    assert page.text(".groups h2") != f"Who holds memory at event {oom:,}"
    page.key("o")
    assert page.text(".groups h2") == f"Who holds memory at event {oom:,}"
    page.key(",")
    assert page.text(".groups h2") == f"Who holds memory at event {oom - 1:,}"
    page.click("Peak")
    assert "9.07 GiB in use" in page.text(".groups .quiet")
    page.check_console()


def test_wheel_drag_and_keys_zoom(page, oom_report):
    page.open(oom_report)
    whole = page.text(".range")
    page.wheel(0.5, -6)
    near = page.text(".range")
    assert near != whole
    page.key("+")
    assert page.text(".range") not in (near, whole)
    page.key("0")
    assert page.text(".range") == whole
    page.click("Time")
    assert re.fullmatch(r"0 s to .* s", page.text(".range"))
    page.wheel(0.5, -60)
    page.wheel(0.5, 200)
    page.click("Events")
    assert page.text(".range") == whole
    page.check_console()


def test_search_finds_functions_lines_and_categories(page, oom_report, data):
    count = sum(
        event["action"] == "alloc"
        and any(f["filename"].endswith("finetune.py") and f["line"] == 41 for f in event["frames"])
        for event in read_events(data(OOM))
    )
    page.open(oom_report)
    page.search("finetune.py:41")
    assert page.text(".search output").startswith(f"{count:,} blocks")
    assert all("finetune.py" in row.text for row in page.all(".groups tbody tr"))
    page.search("no such thing")
    assert page.text(".search output") == "nothing found"
    page.search("")
    assert page.text(".search output") == ""
    page.click("Category")
    rows = len(page.all(".groups tbody tr"))
    page.search("parameter")
    assert 1 <= len(page.all(".groups tbody tr")) <= rows
    page.check_console()


@pytest.mark.parametrize("width,dark", [(1440, False), (1440, True), (390, False), (390, True)])
def test_fits_wide_and_narrow_light_and_dark(page, oom_report, width, dark):
    page.open(oom_report, width=width, height=900, dark=dark)
    overflow = page.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0
    color = "return getComputedStyle(document.body.parentNode).backgroundColor"
    before = page.driver.execute_script(color)
    page.all("#theme")[0].click()
    page.settle()
    assert page.driver.execute_script(color) != before
    for mode in ("Stack", "Category", "Code line"):
        page.click(mode)
        assert page.all(".groups tbody tr")
    page.check_console()


def test_a_million_events_stay_exact_and_quick_to_handle(page, large, large_report):
    path, totals = large
    assert large_report.stat().st_size < 8 << 20
    page.open(large_report)
    assert size_text(max(totals)) in page.text(".tiles")
    for share in (0.1, 0.35, 0.8):
        tip = page.point_at(share, 0.02)
        event = int(re.search(r"At event\n?\s*([\d,]+)", tip).group(1).replace(",", ""))
        assert f"of {size_text(totals[event])}" in tip
    peak = totals.index(max(totals))
    share = (peak + 1.5) / (len(totals) + 1)
    tips = [page.point_at(share + pixel / 800, 0.02) for pixel in (-1, 0, 1)]
    assert any(f"\n{peak:,} " in tip and f"of {size_text(max(totals))}" in tip for tip in tips)
    page.wheel(0.35, -40)
    tip = page.point_at(0.5, 0.02)
    event = int(re.search(r"At event\n?\s*([\d,]+)", tip).group(1).replace(",", ""))
    shown = float(re.search(r"of ([\d.]+)", tip).group(1))
    assert shown == pytest.approx(float(size_text(totals[event]).split()[0]), rel=0.01)
    page.search("layer_7.py")
    assert re.match(r"[\d,]+ blocks", page.text(".search output"))
    page.check_console()


def test_names_in_a_trace_never_run(page, make, reports):
    payload = "<img src=x onerror=window.hacked=1></script><script>window.hacked=2</script>'\"&"
    trace = reports / "<img src=x onerror=window.hacked=3>.pickle"
    traces.hostile_snapshot(trace, payload)
    page.open(make("inspect", trace, name="hostile.html"))
    page.point_at(0.9, 0.1)
    page.point_at(0.9, 0.9, chart=2)
    page.point_at(0.9, 0.1, click=True)
    page.click("Stack")
    page.search("img")
    assert payload in page.text(".groups") + page.text(".pin")
    assert page.driver.execute_script("return window.hacked ?? null") is None
    assert page.all("img") == [] and len(page.all("script")) == 2
    page.check_console()


def test_settings_at_their_defaults_are_folded_away(page, data, make):
    page.open(make("explain", data(OOM), name="oom.html"))
    folded = page.all("section.card details")[-1]
    assert folded.text.startswith("All settings: 26 at their defaults")
    assert "max_split_size" not in folded.text
    folded.find_element("css selector", "summary").click()
    assert "max_split_size" in folded.text
    page.check_console()


def test_diff_shows_both_and_what_differs(page, data, make):
    path = make("diff", data(ROOMY), data("oracle/finetune_expandable_11gib.pickle.gz"), name="diff.html")
    page.open(path)
    assert len(page.all(".charts")) == 2
    tiles = [tile.text for tile in page.all(".tiles")]
    assert "19.41 GiB" in tiles[0] and "10.79 GiB" in tiles[1]  # 19,880 and 11,050 MiB
    assert "expandable_segments" in "".join(table.text for table in page.all("table.report"))
    page.check_console()


def test_advise_names_the_setting_and_compares(page, data, make):
    path = make("advise", data(OOM), name="advise.html", options=("--limit", "11264MiB"))
    page.open(path)
    assert page.text(".paste code").startswith("PYTORCH_CUDA_ALLOC_CONF=")
    rows = page.all(".advice tbody tr")
    assert len(rows) > 2
    assert "OOM 27107 (now)" in rows[0].text
    assert page.text(".advice thead").split() == \
        "setting outcome reserved saving needs calls retries time".split()
    assert "instead" in page.text(".verdict") or "within 11.00 GiB" in page.text(".verdict")
    button = rows[0].find_element("css selector", "button.name")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.check_console()


def test_state_without_history_shows_segments(page, data, make):
    path = make("inspect", data("snapshots/a14_state_tiny.pickle"), name="state.html")
    page.open(path)
    assert page.text(".moment h2") == "Segments"
    assert "12 segments, 104.0 MiB reserved" in page.text(".moment")
    assert page.all(".charts canvas") == []
    page.check_console()


@pytest.fixture
def dryrun_page(run, reports, root, plain_standin):
    """dryrun_page(name, need, options..., code=): the page of a run of a program that stands in for
    PyTorch and leaves the recording of the examples."""
    def write(name, need, *options, code=0):
        folder = reports / f"{name}.run"
        folder.mkdir()
        (folder / "cards.json").write_text(run("gpu", "--json", "list").stdout)
        recording = root / "examples/finetune_11gib_oom.pickle.gz"
        (folder / "snapshot").write_bytes(recording.read_bytes())
        program = [sys.executable, "-I", root / "tests/cli/fake_training.py", folder, need]
        run("dryrun", *options, "--html", reports / name, "--", *program, code=code)
        return reports / name

    return write


def test_dryrun_says_that_it_fits_and_what_is_taken_for_granted(page, dryrun_page):
    page.open(dryrun_page("fits.html", "7000", "--gpu", "rtx4070"))
    assert page.text(".verdict").startswith("It fits on NVIDIA GeForce RTX 4070")
    cards = {card.text.partition("\n")[0]: card.text for card in page.all("section.card")}
    run_card = cards["This run"].replace("\xa0", " ")
    assert "6.84 GiB" in run_card  # 7,000 MiB
    assert "4.30 GiB" in run_card  # headroom: 11,874 MiB less these and a context of 472
    assert "rtx2080ti" in run_card  # the smallest with room for both
    granted = cards["Taken for granted"].replace("\xa0", " ")
    assert "472.0 MiB" in granted and "assumption: as with CUDA 12" in granted
    assert "--events sync" in granted
    assert "train.py:9" in cards["Not known"] and "3 times" in cards["Not known"]
    assert page.text(".tiles").startswith("Peak allocated")
    assert "finetune.py" in page.text(".groups")  # lines at the peak
    page.check_console()


def test_dryrun_opens_at_the_out_of_memory(page, dryrun_page):
    page.open(dryrun_page("oom-run.html", "20000", "--limit", "11GiB", code=1))
    assert page.text(".verdict").startswith("Out of memory on NVIDIA A100")
    said = "\ntrain.py:7 (step) asked for 5.0 MiB after 2 optimizer steps."
    assert said in page.text(".verdict")
    assert "All runs" in [card.text.partition("\n")[0] for card in page.all("section.card")]
    page.check_console()


@pytest.mark.parametrize("width", [1440, 390])
def test_dryrun_without_a_recording_is_a_page_too(page, run, reports, plain_standin, width):
    path = reports / "nothing.html"
    run("dryrun", "--html", path, "--", "true", code=1)
    page.open(path, width=width)
    assert "Tracking incomplete" in page.text(".verdict")
    assert "used neither CUDA nor Python" in page.text(".verdict")
    assert page.all("canvas") == []
    page.key("/", selector="body")
    page.check_console()


def test_compaction_is_drawn(page, data, make):
    """Lines over the events, and pictures in which something is used and something is free."""
    page.open(make("compact", data(OOM), name="compact.html", options=("--simulate",)))
    assert "Compaction changes the peak by -" in page.text(".verdict")
    pictures = page.all(".pictures .surface")
    assert len(pictures) == 2
    for picture in pictures:
        colors = page.driver.execute_script(
            """const canvas = arguments[0].querySelector("canvas"), found = new Set();
               const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
               for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found.add(data.slice(i, i + 3).join());
               return [...found];""", picture)
        assert len(colors) >= 3  # used, free, notches
    before, after = (picture.size["height"] for picture in pictures)
    assert after < before
    for name in ("reserved with compaction", "largest free with"):
        page.click(name)
    page.check_console()
