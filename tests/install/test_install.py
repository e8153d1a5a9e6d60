# SPDX-License-Identifier: MIT
"""The installed package, from the outside: headers, symbols, pkg-config, CMake, man pages."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

BUILD = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build/dev"))
CC = os.environ.get("CC", "cc")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
GREETING = re.compile(r"^0\.1\.0 FORMAT: nothing: byte 0: the file is empty$")


def call(*args, **options):
    result = subprocess.run(
        [str(arg) for arg in args], capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, f"{args}\n{result.stdout}{result.stderr}"
    return result.stdout


def split(text):
    return text.split()


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    call("cmake", "--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def libdir(prefix):
    return next(prefix.rglob("liballot.a")).parent


@pytest.fixture(scope="module")
def pkg_config(prefix, libdir):
    """Asks pkg-config about the package; the prefix was given after the file was written."""
    variables = dict(os.environ, PKG_CONFIG_PATH=str(libdir / "pkgconfig"))

    def ask(*args):
        return split(
            call(
                "pkg-config",
                f"--define-variable=prefix={prefix}",
                f"--define-variable=libdir={libdir}",
                f"--define-variable=includedir={prefix / 'include'}",
                *args,
                "allot",
                env=variables,
            )
        )

    return ask


def headers(prefix):
    return sorted((prefix / "include").rglob("*.h"))


def test_all_public_headers_are_installed(prefix):
    installed = {path.relative_to(prefix / "include") for path in headers(prefix)}
    public = {path.relative_to(ROOT / "include") for path in (ROOT / "include").rglob("*.h")}
    assert installed == public | {pathlib.Path("allot/version.h")}


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_each_header_compiles_alone(prefix, tmp_path, language):
    is_c = not language.startswith("c++")
    for header in headers(prefix):
        source = tmp_path / ("alone.c" if is_c else "alone.cpp")
        name = header.relative_to(prefix / "include")
        source.write_text(f"#include <{name}>\n#include <{name}>\nint alone(void);\n")
        compiler = CC if is_c else "c++"
        call(compiler, f"-std={language}", *WARNINGS, f"-I{prefix / 'include'}", "-fsyntax-only",
             source)


def test_allot_h_includes_every_header(prefix):
    text = (prefix / "include/allot/allot.h").read_text()
    for header in headers(prefix):
        if header.name not in ("allot.h", "version.h"):
            assert f"#include <allot/{header.name}>" in text


def test_exported_symbols_are_those_declared(prefix, libdir):
    declared = set()
    for header in headers(prefix):
        text = re.sub(r"/\*.*?\*/|^#[^\n]*(?:\\\n[^\n]*)*", "", header.read_text(),
                      flags=re.DOTALL | re.MULTILINE)
        declared |= set(re.findall(r"ALLOT_API\b[^;(]*?\b(allot_\w+)\s*\(", text))
    assert len(declared) > 20
    lines = call("nm", "-D", "--defined-only", libdir / "liballot.so").splitlines()
    exported = {line.split()[-1] for line in lines}
    assert exported == declared


def test_static_library_defines_only_our_names(libdir):
    lines = call("nm", "-g", "--defined-only", libdir / "liballot.a").splitlines()
    names = {line.split()[-1] for line in lines if len(line.split()) == 3}
    assert {name for name in names if not re.match(r"alloti?_|ALLOTI_", name)} == set()


def test_shared_library_has_a_soname(libdir):
    text = call("objdump", "-p", libdir / "liballot.so")
    assert re.search(r"SONAME +liballot\.so\.0$", text, re.MULTILINE)
    assert (libdir / "liballot.so").resolve().name == "liballot.so.0.1.0"


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_program_through_pkg_config(pkg_config, libdir, tmp_path, language, kind):
    source = tmp_path / ("consumer.c" if language == "c" else "consumer.cpp")
    shutil.copyfile(ROOT / "tests/install/consumer/consumer.c", source)
    libraries = pkg_config("--libs")
    if kind == "static":
        libraries = pkg_config("--libs", "--static")
        libraries = [libdir / "liballot.a" if item == "-lallot" else item for item in libraries]
    compiler = CC if language == "c" else "c++"
    call(compiler, *WARNINGS, *pkg_config("--cflags"), source, "-o", tmp_path / "consumer",
         *libraries)
    variables = dict(os.environ, LD_LIBRARY_PATH=str(libdir))
    assert GREETING.match(call(tmp_path / "consumer", env=variables))


def test_program_through_cmake(prefix, tmp_path):
    call("cmake", "-G", "Ninja", "-S", ROOT / "tests/install/consumer", "-B", tmp_path,
         f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
    call("cmake", "--build", tmp_path)
    for program in ("c-shared", "c-static", "cxx-shared", "cxx-static", "m"):
        assert GREETING.match(call(tmp_path / program))


def test_examples_build_against_the_installed_package(prefix, tmp_path):
    call("cmake", "-G", "Ninja", "-S", ROOT / "examples", "-B", tmp_path,
         f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
    call("cmake", "--build", tmp_path)
    printed = call(tmp_path / "inspect", ROOT / "examples/finetune_11gib_oom.pickle.gz")
    assert printed.startswith("device 0: peak 9.07 GiB\n")


def test_command_is_installed_and_runs(prefix):
    assert call(prefix / "bin/allot", "--version") == "allot 0.1.0\n"


def test_another_platform_is_configured_without_the_stand_in(tmp_path):
    platform = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    result = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, f"-DCMAKE_C_COMPILER={CC}", *platform],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "without the stand-in for CUDA, which needs Linux on x86-64" in result.stderr
    targets = call("ninja", "-C", tmp_path, "-t", "targets", "all")
    assert "standin/libcuda.so" not in targets and "allot-standin" not in targets
    assert "allot: " in targets
