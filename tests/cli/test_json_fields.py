# SPDX-License-Identifier: MIT
"""docs/json.md and the documents that the verbs write name the same fields.

A table's first column lists paths: `rows[].setting`, `.change` are two fields of the elements of
`rows`; a path that begins with a dot shares the part before the last dot of the path before it. The
second column may name the fields of the value that the row is about, says "as `lines[]`" for a value
like another one, and refers to parts that several documents share as *state*, *measure* and *device*.
"""

import itertools
import json
import re
import sys

import pytest
from conftest import HAS_STANDIN, ROOT, run_command
from test_analysis import make_snapshot

EXAMPLE = ROOT / "examples/finetune_11gib_oom.pickle.gz"
FAKE_TRAINING = ROOT / "tests/cli/fake_training.py"
MIB = 1 << 20
TEXT = (ROOT / "docs/json.md").read_text()
MEASURES = ("allocated", "active", "requested", "reserved")

# Objects whose keys are the file's, not the schema's.
FREE_KEYS = {
    ("allot.inspect/1", "settings"), ("allot.gpu/1", "gpus.sources"), ("allot.dryrun/1", "booleans"),
    ("allot.dryrun/1", "sizes"), ("allot.dryrun/1", "values"),
    ("allot.dryrun/1", "assumptions"),
    ("allot.dryrun/1", "unknown"), ("allot.dryrun/1", "missing"), ("allot.dryrun/1", "problems"),
    ("allot.dryrun/1", "own_runtimes"),
}  # fmt: skip


def names_in(text):
    """Names of fields between backticks."""
    return re.findall(r"`([a-z_]\w*)(?:\[\])?`", text)


def section_of(title):
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def rows_of(section):
    """(paths, description) of each row of a section's table."""
    for line in section.splitlines():
        match = re.match(r"\| (`.*?) \| (.*) \|$", line)
        if not match:
            continue
        paths = []
        for path in re.findall(r"`([^`]+)`", match[1]):
            if path.startswith("."):
                path = paths[-1].rpartition(".")[0] + path
            paths.append(path)
        yield paths, match[2]


def shared_parts():
    section = section_of("Parts that several documents share")
    state = {path for paths, _ in rows_of(section) for path in paths}
    lines = {line[1:line.index("*", 1)]: line for line in section.splitlines() if line[:1] == "*"}
    return {"state": state, "measure": set(names_in(lines["measure"])),
            "device": {"memory", "index"}}


SHARED = shared_parts()


def documented(schema):
    """Two sets of paths without []: those of the first column, and all that the section explains."""
    first, every, alike = set(), set(), []
    for paths, description in rows_of(section_of(schema)):
        for path in paths:
            path = path.replace("[]", "")
            first.add(path)
            every |= {path[:end] for end in range(len(path) + 1) if path[end:end + 1] in ("", ".")}
            alike += [(path, other.replace("[]", ""))
                      for other in re.findall(r"\bas `([^`]+)`", description)]
            inner = set(names_in(description))
            for part in re.findall(r"\*(\w+)\*", description):
                inner |= SHARED[part]
            if "four" in description:
                inner |= set(MEASURES)
            every |= {f"{path}.{name}" for name in inner}
            every |= {f"{path}.{a}.{b}" for a in inner for b in inner}
    for path, other in alike:
        every |= {path + known.removeprefix(other) for known in every
                  if known.startswith(f"{other}.")}
    return first, every


def written(schema, value, path=""):
    """Every path of a document, without []."""
    if isinstance(value, list):
        return {found for item in value for found in written(schema, item, path)}
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        found.add(here)
        if (schema, here) not in FREE_KEYS:
            found |= written(schema, item, here)
    return found


def runs(tmp_path):
    """Arguments of runs that together write every field of every schema."""
    a = make_snapshot(tmp_path / "a.pickle", kept=MIB)
    b = make_snapshot(tmp_path / "b.pickle", kept=3 * MIB)
    settings = ["--check", "--model", "torch:roundup_power2_divisions:4"]
    yield ["advise", EXAMPLE]
    yield ["inspect", a]
    for by in ("line", "stack", "category", "stream", "pool"):
        yield ["explain", EXAMPLE, "--by", by]
    yield ["leaks", a]
    yield ["diff", a, b]
    yield ["diff", a, EXAMPLE]
    yield ["ranks", a, b]
    yield ["replay", EXAMPLE, *settings]
    yield ["compact", EXAMPLE]
    yield ["compact", "--simulate", "--limit", "10GiB", EXAMPLE]
    yield ["bench", "--quick", "--device", "simulated"]
    yield ["doctor"]
    yield ["gpu", "list"]
    yield ["replay", EXAMPLE, "--limit", "11GiB", "--samples", "4"]


def dry_runs(folder):
    """The same of dry runs, with a program that stands in for PyTorch."""
    folder.mkdir()
    (folder / "cards.json").write_text(run_command("gpu", "--json", "list").stdout)
    (folder / "snapshot").write_bytes(EXAMPLE.read_bytes())
    program = ["--", sys.executable, "-I", FAKE_TRAINING, folder]
    yield ["dryrun", "--limit", "11GiB", *program, "11000 if conf else 20000"]
    yield ["dryrun", "--fit", *program, "100"]
    yield ["dryrun", "--sweep", "v=1..9", "--limit", "70MiB", *program, "10*value", "{v}"]


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Paths of all documents by schema."""
    found = {}
    folder = tmp_path_factory.mktemp("json")
    dry = [] if not HAS_STANDIN else dry_runs(folder / "dry")
    for verb, *arguments in itertools.chain(runs(folder), dry):
        text = run_command(verb, "--json", *arguments, code=(0, 1)).stdout
        document = json.loads(text[text.index("{"):])
        schema = document.pop("schema")
        found.setdefault(schema, set()).update(written(schema, document))
    return found


SCHEMAS = re.findall(r"^## (allot\.\w+/\d+)$", TEXT, re.MULTILINE)
if not HAS_STANDIN:
    SCHEMAS.remove("allot.dryrun/1")


def test_the_runs_cover_every_schema(documents):
    assert sorted(documents) == sorted(SCHEMAS)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_field_written_is_documented(documents, schema):
    _, every = documented(schema)
    assert sorted(documents[schema] - every) == []


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_field_documented_is_written(documents, schema):
    first, _ = documented(schema)
    assert sorted(first - documents[schema]) == []
