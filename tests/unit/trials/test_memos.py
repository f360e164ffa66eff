"""What is worked out of a history is kept while it grows."""

import pickle
import threading

from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.trials import History, Problem, State, Suggestion, Trial
from farthing.trials.memos import places_changed

PROBLEM = Problem(ft.Space({"x": ft.Float(0, 1)}))
LIMIT = 300.0
"""Seconds that nothing here comes near to, on a busy machine either."""


def trial(number: int) -> Trial:
    return Trial(number, Suggestion({"x": 0.5}), State.DONE, value=1.0)


class Asked:
    """Says by which histories it was asked, itself the first time."""

    def __init__(self, name: str) -> None:
        self._asked = [name]

    def of(self, history: History) -> list[str]:
        self._asked.append(f"{len(history)} trials")
        return self._asked.copy()


def test_a_memo_is_kept_for_all_histories_that_grow_from_one() -> None:
    first = History(PROBLEM, [trial(0)])
    grown = first.updated([trial(1)], version=1)
    assert grown.memo(Asked, "a") == ["a", "2 trials"]
    assert first.memo(Asked, "a") == ["a", "2 trials", "1 trials"]
    assert grown.memo(Asked, "b") == ["b", "2 trials"], "another argument is another memo"
    assert History(PROBLEM, [trial(0)]).memo(Asked, "a") == ["a", "1 trials"], "another history has its own"
    assert grown.before(1).memo(Asked, "a") == ["a", "1 trials"], "a replay begins with nothing"


def test_a_history_can_be_sent_to_another_process_without_its_memos() -> None:
    history = History(PROBLEM, [trial(0)])
    history.memo(Asked, "a")
    assert pickle.loads(pickle.dumps(history)).memo(Asked, "a") == ["a", "1 trials"]


OBJECTS = [[number] for number in range(3)]


@given(st.lists(st.sampled_from(OBJECTS)), st.lists(st.sampled_from(OBJECTS)))
def test_the_places_where_there_is_another_object_have_changed(before: list[list[int]], after: list[list[int]]) -> None:
    plain = [place for place, one in enumerate(after) if place >= len(before) or before[place] is not one]
    assert places_changed(before, after) == plain


def test_equal_objects_are_not_taken_for_one() -> None:
    assert places_changed([[1], [2]], [[1], [2]]) == [0, 1]


class Waiting:
    """Waits in the thread that asks until it is let go on."""

    asked, go_on = threading.Event(), threading.Event()

    def of(self, history: History) -> None:
        self.asked.set()
        assert self.go_on.wait(LIMIT)


def test_nobody_waits_for_a_memo_that_another_thread_asks() -> None:
    history = History(PROBLEM, [trial(0)])
    thread = threading.Thread(target=lambda: history.memo(Waiting))
    thread.start()
    assert Waiting.asked.wait(LIMIT)
    assert history.memo(Asked, "a") == ["a", "1 trials"]
    Waiting.go_on.set()
    thread.join()
