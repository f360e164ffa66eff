"""Where Farthing runs. What is Linux's own can be done without; other systems are played here, not tested."""

import subprocess
import sys

ON_MACOS = """
import os, sys
import numpy, scipy.linalg, scipy.optimize, scipy.special, sqlalchemy, threadpoolctl  # as they are on this machine
sys.platform = "darwin"
del os.sched_getaffinity
import farthing as ft
from farthing.execution import platform
from farthing.session.leases import is_gone, this_process

assert not platform.IS_LINUX and platform.machine_marks() == []
assert not is_gone(this_process())
assert is_gone(this_process().replace(f":{os.getpid()}:", ":99999999:"))
study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="study.db", strategy=ft.Random(), seed=0)
study.run(lambda trial: (trial.params["x"] - 0.5) ** 2, budget=ft.Budget(trials=3), executor="inline")
print(len(study.trials), platform.usable_cores() >= 1)
"""


def python(program: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, **options)


def test_windows_is_refused_with_one_sentence():
    ended = python("import sys; sys.platform = 'win32'; import farthing")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("ImportError: Farthing needs Linux")


def test_sqlite_and_the_inline_executor_need_nothing_of_linux(tmp_path):
    ended = python(ON_MACOS, cwd=tmp_path)
    assert ended.stdout == "3 True\n", ended.stderr
