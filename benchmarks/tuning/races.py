"""`python -m benchmarks.tuning.races`: from a guess, a race of settings from the untrained state instead of probes.

Eight settings, the start and seven all over the space, train for some rounds each from the same beginning; the best of
them has the rounds that are left. What they train is lost, but for the winner's own rounds where its state is kept. On
`TO_CHOOSE`, whose tasks are not reported, with seeds below 1000. The rows are in
`benchmarks/results/tuning-races.jsonl.xz`: accuracies, which the summary compares with keeping the start.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.online.training_suite import LAST, PRICE, Session
from benchmarks.online.trainings import TO_CHOOSE, Task, Training
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from farthing.trials import Params

SUITE = "tuning-races"
SEEDS = range(6)
KEPT, PROBES = "keep the start", "the default, from a guess, with save and restore"
RACES = {
    "a race of 8 for 3 rounds, the best 3 for 6 more": ((8, 3), (3, 6)),
    "a race of 8 for 1 round, the best 3 for 2 more": ((8, 1), (3, 2)),
    "a race of 8 for 3 rounds, the winner from the beginning": ((8, 3),),
}
FROM_THE_BEGINNING = "from the beginning"


@dataclass
class Racer:
    params: Params
    training: Training
    rounds: int = 0
    value: float = -np.inf

    def train(self, rounds: int) -> None:
        for _ in range(rounds):
            self.rounds += 1
            self.training.train(self.rounds, self.params)
        value = self.training.validate(self.rounds)
        self.value = value if np.isfinite(value) else -np.inf


@dataclass(frozen=True)
class Raced:
    """One rule on one task from one start."""

    rule: str
    task: Task
    start: str
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        problem = f"{self.task.name}, {self.start} start"
        return {"suite": SUITE, "problem": problem, "method": self.rule, "seed": self.seed, "settings": {}}

    @property
    def title(self) -> str:
        return f"{self.rule}: {self.identity['problem']}, seed {self.seed}"

    def accuracy(self) -> float:
        session = Session(self.task, self.task.starts[self.start], self.seed, PRICE)
        if self.rule == KEPT:
            return session.played(lambda t: session.start).accuracy
        if self.rule == PROBES:
            return session.tuned(None, can_undo=True, is_guess=True).accuracy
        return self._raced()

    def _raced(self) -> float:
        begin = self.task.begin
        racers = [Racer(params, begin(self.seed)) for params in (self.task.starts[self.start], *self._spread(7))]
        for count, rounds in RACES[self.rule]:
            racers = sorted(racers, key=lambda one: -one.value)[:count]
            for one in racers:
                one.train(rounds)
        winner = max(racers, key=lambda one: one.value)
        trained = sum(count * rounds for count, rounds in RACES[self.rule])
        if self.rule.endswith(FROM_THE_BEGINNING):
            winner = Racer(winner.params, begin(self.seed))
        last = self.task.rounds - (trained - winner.rounds)
        winner.train(last - LAST - winner.rounds)
        accuracy = []
        for t in range(last - LAST + 1, last + 1):
            winner.train(1)
            accuracy.append(winner.training.test(t))
        return fmean(accuracy)

    def _spread(self, count: int) -> Sequence[Params]:
        """One in each of as many parts of every range."""
        encoder, rng = self.task.space.encoder, np.random.default_rng([self.seed, 77])
        parts = rng.permuted(np.tile(np.arange(count)[:, None], encoder.dimension), axis=0)
        return encoder.decode_unit((parts + rng.random(parts.shape)) / count)


def result_of(raced: Raced) -> Record:
    return {**raced.identity, "accuracy": raced.accuracy(), "versions": versions(("numpy", "scikit-learn")), **commit()}


def everything() -> Iterator[Raced]:
    for task in TO_CHOOSE:
        if not task.missing() and not task.drifts:
            for start in task.starts:
                for seed in SEEDS:
                    yield from (Raced(rule, task, start, seed) for rule in (KEPT, PROBES, *RACES))


def row_of(rule: str, records: Sequence[Record]) -> list[str]:
    """For each start the mean and median gain over keeping it, the worst, and how many are more than 0.02 below."""
    found = {(one["problem"], one["seed"], one["method"]): float(one["accuracy"]) for one in records}
    cells = []
    for start in ("poor", "plausible"):
        here = [(p, seed) for p, seed, method in found if method == rule and p.endswith(f"{start} start")]
        gains = [found[p, seed, rule] - found[p, seed, KEPT] for p, seed in here]
        below = sum(gain < -0.02 for gain in gains)
        cell = f"{fmean(gains):+.3f}, {median(gains):+.3f} ({min(gains):+.3f}), {below} of {len(gains)}"
        cells.append(cell.replace("-", "−"))
    return [rule, *cells]


def summary() -> str:
    records = read_records(results_path(SUITE))
    return table([["rule", "poor", "plausible"], *(row_of(rule, records) for rule in (PROBES, *RACES))])


def main() -> int:
    make_missing(results_path(SUITE), list(everything()), result_of=result_of)
    print(summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
