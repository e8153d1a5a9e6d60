# SPDX-License-Identifier: MIT
"""generate() of transformers, which asks the device whether every sequence has ended.

A dry run does not know when a model would say so: all sequences run to the maximum length, which is the
most memory that they can take. What the length criterion answers is known to Python before it becomes a
tensor, and is remembered here until the loop asks.
"""

import threading

ASSUMPTION = "generate() runs to its maximum length"


def end_at_maximum_length(utils, assume):
    """Change the classes of transformers.generation.utils; assume(text) notes what was taken for granted."""
    mixin, criterion = utils.GenerationMixin, utils.MaxLengthCriteria
    check_length = criterion.__call__
    this_thread = threading.local()

    def check_length_and_remember(self, input_ids, *args, **kwargs):
        length, before = input_ids.shape[1], getattr(self, "length_before", 0)
        self.length_before = length
        # Assisted generation takes over as many tokens as agree, here none: it would never end either.
        this_thread.is_over = length >= self.max_length or length == before
        return check_length(self, input_ids, *args, **kwargs)

    def has_unfinished_sequences(_, this_peer_finished, *args, **kwargs):
        is_over = getattr(this_thread, "is_over", False)
        this_thread.is_over = False
        if is_over:
            assume(ASSUMPTION)
        return not is_over and this_peer_finished is not True

    criterion.__call__ = check_length_and_remember
    mixin._has_unfinished_sequences = has_unfinished_sequences
    mixin._beam_search_has_unfinished_sequences = staticmethod(lambda *_, **__: True)
