"""What the history knows to be cached."""

from dataclasses import replace

import pytest

from farthing.space import Float, Space
from farthing.space.stages import prefix_key
from farthing.trials import Event, History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.prefixes import EVICTED, cached_prefixes, was_cached

SPACE = Space(stages={"a": {"x": Float(0, 1)}, "b": {"y": Float(0, 1)}, "c": {"z": Float(0, 1)}})
PARAMS = {"x": 0.1, "y": 0.2, "z": 0.3}
FIRST, SECOND = (prefix_key(SPACE, PARAMS, length) for length in (1, 2))


def trial(*steps, state=State.DONE, time=1.0, saved=None):
    points = [Measurement(step=step, cost={"stage": 1.0}, saved=saved or {}, time=time) for step in steps]
    closing = [Measurement(value=0.5, time=time)] if state is State.DONE else []
    return Trial(0, Suggestion(PARAMS), state, measurements=(*points, *closing))


def history(*trials, events=()):
    return History(Problem(SPACE), trials, events=events)


def test_every_prefix_but_the_whole_is_cached_once_its_stage_has_ended():
    assert cached_prefixes(history(trial(0, 1, 2))) == {FIRST: 1, SECOND: 2}


def test_a_trial_that_runs_or_failed_leaves_the_stages_that_ended():
    assert cached_prefixes(history(trial(0, state=State.RUNNING))) == {FIRST: 1}
    assert cached_prefixes(history(trial(0, 1, state=State.FAILED))) == {FIRST: 1, SECOND: 2}


@pytest.mark.parametrize(("evicted_at", "left"), [(2.0, {SECOND: 2}), (0.5, {FIRST: 1, SECOND: 2})])
def test_an_eviction_counts_unless_the_prefix_was_computed_again(evicted_at, left):
    event = Event(EVICTED, {"prefix": FIRST, "length": 1}, time=evicted_at)
    assert cached_prefixes(history(trial(0, 1, 2), events=[event])) == left


def test_a_stage_that_was_loaded_says_so():
    loaded, computed = trial(0, saved={"cache": 3.0}), trial(0)
    assert was_cached(loaded.measurements[0])
    assert not was_cached(computed.measurements[0])


def test_of_the_stages_that_were_loaded_only_the_last_is_known_to_be_there():
    evicted = Event(EVICTED, {"prefix": FIRST, "length": 1}, time=2.0)
    trials = [trial(0, 1, 2), replace(trial(0, 1, saved={"cache": 3.0}, time=5.0), number=1)]
    assert cached_prefixes(history(*trials, events=[evicted])) == {SECOND: 2}
