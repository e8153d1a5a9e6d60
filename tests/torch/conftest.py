# SPDX-License-Identifier: MIT
"""What the tests of the dry run share.

ALLOT_TORCH_PYTHON names the Python interpreters to test with, separated by colons; each has a CUDA
build of torch, without the NVIDIA packages. Without it, or without torch, the tests are skipped.
"""

import json
import os
import pathlib
import subprocess
import textwrap

import pytest

PYTHONS = [p for p in os.environ.get("ALLOT_TORCH_PYTHON", "").split(":") if p]
STANDIN = pathlib.Path(os.environ.get("ALLOT_BUILD", "build/dev")) / "standin"

# The device that the oracle was made on.
ORACLE_GPU = {"schema": "allot-gpu/1", "id": "oracle", "name": "Oracle", "like": "a100-80",
              "sm_count": 96}  # fmt: skip


def version_of_torch(python):
    code = "import importlib.metadata as m; print(m.version('torch'))"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return result.stdout.strip()


@pytest.fixture(scope="session", params=PYTHONS or [None])
def python(request):
    if request.param is None:
        pytest.skip("no Python with torch: ALLOT_TORCH_PYTHON is not set")
    if not version_of_torch(request.param):
        pytest.skip(f"{request.param} has no torch")
    return request.param


@pytest.fixture(scope="session")
def torch_version(python):
    return version_of_torch(python)


@pytest.fixture(scope="session")
def python_of_the_oracle():
    for python in PYTHONS:
        if version_of_torch(python).startswith("2.15.0"):
            return python
    pytest.skip("no Python with torch 2.15.0 in ALLOT_TORCH_PYTHON")


@pytest.fixture
def dryrun(run, tmp_path):
    """dryrun(python, script, options..., code=exit code) runs a script; returns its JSON.

    `launcher`: what stands between Python and the script.
    """

    def call(python, script, *options, code=0, arguments=(), launcher=()):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(script))
        result = run("dryrun", "--json", *options, "--", python, *launcher, path, *arguments,
                     code=code, timeout=600)  # fmt: skip
        return json.loads(result.stdout[result.stdout.index("{\n") :]), result

    return call


@pytest.fixture
def on_the_oracle(python_of_the_oracle, tmp_path):
    """on_the_oracle(limit MiB, setting, script, arguments...) returns the standard output."""
    profile = tmp_path / "oracle.json"
    profile.write_text(json.dumps(ORACLE_GPU))

    def call(limit, setting, *command):
        libraries = [STANDIN.resolve() / name for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
        variables = dict(
            os.environ, LD_PRELOAD=":".join(map(str, libraries)),
            LD_LIBRARY_PATH=str(STANDIN.resolve()), PYTORCH_CUDA_ALLOC_CONF=setting,
            ALLOT_STANDIN=f"profile:{profile},limit:{limit}MiB,addresses:upward",
        )  # fmt: skip
        result = subprocess.run(
            [python_of_the_oracle, *map(str, command)], env=variables, capture_output=True,
            text=True, timeout=600, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    return call
