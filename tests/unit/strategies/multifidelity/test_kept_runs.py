"""Runs and their standings are kept while a history grows: as if they were worked out again for each history."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.costs import Remaining
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.basket import continuing_saves
from farthing.strategies.multifidelity.halving import Rungs
from farthing.strategies.multifidelity.handover import KeptStandings, suggest_in_haste
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.multifidelity.skill import skill_of
from farthing.trials import Failure, History, Measurement, Problem, State, Suggestion, Trial

PARAMS = {"x": ft.Float(0, 1)}


def problem(*, best_so_far: bool = False) -> Problem:
    epochs = ft.Fidelity(1, 27, integer=True, trace=True, best_so_far=best_so_far)
    return Problem(ft.Space(PARAMS, fidelities={"epochs": epochs}))


PROBLEMS = [problem(), problem(best_so_far=True)]
Step = tuple[str, int, int]
STEPS = st.tuples(
    st.sampled_from(["start", "start", "continue", "report", "finish", "finish", "fail", "lose", "tag"]),
    st.integers(0, 30),
    st.integers(1, 27),
)
"""What happens, to which of the trials that it may happen to, and an amount: of epochs, or of what it costs."""


def grown(history: History, step: Step) -> History:
    """The history after one more step; as it is where there is no trial for it."""
    kind, which, amount = step
    running = history.in_flight
    paused = [trial for trial in history.done if trial.fidelity["epochs"] < 27]
    if kind == "start":
        params = {"x": 0.25 * (which % 4)}  # few, so that some are twins
        return _with(history, Trial(len(history), Suggestion(params, {"epochs": amount}), State.RUNNING))
    if kind == "continue" and paused:
        source = paused[which % len(paused)]
        to = min(27.0, source.fidelity["epochs"] + amount)
        further = Suggestion(source.params, {"epochs": to}, resume_from=source.number)
        return _with(history, Trial(len(history), further, State.RUNNING))
    if kind == "tag" and len(history):
        return _with(history, replace(history[which % len(history)], tags=(str(amount),)))
    if kind in ("report", "finish", "fail", "lose") and running:
        return _with(history, _changed(running[which % len(running)], kind, amount))
    return history


def _with(history: History, trial: Trial) -> History:
    return history.updated([trial], version=history.version + 1)


def _changed(trial: Trial, kind: str, amount: int) -> Trial:
    value = abs(trial.params["x"] - 0.3) + 1.0 / (1 + amount)
    at = {"epochs": float(1 + len(trial.measurements))}
    point = Measurement(value=value, fidelity=at, cost={"training": 0.1 * amount}, sequence=len(trial.measurements))
    measured = replace(trial, measurements=(*trial.measurements, point))
    if kind == "report":
        return measured
    if kind == "finish":
        return replace(measured, state=State.DONE, value=value)
    state = State.FAILED if kind == "fail" else State.LOST
    return replace(trial, state=state, failure=Failure("diverged"))


def histories(steps: Sequence[Step], given: Problem) -> list[History]:
    found = [History(given)]
    for step in steps:
        found.append(grown(found[-1], step))
    return found


def afresh(history: History) -> History:
    """The same trials, of which nothing was worked out yet."""
    return History(history.problem, history, version=history.version)


def plain_runs(history: History) -> list[tuple[Trial, ...]]:
    roots = [history.lineage(trial.number)[0].number for trial in history]
    return [tuple(trial for trial in history if roots[trial.number] == root) for root in dict.fromkeys(roots)]


def plain_standings(history: History, rungs: Rungs) -> list[list[tuple[float, int]]]:
    found: list[list[tuple[float, int]]] = [[] for _ in rungs.levels]
    for run in (Run(history.problem, trials) for trials in plain_runs(history)):
        if run.last is not None:
            reached = history.fidelity_known(run.last)["epochs"]
            points = sorted((point.fidelity["epochs"], point.loss) for point in run.curve)
            for rung, level in enumerate(level for level in rungs.levels if level <= reached):
                found[rung].append((points[bisect_left(points, (level, -inf))][1], run.last.number))
        for failed in run.failed:
            if (rung_of := rungs.rung_of(failed)) is not None:
                found[rung_of].append((inf, failed.number))
    return [sorted(standing) for standing in found]


def plain_shares(history: History) -> list[float]:
    shares = []
    for trial in history.done:
        if trial.resume_from is not None and trial.cost > 0:
            source = history[trial.resume_from]
            before = sum(earlier.cost for earlier in history.lineage(source.number))
            work, done = history.reach(trial), history.reach(source)
            if before > 0 and work > done:
                shares.append((trial.cost - before / done * (work - done)) / before)
    return shares


@pytest.mark.parametrize("given_problem", PROBLEMS, ids=["last", "best so far"])
@given(steps=st.lists(STEPS, max_size=40))
def test_what_is_kept_of_a_history_that_grows_is_what_it_says_itself(given_problem: Problem, steps: list[Step]) -> None:
    for history in histories(steps, given_problem):
        runs, rungs = runs_of(history), Rungs(history, 3, "epochs")
        standings = history.memo(KeptStandings, 3, "epochs", 0.0)
        assert [run.trials for run in runs] == plain_runs(history)
        assert standings.by_rung == plain_standings(history, rungs)
        assert standings.highest == rungs.highest
        assert standings.by_last == {run.last.number: run for run in runs if run.last is not None}
        shares = [one.share for run in runs for one in run.paid_again]
        assert sorted(shares) == pytest.approx(sorted(plain_shares(history)), rel=1e-9)  # the order of factors differs
        assert continuing_saves(history) == (not shares or float(np.median(shares)) < 0.5)


@given(st.lists(STEPS, max_size=30), st.integers(0, 99))
def test_histories_may_be_asked_about_in_any_order(steps: list[Step], seed: int) -> None:
    """A suggestion is made for an earlier history while later ones are looked at."""
    found = histories(steps, PROBLEMS[0])
    for place in np.random.default_rng(seed).permutation(len(found)).tolist()[:12]:
        history = found[place]
        fresh = afresh(history)
        assert runs_of(history) == runs_of(fresh)
        assert skill_of(history) == skill_of(fresh)
        assert history.memo(KeptStandings, 3, "epochs", 0.0) == fresh.memo(KeptStandings, 3, "epochs", 0.0)
        suggested = [suggest_in_haste(one, Remaining(), 3, Randomness(0)) for one in (history, fresh)]
        assert suggested[0] == suggested[1]


def done(number: int, *, epochs: float = 1, resume_from: int | None = None) -> Trial:
    suggestion = Suggestion({"x": 0.1 * (number % 7)}, {"epochs": epochs}, resume_from=resume_from)
    points = [Measurement(value=1.0 / epochs, fidelity={"epochs": epochs}, cost={"training": 1.0})]
    return Trial(number, suggestion, State.DONE, measurements=points, value=1.0 / epochs)


def test_only_runs_whose_trials_changed_are_read_again() -> None:
    history = History(PROBLEMS[0], [done(number) for number in range(100)])
    before = runs_of(history)
    later = history.updated([done(100), done(101, epochs=3, resume_from=7)], version=1)
    after = runs_of(later)
    assert len(after) == 101
    assert [place for place in range(100) if after[place] is not before[place]] == [7]


def test_what_was_returned_stays_as_it_is_when_the_history_grows() -> None:
    history = History(PROBLEMS[0], [done(number) for number in range(9)])
    runs, standings = runs_of(history), history.memo(KeptStandings, 3, "epochs", 0.0)
    lengths = [len(runs), *map(len, standings.by_rung), len(standings.highest)]
    later = history.updated([done(9, epochs=3, resume_from=0), done(10, epochs=9)], version=1)
    assert later.memo(KeptStandings, 3, "epochs", 0.0) != standings
    assert [len(runs), *map(len, standings.by_rung), len(standings.highest)] == lengths


def test_a_trial_that_continues_another_one_than_before_is_read_anew() -> None:
    """No storage does so, and yet a history can be made of anything."""
    history = History(PROBLEMS[0], [done(0), done(1), done(2, epochs=3, resume_from=0)])
    changed = history.updated([done(2, epochs=3, resume_from=1)], version=1)
    for one, members in ((history, [2, 1]), (changed, [1, 2]), (history, [2, 1])):
        assert [len(run.trials) for run in runs_of(one)] == members
        assert one.memo(KeptStandings, 3, "epochs", 0.0) == afresh(one).memo(KeptStandings, 3, "epochs", 0.0)


def test_a_space_that_grew_is_read_anew() -> None:
    history = History(PROBLEMS[0], [done(0), done(1)])
    before = runs_of(history)
    grew = History(PROBLEMS[1], history)
    grew._memos = history._memos
    assert all(run.problem is PROBLEMS[1] for run in runs_of(grew))
    assert all(run.problem is PROBLEMS[0] for run in before)
