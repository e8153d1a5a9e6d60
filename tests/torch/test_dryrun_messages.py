# SPDX-License-Identifier: MIT
"""What a dry run of a real PyTorch program says on its way, and when something goes wrong."""

import json
import os
import pty
import re
import subprocess

import pytest

STEP = """
import torch
layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
layer(torch.ones(8, 64, device="cuda")).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize("how", ["ctypes.string_at(t.data_ptr(), 4)", "numpy_view(t)[0]"])
def test_touching_device_memory_names_the_line(dryrun, python, how):
    script = f"""
        import ctypes, torch
        def numpy_view(t):
            import numpy
            pointer = ctypes.cast(t.data_ptr(), ctypes.POINTER(ctypes.c_float))
            return numpy.ctypeslib.as_array(pointer, (1000,))
        def peek(t):
            return {how}
        try:
            import numpy
        except ImportError:
            numpy_view = lambda t: ctypes.c_float.from_address(t.data_ptr()).value
        t = torch.ones(1000, device="cuda")
        print(peek(t))
    """
    result, raw = dryrun(python, script, code=4)
    assert result["verdict"] == "failed" and result["exit_code"] == 128 + 11
    assert "host code touched device address 0x" in result["touched"]
    assert "0 bytes into allocation 1 of 2097152 bytes" in result["touched"]
    assert result["fault_line"].endswith("script.py:8")
    assert result["touched"] in raw.stderr and "in peek" in raw.stderr
    assert any(".cpu()" in hint for hint in result["hints"])


def test_a_script_that_starts_python_is_followed(run, python, tmp_path):
    """Of several processes the one that took most is reported, and that there are several."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("""
import sys, torch
block = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
""")
    wrapper = tmp_path / "run.sh"
    wrapper.write_text("".join(f"{python} -m package {size}\n" for size in (128, 64)))
    result = json.loads(run("dryrun", "--json", "--", "bash", wrapper, cwd=tmp_path).stdout)
    assert result["verdict"] == "fits" and result["reserved_peak"] == 128 << 20
    assert [rank["worst"] for rank in result["ranks"]] == [True, False]


def test_a_process_that_ends_at_once_is_reported(dryrun, python):
    result, _ = dryrun(python, STEP + "import os\nos._exit(0)\n")
    assert result["verdict"] == "fits" and result["steps"] == 1


def on_a_terminal(command, cwd):
    """Everything that a command writes to a terminal of its own."""
    screen, terminal = pty.openpty()
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=cwd)
    os.close(terminal)
    written = b""
    while True:
        try:
            piece = os.read(screen, 1 << 16)
        except OSError:  # the last one has closed the terminal
            break
        if not piece:
            break
        written += piece
    os.close(screen)
    assert process.wait() == 0
    return written.decode()


def test_progress_is_shown_on_a_terminal_and_leaves_no_trace(python, tmp_path, root):
    script = tmp_path / "train.py"
    script.write_text(STEP + """
import sys, time
time.sleep(1.5)
print("epoch 1")
sys.stderr.write("a bar of its own ")
sys.stderr.flush()
time.sleep(1.5)
sys.stderr.write("done\\n")
""")
    allot = os.environ.get("ALLOT", root / "build/dev/allot")
    text = on_a_terminal([allot, "dryrun", "--", python, script], tmp_path)
    line = r"\r\x1b\[Kdry run: allocated 0\.0\d GiB, reserved 0\.0\d GiB, [01] steps?"
    assert re.search(f"^({line})+\r\x1b\\[Kepoch 1\r\na bar of its own done\r\n", text)
    assert "dry run:" not in text.rpartition("\x1b[K")[2]  # the last one takes it away
