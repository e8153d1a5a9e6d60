# SPDX-License-Identifier: MIT
"""What takes part: our strategies, and allocators of others behind adapters (peer.h).

Adapters that need a peer's headers are built when the comparison runs, with the headers and
libraries that its package brought.
"""

import dataclasses
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
OURS = ["first-fit", "best-fit", "buddy", "tlsf", "tiered", "adaptive"]


class Absent(Exception):
    """An allocator cannot take part; the text says why."""


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    package: str  # that it comes in; of ours, allot
    adapter: str  # "allot", "malloc", the name of a Build, or a file
    config: str = ""


@dataclasses.dataclass(frozen=True)
class Build:
    """An adapter with what it needs. Places begin with the folder of an Environment."""

    source: str
    includes: list
    libraries: list
    preload: str = ""
    settings: dict = dataclasses.field(default_factory=dict)


CONTESTANTS = [
    *(Contestant(f"allot-{name}", "allot", "allot", name) for name in OURS),
    Contestant("umf-disjoint", "umf", "umf", "disjoint"),
    Contestant("umf-disjoint-64m", "umf", "umf", "disjoint-64m"),
    Contestant("pytorch", "torch", "torch"),
    Contestant("tensorflow-bfc", "tensorflow-cpu", "bfc"),
    Contestant("rmm-pool", "librmm-cu13", "rmm", "pool"),
    Contestant("rmm-binning", "librmm-cu13", "rmm", "binning"),
    Contestant("tcmalloc", "libtcmalloc-minimal4", "malloc", "libtcmalloc_minimal.so.4"),
    Contestant("jemalloc", "libjemalloc2", "malloc", "libjemalloc.so.2"),
    Contestant("glibc", "libc6", "malloc"),
]

BUILDS = {
    "umf": Build("umf.c", ["env/include"], ["env/lib/libumf.so.1", "env/lib/libhwloc.so.15"]),
    "torch": Build(
        "torch.cpp",
        ["torch/include", "site/nvidia/cu13/include"],
        ["torch/lib/libc10_cuda.so", "torch/lib/libc10.so", "standin/libcudart.so.13"],
        # Before a real one that torch's own search path may lead to.
        preload="standin/libcudart.so.13",
    ),
    "bfc": Build(
        "bfc.cpp",
        ["site/tensorflow/include"],
        ["site/tensorflow/libtensorflow_framework.so.2"],
        settings={"TF_CPP_MIN_LOG_LEVEL": "3"},
    ),
    "rmm": Build(
        "rmm.cpp",
        ["site/librmm/include", "site/librmm/include/rapids", "site/rapids_logger/include",
         "site/nvidia/cu13/include"],
        ["site/librmm/lib64/librmm.so", "site/rapids_logger/lib64/librapids_logger.so",
         "site/nvidia/cu13/lib/libcudart.so.13"],
    ),
}  # fmt: skip


def command_of(contestant, environment):
    """([adapter, configuration], variables) to run a contestant with; Absent if it cannot be."""
    if contestant.adapter == "malloc":
        library = environment.library(contestant) if contestant.config else ""
        # Of the thread-local kind that is fixed when a process begins; jemalloc's does not fit else.
        tunables = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=16384"}
        return [environment.programs / "peer_malloc.so", library], tunables
    if contestant.adapter == "allot":
        return [environment.programs / "peer_allot.so", contestant.config], {}
    if contestant.adapter not in BUILDS:
        return [contestant.adapter, contestant.config], {}
    environment.version(contestant.package)
    build = BUILDS[contestant.adapter]
    libraries = [environment.find(place) for place in build.libraries]
    variables = dict(build.settings)
    variables["LD_LIBRARY_PATH"] = ":".join(sorted({str(path.parent) for path in libraries}))
    if build.preload:
        variables["LD_PRELOAD"] = str(environment.find(build.preload))
    return [compiled(build, libraries, environment), contestant.config], variables


def compiled(build, libraries, environment):
    source = HERE / build.source
    made = environment.folder / "adapters" / f"{source.stem}.so"
    inputs = [source, HERE / "peer.h", *libraries]
    if made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    is_c = source.suffix == ".c"
    command = os.environ.get("CC", "cc") if is_c else os.environ.get("CXX", "c++")
    includes = [word for place in build.includes for word in ("-isystem", environment.find(place))]
    call = [
        *command.split(), "-std=c11" if is_c else "-std=c++20", "-O2", "-DNDEBUG", "-D_DEFAULT_SOURCE",
        "-fPIC", "-shared", *includes, source, *libraries, "-o", made,
    ]  # fmt: skip
    try:
        subprocess.run(call, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Absent(f"its adapter cannot be built: no {command}") from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "error" in line] or ["no message"]
        raise Absent(f"its adapter cannot be built: {lines[0]}") from error
    return made
