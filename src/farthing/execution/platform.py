"""All that only Linux can tell, and what takes its place elsewhere.

Farthing is tested on Linux. Elsewhere less is known about processes, so it is careful.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

IS_LINUX = sys.platform == "linux"
_SET_PARENT_DEATH_SIGNAL = 1


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if IS_LINUX else os.cpu_count() or 1


def machine_marks() -> list[str]:
    """The boot and the namespace within which a process id means one process at a time; elsewhere the host must do."""
    if not IS_LINUX:
        return []
    namespace = Path("/proc/self/ns/pid")
    marks = [_read("/proc/sys/kernel/random/boot_id")[:8], os.readlink(namespace) if namespace.exists() else ""]
    return [mark for mark in marks if mark]


def start_of(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None when there is no such process.

    Elsewhere, and where `/proc` is missing, "running": a process that got the number of a dead one is taken for it.
    """
    if IS_LINUX and Path("/proc/self/stat").exists():
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return fields[19] if len(fields) > 19 and fields[0] != "Z" else None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "running"


def end_with_parent(parent: int) -> None:
    """On Linux: the kernel kills this process when the thread that started it ends, whatever this process is doing.

    `parent` is the process that started it: if it had ended before the kernel was told, this process ends at once.
    """
    if IS_LINUX:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent and start_of(parent) is None:
            os.kill(os.getpid(), signal.SIGKILL)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
