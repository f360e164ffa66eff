"""What only some systems can do. The others go without it, and nobody else needs to ask which system this is."""

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent(parent: int) -> None:
    """On Linux: the kernel kills this process when the thread that started it ends, whatever this process is doing.

    `parent` is the process that started it: if it had ended before the kernel was told, this process ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent and not _exists(parent):
            os.kill(os.getpid(), signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
