"""The overhead of a trial on a Ray cluster, beside Ray Tune's: 100 empty trials with 4 workers.

Every sample is a program of its own, which starts Ray, and the programs take turns. Wall time is that of the run alone.
CPU is that of all processes, Ray's included, less that of a program which only starts and stops Ray. It is read from
the kernel several times a second: Ray ignores the deaths of its children, so that the kernel adds them up nowhere.

Needs `ray[tune]`: `.venv-ray/bin/python -m pip install --constraint constraints.txt 'ray[tune]'`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, Result, at_most
from benchmarks.problems.data import missing_package
from benchmarks.provenance import commit, versions
from benchmarks.records import Record
from benchmarks.resuming import samples_of
from benchmarks.spread import Spread

TRIALS, QUICK_TRIALS, WORKERS = 100, 20, 4
MOST_SEEDS = 3
PACKAGES = ("numpy", "sqlalchemy", "ray")
BAR, GOAL = 0.5, 0.25
"""Shares of Ray Tune's overhead."""
SECONDS_BETWEEN_LOOKS = 0.2
PROGRAMS = ("nothing", "farthing", "ray tune", "ray tune, lean")
"""The lean one reuses its actors and writes no logs for other tools, which Ray Tune does unless it is told not to."""


@dataclass(frozen=True)
class Program:
    """One program, with one seed."""

    name: str
    trials: int
    seed: int

    @property
    def title(self) -> str:
        return f"{self.name}, seed {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"trials": self.trials, "workers": WORKERS}
        return {"problem": "empty trials on Ray", "method": self.name, "seed": self.seed, "settings": settings}


def run(*, seeds: int, quick: bool) -> Result:
    """Full runs are kept in `benchmarks/results/ray-overhead.jsonl.xz`, and only those that it lacks are made."""
    missing = missing_package("ray") or missing_package("pyarrow")
    if missing:
        return Result(figures={}, bars=[], left_out=[f"Ray's overhead: {missing}"])
    trials = QUICK_TRIALS if quick else TRIALS
    wanted = [Program(name, trials, seed) for seed in range(min(seeds, MOST_SEEDS)) for name in PROGRAMS]
    records = samples_of("ray-overhead", wanted, result_of=_measured, keep=not quick)
    samples = {name: [record for record in records if record["method"] == name] for name in PROGRAMS}
    figures = {name: _figures(samples[name], samples["nothing"], trials) for name in PROGRAMS[1:] if samples[name]}
    return Result(figures={"seconds a trial on Ray": figures}, bars=_bars(samples, trials), left_out=[])


def _measured(run: Program) -> Record:
    program = ["-m", "benchmarks.speed._ray_program", run.name, str(run.trials), str(WORKERS), str(run.seed)]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *program], stdout=output, stderr=subprocess.STDOUT)
        used: dict[tuple[int, str], float] = {}
        while process.poll() is None:
            used |= _cpu_below(process.pid)
            time.sleep(SECONDS_BETWEEN_LOOKS)
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise RuntimeError(f"{run.name} failed: {said[-2000:]}")
    wall = json.loads(said.strip().splitlines()[-1])["wall"]
    figures = {"trials": run.trials, "wall": wall, "cpu": sum(used.values())}
    return {"suite": "ray-overhead", **run.identity, **figures, "versions": versions(PACKAGES), **commit()}


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


def _figures(samples: list[Record], without: list[Record], trials: int) -> dict[str, Any]:
    return {
        "wall": Spread.of(sample["wall"] / trials for sample in samples).to_json(),
        "CPU": Spread.of(cpu / trials for cpu in _cpu(samples, without)).to_json(),
    }


def _cpu(samples: list[Record], without: list[Record]) -> list[float]:
    """Above the middle of the programs that only start Ray: single ones differ by some seconds."""
    base = Spread.of(sample["cpu"] for sample in without).median
    return [sample["cpu"] - base for sample in samples]


def _bars(samples: dict[str, list[Record]], trials: int) -> list[Bar]:
    return [
        at_most(f"{words} of {trials} empty trials on Ray, of {peer}'s", limit=BAR, measured=ratio, unit="times")
        for peer, name in (("Ray Tune", "ray tune"), ("a lean Ray Tune", "ray tune, lean"))
        for words, measure in (("wall time", "wall"), ("CPU", "cpu"))
        if (ratio := _ratio(samples, name, measure)) is not None
    ]


def _ratio(samples: dict[str, list[Record]], peer: str, measure: str) -> float | None:
    """Ours to the peer's, the median over the seeds that both have."""
    base = Spread.of(sample["cpu"] for sample in samples["nothing"]).median if measure == "cpu" else 0.0
    theirs = {sample["seed"]: sample[measure] - base for sample in samples[peer]}
    ours = {sample["seed"]: sample[measure] - base for sample in samples["farthing"]}
    ratios = [ours[seed] / theirs[seed] for seed in ours if seed in theirs]
    return Spread.of(ratios).median if ratios else None
