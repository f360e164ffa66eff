import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing import Float, Space, State, Trial
from farthing.errors import InvalidArgument, TrialNotFound
from farthing.extending import History, Measurement, Suggestion
from farthing.trials import Problem
from farthing.trials.history import PART, SharedList

PROBLEM = Problem(Space({"x": Float(0, 1)}), value="error")


def trial(number: int, state: State = State.DONE, *, cost: float = 1.0, resume_from: int | None = None) -> Trial:
    suggestion = Suggestion({"x": 0.5}, resume_from=resume_from)
    return Trial(number, suggestion, state, measurements=(Measurement(cost={"training": cost}),), value=0.5)


def test_an_updated_history_is_a_new_one_and_the_old_one_stays() -> None:
    old = History(PROBLEM, [trial(0, State.RUNNING)], version=1)
    new = old.updated([trial(1, State.RUNNING), trial(0)], version=3)
    assert [t.state for t in old] == [State.RUNNING]
    assert [t.state for t in new] == [State.DONE, State.RUNNING]
    assert (old.version, new.version) == (1, 3)


def test_an_updated_history_equals_one_built_from_all_trials() -> None:
    trials = [trial(0), trial(1, State.RUNNING), trial(2, resume_from=0), trial(3, State.PENDING)]
    grown = History(PROBLEM)
    for version, each in enumerate([trial(0, State.RUNNING), *trials], start=1):
        grown = grown.updated([each], version=version)
    whole = History(PROBLEM, trials)
    assert list(grown) == list(whole)
    assert [t.number for t in grown.in_flight] == [t.number for t in whole.in_flight] == [1, 3]
    assert grown.configurations == whole.configurations == 3
    assert grown.cost == whole.cost == 4.0


def test_the_cost_of_a_history_that_grows_is_the_exact_sum_of_its_trials() -> None:
    draw = Random(0)
    history = History(PROBLEM)
    for version in range(1, 400):
        changed = draw.randrange(len(history) + 1) if draw.random() < 0.4 else len(history)
        cost = 10 ** draw.uniform(-12, 12)
        before, history = history, history.updated([trial(changed, cost=cost)], version=version)
        assert history.cost == math.fsum(one.cost for one in history)
        if draw.random() < 0.2:  # an older history may be asked again
            assert before.cost == math.fsum(one.cost for one in before)


def test_trials_that_ended_are_counted_as_they_change() -> None:
    states = [State.RUNNING, State.DONE, State.FAILED, State.PENDING, State.DONE]
    history = History(PROBLEM, [trial(number, state=state) for number, state in enumerate(states)])
    later = history.updated([trial(0), trial(4, state=State.LOST), trial(5)], version=1)
    for one in (history, later, History(PROBLEM, later)):
        assert one.finished == sum(found.is_finished for found in one)
        assert one.results == len(one.done)
    assert (later.finished, later.results) == (5, 3)


def test_continuations_are_not_configurations() -> None:
    assert History(PROBLEM, [trial(0), trial(1, resume_from=0)]).configurations == 1


def test_the_lineage_of_a_trial_begins_with_the_oldest() -> None:
    history = History(PROBLEM, [trial(0), trial(1), trial(2, resume_from=0), trial(3, resume_from=2)])
    assert [t.number for t in history.lineage(3)] == [0, 2, 3]


def test_a_missing_trial_is_a_clear_error() -> None:
    with pytest.raises(TrialNotFound, match="below the 1 there are, got 4"):
        History(PROBLEM, [trial(0)])[4]


def test_a_loss_is_small_where_the_value_is_good() -> None:
    assert History(Problem(PROBLEM.space, minimize=False)).loss(3.0) == -3.0
    assert History(PROBLEM).loss(3.0) == 3.0


def test_a_problem_survives_its_json_form() -> None:
    problem = Problem(PROBLEM.space, value="reward", minimize=False, seed=7, cost_unit="dollars", measures_cost=False)
    assert Problem.from_json(problem.to_json()) == problem


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"value": "not a name"}, "must be one word"),
        ({"value": "x"}, "must have a name of its own"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
    ],
)
def test_a_problem_that_cannot_be_meant_is_refused(settings: dict[str, object], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Problem(PROBLEM.space, **settings)  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * PART), st.integers()), max_size=40),
    st.integers(0, 2 * PART + 3),
    st.slices(2 * PART + 50),
)
def test_copies_of_a_shared_list_are_as_independent_as_those_of_a_list(
    changes: list[tuple[int, int, int]], length: int, part: slice
) -> None:
    kept: list[tuple[SharedList[int], list[int]]] = [(SharedList(), [])]
    for place in range(length):
        kept[0][0].append(place)
        kept[0][1].append(place)
    for which, place, value in changes:
        ours, plain = kept[which % len(kept)]
        if which == 3:
            kept.append((ours.copy(), plain.copy()))
        elif place < len(plain):
            ours[place] = plain[place] = value
        else:
            ours.append(value)
            plain.append(value)
    for ours, plain in kept:
        assert (list(ours), len(ours), list(ours[part])) == (plain, len(plain), plain[part])
        assert [ours[place] for place in range(-len(plain), len(plain))] == plain * 2


def test_of_a_long_history_only_the_parts_that_changed_are_copied() -> None:
    history = History(PROBLEM, [trial(number, State.RUNNING) for number in range(4 * PART)])
    later = history.updated([replace(history[PART], state=State.DONE)], version=1)
    same = [ours is theirs for ours, theirs in zip(history._trials._parts, later._trials._parts, strict=True)]
    assert same == [True, False, True, True]
