# SPDX-License-Identifier: MIT
"""Python runs this file when it starts in a dry run, because its folder is on PYTHONPATH.

It makes room for the user's own file of the same name and then hooks the recording in.
"""

import importlib.util
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))


def _run_the_users_own():
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != _folder]
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # Python is in the middle of importing this file and looks for it under its name.
        sys.modules.setdefault("sitecustomize", own)


def _hook():
    spec = importlib.util.spec_from_file_location(
        "_allot_dryrun", os.path.join(_folder, "allot_dryrun.py")
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["_allot_dryrun"] = module
    spec.loader.exec_module(module)
    module.install()


_run_the_users_own()
if os.environ.get("ALLOT_DRYRUN"):
    _hook()
