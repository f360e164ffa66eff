"""Measures a large store: opens 100 000 trials with a million measurements, and runs the commands that read them.

Figures are CPU seconds and the highest memory of whole processes, the start of the interpreter included. The study is
of `ASHA`, whose best is the lowest value. A second one of `TraceKG` has the same trials and went through a run that had
nothing left to do, which stored what the model recommends: `best` of it reads that. The dashboard is a server of its
own; its CPU seconds are those of the answer alone.
"""

import random
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import insert, update

import farthing as ft
from benchmarks.bars import Result, at_most
from benchmarks.measuring import run_program
from benchmarks.speed.dashboard import cpu_seconds, serving_farthing
from benchmarks.spread import Spread
from farthing.extending import Strategy
from farthing.storage import engines, rows, tables
from farthing.storage.lifecycle import Entry
from farthing.storage.transactions import Transactions
from farthing.trials import Measurement, State, Suggestion, Trial

STUDY = "large"
TRIALS, QUICK_TRIALS, POINTS = 100_000, 5_000, 10
BATCH = 5_000
OPEN_LIMIT, MEMORY_LIMIT, COMMAND_LIMIT = 2.5, 300.0, 2.0
SPACE = ft.Space(
    {"lr": ft.Float(1e-5, 1e-1, log=True), "layers": ft.Int(1, 8), "act": ft.Choice("relu", "tanh")},
    fidelities={"epochs": ft.Fidelity(1, POINTS, integer=True, trace=True)},
)
MEMORY = (
    "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')), file=sys.stderr)"
)
"""The peak memory of this program alone: the figure of `getrusage` starts at that of its parent."""
OPEN = "import sys, farthing as ft; assert len(ft.Study.load(sys.argv[1], sys.argv[2]).history)"
EXPORT = "import sys, os, farthing as ft; ft.Study.load(sys.argv[1], sys.argv[2]).export(os.devnull, format='json')"
COMMAND = (
    "import sys; from farthing.cli.app import farthing; "
    "farthing([*{words!r}, '--storage', sys.argv[2]], standalone_mode=False)"
)
COMMANDS = ("list", "best", "show", f"show --trial {QUICK_TRIALS // 2}", "watch --once")
PROGRAMS = {
    "open": OPEN,
    "export as JSON": EXPORT,
    **{f"farthing {line}": COMMAND.format(words=line.split()) for line in COMMANDS},
}


PAGES = {"first page": "", "best": "/best"}
"""Of the dashboard: what a page of a study asks first, and what its largest card asks next."""
OF_A_MODEL = "farthing best, of a stored recommendation"

Measured = dict[str, tuple[Spread, float]]
"""CPU seconds and the highest memory in MB, by name."""


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of repeats."""
    trials = QUICK_TRIALS if quick else TRIALS
    with TemporaryDirectory() as folder:
        path, modelled = Path(folder, "large.db"), Path(folder, "modelled.db")
        fill(path, trials=trials)
        fill(modelled, trials=trials, strategy=ft.TraceKG())
        storing = recommend(modelled, trials=trials)
        measured: Measured = {name: measured_alone(program, path, repeats=seeds) for name, program in PROGRAMS.items()}
        measured[OF_A_MODEL] = measured_alone(PROGRAMS["farthing best"], modelled, repeats=seeds)
        measured |= looks(path, "the dashboard", repeats=seeds)
        measured |= looks(modelled, "the dashboard, of a stored recommendation", repeats=seeds)
    seconds = {name: spread for name, (spread, _) in measured.items()}
    memory = {name: most for name, (_, most) in measured.items()}
    what = f"{trials} trials with {trials * POINTS} measurements"
    return Result(
        figures={
            "trials": trials,
            "measurements": trials * POINTS,
            "CPU seconds": {name: spread.to_json() for name, spread in seconds.items()},
            "CPU seconds of the run that stored a recommendation": storing,
            "MB": memory,
        },
        bars=[
            at_most(f"opening {what}", limit=OPEN_LIMIT, measured=seconds["open"].median, unit="CPU s"),
            at_most(f"opening {what}", limit=MEMORY_LIMIT, measured=memory["open"], unit="MB"),
            at_most(f"exporting {what}", limit=MEMORY_LIMIT, measured=memory["export as JSON"], unit="MB"),
            *(
                at_most(f"{name} of {what}", limit=limit, measured=found, unit=unit)
                for name in seconds
                if name.startswith(("farthing", "the dashboard"))
                for limit, found, unit in (
                    (COMMAND_LIMIT, seconds[name].median, "CPU s"),
                    (MEMORY_LIMIT, memory[name], "MB"),
                )
            ),
        ],
        left_out=[],
    )


def fill(path: Path, *, trials: int, strategy: Strategy | None = None) -> None:
    """A study of finished trials with a curve each, written as the storage would; of `ASHA` unless told."""
    study = ft.Study(SPACE, minimize="error", storage=path, name=STUDY, strategy=strategy or ft.ASHA(), seed=0)
    study.tell(study.ask(), 1.0)
    study.close()
    rng = random.Random(0)
    write(path, (_entry(number, rng) for number in range(1, trials)))


def recommend(path: Path, *, trials: int) -> float:
    """The CPU seconds of a run whose budget is spent already, and which stores what the strategy recommends."""
    began = time.process_time()
    with ft.Study.load(STUDY, path) as study:
        study.run(lambda trial: 0.0, budget=ft.Budget(trials=trials), executor="inline", progress=False)
    return time.process_time() - began


def looks(path: Path, name: str, *, repeats: int) -> Measured:
    """What each of the answers takes a server that was started for it."""
    return {f"{name}, {page}": _looked(path, PAGES[page], repeats=repeats) for page in PAGES}


def _looked(path: Path, page: str, *, repeats: int) -> tuple[Spread, float]:
    seconds, megabytes = list[float](), list[float]()
    for _ in range(repeats):
        with serving_farthing(path) as served:
            origin, _, token = served.enter.partition("/?token=")
            asked = urllib.request.Request(
                f"{origin}/api/studies/{STUDY}{page}", headers={"authorization": f"Bearer {token}"}
            )
            before = cpu_seconds(served.process.pid)
            with urllib.request.urlopen(asked, timeout=600) as answer:
                answer.read()
            seconds.append(cpu_seconds(served.process.pid) - before)
            lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
            megabytes += [int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")]
    return Spread.of(seconds), max(megabytes)


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Adds trials to the one study of a database, as the storage would."""
    database, last, rest = Transactions(engines.database_url(path), patience=60.0), 0, iter(entries)
    while batch := list(islice(rest, BATCH)):
        database.write(lambda connection, batch=batch: _insert(connection, batch))  # type: ignore[misc]
        last = batch[-1].trial.number
    counts = {"version": last + 2, "trials": last + 1}
    database.write(lambda connection: connection.execute(update(tables.study), counts))
    database.close()


def _entry(number: int, rng: random.Random) -> Entry:
    params = {"lr": 10 ** rng.uniform(-5, -1), "layers": rng.randint(1, 8), "act": rng.choice(["relu", "tanh"])}
    now = 1.7e9 + number
    points = tuple(
        Measurement(rng.random(), {"training": rng.random()}, fidelity={"epochs": step + 1}, sequence=step, time=now)
        for step in range(POINTS)
    )
    suggestion = Suggestion(params, {"epochs": POINTS}, note={"rung": 1})
    return Entry(Trial(number, suggestion, State.DONE, measurements=points, value=points[-1].value, finished_at=now))


def _insert(connection: Any, entries: list[Entry]) -> None:
    connection.execute(insert(tables.trial), [_stamped(rows.trial_row(entry), entry) for entry in entries])
    connection.execute(insert(tables.measurement), list(_points(entries)))


def _points(entries: list[Entry]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        for point in entry.trial.measurements:
            yield _stamped(rows.measurement_row(entry.trial.number, point), entry)


def _stamped(row: rows.Row, entry: Entry) -> dict[str, Any]:
    return {**row, "study_id": 1, "version": entry.trial.number + 1}


def measured_alone(program: str, path: Path, *, repeats: int) -> tuple[Spread, float]:
    """CPU seconds over the repeats, and the highest memory in MB."""
    command = [sys.executable, "-c", f"{program}\n{MEMORY}", STUDY, str(path)]
    ended = [run_program(command) for _ in range(repeats)]
    failed = next((each for each in ended if each.code), None)
    if failed is not None:
        raise RuntimeError(f"a program that is measured must succeed: {failed.last_words}")
    kilobytes = max(int(each.errors.splitlines()[-1]) for each in ended)
    return Spread.of([each.cpu_seconds for each in ended]), kilobytes * 1024 / 1e6
