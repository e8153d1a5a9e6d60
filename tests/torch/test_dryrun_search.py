# SPDX-License-Identifier: MIT
"""Searches over dry runs of real PyTorch programs; tests/cli has those of the search itself."""

MIB = 1 << 20

# In a classic segment of 100 MiB a block of 60 leaves a rest that no block of 100 fits into: 1200 MiB
# are needed, of which 880 are live. At the end everything cached is given back before 1000 MiB fit.
FRAGMENTED = """
    import torch
    def blocks(count, size):
        return [torch.empty(size << 20, dtype=torch.uint8, device="cuda") for _ in range(count)]
    large = blocks(8, 100)
    del large
    small = blocks(8, 60)
    large = blocks(4, 100)
    del small, large
    huge = blocks(2, 500)
"""

TRAIN = """
    import sys, torch
    batch = int(sys.argv[1].removeprefix("batch="))
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(2)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(2):
        model(torch.randn(batch, 1024, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_the_largest_batch_is_found(dryrun, python):
    result, _ = dryrun(python, TRAIN, "--limit", "1GiB", "--sweep", "batch=1000,20000,60000",
                       arguments=["batch={batch}"])  # fmt: skip
    assert result["sweep"] == {
        "name": "batch", "largest": 20000, "largest_calm": 20000, "beyond": 60000
    }  # fmt: skip
    fitting = [run for run in result["runs"] if run["verdict"] == "fits"]
    peaks = [run["allocated_peak"] for run in sorted(fitting, key=lambda run: run["value"])]
    assert peaks == sorted(set(peaks)) and peaks[-1] == result["allocated_peak"]


def test_the_least_memory_is_what_the_replay_says(dryrun, python):
    result, _ = dryrun(python, FRAGMENTED, "--fit")
    fit = result["fits"][0]
    assert fit["limit_min"] == fit["limit_replay"] == 1200 * MIB
    assert fit["limit_calm"] == 2200 * MIB
    assert result["retries"] > 0 and result["reserved_peak"] == 1200 * MIB
    below = result["runs"][fit["run_below"]]
    assert below["memory"] == 1198 * MIB and below["verdict"] == "out_of_memory"
    assert fit["card"] is not None and len(result["runs"]) == 4


def test_settings_that_save_the_run_are_confirmed(dryrun, python):
    """The recording ends at the out-of-memory; the run under the settings goes on to the end."""
    result, _ = dryrun(python, FRAGMENTED, "--limit", "1GiB", code=1)
    assert result["verdict"] == "out_of_memory"
    advice = result["advice"]
    assert advice["ends_at_oom"] and "expandable_segments:True" in advice["confirmed"]
    run = result["runs"][1]
    assert run["conf"] == run["conf_found"] == advice["confirmed"]
    assert run["reserved_peak"] >= 1000 * MIB > advice["trials"][0]["replay_reserved_peak"]
