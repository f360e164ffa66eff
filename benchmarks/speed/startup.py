"""Measures start-up: CPU seconds of whole processes, the start of the interpreter included."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.bars import Bar, Result, at_most, none_of
from benchmarks.measuring import Finished, run_program
from benchmarks.problems.data import missing_package
from benchmarks.speed._plain_worker import HEAVY
from benchmarks.spread import Spread

HELP_LIMIT, IMPORT_LIMIT = 0.2, 0.1
PROGRAMS = {
    "bare python": ("-c", "pass"),
    "farthing --help": ("-m", "farthing", "--help"),
    "import farthing": ("-c", "import farthing"),
    "import farthing, use Study": ("-c", "import farthing; farthing.Study"),
    "import optuna": ("-c", "import optuna"),
}
IMPORTED = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)")


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of repeats, in which the programs take turns."""
    missing = missing_package("optuna")
    programs = {name: program for name, program in PROGRAMS.items() if not (missing and "optuna" in name)}
    seconds = measured_seconds(programs, repeats=seeds)
    worker = plain_worker()
    return Result(
        figures={
            "CPU seconds": {name: spread.to_json() if spread else None for name, spread in seconds.items()},
            "worker of a plain function": worker,
        },
        bars=_bars(seconds, worker),
        left_out=[missing] if missing else [],
    )


def measured_seconds(programs: dict[str, tuple[str, ...]], *, repeats: int) -> dict[str, Spread | None]:
    """CPU seconds of each program after a first run that only fills caches; None for one that fails."""
    working = [name for name, program in programs.items() if _python(program).code == 0]
    samples: dict[str, list[float]] = {name: [] for name in working}
    for _ in range(repeats):
        for name in working:
            samples[name].append(_python(programs[name]).cpu_seconds)
    return {name: Spread.of(samples[name]) if name in samples else None for name in programs}


def heavy_imports(program: Sequence[str]) -> list[str] | None:
    """The heavy packages that a program imports; None if it fails."""
    ended = _python(("-X", "importtime", *program))
    return None if ended.code else _heavy(IMPORTED.findall(ended.errors))


def plain_worker() -> dict[str, Any]:
    """The imports and CPU seconds of a worker process at the start of a plain function, or why they are not known."""
    ended = _python(("-m", "benchmarks.speed._plain_worker"))
    found: dict[str, Any] = {"failed": ended.last_words} if ended.code else json.loads(ended.output)
    return found


def _bars(seconds: dict[str, Spread | None], worker: dict[str, Any]) -> list[Bar]:
    from_worker = None if "failed" in worker else [name for name in HEAVY if worker[name]]
    return [
        at_most("farthing --help", limit=HELP_LIMIT, measured=_median(seconds["farthing --help"]), unit="CPU s"),
        at_most("import farthing", limit=IMPORT_LIMIT, measured=_median(seconds["import farthing"]), unit="CPU s"),
        *(
            none_of(f"{name} imports", unwanted=HEAVY, found=heavy_imports(PROGRAMS[name]))
            for name in ("farthing --help", "import farthing")
        ),
        none_of("a worker of a plain function imports", unwanted=HEAVY, found=from_worker),
    ]


def _median(spread: Spread | None) -> float | None:
    return spread.median if spread else None


def _heavy(modules: Iterable[str]) -> list[str]:
    packages = {module.partition(".")[0] for module in modules}
    return [name for name in HEAVY if name in packages]


def _python(program: Sequence[str]) -> Finished:
    return run_program([sys.executable, *program])
