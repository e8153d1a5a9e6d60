# SPDX-License-Identifier: MIT
"""The Python side of `allot dryrun`: records a program's memory without touching the program.

ALLOT_DRYRUN names the folder for the results. Each process writes there

  PID.json     what happened: torch, steps, peaks, out-of-memory, exception
  PID.pickle   the memory snapshot with Python stacks
  PID.fault    where its threads were when a signal ended it; empty otherwise

Nothing here may break the program: recording that fails is reported in PID.json as `problems`.
"""

import atexit
import ctypes
import faulthandler
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import threading
import time
import traceback

SCHEMA = "allot.dryrun-process/1"
HISTORY_MAX = 10_000_000
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.getcwd()  # the program may go elsewhere
CONF_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


class Recorder:
    """What one process knows about itself."""

    def __init__(self):
        self.folder = os.environ["ALLOT_DRYRUN"]
        self.steps_max = int(os.environ.get("ALLOT_DRYRUN_STEPS", "0"))
        self.shows_progress = os.environ.get("ALLOT_DRYRUN_PROGRESS") == "1"
        self.progress = None
        self.pid = os.getpid()
        self.torch = None
        self.is_recording = False
        self.is_finished = False
        self.result = {
            "schema": SCHEMA, "pid": self.pid, "argv": sys.orig_argv, "python": sys.executable,
            "torch": None, "cuda": None, "hip": None,
            "steps": 0, "devices": [], "oom": [], "exception": None, "problems": [],
            "assumptions": {},
        }  # fmt: skip
        self.peaks = {}  # by device: what memory_stats() said before the program reset its peaks

    def guard(self, what, call):
        """Call; a failure becomes a problem in the report, not in the program."""
        try:
            return call()
        except Exception as error:
            self.result["problems"].append(f"{what}: {type(error).__name__}: {error}"[:500])
            return None

    def torch_imported(self, torch):
        self.torch = torch
        self.result["torch"] = torch.__version__
        self.result["cuda"] = torch.version.cuda
        self.result["hip"] = getattr(torch.version, "hip", None)
        self.write()
        if torch.version.cuda is None:
            return
        self.guard("recording", self.keep_recording)
        self.guard("recording", lambda: torch.cuda._lazy_call(self.start))
        self.guard("counting steps", self.count_steps)
        self.guard("peaks", self.keep_peaks)
        self.guard("ranks", self.prepare_ranks)
        self.guard("numbers", lambda: load("allot_dryrun_numbers").install(torch))

    def prepare_ranks(self):
        ranks, objects = load("allot_dryrun_ranks"), load("allot_dryrun_objects")
        ranks.watch_forks(self)
        if self.torch.distributed.is_available():
            alone = load("allot_dryrun_alone")
            objects.install(self.torch, alone.wanted() is not None)
            if alone.wanted() is not None:
                alone.install(self.torch, objects.replace_everywhere)
            ranks.watch_rank(self, objects.replace_everywhere)

    def generation_imported(self, utils):
        self.guard(
            "generate()",
            lambda: load("allot_dryrun_generate").end_at_maximum_length(utils, self.assume),
        )

    def assume(self, text):
        self.result["assumptions"][text] = self.result["assumptions"].get(text, 0) + 1

    def keep_peaks(self):
        """The program may reset the peaks that it sees; ours stay."""
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            original = getattr(self.torch._C, name, None)
            if original is not None:
                setattr(self.torch._C, name, functools.partial(self.reset_peaks, original))

    def reset_peaks(self, original, device):
        self.guard("peaks", lambda: self.peaks_of(device))
        return original(device)

    def peaks_of(self, device):
        """Peaks of a device since it was first used; {} if it was not."""
        stats = self.torch.cuda.memory_stats(device)
        peaks = self.peaks.setdefault(device, {})
        for key in ("allocated", "requested", "reserved") if stats else ():
            peak = stats[f"{key}_bytes.all.peak"]
            peaks[f"{key}_peak"] = max(peak, peaks.get(f"{key}_peak", 0))
        return peaks

    def keep_recording(self):
        """The program may switch recording on and off as it likes; it stays on."""
        memory = self.torch.cuda.memory
        original = memory._record_memory_history

        def record(enabled="all", *args, **kwargs):
            if not self.is_recording and enabled is not None:
                self.is_recording = True
                return self.record_with(original)
            return None

        memory._record_memory_history = record
        self.record_original = original

    def record_with(self, record):
        return record(max_entries=HISTORY_MAX, stacks="python")

    def start(self):
        """Called by torch once CUDA is initialised, in the thread that does it."""
        self.result["conf"] = next(filter(None, map(os.environ.get, CONF_VARIABLES)), "")
        if not self.is_recording:
            self.is_recording = True
            self.guard("recording", lambda: self.record_with(self.record_original))
        self.guard(
            "watching for out-of-memory",
            lambda: self.torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory),
        )
        if self.shows_progress:
            self.guard("progress", self.show_progress)

    def count_steps(self):
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(lambda *_: self.step_done())

    def step_done(self):
        self.result["steps"] += 1
        if self.steps_max and self.result["steps"] >= self.steps_max:
            self.result["stopped_after_steps"] = self.result["steps"]
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def watch_sudden_ends(self):
        """os._exit() runs no exit handlers."""
        end = os._exit

        def end_at_once(status):
            self.guard("report", self.finish)
            end(status)

        os._exit = end_at_once

    def write_standin_report(self):
        """What ends a process at once runs no exit handlers, the stand-in's neither."""
        self.guard("report", lambda: ctypes.CDLL("libcuda.so.1").allot_standin_write_report())

    def out_of_memory(self, device, size, total, free):
        stats = self.torch.cuda.memory_stats(device)
        self.result["oom"].append(
            {
                "device": device, "size": size, "total": total, "free": free,
                "line": line_of(stack_of_program()),
                "step": self.result["steps"],
                "allocated": stats["allocated_bytes.all.current"],
                "reserved": stats["reserved_bytes.all.current"],
            }
        )  # fmt: skip
        if len(self.result["oom"]) == 1:
            self.dump("oom.pickle")

    def exception(self, kind, error, trace):
        frames = traceback.extract_tb(trace)
        module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
        line = f"{short_path(error.filename)}:{error.lineno}" if is_in_file(error) else line_of(frames)
        self.result["exception"] = {
            "type": f"{module}{kind.__qualname__}",
            "text": str(error)[:2000],
            "time": time.time_ns() // 1000,
            "line": line,
        }

    def path(self, name):
        return os.path.join(self.folder, f"{self.pid}.{name}")

    def dump(self, name):
        def write():
            partial = self.path(name + ".part")
            self.torch.cuda.memory._dump_snapshot(partial)
            os.replace(partial, self.path(name))

        self.guard("snapshot", write)

    def describe_devices(self):
        for device in range(self.torch.cuda.device_count()):
            stats = self.torch.cuda.memory_stats(device)
            if not stats:
                continue
            self.result["devices"].append(
                {
                    "device": device,
                    **self.peaks_of(device),
                    "retries": stats["num_alloc_retries"],
                    "ooms": stats["num_ooms"],
                }
            )

    def begin_again(self):
        """In a child of fork(), which has what the parent has imported and a memory of its own."""
        self.pid = os.getpid()
        self.is_finished = self.is_recording = False
        self.peaks = {}
        self.result.update(
            pid=self.pid, steps=0, devices=[], oom=[], exception=None, problems=[], assumptions={}
        )

    def finish(self):
        if self.is_finished or os.getpid() != self.pid:
            return
        self.is_finished = True
        if self.torch is not None and self.torch.cuda.is_initialized():
            self.guard("peaks", self.describe_devices)
            if self.is_recording:
                self.dump("pickle")
            # What happens from here on is tearing down, which may end in an abort.
            self.write_standin_report()
        self.result["finished"] = True
        self.write()
        if self.progress is not None:
            self.guard("progress", self.progress.end)

    def write(self):
        partial = self.path("json.part")
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(self.result, file)
        os.replace(partial, self.path("json"))

    def show_progress(self):
        cuda = self.torch.cuda

        def text():
            allocated, reserved = cuda.memory_allocated() / 2**30, cuda.memory_reserved() / 2**30
            steps = self.result["steps"]
            return (f"dry run: allocated {allocated:.2f} GiB, reserved {reserved:.2f} GiB, "
                    f"{steps} step{'' if steps == 1 else 's'}")  # fmt: skip

        self.progress = load("allot_dryrun_progress").Progress(text)

    def watch_faults(self):
        """A signal that ends the process leaves the stacks in a file, which the command reads."""
        faulthandler.enable(open(self.path("fault"), "w"))  # noqa: SIM115 (for the whole life)


def is_library(filename):
    return "/site-packages/" in filename or "/dist-packages/" in filename or (
        filename.startswith("<") or f"/lib/python{sys.version_info[0]}." in filename
    )


def is_ours(filename):
    return filename == __file__ or (
        os.path.dirname(filename) == HERE and os.path.basename(filename).startswith("allot_dryrun")
    )


def is_in_file(error):
    """Whether a program's own text is at fault, which no frame points to."""
    return isinstance(error, SyntaxError) and error.filename and not is_library(error.filename)


def line_of(frames):
    """"train.py:42" of the innermost frame that is the program's own, else of the innermost."""
    frames = [f for f in frames if not is_ours(f.filename)]
    own = [f for f in frames if not is_library(f.filename)] or frames
    return f"{short_path(own[-1].filename)}:{own[-1].lineno} ({own[-1].name})" if own else None


def short_path(filename):
    """As seen from the folder that the program was started in, if it lies below that."""
    here = FOLDER + os.sep
    return filename[len(here) :] if filename.startswith(here) else filename


def stack_of_program():
    """Stack of this thread, or of the main one if this is a thread of autograd without Python."""
    frames = traceback.extract_stack()
    if any(not is_library(f.filename) and not is_ours(f.filename) for f in frames):
        return frames
    main = sys._current_frames().get(threading.main_thread().ident)
    return traceback.extract_stack(main) if main is not None else frames


def library_settings(requirements):
    """Settings of the stand-in for the library versions that this build of torch was made for."""
    names = {"cudnn": 10000, "nccl": 10000, "cublas": 10000}
    settings = {}
    for requirement in requirements:
        match = re.match(r"nvidia-(\w+)-cu(\d+)\W*==\s*([\d.]+)", requirement)
        if match is None:
            continue
        name, major, version = match.groups()
        settings["cuda"] = major
        if name in names:
            parts = [int(part) for part in version.split(".")[:3]] + [0, 0]
            settings[name] = parts[0] * names[name] + parts[1] * 100 + parts[2]
    return ",".join(f"{key}:{value}" for key, value in settings.items())


def installed_cudnn(settings):
    """The setting for the cuDNN of this environment, if the caller asked for one to be found."""
    if "oracle:libcudnn.so.9" not in settings.split(","):
        return ""
    paths = [os.path.join(p, "nvidia", "cudnn", "lib", "libcudnn.so.9") for p in sys.path]
    return next((f"oracle:{p}" for p in paths if os.path.exists(p) and "," not in p), "")


def tell_versions():
    """Read once, by the stand-in's first call: what the caller of the dry run set comes last."""
    try:
        requirements = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:  # built in place: the stand-in's own choice
        requirements = []
    told = os.environ.get("ALLOT_STANDIN", "")
    parts = [library_settings(requirements), told, installed_cudnn(told)]
    os.environ["ALLOT_STANDIN"] = ",".join(part for part in parts if part)


def load(name):
    """A module that lies beside this one; the folder itself is not on the program's path."""
    path = os.path.join(HERE, name + ".py")
    spec = importlib.util.spec_from_file_location("_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls back before and after the module of this name is imported."""

    def __init__(self, name, before, callback):
        self.name, self.before, self.callback = name, before, callback
        self.is_begun = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module):
            # Not when it is looked for: programs look whether a package is there long before.
            if not self.is_begun:
                self.is_begun = True
                self.before()
            load(module)
            # An import that failed may be tried again; one that was looked for twice is one.
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.callback(module)

        spec.loader.exec_module = load_and_tell
        return spec


def install():
    if os.environ.get("ALLOT_DRYRUN_ALONE"):
        load("allot_dryrun_alone").take_rank()
    recorder = Recorder()
    recorder.write()
    recorder.guard("watching for faults", recorder.watch_faults)
    before_torch = functools.partial(recorder.guard, "reading versions", tell_versions)
    after_torch = functools.partial(recorder.guard, "watching torch")
    sys.meta_path.insert(
        0, AfterImport("torch", before_torch, lambda m: after_torch(lambda: recorder.torch_imported(m)))
    )
    sys.meta_path.insert(
        0,
        AfterImport("transformers.generation.utils", lambda: None, recorder.generation_imported),
    )
    # A switch of transformers: checks of values that the device computes would fail.
    os.environ.setdefault("TRANSFORMERS_DISABLE_TORCH_CHECK", "1")
    atexit.register(recorder.finish)
    recorder.watch_sudden_ends()
    before = sys.excepthook

    def excepthook(kind, error, trace):
        recorder.guard("exception", lambda: recorder.exception(kind, error, trace))
        before(kind, error, trace)

    sys.excepthook = excepthook
