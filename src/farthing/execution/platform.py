"""All that only Linux can tell, and what takes its place elsewhere.

Farthing is tested on Linux. Elsewhere less is known about processes, so it is careful.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
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


# ------------------------------------------------------------
# The environment of a worker process.


THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def worker_environment(
    base: Mapping[str, str], *, index: int, workers: int, devices: Sequence[str] | None = None
) -> dict[str, str]:
    """The environment of worker `index`: its share of the cores, and its device where there are any.

    Workers share the cores evenly, because numerical libraries would otherwise start a thread per core in each.
    Limits that the user has set stay. A worker sees only its own CUDA device, under the number 0; the name it was
    given by is in FARTHING_DEVICE.
    """
    share = str(max(1, usable_cores() // workers))
    environment = {**dict.fromkeys(THREAD_LIMITS, share), **base}
    return environment | _device(devices[index % len(devices)], base) if devices else environment


def _device(name: str, base: Mapping[str, str]) -> dict[str, str]:
    kind, _, number = name.partition(":")
    own = {"FARTHING_DEVICE": name}
    if kind == "cpu":
        return own | {"CUDA_VISIBLE_DEVICES": ""}
    return own | {"CUDA_VISIBLE_DEVICES": _visible(number or "0", base)} if kind == "cuda" else own


def _visible(number: str, base: Mapping[str, str]) -> str:
    """The device's name to the driver: numbers count among those that we ourselves may see."""
    ours = [device for device in base.get("CUDA_VISIBLE_DEVICES", "").split(",") if device]
    return ours[int(number)] if number.isdecimal() and int(number) < len(ours) else number
