"""All that only Linux can tell, and what takes its place elsewhere.

Linux is what Farthing is tested on. Elsewhere less is known about processes, so that it is careful instead.
"""

import os
import sys
from pathlib import Path

IS_LINUX = sys.platform == "linux"


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


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
