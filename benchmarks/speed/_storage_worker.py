"""One process of the storage benchmark: runs full trials one after another until its order is done.

    python -m benchmarks.speed._storage_worker CONTENDER ADDRESS

It says `ready`, waits for an order in one line (`3.0 s` or `40 trials`), and answers with its results.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, takewhile
from typing import Any

from benchmarks.speed._sync_counter import syncs

STUDY = "benchmark"
PARAMETERS = ("a", "b", "c", "d")
WARM_UP = 6
"""Trials before the first that is measured. With its sixth a study writes down how long its trials take, as it does
four times in its first thousand: that is no part of a trial."""

FullTrial = Callable[[], None]
"""Asks for four parameters, reports once and tells the result; each step durable when it returns."""


def farthings(address: str) -> FullTrial:
    import farthing as ft

    study = ft.Study.load(STUDY, address)

    def full_trial() -> None:
        trial = study.ask()
        trial.report(0.5, step=0)
        study.tell(trial, 0.5)

    return full_trial


def create_farthings(address: str) -> None:
    import farthing as ft

    space = ft.Space({name: ft.Float(0.0, 1.0) for name in PARAMETERS})
    ft.Study(space, minimize="value", storage=address, name=STUDY, strategy=ft.Random(), seed=0).close()


def optunas(address: str) -> FullTrial:
    import optuna

    study = optuna.load_study(
        study_name=STUDY, storage=_optuna_storage(address), sampler=optuna.samplers.RandomSampler(seed=0)
    )

    def full_trial() -> None:
        trial = study.ask()
        for name in PARAMETERS:
            trial.suggest_float(name, 0.0, 1.0)
        trial.report(0.5, 0)
        study.tell(trial, 0.5)

    return full_trial


def create_optunas(address: str) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name=STUDY, storage=_optuna_storage(address))


def _optuna_storage(address: str) -> Any:
    """Optuna's relational storage if the address is a URL, otherwise a file of its journal."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if "://" not in address:
        return optuna.storages.JournalStorage(JournalFileBackend(address))
    return optuna.storages.RDBStorage(address.replace("postgresql://", "postgresql+psycopg://"))


CONTENDERS = {"farthing": (create_farthings, farthings), "optuna": (create_optunas, optunas)}


def _turns(order: str) -> Iterator[int]:
    """Yields once for each trial of an order: `3.0 s` or `40 trials`."""
    amount, unit = order.split()
    if unit == "trials":
        return iter(range(int(amount)))
    deadline = time.perf_counter() + float(amount)
    return takewhile(lambda _: time.perf_counter() < deadline, count())


def main(contender: str, address: str) -> None:
    full_trial = CONTENDERS[contender][1](address)
    for _ in range(WARM_UP):
        full_trial()
    print("ready", flush=True)
    order = sys.stdin.readline()
    began, cpu_before, syncs_before = time.perf_counter(), time.process_time(), syncs()
    trials = sum(1 for _ in _turns(order) if full_trial() is None)
    print(
        json.dumps(
            {
                "trials": trials,
                "seconds": time.perf_counter() - began,
                "cpu_seconds": time.process_time() - cpu_before,
                "syncs": None if syncs_before is None else (syncs() or 0) - syncs_before,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
