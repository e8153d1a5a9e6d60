# SPDX-License-Identifier: MIT
"""What a dry run says where something is missing: programs of a few lines, and no PyTorch.

A torch that is a few lines of Python stands for builds that do not use CUDA.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import HAS_STANDIN, command_path

pytestmark = pytest.mark.skipif(
    not HAS_STANDIN, reason="no stand-in, or an instrumented one, which other programs cannot load"
)

STANDIN = command_path().resolve().parent / "standin"
NO_TORCH = """
import os
__version__ = os.environ["TORCH_VERSION"]
class version:
    cuda = None
    hip = os.environ.get("TORCH_HIP")
class cuda:
    is_initialized = staticmethod(lambda: False)
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def program(tmp_path):
    """program(C text, options...) builds a program and returns its path."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")

    def build(text, *options, name="program"):
        source, path = tmp_path / f"{name}.c", tmp_path / name
        source.write_text(text)
        subprocess.run([compiler, "-w", source, "-o", path, *options], check=True)
        return path

    return build


def hints(run, *command, code, env=None, options=()):
    result = run("dryrun", "--json", *options, "--", *command, code=code, env=env)
    document = json.loads(result.stdout)
    return document["verdict"], " | ".join(document["hints"])


@pytest.mark.parametrize(
    ("version", "hip", "said"),
    [
        ("2.6.0+cpu", None, ["built for the CPU", "-m pip install --no-deps torch"]),
        ("2.9.1+rocm6.4", "6.4", ["built for ROCm 6.4", "stands in for CUDA alone"]),
        ("2.5.1+cpu", None, ["torch 2.5.1+cpu was not tested", "2.6 to 2.15"]),
        ("2.16.0+cpu", None, ["torch 2.16.0+cpu was not tested"]),
    ],
)
def test_a_torch_that_does_not_use_cuda(run, script, tmp_path, version, hip, said):
    (tmp_path / "torch").mkdir()
    script(NO_TORCH, "torch/__init__.py")
    env = {"TORCH_VERSION": version, "PYTHONPATH": str(tmp_path)} | ({"TORCH_HIP": hip} if hip else {})
    verdict, text = hints(run, sys.executable, script("import torch"), code=1, env=env)
    assert verdict == "incomplete"
    for words in [*said, sys.executable]:
        assert words in text
    verdict, text = hints(
        run, sys.executable, script("import torch\nraise AssertionError('no CUDA')"), code=4, env=env
    )
    assert verdict == "failed" and said[0] in text


def test_no_torch(run, script):
    path = script("import sys\nsys.modules['torch'] = None\n"
                  "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    verdict, text = hints(run, sys.executable, path, code=4)
    assert verdict == "failed"
    assert f"torch is not installed for {sys.executable}" in text
    assert f"{sys.executable} -m pip install --no-deps torch" in text
    assert hints(run, sys.executable, "-c", "pass", code=1)[1] == "the program never imported torch"


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-sE"], ["-X", "dev", "-S"]])
def test_a_python_that_cannot_be_recorded(run, options):
    verdict, text = hints(run, sys.executable, *options, "-c", "pass", code=1)
    assert verdict == "incomplete"
    assert f"Python was started with {options[-1]}" in text


def test_a_wrapper_that_loses_the_recording(run, script):
    program = script("""
import ctypes
ctypes.CDLL('libcuda.so.1').cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)
""")
    path = script(f"PYTHONPATH=src {sys.executable} {program}\n", "run.sh")
    verdict, text = hints(run, "bash", path, code=1)
    assert verdict == "incomplete"
    assert "started with -I, -E or -S, or a script set PYTHONPATH" in text


def test_a_command_that_cannot_be_started(run, script):
    assert "allot dryrun -- python train.py" in run("dryrun", "--", "train.py", code=2).stderr
    path = script("pass")
    assert "Permission denied" in run("dryrun", "--", path, code=2).stderr
    result = run("dryrun", "--", "sh", "-c", "no-such-command", code=4)
    assert "exit code 127" in result.stdout and "no-such-command" in result.stderr


def test_json_stands_alone_on_standard_output(run):
    result = run("dryrun", "--json", "--", "sh", "-c", "echo words; exit 3", code=4)
    assert json.loads(result.stdout)["exit_code"] == 3
    assert result.stderr == "words\n"


def test_a_failure_that_the_command_hides(run, script):
    path = script("raise ValueError('no such data')")
    verdict, _ = hints(run, "sh", "-c", f"{sys.executable} {path} || true", code=4)
    assert verdict == "failed"


def test_a_killed_program_hints_at_the_hosts_memory(run):
    verdict, text = hints(run, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)", code=4)
    assert verdict == "failed" and "host ran out of memory" in text


ALLOCATE = """
    #include <stdlib.h>
    int cudaMalloc(void **out, size_t size);
    int main(void) {
        void *block = 0;
        return cudaMalloc(&block, (size_t)3 << 30) + cudaMalloc(&block, (size_t)3 << 30);
    }
"""


def test_a_program_in_c_is_judged_by_what_it_took(run, program):
    path = program(ALLOCATE, f"-L{STANDIN}", "-l:libcudart.so.13", "-l:libcuda.so.1")
    result = json.loads(run("dryrun", "--json", "--", path).stdout)
    assert result["verdict"] == "fits"
    assert result["reserved_peak"] == 6 << 30 and result["hints"] == []
    result = json.loads(run("dryrun", "--json", "--limit", "4GiB", "--", path, code=1).stdout)
    assert result["verdict"] == "out_of_memory"
    text = run("dryrun", "--limit", "4GiB", "--", path, code=1).stdout
    assert "the driver refused 3.00 GiB" in text


def test_a_program_that_brings_its_own_runtime(run, program):
    """Such a runtime asks the driver for undocumented tables before anything else."""
    text = """
        #include <dlfcn.h>
        int main(void) {
            typedef int (*export_table)(const void **, const void *);
            void *driver = dlopen("libcuda.so.1", RTLD_NOW);
            export_table ask = (export_table)dlsym(driver, "cuGetExportTable");
            const void *table = 0;
            return ask(&table, "0123456789abcdef") == 0;
        }
    """
    path = program(text, "-ldl")
    verdict, text = hints(run, path, code=1)
    assert verdict == "incomplete"
    assert f"{path} has a CUDA runtime built in" in text and "-cudart shared" in text


def test_a_function_that_does_not_exist_is_named(run, program):
    text = """
        #include <stdlib.h>
        int cudaMalloc(void **out, size_t size);
        int cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags);
        int main(void) {
            void *block = 0, *entry = 0;
            int found = cuGetProcAddress("cuMakeCoffee", &entry, 13000, 0) == 0;
            return cudaMalloc(&block, 1 << 20) + found;
        }
    """
    path = program(text, f"-L{STANDIN}", "-l:libcudart.so.13", "-l:libcuda.so.1")
    result = run("dryrun", "--", path, code=1)
    assert "TRACKING INCOMPLETE" in result.stdout
    assert "functions that do not exist here: cuMakeCoffee" in result.stdout


def test_a_function_that_a_program_is_linked_with_and_that_does_not_exist(run, program):
    old = program("int cudaMakeCoffee(void) { return 0; }", "-shared", "-fPIC", name="libold.so")
    path = program("int cudaMakeCoffee(void); int main(void) { return cudaMakeCoffee(); }",
                   old, f"-Wl,-rpath,{old.parent}")  # fmt: skip
    program("", "-shared", "-fPIC", name="libold.so")
    result = run("dryrun", "--", path, code=4)
    assert "cudaMakeCoffee" in result.stderr and "exit code 127" in result.stdout


def test_nothing_of_the_environment_is_changed(run, tmp_path):
    before = dict(os.environ)
    work = tmp_path / "work"
    work.mkdir()
    env = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")}
    for folder in env.values():
        pathlib.Path(folder).mkdir()
    run("dryrun", "--", sys.executable, "-c", "import json", code=1, env=env, cwd=work)
    for folder in (work, *map(pathlib.Path, env.values())):
        assert list(folder.rglob("*")) == []
    assert dict(os.environ) == before
