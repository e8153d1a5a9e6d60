# SPDX-License-Identifier: MIT
"""What a program decides by values that the device computes: answered by rule, and said so."""


def lines(places):
    return sorted(int(place.rsplit(":", 1)[1]) for place in places)


def test_booleans_are_answered_as_is_likely(dryrun, python):
    script = """
        import torch
        x = torch.randn(100, 100, device="cuda")
        assert (x == x).all() and torch.equal(x, x) and torch.allclose(x, x)
        assert not x.isnan().any()
        values, _ = torch.linalg.eig(x.cuda())
        print(x.sum().item())
    """
    result, _ = dryrun(python, script, code=None)
    assert result["exception"] == "" and result["approximate"]
    assert lines(result["booleans"]) == [4, 5, 6]
    assert lines(result["values"]) == [7]


def test_rules_answer_booleans_of_all_lines_and_of_one(dryrun, python):
    script = """
        import torch
        x = torch.zeros(8, device="cuda")
        print("first", bool(x.isnan().any()))
        print("second", bool((x == x).all()))
    """
    for options, expected in (
        (("--booleans", "true"), ("True", "True")),
        (("--booleans", "false", "--booleans", "script.py:4=true"), ("True", "False")),
        (("--booleans", "pt.py:4=true"), ("False", "True")),
    ):
        result, raw = dryrun(python, script, *options)
        unused = [hint for hint in result["hints"] if "no boolean was read at that line" in hint]
        assert len(unused) == ("pt.py:4=true" in options), options
        assert f"first {expected[0]}\nsecond {expected[1]}\n" in raw.stderr, options


def test_a_wrong_rule_is_refused(run, python):
    result = run("dryrun", "--set", "booleans:maybe", "--", python, "-c",
                 "import torch; torch.ones(1).cuda()", code=None)  # fmt: skip
    assert result.returncode != 0
    assert "booleans:maybe: expected false, true, likely, flip:N" in result.stderr


def test_sizes_that_depend_on_values_are_named(dryrun, python):
    script = """
        import torch
        x = torch.randn(1000, device="cuda")
        assert x.nonzero().shape == (0, 1)
        assert x[x > 0].numel() == 0
        assert x.unique().numel() == 1
        torch.nn.functional.one_hot(torch.zeros(9, dtype=torch.long, device="cuda"))
    """
    result, _ = dryrun(python, script)
    assert result["verdict"] == "fits" and result["approximate"]
    assert lines(result["sizes"]) == [4, 5, 6, 7]


def test_a_run_that_only_prints_values_is_exact(dryrun, python):
    script = """
        import torch
        x = torch.randn(10, device="cuda")
        print(x.sum().item(), x, x.mean(), x.long(), f"{x.mean()}")
    """
    result, _ = dryrun(python, script)
    assert result["verdict"] == "fits" and not result["approximate"]


def test_a_loop_on_a_number_is_ended_too(dryrun, python):
    script = """
        import torch
        count = torch.zeros((), device="cuda")
        while count.item() < 10:
            count += 1
    """
    result, raw = dryrun(python, script, "--set", "guard:100", code=1)
    assert result["verdict"] == "incomplete"
    assert "script.py:4" in raw.stderr


def test_a_loop_that_works_between_its_reads_goes_on(dryrun, python):
    script = """
        import torch
        x = torch.zeros(8, device="cuda")
        for _ in range(300):
            for _ in range(70):
                x += 1
            if x.isnan().any():
                break
    """
    result, _ = dryrun(python, script, "--set", "guard:100")
    assert result["verdict"] == "fits"


def test_peaks_that_the_program_resets_are_kept(dryrun, python):
    script = """
        import torch
        block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        del block
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == 0
        torch.ones(10, device="cuda")
    """
    result, _ = dryrun(python, script)
    assert result["allocated_peak"] == 1 << 30
    assert result["reserved_peak"] == 1 << 30


def test_torch_may_be_looked_for_before_it_is_imported(dryrun, python):
    script = """
        import importlib.util
        assert importlib.util.find_spec("torch")
        import torch
        torch.ones(10, device="cuda")
    """
    result, _ = dryrun(python, script)
    assert result["verdict"] == "fits"


INTEGERS = """
    import torch
    sent = torch.tensor([3, 5]).cuda()
    assert sent.tolist() == [3, 5] and sent[1].item() == 5
    same = sent.clone()
    assert torch.zeros(2, dtype=torch.long, device="cuda").sum().item() == 0
    int(torch.ones(2, dtype=torch.int32, device="cuda").sum())
    same.tolist()
    loss = torch.randn(4, device="cuda").mean()
    print(loss, sent, f"{loss} {loss.item():.3f}")
    assert torch.isfinite(loss) and torch.isfinite(loss).all()
    assert not torch.isnan(loss) and not torch.isnan(loss).any()
"""


def test_integers_make_the_result_approximate_and_a_loss_is_finite(dryrun, python):
    for options in ((), ("--set", "bytes:real")):
        result, raw = dryrun(python, INTEGERS, *options)
        assert result["verdict"] == "fits" and result["approximate"], raw.stderr
        assert lines(result["sizes"]) == [6, 7, 8]
        assert lines(result["booleans"]) == [11, 12] and lines(result["values"]) == [10]


def test_strict_refuses_integers_that_are_not_known(dryrun, python):
    result, raw = dryrun(python, INTEGERS, "--strict", code=None)
    assert result["verdict"] == "failed"
    assert "strict: an integer that is not known was read at" in raw.stderr
    assert "script.py:6\n" in raw.stderr


def test_a_failure_that_an_answer_may_have_caused_names_it(dryrun, python):
    script = """
        import sys
        import torch
        x = torch.randn(4, device="cuda").sum()
        if "exit" in sys.argv and not x > 1:
            sys.exit(1)
        y = x.item()
        assert y > 0.5
    """
    for argument, expected in (
        ("exit", "script.py:5 read a boolean that a dry run does not compute, the last before"),
        ("number", "script.py:7 read a number that a dry run does not compute: 0"),
    ):
        result, _ = dryrun(python, script, arguments=(argument,), code=None)
        assert result["verdict"] == "failed"
        assert any(expected in hint for hint in result["hints"]), (argument, result["hints"])
