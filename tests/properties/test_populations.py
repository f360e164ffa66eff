"""Populations under every order of completions, with failures: none gets stuck."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.costs import Remaining
from farthing.extending import Randomness
from farthing.strategies import strategy_from_json
from farthing.strategies.population import PopulationStrategy
from farthing.strategies.population.members import place_of
from farthing.strategies.population.strategy import MOST_REPEATS
from farthing.trials import History, Problem, State, Suggestion, Trial

SPACE = ft.Space(
    {"x": ft.Float(0, 1), "n": ft.Int(1, 3), "kind": ft.Choice("a", "b"), "z": ft.Float(0, 1, when={"kind": "b"})},
    fidelities={"epochs": ft.Fidelity(1, 6, integer=True, trace=True)},
)
INTERVALS = 3


@st.composite
def populations(draw: st.DrawFn, *classes: Any, mode: str | None = None) -> PopulationStrategy:
    """PB2 is left to the tests that need it: the loop is the same, and its model takes time."""
    cls = draw(st.sampled_from(classes or (ft.PBT, ft.Clone)))
    return cls(  # type: ignore[no-any-return]
        population=draw(st.integers(1, 6)),
        interval=2,
        quantile=draw(st.sampled_from([0.1, 0.25, 0.5])),
        mode=mode or draw(st.sampled_from(["sync", "async"])),
    )


class Runner:
    """A study that is run by hand: what is open ends in an order that the test chooses.

    `gone` are the trials whose checkpoints would have been deleted by now.
    """

    def __init__(self, strategy: PopulationStrategy, seed: int) -> None:
        self.strategy, self.rng = strategy, Randomness(seed)
        self.history = History(Problem(SPACE, value="error", seed=seed))
        self.gone: set[int] = set()

    def ask(self, count: int) -> None:
        suggestions = list(self.strategy.suggest(self.history, Remaining(), count, self.rng))
        assert suggestions == list(self.strategy.suggest(self.history, Remaining(), count, self.rng))
        assert self.gone.isdisjoint(each.resume_from for each in suggestions if each.resume_from is not None)
        self._put(
            Trial(number, stored(suggestion), State.RUNNING)
            for number, suggestion in enumerate(suggestions, start=len(self.history))
        )

    def end(self, trial: Trial, state: State, value: float) -> None:
        self._put([Trial(trial.number, trial.suggestion, state, value=value if state is State.DONE else None)])
        needed = self.strategy.resumable(self.history) | {trial.resume_from for trial in self.history.in_flight}
        self.gone |= {done.number for done in self.history.done} - needed

    def successes(self) -> list[tuple[int, int]]:
        return [(t.note["member"], t.note["interval"]) for t in self.history if t.state is State.DONE]

    def _put(self, trials: Iterable[Trial]) -> None:
        self.history = self.history.updated(trials, version=self.history.version + 1)


def stored(suggestion: Suggestion) -> Suggestion:
    note = json.loads(json.dumps(suggestion.note))
    return Suggestion(suggestion.params, suggestion.fidelity, resume_from=suggestion.resume_from, note=note)


@st.composite
def runs(
    draw: st.DrawFn, states: st.SearchStrategy[State], strategies: st.SearchStrategy[PopulationStrategy]
) -> Runner:
    """A run to its end with some number of workers, trials ending in any order, in any of the states."""
    runner = Runner(draw(strategies), seed=draw(st.integers(0, 5)))
    workers = draw(st.integers(1, runner.strategy.population + 1))
    while True:
        if free := workers - len(runner.history.in_flight):
            runner.ask(free)
        flying = runner.history.in_flight
        if not flying:
            return runner
        assert len(runner.history) <= runner.strategy.population * INTERVALS * (1 + MOST_REPEATS), "it never ends"
        ends = flying[draw(st.integers(0, len(flying) - 1))]
        runner.end(ends, draw(states), draw(st.integers(-2, 2)) / 2)


ANY = st.sampled_from([State.DONE, State.DONE, State.DONE, State.FAILED, State.LOST, State.PRUNED])


def check(runner: Runner) -> None:
    """What must hold of every population that has nothing more to suggest."""
    check_every_member_came_to_its_end(runner)
    check_sources(runner.history)
    check_recommendation(runner)
    assert not runner.strategy.resumable(runner.history) or not has_finished(runner)


def check_every_member_came_to_its_end(runner: Runner) -> None:
    """Each has trained every interval or failed it; only repeated failure of everybody at one interval ends it before.

    With one worker in async mode, one member may even come to the end while others have given up behind it.
    """
    places = [place for trial in runner.history if (place := place_of(trial))]
    assert len(set(places)) == len(places) == len(runner.history)
    last = {place.member: place for place in places}
    finished = {interval for _, interval in runner.successes()}
    for member in range(runner.strategy.population):
        is_at_end = last[member].interval == INTERVALS
        has_given_up = last[member].repeat == MOST_REPEATS and last[member].interval not in finished
        assert is_at_end or has_given_up


def check_sources(history: History) -> None:
    for trial in history:
        assert SPACE.check(trial.params) == trial.params
        if trial.resume_from is None:
            assert trial.note["interval"] == 1
            continue
        source = history[trial.resume_from]
        assert source.state is State.DONE
        assert source.note["interval"] == trial.note["interval"] - 1


def check_recommendation(runner: Runner) -> None:
    found = runner.strategy.recommend(runner.history)
    done = runner.history.done
    if not done:
        assert found is None
        return
    assert found is not None
    last = max(trial.note["interval"] for trial in done)
    assert found.trial.value == min(t.value for t in done if t.value is not None and t.note["interval"] == last)
    assert found.best_ever is not None
    assert found.best_ever.value == min(t.value for t in done if t.value is not None)


def has_finished(runner: Runner) -> bool:
    latest = {trial.note["member"]: trial for trial in runner.history}
    is_at_end = all(trial.note["interval"] == INTERVALS for trial in latest.values())
    return is_at_end and any(interval == INTERVALS for _, interval in runner.successes())


@given(runs(st.just(State.DONE), populations()))
def test_without_failures_every_member_trains_every_interval_once(runner: Runner) -> None:
    size = runner.strategy.population
    assert sorted(runner.successes()) == [(m, t) for m in range(size) for t in range(1, INTERVALS + 1)]


@given(runs(ANY, populations()))
def test_no_population_gets_stuck(runner: Runner) -> None:
    check(runner)


@settings(max_examples=15)
@given(runs(ANY, populations(ft.PB2)))
def test_no_population_with_a_model_gets_stuck(runner: Runner) -> None:
    check(runner)


@settings(max_examples=15)
@given(populations(ft.PB2, ft.PBT, mode="sync"), st.integers(0, 3), st.data())
def test_in_sync_mode_neither_workers_nor_the_order_of_results_matter(
    strategy: PopulationStrategy, seed: int, data: st.DataObject
) -> None:
    def result(trial: Trial) -> tuple[State, float]:
        """What the work would return: a function of who trains what."""
        member, interval, repeat = trial.note["member"], trial.note["interval"], trial.note.get("repeat", 0)
        has_failed = (7 * member + 3 * interval + repeat + seed) % 5 == 0
        return (State.FAILED if has_failed else State.DONE), trial.params["x"] - interval

    def run(workers: int, *, shuffled: bool) -> list[tuple[Any, ...]]:
        runner = Runner(strategy, seed)
        while True:
            if free := workers - len(runner.history.in_flight):
                runner.ask(free)
            flying = runner.history.in_flight
            if not flying:
                return [(t.params, t.resume_from, t.note["member"], t.note["interval"]) for t in runner.history]
            ends = flying[data.draw(st.integers(0, len(flying) - 1)) if shuffled else 0]
            runner.end(ends, *result(ends))

    expected = run(strategy.population, shuffled=False)
    assert run(data.draw(st.integers(1, strategy.population + 2)), shuffled=True) == expected


@given(populations(ft.PB2, ft.PBT, ft.Clone))
def test_a_strategy_survives_its_json_form(strategy: PopulationStrategy) -> None:
    assert strategy_from_json(json.loads(json.dumps(strategy.to_json()))) == strategy
