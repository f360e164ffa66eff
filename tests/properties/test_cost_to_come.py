"""The rest of the cost of the trials in flight is the sum over them one by one, bit for bit, however a study grows."""

import math
from dataclasses import replace
from statistics import median

from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import Fidelity, Float, Space, State, Trial
from farthing.costs.expected import LATEST, cost_to_come, increments, work_of
from farthing.extending import History, Measurement, Prediction, Suggestion
from farthing.trials import Problem

EPOCHS = 9
PROBLEM = Problem(
    Space({"x": Float(0, 1)}, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)}), measures_cost=False
)
AMOUNTS = st.sampled_from([0.0, 0.1, 1 / 3, 0.7, 3.3, 1e9, 1e-9])


def plain_sum(history: History, *, counts_waiting: bool) -> float:
    """By the definition: what each trial is expected to cost, less what it paid, or its own pace if that says more."""
    done = [trial for trial in history if trial.state is State.DONE and trial.cost > 0.0][-LATEST:]
    work = math.fsum(max(0.0, work_of(history, trial)) for trial in done)
    whole = math.fsum(trial.cost for trial in done) / work if work > 0.0 else None
    states = (State.RUNNING, State.PENDING) if counts_waiting else (State.RUNNING,)
    return math.fsum(
        max(rest(history, trial, whole), at_own_pace(history, trial)) for trial in history if trial.state in states
    )


def rest(history: History, trial: Trial, whole: float | None) -> float:
    paid = trial.cost - trial.costs.get("failed", 0.0)
    if trial.suggestion.predicted_cost is not None:
        return max(0.0, trial.suggestion.predicted_cost.mean - paid)
    if whole is None:
        return 0.0
    source = None if trial.resume_from is None else history[trial.resume_from]
    begun = source.fidelity["epochs"] / EPOCHS if source is not None and source.checkpoint is not None else 0.0
    return max(0.0, whole * max(0.0, trial.fidelity["epochs"] / EPOCHS - begun) - paid)


def at_own_pace(history: History, trial: Trial) -> float:
    rates = [cost / work for cost, work in increments(history, trial) if work > 0.0]
    if not rates or min(rates) <= 0.0:
        return 0.0
    reported = max(point.fidelity["epochs"] / EPOCHS for point in trial.points if point.fidelity)
    return median(rates) * max(0.0, trial.fidelity["epochs"] / EPOCHS - reported)


@st.composite
def trials(draw: st.DrawFn, number: int, known: int) -> Trial:
    epochs = draw(st.integers(1, EPOCHS))
    source = draw(st.none() | st.integers(0, min(number, known) - 1)) if min(number, known) else None
    predicted = draw(st.none() | st.builds(Prediction, AMOUNTS))
    points = tuple(
        Measurement(
            value=1.0,
            cost={"training": draw(AMOUNTS)},
            fidelity={"epochs": epoch},
            attempt=draw(st.sampled_from([1, 1, 1, 2])),
            sequence=epoch,
        )
        for epoch in range(1, draw(st.integers(1, epochs + 1)))
    )
    return Trial(
        number,
        Suggestion({"x": 0.5}, {"epochs": epochs}, resume_from=source, predicted_cost=predicted),
        draw(st.sampled_from([State.RUNNING, State.RUNNING, State.PENDING, State.DONE, State.FAILED, State.PRUNED])),
        attempt=draw(st.sampled_from([1, 1, 1, 2])),
        measurements=points,
        checkpoint=draw(st.sampled_from([None, "c"])),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[History]:
    """One that grows, each trial changed at will, in between a branch of it, and one that has nothing to do with it."""
    found = [History(PROBLEM)]
    for _ in range(draw(st.integers(1, 8))):
        before = draw(st.sampled_from(found[-2:]))
        new = [draw(trials(number, number)) for number in range(len(before), len(before) + draw(st.integers(0, 4)))]
        places = draw(st.sets(st.integers(0, len(before) - 1), max_size=3)) if len(before) else set[int]()
        changed = [draw(trials(place, place)) for place in places]
        twins = [replace(one, number=len(before) + len(new) + at) for at, one in enumerate(new[:1] * 3)]
        found.append(before.updated([*changed, *new, *twins], version=before.version + 1))
    return found


@settings(max_examples=300)
@given(histories(), st.randoms(use_true_random=False))
def test_the_sums_kept_are_those_of_all_trials_one_by_one(grown: list[History], order) -> None:
    asked = [history for history in grown for _ in range(2)]
    order.shuffle(asked)
    for history in [*grown, *asked]:
        for counts_waiting in (True, False):
            kept = cost_to_come(history, counts_waiting=counts_waiting)
            assert kept == plain_sum(history, counts_waiting=counts_waiting)
