"""The overhead of a trial on a Ray cluster, beside Ray Tune's: 100 empty trials with 4 workers.

Every sample is a program of its own, which starts Ray, and the programs take turns. Wall time is that of the run alone.
CPU is that of all processes, Ray's included, less that of a program which only starts and stops Ray. It is read from
the kernel several times a second: Ray ignores the deaths of its children, so that the kernel adds them up nowhere.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, Result, at_most
from benchmarks.problems.data import missing_package
from benchmarks.spread import Spread

TRIALS, QUICK_TRIALS, WORKERS = 100, 20, 4
BAR, GOAL = 0.5, 0.25
"""Shares of Ray Tune's overhead."""
SECONDS_BETWEEN_LOOKS = 0.2
PROGRAMS = ("nothing", "farthing", "ray tune", "ray tune, lean")
"""The lean one reuses its actors and writes no logs for other tools, which Ray Tune does unless it is told not to."""


def run(*, seeds: int, quick: bool) -> Result:
    missing = missing_package("ray") or missing_package("pyarrow")
    if missing:
        return Result(figures={}, bars=[], left_out=[f"Ray's overhead: {missing}"])
    trials = QUICK_TRIALS if quick else TRIALS
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
    for seed in range(seeds):
        for name in PROGRAMS:
            samples[name].append(_measured(name, trials=trials, seed=seed))
    figures = {name: _figures(samples[name], samples["nothing"], trials) for name in PROGRAMS[1:]}
    return Result(figures={"seconds a trial on Ray": figures}, bars=_bars(samples, trials), left_out=[])


def _measured(name: str, *, trials: int, seed: int) -> dict[str, float]:
    program = ["-m", "benchmarks.speed._ray_program", name, str(trials), str(WORKERS), str(seed)]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *program], stdout=output, stderr=subprocess.STDOUT)
        used: dict[tuple[int, str], float] = {}
        while process.poll() is None:
            used |= _cpu_below(process.pid)
            time.sleep(SECONDS_BETWEEN_LOOKS)
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise RuntimeError(f"{name} failed: {said[-2000:]}")
    return {"wall": json.loads(said.strip().splitlines()[-1])["wall"], "cpu": sum(used.values())}


def _cpu_below(root: int) -> dict[tuple[int, str], float]:
    """CPU seconds so far of a process and all below it, by process id and start."""
    stats = {
        int(entry.name): stat for entry in Path("/proc").iterdir() if entry.name.isdecimal() if (stat := _stat(entry))
    }
    below, found = {root}, {}
    for pid in sorted(stats, key=lambda pid: int(stats[pid][19])):  # parents are older than their children
        if pid in below or int(stats[pid][1]) in below:
            below.add(pid)
            found[pid, stats[pid][19]] = (int(stats[pid][11]) + int(stats[pid][12])) / os.sysconf("SC_CLK_TCK")
    return found


def _stat(process: Path) -> list[str] | None:
    """The fields after the name, from the state on."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _figures(samples: list[dict[str, float]], without: list[dict[str, float]], trials: int) -> dict[str, Any]:
    return {
        "wall": Spread.of(sample["wall"] / trials for sample in samples).to_json(),
        "CPU": Spread.of(cpu / trials for cpu in _cpu(samples, without)).to_json(),
    }


def _cpu(samples: list[dict[str, float]], without: list[dict[str, float]]) -> list[float]:
    """Above the middle of the programs that only start Ray: single ones differ by some seconds."""
    base = Spread.of(sample["cpu"] for sample in without).median
    return [sample["cpu"] - base for sample in samples]


def _bars(samples: dict[str, list[dict[str, float]]], trials: int) -> list[Bar]:
    bars = []
    for measure in ("wall", "cpu"):
        ours, theirs = (
            [sample["wall"] for sample in samples[name]]
            if measure == "wall"
            else _cpu(samples[name], samples["nothing"])
            for name in ("farthing", "ray tune")
        )
        ratio = Spread.of(our / their for our, their in zip(ours, theirs, strict=True)).median
        words = "wall time" if measure == "wall" else "CPU"
        bars.append(
            at_most(f"{words} of {trials} empty trials on Ray, of Ray Tune's", limit=BAR, measured=ratio, unit="times")
        )
    return bars
