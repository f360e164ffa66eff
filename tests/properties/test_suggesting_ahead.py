"""Runs with several workers, whatever the order in which they end: every suggestion can be made again from its note."""

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.costs import FakeClock
from farthing.execution import Ended, InlineExecutor, Job
from farthing.execution.executor import Listener
from farthing.extending import Strategy
from farthing.session.questions import Knowledge
from farthing.testing import check_replay
from farthing.trials import Attempt

PLAIN = ft.Space({"x": ft.Float(0, 1), "n": ft.Int(1, 30), "kind": ft.Choice("a", "b")})
CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
STAGED = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1)}})


@pytest.fixture(scope="module", autouse=True)
def saving_from_the_start() -> Iterator[None]:
    """Studies as short as these would neither save effort nor use anything stale: here they do both, early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farthing.strategies.shared.effort.FREE", 0.02)
        patch.setattr("farthing.running.suggestions.KNOWN_FOR_EACH_MISSED", 4)
        yield


class ShuffledExecutor:
    """Has several jobs at once, like worker processes. One of them, drawn at random, runs to its end in each `wait`.

    `thinks` says how often `wait` lets a suggestion that is under way come first.
    """

    works_in_wait = False

    def __init__(self, places: list[InlineExecutor], rng: random.Random, *, thinks: float) -> None:
        self._places, self._rng, self._thinks = places, rng, thinks
        self.workers = len(places)
        self._woken = threading.Event()

    @property
    def free(self) -> int:
        return sum(place.free for place in self._places)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(attempt for place in self._places for attempt in place.running)

    def submit(self, job: Job) -> None:
        next(place for place in self._places if place.free).submit(job)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        busy = [place for place in self._places if place.running]
        if not busy or (self.free and self._rng.random() < self._thinks):
            self._woken.wait(timeout)
            self._woken.clear()
            return []
        return self._rng.choice(busy).wait(listener)

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        for place in self._places:
            place.close()


class Work:
    """A smooth function that takes some seconds of a clock of its own, and now and then fails or stops early."""

    def __init__(self, seconds: float) -> None:
        self.clock, self._seconds = FakeClock(), seconds

    def __call__(self, trial: ft.RunningTrial) -> float:
        self.clock.advance(self._seconds)
        if trial.number % 7 == 5:
            raise ft.Pruned
        if trial.number % 7 == 6:
            raise ValueError("diverged")
        found = sum((number - 0.3) ** 2 for number in trial.params.values() if isinstance(number, float))
        for epoch in range(1, int(trial.fidelity.get("epochs", 0)) + 1):
            trial.report(found + 1.0 / epoch, epochs=epoch)
        return float(found)


def ran(study: ft.Study, *, workers: int, seed: int, seconds: float, thinks: float = 0.5, trials: int = 14) -> ft.Study:
    work = Work(seconds)
    places = [
        InlineExecutor(work, study.problem, checkpoints=study.checkpoints, clock=work.clock) for _ in range(workers)
    ]
    executor = ShuffledExecutor(places, random.Random(seed), thinks=thinks)
    study.run(work, budget=ft.Budget(trials=trials, seconds=3600), executor=executor, progress=False)
    return study


SECONDS = st.sampled_from([1e-3, 0.1, 1.0, 100.0])
"""Of a trial: too short for any thinking, and long enough for all of it."""


@settings(max_examples=5)
@given(
    workers=st.integers(1, 4),
    seed=st.integers(0, 2**16),
    seconds=SECONDS,
    strategy=st.sampled_from([ft.LogEI(), ft.EIPerCost(), ft.Sobol()]),
)
def test_any_order_of_plain_trials_is_replayed_exactly(
    workers: int, seed: int, seconds: float, strategy: Strategy
) -> None:
    study = ft.Study(PLAIN, minimize="value", strategy=strategy, seed=seed)
    assert check_replay(ran(study, workers=workers, seed=seed, seconds=seconds)) == []


@settings(max_examples=5)
@given(workers=st.integers(1, 4), seed=st.integers(0, 2**16), seconds=SECONDS)
def test_any_order_of_curves_is_replayed_exactly(workers: int, seed: int, seconds: float) -> None:
    for strategy in (ft.TraceKG(), ft.ASHA()):
        study = ft.Study(CURVES, minimize="value", strategy=strategy, seed=seed)
        assert check_replay(ran(study, workers=workers, seed=seed, seconds=seconds, trials=9)) == []


@settings(max_examples=3)
@given(workers=st.integers(1, 3), seed=st.integers(0, 2**16), seconds=SECONDS)
def test_any_order_of_pipelines_is_replayed_exactly(workers: int, seed: int, seconds: float) -> None:
    study = ft.Study(STAGED, minimize="value", strategy=ft.PrefixEI(), seed=seed)
    assert check_replay(ran(study, workers=workers, seed=seed, seconds=seconds, trials=10)) == []


def test_short_trials_are_suggested_ahead_with_little_effort_and_long_ones_with_all_of_it() -> None:
    """Otherwise the properties above say nothing about suggestions that are prepared."""
    short = ran(
        ft.Study(PLAIN, minimize="value", strategy=ft.LogEI(), seed=1), workers=2, seed=1, seconds=1e-4, trials=60
    )
    assert {Knowledge.of(trial).effort for trial in short.trials} == {"ordinary", "several"}
    assert any(_is_stale(short, trial) for trial in short.trials)
    long = ran(
        ft.Study(PLAIN, minimize="value", strategy=ft.LogEI(), seed=1), workers=2, seed=1, seconds=1e4, trials=30
    )
    assert {Knowledge.of(trial).effort for trial in long.trials} == {"ordinary"}


def _is_stale(study: ft.Study, trial: ft.Trial) -> bool:
    """Whether a trial that ran when the suggestion was made had ended before the suggestion was used."""
    running = [number for number, _, _ in Knowledge.of(trial).running]
    ends = [study.trials[number].finished_at or float("inf") for number in running]
    return any(end < trial.opened_at for end in ends)
