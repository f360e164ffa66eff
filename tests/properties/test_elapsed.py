"""The share of the time that is left follows from all trials, however a study grows and whoever asked before."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from farthing import Float, Space, State, Trial
from farthing.extending import History, Remaining, Suggestion
from farthing.strategies.shared.effort import share_left
from farthing.trials import Problem

PROBLEM = Problem(Space({"x": Float(0, 1)}))
TIMES = st.integers(0, 20).map(float)


def share_of_all(history: History, seconds: float) -> float:
    ended = max((trial.finished_at or trial.opened_at for trial in history), default=0.0)
    elapsed = ended - min((trial.opened_at for trial in history), default=0.0)
    return min(1.0, seconds / (seconds + elapsed))


@st.composite
def histories(draw: st.DrawFn) -> list[History]:
    found = [History(PROBLEM)]
    for _ in range(draw(st.integers(1, 6))):
        before = draw(st.sampled_from(found[-2:]))
        places = draw(st.sets(st.integers(0, len(before) + 1), max_size=3)) if len(before) else {0}
        numbers = [place for place in sorted(places) if place < len(before)] or [len(before)]
        trial = Trial(0, Suggestion({"x": 0.5}), State.RUNNING)
        new = [
            replace(trial, number=number, opened_at=draw(TIMES), finished_at=draw(st.none() | TIMES))
            for number in numbers
        ]
        found.append(before.updated(new, version=before.version + 1))
    return found


@given(histories(), st.randoms(use_true_random=False))
def test_the_share_that_is_left_is_that_of_all_trials(grown: list[History], order) -> None:
    asked = [history for history in grown for _ in range(2)]
    order.shuffle(asked)
    for history in [*grown, *asked]:
        assert share_left(history, Remaining(seconds=30.0)) == share_of_all(history, 30.0)
