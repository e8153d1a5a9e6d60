# SPDX-License-Identifier: MIT
"""allot doctor: what is found, what is refused, and why."""

import json
import os
import subprocess

import pytest

from conftest import HAS_STANDIN, command_path

STANDIN = command_path().resolve().parent / "standin"
BACKENDS = ["host", "simulated", "null", "opencl", "cuda"]


def examine(run, *arguments):
    document = json.loads(run("doctor", "--json", *arguments).stdout)
    assert document["schema"] == "allot.doctor/1"
    return document


@pytest.fixture
def no_library(monkeypatch, tmp_path):
    """A machine whose drivers are no libraries."""
    for name in ("libcuda.so.1", "libOpenCL.so.1"):
        (tmp_path / name).write_text("no library\n")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))


def test_every_backend_is_there_or_says_why_not(run):
    found = examine(run)
    assert [backend["backend"] for backend in found["backends"]] == BACKENDS
    for backend in found["backends"]:
        assert backend["reason"]
        assert (backend["status"] == "OK") == (backend["device_count"] > 0)
        devices = [d for d in found["devices"] if d["device"].split(":")[0] == backend["backend"]]
        assert len(devices) == backend["device_count"]
        for device in devices:
            assert device["status"] == "OK" and device["reason"] is None
            assert 0 < device["memory_free"] <= device["memory_total"]
            assert device["has_virtual_memory"] == (device["granule"] > 0)


def test_the_text_says_the_same(run):
    found = examine(run)
    text = run("doctor").stdout
    # From how many bytes on the host moves pages is measured, and differs from run to run.
    names = (d["name"].split(" from ")[0] for d in found["devices"])
    for part in (*(b["reason"] for b in found["backends"]), *names,
                 *(f["meaning"] for f in found["facts"]), found["kernel"]):
        assert part in text


def test_absent_drivers_are_told(run, no_library):
    backends = {b["backend"]: b for b in examine(run)["backends"]}
    assert backends["cuda"]["status"] == backends["opencl"]["status"] == "UNSUPPORTED"
    assert "no NVIDIA driver" in backends["cuda"]["reason"]
    assert "no loader of OpenCL" in backends["opencl"]["reason"]
    assert backends["null"]["status"] == "OK"


def test_a_driver_that_ends_the_process_is_told(run, monkeypatch, tmp_path):
    source = tmp_path / "driver.c"
    source.write_text("__attribute__((constructor)) static void end(void) { __builtin_trap(); }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = examine(run)
    backends = {b["backend"]: b for b in found["backends"]}
    assert backends["cuda"]["status"] == "BACKEND" and backends["cuda"]["device_count"] == 0
    assert "its driver ends the programs that open it here (signal " in backends["cuda"]["reason"]
    assert backends["host"]["status"] == "OK"
    assert not [d for d in found["devices"] if d["device"].startswith("cuda")]


def test_facts_of_the_kernel_are_those_of_the_system(run):
    facts = {fact["name"]: fact["value"] for fact in examine(run)["facts"]}
    assert list(facts) == ["userfaultfd", "huge_pages", "overcommit_memory", "max_map_count", "memlock"]
    for name in ("overcommit_memory", "max_map_count"):
        with open(f"/proc/sys/vm/{name}") as file:
            assert facts[name] == file.read().strip()


def test_one_device_is_opened_as_a_program_would(run):
    found = examine(run, "--device", "simulated,gpu:rtx4090,memory:1GiB")
    assert found["backends"] == [] and found["facts"] == []
    (device,) = found["devices"]
    assert device["device"] == "simulated,gpu:rtx4090,memory:1GiB"
    assert device["memory_total"] == 1 << 30
    assert "RTX 4090" in device["name"]
    assert "RTX 4090" in run("doctor", "--device", "simulated,gpu:rtx4090").stdout


def test_a_device_that_cannot_be_opened_ends_with_4(run, no_library):
    result = run("doctor", "--device", "cuda", code=4)
    assert result.stdout == "" and "no NVIDIA driver" in result.stderr
    result = run("doctor", "--json", "--device", "null:7", code=4)
    assert result.stdout == "" and "null:7" in result.stderr


def test_a_text_that_cannot_be_read_is_wrong_usage(run):
    assert "no such backend" in run("doctor", "--device", "gpu", code=2).stderr
    assert "doctor --help" in run("doctor", "cuda", code=2).stderr


@pytest.mark.skipif(not HAS_STANDIN, reason="no stand-in, or an instrumented one")
def test_gpus_are_shown_as_their_driver_says(run, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(STANDIN))
    monkeypatch.setenv("ALLOT_STANDIN", "gpu:h100,devices:2")
    found = examine(run)
    assert os.path.samefile(found["standin"], STANDIN)
    gpus = [device for device in found["devices"] if device["device"].startswith("cuda")]
    assert [gpu["device"] for gpu in gpus] == ["cuda:0", "cuda:1"]
    for gpu in gpus:
        assert "H100" in gpu["name"] and gpu["granule"] == 2 << 20
        assert gpu["has_async_alloc"] and gpu["has_batch_copy"] and gpu["has_bytes"]
        assert gpu["copy_bytes_per_s"] > 10**12
