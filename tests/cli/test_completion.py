# SPDX-License-Identifier: MIT
"""Completion scripts: accepted by their shells, and completing what --help lists."""

import re
import shutil
import subprocess

import pytest

from conftest import ROOT, list_options, list_verbs


def long_options(verb):
    return {option for option in list_options(verb) if option.startswith("--")}


@pytest.fixture
def script(run, tmp_path):
    def write(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell}")
        path = tmp_path / f"completion.{shell}"
        path.write_text(run("completion", shell).stdout)
        return path

    return write


def shell_out(*args):
    result = subprocess.run(args, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.split("\n")[:-1]


def bash_words(line):
    """The words of a line as bash hands them over: '=' and ':' are words of their own."""
    words = re.findall(r"[=:]+|[^\s=:]+", line)
    return words + ([""] if line[-1] in " " else [])


def bash_complete(path, line):
    """What the last word of a line may become."""
    words = bash_words(line)
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f". {path}; COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDS=({quoted}); "
        f'COMP_CWORD={len(words) - 1}; _allot; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    kept = re.sub(r"[^\s=:]*$", "", line).split(" ")[-1]  # bash replaces what follows it
    return [kept + word for word in shell_out("bash", "--norc", "-c", program) if word]


def fish_complete(path, line):
    program = f"source {path}; complete -C '{line}'"
    return [text.split("\t")[0] for text in shell_out("fish", "--no-config", "-c", program)]


def test_bash_completes_verbs(script):
    path = script("bash")
    assert set(list_verbs()) <= set(bash_complete(path, "allot "))
    assert bash_complete(path, "allot comple") == ["completion"]
    assert bash_complete(path, "allot help ") == list_verbs()
    assert bash_complete(path, "allot completion ") == ["bash", "zsh", "fish"]


def test_bash_completes_every_option_of_every_verb(script):
    path = script("bash")
    for verb in list_verbs():
        assert set(bash_complete(path, f"allot {verb} --")) == long_options(verb), verb
        assert bash_complete(path, f"allot {verb} some") == []


# What is typed, what it may become.
VALUES = [
    ("explain f --at ", "peak peak:allocated peak:active peak:requested peak:reserved oom oom: start "
     "end event: us: +"),
    ("explain f -a oo", "oom oom:"),
    ("explain f --at peak:re", "peak:requested peak:reserved"),
    ("explain f --at=peak:res", "--at=peak:reserved"),
    ("explain f --by ", "line stack category stream pool"),
    ("explain f --by=", "--by=line --by=stack --by=category --by=stream --by=pool"),
    ("explain f --by=st", "--by=stack --by=stream"),
    ("replay f --model ", "torch torch: async bfc rmm:pool rmm:arena rmm:binning space:first-fit "
     "space:best-fit space:buddy space:tlsf space:tiered space:adaptive heap:first-fit heap:best-fit "
     "heap:buddy heap:tlsf heap:tiered heap:adaptive"),
    ("replay f -m space:t", "space:tlsf space:tiered"),
    ("replay f -m rmm:", "rmm:pool rmm:arena rmm:binning"),
    ("replay f --model=rmm:b", "--model=rmm:binning"),
    ("export f --to c", "chrome csv"),
    ("compact f --when ", "auto steps full forced"),
    ("compact f --strategy t", "tlsf tiered"),
    ("compact f -m ", "segments virtual"),
    ("dryrun --gpu rtx4", "rtx4070 rtx4080 rtx4060ti-16 rtx4090"),
    ("dryrun --events ", "instant sync lag"),
    ("gpu ", "list show import probe"),
]


@pytest.mark.parametrize("typed, expected", VALUES)
def test_bash_completes_values(script, typed, expected):
    assert bash_complete(script("bash"), f"allot {typed}") == expected.split()


def test_bash_takes_all_of_the_word_where_colons_do_not_end_it(script):
    path = script("bash")
    program = (
        f". {path}; COMP_LINE='allot explain f --at=peak:res'; COMP_POINT=29; COMP_CWORD=3; "
        "COMP_WORDS=(allot explain f --at=peak:res); _allot; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    assert shell_out("bash", "--norc", "-c", program) == ["--at=peak:reserved"]


@pytest.mark.parametrize("typed", ["explain ", "explain --html ", "export f -o "])
def test_bash_leaves_files_to_the_shell(script, typed):
    path = script("bash")
    assert bash_complete(path, f"allot {typed}") == []
    assert "complete -o default -F _allot allot" in path.read_text()


@pytest.mark.parametrize("typed, expected", VALUES)
def test_fish_completes_values(script, typed, expected):
    last = typed.split(" ")[-1]
    found = fish_complete(script("fish"), f"allot {typed}")
    assert {word for word in found if word.startswith(last)} == set(expected.split())


def test_words_offered_are_accepted(run, script):
    path = script("bash")
    trace = ROOT / "examples/finetune_11gib_oom.pickle.gz"
    for options in ("explain --at", "explain --by", "export --to"):
        words = bash_complete(path, f"allot {options} ")
        assert len(words) > 2
        for word in words:
            if word[-1] not in ":+":
                run(*options.split(), word, trace, "-o", "/dev/null", code=(0, 1))
    for model in bash_complete(path, "allot replay --model "):
        run("replay", trace, "--model", model, "--limit", "24GiB")


def test_fish_completes_verbs(script):
    found = fish_complete(script("fish"), "allot ")
    assert set(list_verbs()) <= set(found)


def test_fish_completes_every_option_of_every_verb(script):
    path = script("fish")
    for verb in list_verbs():
        found = {word.rstrip("=") for word in fish_complete(path, f"allot {verb} --")}
        assert found == long_options(verb), verb


def test_zsh_accepts_the_script(script):
    path = script("zsh")
    shell_out("zsh", "-f", "-n", str(path))
    text = path.read_text()
    for verb in list_verbs():
        part = text.split(f"    {verb})\n")[1].split(";;")[0]
        assert set(re.findall(r"[{,'](--[a-z][\w-]*)=?[}\[]", part)) == long_options(verb), verb


def test_zsh_loads_the_script_as_a_completion(script):
    path = script("zsh")
    program = (
        f"autoload -Uz compinit && compinit -u -D && . {path} && print -r -- $_comps[allot]"
    )
    assert shell_out("zsh", "-f", "-c", program) == ["_allot"]


def test_zsh_offers_values(script):
    text = script("zsh").read_text()
    assert ":GROUP: _allot_words line stack category stream pool'" in text
    assert "rmm\\:pool" in text


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["bash", "zsh"]])
def test_wrong_shells_are_usage_errors(run, arguments):
    result = run("completion", *arguments, code=2)
    assert result.stdout == ""
    assert "bash, zsh or fish" in result.stderr
