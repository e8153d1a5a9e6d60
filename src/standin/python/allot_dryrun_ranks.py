# SPDX-License-Identifier: MIT
"""What the recorder knows about a process that is one of several."""

import multiprocessing.util


def watch_rank(recorder, replace_everywhere):
    """Note which rank the process is, once it says so: a launcher may end it before it can report."""
    import torch.distributed.distributed_c10d as c10d

    original = c10d.init_process_group

    def init_process_group(*args, **kwargs):
        done = original(*args, **kwargs)
        recorder.result.update(rank=c10d.get_rank(), world=c10d.get_world_size())
        recorder.write()
        return done

    replace_everywhere(original, init_process_group)


def watch_forks(recorder):
    """A child that is forked has a report of its own, which multiprocessing's way to end it would lose."""

    def begin(_):
        recorder.begin_again()
        multiprocessing.util.Finalize(None, recorder.finish, exitpriority=0)

    multiprocessing.util.register_after_fork(recorder, begin)
