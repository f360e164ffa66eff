"""Counts the calls of fsync and fdatasync that a program makes."""

import ctypes
import shutil
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>

static long calls = 0;

long count_of_syncs(void) { return calls; }

int fsync(int file) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(file);
}
"""


def compiled(folder: Path) -> Path | None:
    """Builds the library to preload into the counted program; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = folder / "syncs.c", folder / "syncs.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return library


def syncs() -> int | None:
    """The number of calls in this process so far; None if the library was not preloaded."""
    counter = getattr(ctypes.CDLL(None), "count_of_syncs", None)
    if counter is None:
        return None
    counter.restype = ctypes.c_long
    return int(counter())
