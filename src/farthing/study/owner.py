"""Who holds a lease, named so that a process on the same machine can tell whether the holder is still there."""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def this_process() -> str:
    """`machine:pid:start`, the same for the life of this process and never given to another, a fork of it included."""
    return f"{_machine()}:{os.getpid()}:{_start_of(os.getpid())}"


def is_gone(owner: str | None) -> bool:
    """Whether the owner is certainly dead. Of other machines nothing is certain: there the lease must run out."""
    parts = (owner or "").rsplit(":", 2)
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdigit():
        return False
    return _start_of(int(parts[1])) != parts[2]


@cache
def _machine() -> str:
    """Host, boot and process namespace: within these three a process id means one process at a time."""
    namespace = Path("/proc/self/ns/pid")
    marks = [_read("/proc/sys/kernel/random/boot_id")[:8], os.readlink(namespace) if namespace.exists() else ""]
    return "/".join([socket.gethostname(), *(mark for mark in marks if mark)]).replace(":", "")


def _start_of(pid: int) -> str | None:
    """When the process began, in the kernel's ticks; None when there is no such process."""
    if Path("/proc/self/stat").exists():
        stat = _read(f"/proc/{pid}/stat")
        fields = stat.rpartition(")")[2].split()
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


os.register_at_fork(after_in_child=this_process.cache_clear)
