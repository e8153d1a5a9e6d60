# SPDX-License-Identifier: MIT
"""What the recorder knows about a process that is one of several."""

import multiprocessing.util
import os


def watch_rank(result, torch, replace_everywhere):
    """Which rank the process is, once it says so."""
    import torch.distributed.distributed_c10d as c10d

    original = c10d.init_process_group

    def init_process_group(*args, **kwargs):
        done = original(*args, **kwargs)
        result.update(rank=c10d.get_rank(), world=c10d.get_world_size())
        return done

    replace_everywhere(original, init_process_group)


def watch_forks(recorder):
    """A child that is forked has a report of its own, which multiprocessing's way to end it would lose."""

    def begin(_):
        recorder.begin_again()
        multiprocessing.util.Finalize(None, finish, exitpriority=0)

    def finish():
        recorder.finish()
        recorder.write_standin_report()

    multiprocessing.util.register_after_fork(recorder, begin)


def rank_of_environment():
    """As launchers tell it; None without one."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else None
