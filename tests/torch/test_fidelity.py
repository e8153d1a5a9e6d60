# SPDX-License-Identifier: MIT
"""A program of bench/fidelity under the torch at hand: what of the card it depends on."""

import os
import pathlib
import sys

FIDELITY = pathlib.Path(__file__).resolve().parents[2] / "bench" / "fidelity"
sys.path.insert(0, str(FIDELITY))
import compare  # noqa: E402

WORKSPACE, WORKSPACE_HOPPER = 8_519_680, 33_554_432  # bytes, of cuBLAS


def test_attention_differs_between_cards_by_the_workspace_alone(run, python, tmp_path):
    traces = {}
    for gpu in ("a100-80", "h100"):
        path = tmp_path / f"{gpu}.pickle"
        run("dryrun", "--gpu", gpu, "--record", path, "--", python, FIDELITY / "a9.py", timeout=600)
        traces[gpu] = compare.read(os.environ["ALLOT"], path)
    ampere, hopper = traces["a100-80"], traces["h100"]
    assert ampere.peaks["allocated"] > 6 * (512 << 20)

    def without_workspace(trace, size):
        return [event.what() for event in trace.events
                if event.size != size and not event.kind.startswith("segment")]  # fmt: skip

    assert WORKSPACE in {event.size for event in ampere.events}
    assert WORKSPACE_HOPPER in {event.size for event in hopper.events}
    assert without_workspace(ampere, WORKSPACE) == without_workspace(hopper, WORKSPACE_HOPPER)
