"""The owner of a lease, named so that a process on the same machine can tell whether it is still alive."""

import os
import socket
from functools import cache

from farthing.execution.platform import machine_marks, start_of


@cache
def this_process() -> str:
    """`machine:pid:start`, the same for the life of this process and never given to another, a fork of it included."""
    return f"{_machine()}:{os.getpid()}:{start_of(os.getpid())}"


def is_gone(owner: str | None) -> bool:
    """Whether the owner is certainly dead. Of other machines nothing is certain: there the lease must run out."""
    parts = (owner or "").rsplit(":", 2)
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdigit():
        return False
    return start_of(int(parts[1])) != parts[2]


@cache
def _machine() -> str:
    """Host, boot and process namespace: within these three a process id means one process at a time."""
    return "/".join([socket.gethostname(), *machine_marks()]).replace(":", "")


os.register_at_fork(after_in_child=this_process.cache_clear)
