"""A process beside each worker that ends the worker's group when the coordinator dies.

A thread of the worker could not: work that holds the interpreter lets no other thread run. The kernel's parent-death
signal alone would not do either: it ends the worker, but not the processes that the work has started.
"""

import os
import signal
from collections.abc import Sequence


def start_guardian(lifeline: int, *, others: Sequence[int]) -> None:
    """Starts a guardian in this process's group, which waits for the other end of the lifeline to close.

    It is no child of this process, so that work that waits for its children does not wait for it. It closes its copies
    of the `others`, descriptors whose closing by the worker could not be seen otherwise. To be called before any
    thread is started.
    """
    starter = os.fork()
    if starter:
        os.waitpid(starter, 0)
    elif os.fork():
        os._exit(0)
    else:
        _guard(lifeline, others)


def _guard(lifeline: int, others: Sequence[int]) -> None:
    try:
        for descriptor in others:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals that the work sends to its group
        os.read(lifeline, 1)  # nothing is ever written: this returns when the coordinator's end is closed
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(1)
