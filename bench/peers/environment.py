# SPDX-License-Identifier: MIT
"""The private folder that peers are installed into, and where their parts are in it."""

import functools
import os
import pathlib
import subprocess
import sys
import venv

from adapters import HERE, Absent

TREE = HERE.parent.parent
sys.path.insert(0, str(TREE / "bench"))
from read import commit, cpu_name  # noqa: E402, F401 (cpu_name: for peers.py)

DEBIAN_PACKAGES = ["libjemalloc2", "libtcmalloc-minimal4"]
TORCH_PLACE = """
import importlib.metadata, importlib.util
print(importlib.util.find_spec("torch").submodule_search_locations[0])
print(importlib.metadata.version("torch"))
"""


class Environment:
    """A virtual environment of Python in env/, unpacked Debian packages in debian/, built adapters.

    Nothing is installed into the system.
    """

    def __init__(self, folder, programs):
        self.folder = folder.resolve()
        self.programs = programs.resolve()

    def install(self):
        """Install what is missing. What cannot be had is said and left out."""
        self._install_wheels()
        for package in DEBIAN_PACKAGES:
            if self._archive(package) is None:
                self._install_debian(package)

    def _install_wheels(self):
        wanted = (HERE / "requirements.txt").read_text()
        place, made = self.folder / "env", self.folder / "env" / "made"
        if made.exists() and made.read_text() == wanted:
            return
        note(f"installing into {place}")
        try:
            venv.create(place, with_pip=True, clear=True)
        except subprocess.CalledProcessError as error:
            note(f"no wheels: {error} (Debian: python3-venv)")
            return
        pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet",
               "--disable-pip-version-check", "--no-deps"]  # fmt: skip
        is_whole = True
        for line in wanted.splitlines():
            if line and not line.startswith("#"):
                is_whole &= subprocess.run([*pip, line], check=False).returncode == 0
        if is_whole:
            made.write_text(wanted)

    def _install_debian(self, package):
        place = self.folder / "debian"
        place.mkdir(parents=True, exist_ok=True)
        download = ["apt-get", "download", "-qq", package]
        try:
            subprocess.run(download, cwd=place, check=True, capture_output=True, text=True)
            subprocess.run(["dpkg-deb", "-x", self._archive(package), place], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            text = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
            note(f"{package}: {text} (after `apt-get update` it may be found)")

    def _archive(self, package):
        return next(iter(sorted((self.folder / "debian").glob(f"{package}_*.deb"))), None)

    def version(self, package):
        """Absent if it is not installed."""
        if package == "allot":
            return commit()
        if package == "libc6":
            return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
        if package in DEBIAN_PACKAGES:
            archive = self._archive(package)
            if archive is None:
                raise Absent(f"Debian's {package} is not in {self.folder}: --install")
            return archive.name.split("_")[1]
        if package == "torch":
            return torch_python_place()[1].split("+")[0]
        name = package.replace("-", "_")
        found = next(self._site().glob(f"{name}-*.dist-info"), None)
        if found is None:
            raise Absent(f"{package} is not in {self.folder}: --install")
        return found.name.removesuffix(".dist-info").split("-")[-1]

    def library(self, contestant):
        """The file of a Debian library."""
        self.version(contestant.package)
        found = next((self.folder / "debian").glob(f"usr/lib/**/{contestant.config}"), None)
        if found is None:
            raise Absent(f"{contestant.package} has no {contestant.config}")
        return found

    def find(self, place):
        """A path that begins with env, site, torch or standin."""
        root, _, rest = place.partition("/")
        roots = {
            "env": lambda: self.folder / "env",
            "site": self._site,
            "torch": lambda: pathlib.Path(torch_python_place()[0]),
            "standin": lambda: self.programs.parent / "standin",
        }
        path = roots[root]() / rest
        if not path.exists():
            raise Absent(f"no {path}")
        return path

    def _site(self):
        return next((self.folder / "env").glob("lib/python3*/site-packages"), self.folder / "none")


@functools.cache
def torch_python_place():
    """(folder, version) of the torch of ALLOT_TORCH_PYTHON, or of the tests; nothing is imported."""
    python = os.environ.get("ALLOT_TORCH_PYTHON") or TREE / ".venv-torch" / "bin" / "python"
    try:
        call = [python, "-c", TORCH_PLACE]
        text = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Absent(
            f"{python} is no Python with torch: ALLOT_TORCH_PYTHON names one with a CUDA 13 build"
        ) from error
    return text.splitlines()


def note(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)
