"""Full trials on SQLite and PostgreSQL beside Optuna's storages: four parameters, one report, one result.

Both sides make whole trials: ask, report and tell, with random search. Every step is durable when it returns, with the
defaults of either library, on the same disk and the same server. The contenders take turns, each in fresh processes and
with a fresh study, for the same number of seconds of wall clock. Ratios are of neighbouring turns, of trials a second,
which mostly wait for the disk, and of the CPU seconds of a trial.

Counted are the calls of fsync and fdatasync in the process that writes, by a library preloaded into it. Over so few
trials SQLite does not yet move its write-ahead log into the file (a checkpoint, once in about a thousand pages), which
costs two more. What a PostgreSQL server syncs on its own is not counted.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bars import Bar, Result, at_most
from benchmarks.measuring import run_program
from benchmarks.problems.data import missing_package
from benchmarks.speed._storage_worker import CONTENDERS, STUDY, create_farthings
from benchmarks.speed._sync_counter import compiled
from benchmarks.spread import Spread
from farthing.errors import FarthingError
from farthing.storage.sql import SqlStorage
from farthing.trials import Measurement, Outcome, State, Suggestion
from tests.postgres import PostgresServer

SECONDS, QUICK_SECONDS = 4.0, 1.5
COUNTED_TRIALS = 40
STORED_TRIALS = 10_000
OPEN_LIMIT = 1.0
SYNC_LIMIT = 3.0
RATIO_LIMIT = 2.0
JOURNAL_LIMIT = 1.0
CPU_LIMIT = 1.2
"""Beside Optuna's journal, which is a file that only grows."""

OPEN = f"""
import sys
from farthing.storage import open_storage
from farthing.trials import History
storage = open_storage(sys.argv[1])
changes = storage.history({STUDY!r})
history = History(storage.load_study({STUDY!r}).problem, changes.trials, events=changes.events, version=changes.version)
assert len(history) == {STORED_TRIALS}
"""

NewAddress = Callable[[], str]


@dataclass(frozen=True)
class Contender:
    """A library and a kind of storage. `new_address` returns an unused address."""

    name: str
    library: str
    new_address: NewAddress
    processes: int = 1


@dataclass(frozen=True)
class Contest:
    """Our contender, and those that it is compared with."""

    name: str
    contenders: tuple[Contender, ...]


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of rounds, in each of which every contender has its turn."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="farthing-bench-")))
        server, left_out = _server(stack)
        contests = list(_contests(folder, server, with_optuna=missing_package("optuna") is None))
        seconds = QUICK_SECONDS if quick else SECONDS
        turns = {contest.name: _turns(contest, rounds=seeds, seconds=seconds) for contest in contests}
        rates = {name: _of_each(found, lambda one: one["trials"] / one["seconds"]) for name, found in turns.items()}
        cpus = {name: _cpu_of_a_trial(found) for name, found in turns.items()}
        cpu = cpus[contests[0].name]
        syncs = _syncs(contests[0], folder)
        opening = _opening(folder, repeats=seeds)
    return Result(
        figures={
            "full trials a second": [_row(contest, rates[contest.name]) for contest in contests],
            "CPU ms a trial": [_row(contest, cpus[contest.name]) for contest in contests],
            "syncs a trial, SQLite and journal": syncs,
            f"opening a study of {STORED_TRIALS} trials, CPU s of the whole process": opening.to_json(),
        },
        bars=[
            *(bar for contest in contests for bar in _ratio_bars(contest, rates[contest.name])),
            *(
                at_most(
                    f"CPU of a full trial, ours over {name}'s, median",
                    limit=CPU_LIMIT,
                    measured=_ratio(cpu, name).median,
                    unit="times",
                )
                for name in cpu
                if "journal" in name
            ),
            at_most("syncs of a full trial", limit=SYNC_LIMIT, measured=syncs.get("farthing"), unit="a trial"),
            at_most(f"opening {STORED_TRIALS} trials", limit=OPEN_LIMIT, measured=opening.median, unit="CPU s"),
        ],
        left_out=[reason for reason in (missing_package("optuna"), left_out) if reason],
    )


def _server(stack: ExitStack) -> tuple[PostgresServer | None, str | None]:
    try:
        return stack.enter_context(PostgresServer(durable=True)), None
    except (FarthingError, ImportError) as error:
        return None, f"PostgreSQL: {error}"


def _contests(folder: Path, server: PostgresServer | None, *, with_optuna: bool) -> Iterator[Contest]:
    def file_address(form: str) -> NewAddress:
        return lambda: form.format(folder / os.urandom(8).hex())

    sqlite = [Contender("farthing", "farthing", file_address("sqlite:///{}.db"))]
    if with_optuna:
        sqlite += [
            Contender("optuna", "optuna", file_address("sqlite:///{}.db")),
            Contender("optuna journal", "optuna", file_address("{}.journal")),
        ]
    yield Contest("SQLite, 1 process", tuple(sqlite))
    for processes in (1, 4) if server else ():
        assert server is not None
        names = ("farthing", "optuna") if with_optuna else ("farthing",)
        contenders = tuple(Contender(name, name, server.new_database, processes) for name in names)
        yield Contest(f"PostgreSQL, {processes} process{'es' if processes > 1 else ''}", contenders)


def _turns(contest: Contest, *, rounds: int, seconds: float) -> dict[str, list[list[dict[str, Any]]]]:
    """What the processes of each contender say in each round. Each round begins with another contender."""
    turns: dict[str, list[list[dict[str, Any]]]] = {contender.name: [] for contender in contest.contenders}
    for number in range(rounds):
        for contender in contest.contenders[:: -1 if number % 2 else 1]:
            turns[contender.name].append(_work(contender, f"{seconds} s"))
    return turns


def _of_each(
    turns: dict[str, list[list[dict[str, Any]]]], figure: Callable[[dict[str, Any]], float]
) -> dict[str, list[float]]:
    """A figure of each round, added up over its processes."""
    return {name: [sum(map(figure, answers)) for answers in rounds] for name, rounds in turns.items()}


def _cpu_of_a_trial(turns: dict[str, list[list[dict[str, Any]]]]) -> dict[str, list[float]]:
    """CPU milliseconds of all processes for each of their trials, in each round; a server's own are not counted."""
    return {
        name: [
            1000 * sum(one["cpu_seconds"] for one in answers) / sum(one["trials"] for one in answers) for answers in of
        ]
        for name, of in turns.items()
    }


def _syncs(contest: Contest, folder: Path) -> dict[str, float | None]:
    library = compiled(folder)
    counted = {}
    for contender in contest.contenders:
        (answer,) = _work(contender, f"{COUNTED_TRIALS} trials", preload=library)
        counted[contender.name] = None if answer["syncs"] is None else answer["syncs"] / answer["trials"]
    return counted


def _work(contender: Contender, order: str, *, preload: Path | None = None) -> list[dict[str, Any]]:
    """The reports of the contender's processes, which begin together on a new study."""
    address = contender.new_address()
    create, _ = CONTENDERS[contender.library]
    create(address)
    environment = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
    command = [sys.executable, "-m", "benchmarks.speed._storage_worker", contender.library, address]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(contender.processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", f"{contender.name} did not start; see above"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(order + "\n")
        worker.stdin.flush()
    return [json.loads(worker.communicate()[0]) for worker in workers]


def _opening(folder: Path, *, repeats: int) -> Spread:
    """CPU seconds of a process that opens a long study and reads its whole history."""
    path = folder / "long.db"
    create_farthings(str(path))
    storage = SqlStorage(f"sqlite:///{path}?synchronous=off")
    outcome = Outcome(State.DONE, value=0.5, measurements=[Measurement(0.5, cost={"training": 1.0}, step=0)])
    for _ in range(STORED_TRIALS):
        storage.add_trial(STUDY, Suggestion({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}), outcome)
    storage.close()
    finished = [run_program([sys.executable, "-c", OPEN, str(path)]) for _ in range(repeats + 1)]
    assert all(program.code == 0 for program in finished), finished[0].last_words
    return Spread.of(program.cpu_seconds for program in finished[1:])  # the first only fills caches


def _row(contest: Contest, rates: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "on": contest.name,
        **{name: str(Spread.of(found)) for name, found in rates.items()},
        **{f"farthing / {name}": str(_ratio(rates, name)) for name in rates if name != "farthing"},
    }


def _ratio_bars(contest: Contest, rates: dict[str, list[float]]) -> Iterator[Bar]:
    for name in rates:
        if name != "farthing":
            limit = JOURNAL_LIMIT if "journal" in name else RATIO_LIMIT
            ratio = _ratio(rates, name).median
            what = f"{contest.name}: trials a second, ours over {name}'s, median"
            yield Bar(what=what, bar=f"≥ {limit:g}", measured=ratio, holds=ratio >= limit)


def _ratio(rates: dict[str, list[float]], other: str) -> Spread:
    return Spread.of(ours / theirs for ours, theirs in zip(rates["farthing"], rates[other], strict=True))
