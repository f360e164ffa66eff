"""Makes forty_trials.db.xz and forty_trials.json: 40 trials of each strategy, and the ten that it suggests next.

    python tests/data/make_forty_trials.py TraceKG BOCA  # what these suggest next, after a change of their rules
    python tests/data/make_forty_trials.py               # everything anew, before a schema changes

The study of a strategy that has none yet is made too. A commit that makes suggestions again names the strategies. Those
of all others stay, bit for bit.
"""

import hashlib
import json
import lzma
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.baselines.bandits import RestartedGPUCB
from farthing.extending import OnlineStrategy, Strategy
from farthing.names import BASELINES, ONLINE_STRATEGIES, STRATEGIES
from farthing.testing.strategy_contract import MIXED_SPACE, learning_curve

HERE = Path(__file__).parent
STUDIES, SUGGESTIONS = HERE / "forty_trials.db.xz", HERE / "forty_trials.json"
STORED, NEXT, ROUNDS = 40, 10, 60
ONLINE_BASELINES = {name for name, home in BASELINES.items() if "bandits" in home}
STAGED_SPACE = ft.Space(
    stages={
        "prepare": {"rate": ft.Float(1e-4, 1e-1, log=True), "layers": ft.Int(1, 3)},
        "train": {"optimizer": ft.Choice("adam", "sgd"), "momentum": ft.Float(0.0, 0.99, when={"optimizer": "sgd"})},
        "finish": {"units": ft.Int(4, 64, log=True)},
    }
)
OWN_SPACES = dict.fromkeys(["PrefixEI", "LaMBO", "StagedBO", "EEIPU"], STAGED_SPACE)
WITH_ARGUMENTS: dict[str, Strategy] = {
    "PB2": ft.PB2(population=6, interval=3),
    "PB2.paper": ft.PB2.paper(population=6, interval=3),
    "PBT": ft.PBT(population=6, interval=3),
    "Clone": ft.Clone(population=6, interval=3),
    "LaMBO": ft.LaMBO(restart=5),
}
SEVERAL: dict[str, Any] = {
    "minimize": "error",
    "maximize": "speed",
    "constraints": {"memory": ft.AtMost(40.0), "runs": ft.Succeeds()},
}
ONE_VALUE: dict[str, Any] = {"minimize": "error"}
OWN_AIMS = dict.fromkeys(["LogEHVI", "ParetoHalving"], SEVERAL)
NAMES = sorted({*STRATEGIES, *BASELINES, *WITH_ARGUMENTS} - ONLINE_BASELINES)
ONLINE_SPACE = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "kind": ft.Choice("a", "b")})
ONLINE_WITH_ARGUMENTS: dict[str, OnlineStrategy] = {
    "CEGPUCB.paper": ft.CEGPUCB.paper(bandwidth=0.1, climbs=0),
    "RestartedGPUCB": RestartedGPUCB(block=25),
}
ONLINE_NAMES = sorted({*ONLINE_STRATEGIES, *ONLINE_BASELINES, *ONLINE_WITH_ARGUMENTS})
ARMS = [{"rate": rate, "kind": kind} for rate in (0.01, 0.1, 0.3, 1.0) for kind in "ab"]


class Asked:
    """Asks for one trial after the other, and tells its result only when the next one is asked for.

    So there is a trial in flight, as with two workers; a strategy that waits for it is told first.
    """

    def __init__(self, study: ft.Study) -> None:
        self._study = study
        self._in_flight: list[ft.RunningTrial] = []

    def next(self) -> ft.RunningTrial:
        asked = self._study.ask(count=1)
        if not asked:
            self.tell()
            asked = self._study.ask(count=1)
        self.tell()
        self._in_flight = asked
        return asked[0]

    def tell(self) -> None:
        for trial in self._in_flight:
            self._tell(trial)
        self._in_flight = []

    def _tell(self, trial: ft.RunningTrial) -> None:
        cost = 1.0 + 0.5 * float(trial.params["layers"])
        if trial.number % 7 == 6:
            self._study.tell(trial, failure="diverged")
        elif "epochs" in trial.fidelity:
            epochs = range(1, int(trial.fidelity["epochs"]) + 1)
            trace = [({"epochs": epoch}, self._told(trial.params, {"epochs": epoch})) for epoch in epochs]
            self._study.tell(trial, cost=cost * len(epochs), trace=trace)
        else:
            self._study.tell(trial, self._told(trial.params, {}), cost=cost)

    def _told(self, params: Mapping[str, Any], fidelity: dict[str, float]) -> float | dict[str, float]:
        error = learning_curve(params, fidelity)
        if self._study.problem.is_simple:
            return error
        return {"error": error, "speed": 1.0 / (params["layers"] * params["units"]), "memory": params["units"]}


def new_study(name: str, storage: str) -> ft.Study:
    return ft.Study(
        OWN_SPACES.get(name, MIXED_SPACE),
        **OWN_AIMS.get(name, ONE_VALUE),
        strategy=WITH_ARGUMENTS.get(name, name),
        storage=storage,
        name=name,
        seed=11,
    )


def next_trials(study: ft.Study) -> Iterator[dict[str, Any]]:
    asked = Asked(study)
    for _ in range(NEXT):
        number = asked.next().number
        trial = study.trials[number]
        yield {
            "params": dict(trial.params),
            "fidelity": dict(trial.fidelity),
            "resume_from": trial.resume_from,
            "note": trial.note,
        }


def online_tuner(name: str, storage: str) -> ft.OnlineTuner:
    """What a validation costs is given, because the clock must not decide."""
    return ft.OnlineTuner(
        ONLINE_SPACE,
        rounds=ROUNDS,
        strategy=ONLINE_WITH_ARGUMENTS.get(name, name),
        candidates=ARMS if name in ("EXP3S", "EpsilonGreedy", "Softmax", "UCB1") else None,
        validation_cost=0.02,
        storage=storage,
        name=name,
        seed=11,
    )


def play(tuner: ft.OnlineTuner, rounds: int) -> Iterator[dict[str, Any]]:
    """The value is best at a rate that grows from round to round."""
    for decision in islice(tuner, rounds):
        yield {"round": decision.round, "params": dict(decision.params), "measure": decision.measure}
        if decision.measure:
            rate, kind = decision.params["rate"], decision.params["kind"]
            decision.observe(-abs(rate - 0.1 - decision.round / ROUNDS) - 0.1 * (kind == "b"))


def make_studies(names: list[str], database: Path) -> None:
    """Those that the database lacks."""
    storage = f"sqlite:///{database}"
    there = {found.record.name for found in ft.studies(storage)}
    for name in names:
        if name not in there:
            make_study(name, storage)
    if not there.issuperset(names):
        keep(database)


def make_study(name: str, storage: str) -> None:
    if name in ONLINE_NAMES:
        list(play(online_tuner(name, storage), STORED))
        return
    with new_study(name, storage) as study:
        asked = Asked(study)
        for _ in range(STORED):
            asked.next()
        asked.tell()


def keep(database: Path) -> None:
    _take_out_the_machine(database)
    STUDIES.write_bytes(lzma.compress(database.read_bytes(), preset=9))


def _take_out_the_machine(database: Path) -> None:
    """Folders and owners; online runs are given back, so that they are taken up anywhere."""
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE study SET settings = '{}'")
        connection.execute("UPDATE trial SET owner = 'ada'")
        connection.execute(
            "UPDATE trial SET state = 'pending', owner = NULL, lease_until = NULL, lease = NULL WHERE state = 'running'"
        )
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def suggested_next(name: str, folder: Path) -> list[dict[str, Any]]:
    """What the stored study of that name suggests, in a copy: it is written to."""
    database = folder / f"{name}.db"
    database.write_bytes(lzma.decompress(STUDIES.read_bytes()))
    storage = f"sqlite:///{database}"
    if name in ONLINE_NAMES:
        return list(play(online_tuner(name, storage), NEXT))
    with ft.Study.load(name, storage) as study:
        return list(next_trials(study))


def rounding() -> str:
    """The same wherever numbers are rounded alike: there suggestions are the same to the last bit."""
    A = np.random.default_rng(0).normal(size=(60, 60))
    L = np.linalg.cholesky(A @ A.T + 60.0 * np.eye(60))
    found = [A @ A.T, L, np.linalg.solve(L, A), np.exp(A), np.log(np.abs(A)), np.sin(A)]
    return hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()[:16]


def make_suggestions(names: list[str], folder: Path) -> None:
    expected = json.loads(SUGGESTIONS.read_text()) if SUGGESTIONS.exists() else {}
    for name in names:
        expected[name] = [{"rounding": rounding()}, *suggested_next(name, folder)]
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(one) for one in expected[name]) + "\n]"
        for name in sorted(expected)
    ]
    SUGGESTIONS.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        database, named = Path(folder) / "studies.db", sys.argv[1:]
        if named:
            database.write_bytes(lzma.decompress(STUDIES.read_bytes()))
        make_studies(named or [*NAMES, *ONLINE_NAMES], database)
        make_suggestions(named or [*NAMES, *ONLINE_NAMES], Path(folder))
