# SPDX-License-Identifier: MIT
"""Arguments of allot dryrun that set sizes which real hardware would tell."""

import json

import pytest
from conftest import HAS_STANDIN


def test_wrong_sizes_are_refused(run, tmp_path):
    def refused(text):
        return run("dryrun", "--workspace", text, "--", "true", code=2).stderr

    assert '"cudn"; there are context, cudnn, cudnn_reserve' in refused("cudn=1MiB")
    assert "workspace cudnn: " in refused("cudnn=much")
    assert "no-such-file" in refused("no-such-file")
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"schema": "allot-workspaces/2"}))
    assert '"schema": expected allot-workspaces/1' in refused(path)


def test_a_cudnn_that_is_not_there_is_refused(run, tmp_path):
    result = run("dryrun", "--cudnn-library", tmp_path / "libcudnn.so.9", "--", "true", code=2)
    assert "--cudnn-library" in result.stderr and "No such file" in result.stderr
    odd = tmp_path / "a,b"
    odd.write_bytes(b"")
    assert "without a comma" in run("dryrun", "--cudnn-library", odd, "--", "true", code=2).stderr


@pytest.mark.skipif(not HAS_STANDIN, reason="no stand-in, or an instrumented one")
def test_the_program_is_told_the_sizes(run, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"schema": "allot-workspaces/1", "cudnn": "1MiB", "nccl": 0}))
    command = ["sh", "-c", "echo $ALLOT_STANDIN"]
    told = run("dryrun", "--json", "--workspace", path, "--cudnn", "--", *command, code=1).stderr
    assert ",workspace:cudnn=1048576,workspace:nccl=0,oracle:libcudnn.so.9" in told
    told = run("dryrun", "--json", "--workspace", "cufft=3KiB", "--", *command, code=1).stderr
    assert ",workspace:cufft=3072" in told and "oracle:" not in told
