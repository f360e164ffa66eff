"""A process that asks gets a trial, however quickly others add theirs: after some tries it has a turn.

A quick suggestion is then made while others wait. For a slow one nobody waits: it is used although it does not know
what others opened meanwhile.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.extending import Randomness, Strategy
from farthing.running.suggestions import SuggesterForAll
from farthing.session import session_of
from farthing.session import turns as turns_module
from farthing.session.questions import Knowledge, Question
from farthing.session.records import Records, Taken
from farthing.session.turns import LONGEST_TURN, TRIES_BEFORE_A_TURN, Answer, Turns
from farthing.storage import MemoryStorage, Storage, StudyRecord, open_storage
from farthing.testing import check_replay
from farthing.trials import History, Outcome, Problem, State, Suggestion

SPACE = ft.Space({"x": ft.Float(0, 1)})


@dataclass
class Adder:
    """Adds results to a study without a pause."""

    storage: Storage
    added: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        while not self.is_over.is_set():
            self.storage.add_trial("study", Suggestion({"x": 0.5}), Outcome(State.DONE, value=0.5))
            self.added += 1

    def is_quicker(self) -> None:
        """Waits until it has added one more, if it can."""
        before, began = self.added, time.monotonic()
        while self.added < before + 2 and time.monotonic() - began < 0.3:
            time.sleep(0.001)


@dataclass
class Overtaken:
    """Suggests the number of trials that it saw, slower than others add theirs."""

    adder: Adder
    is_blind: ClassVar[bool] = False

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        self.adder.is_quicker()
        return [Suggestion({"x": 1 / (1 + len(history))})] * count


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "memory":
        yield MemoryStorage()
        return
    address = request.getfixturevalue("postgres_url") if request.param == "postgresql" else str(tmp_path / "study.db")
    opened = open_storage(address)
    yield opened
    opened.close()


def test_an_ask_does_not_starve_beside_results_that_are_added(storage: Storage) -> None:
    record = storage.create_study(StudyRecord("study", Problem(SPACE)))
    records = Records(storage, record, lease=60.0, retries=0, clock=ft.FakeClock())  # so suggestions are quick
    adder = Adder(storage)
    thread = threading.Thread(target=adder)
    thread.start()
    try:
        opened = records.open(Overtaken(adder), lambda history: (Remaining(), 3), taken={}).trials  # type: ignore[arg-type]
    finally:
        adder.is_over.set()
        thread.join()
        records.leases.close()
    first = opened[0].number
    assert [trial.number for trial in opened] == [first, first + 1, first + 2]
    assert [trial.params["x"] for trial in opened] == [1 / (1 + first)] * 3
    assert first >= 2 * (TRIES_BEFORE_A_TURN - 1)
    assert storage.check() == []


class Others:
    """Other programs: while one of the slow strategies thinks, they do something to the study that it is asked for."""

    def __init__(self, clock: ft.FakeClock | None = None) -> None:
        self.clock = clock
        self.act: Callable[[], None] | None = None
        self.thoughts = 0

    def think(self) -> None:
        if self.act is None:  # a replay, or another program
            return
        self.thoughts += 1
        if self.clock is not None:
            self.clock.advance(10 * LONGEST_TURN)
        self.act()


OTHERS = Others()


class Slow:
    """Makes a strategy slow, and lets others go on meanwhile."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        OTHERS.think()
        return super().suggest(history, budget, count, rng)  # type: ignore[misc,no-any-return]


class SlowRandom(Slow, ft.Random): ...


class SlowSobol(Slow, ft.Sobol): ...


class SlowLogEI(Slow, ft.LogEI): ...


class SlowASHA(Slow, ft.ASHA): ...


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Others:
    made = Others(ft.FakeClock())
    monkeypatch.setitem(globals(), "OTHERS", made)
    return made


def joined(storage: Storage, strategy: Strategy, others: Others, space: ft.Space = SPACE) -> ft.Study:
    return ft.Study(space, minimize="error", strategy=strategy, storage=storage, seed=0, clock=others.clock)


def test_an_ask_that_takes_long_does_not_starve_beside_others_and_their_results_never_wait(
    storage: Storage, others: Others
) -> None:
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Sobol(), others)

    def open_and_tell() -> None:
        """Beside a lock that the thinking process held this would never end."""
        asked = quick.ask()
        quick.tell(asked, asked.params["x"])

    others.act = open_and_tell
    trials = [slow.ask() for _ in range(3)]
    assert others.thoughts <= 3 * TRIES_BEFORE_A_TURN
    others.act = None
    assert [trial.number for trial in trials] == [3, 7, 11]
    assert len(slow.history) == 3 + others.thoughts
    assert storage.check() == []


@pytest.mark.parametrize("strategy", [SlowRandom(), SlowSobol(), SlowLogEI(initial=3)])
@pytest.mark.parametrize("other", [ft.Random(), ft.Sobol()])
def test_what_is_used_although_others_were_quicker_can_be_suggested_again(
    storage: Storage, others: Others, strategy: Strategy, other: Strategy
) -> None:
    slow, quick = joined(storage, strategy, others), joined(storage, other, others)
    own: list[int] = []

    def open_and_tell() -> None:
        asked = quick.ask()
        quick.tell(asked, asked.params["x"])

    others.act = open_and_tell
    for _ in range(6):
        asked = slow.ask(2)
        own += [trial.number for trial in asked]
        for trial in asked:
            slow.tell(trial, trial.params["x"])
    others.act = None
    history = slow.history
    late = [number for number in own if (knew := Knowledge.of(history[number]).trials) is not None and knew < number]
    assert late
    assert set(check_replay(slow)).isdisjoint(own)


def test_nothing_is_tried_twice_because_two_programs_thought_at_once(storage: Storage, others: Others) -> None:
    """Both draw by the number of the trial: for the same number they draw the same."""
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Random(), others)
    others.act = lambda: [quick.tell(trial, 0.5) for trial in quick.ask(7)] and None
    for _ in range(4):
        slow.tell(slow.ask(), 0.5)
    others.act = None
    times = Counter(trial.params["x"] for trial in slow.history)
    assert max(times.values()) == 1


def test_a_strategy_that_has_only_one_thing_to_suggest_is_not_asked_without_end(others: Others) -> None:
    space, storage = ft.Space({"x": ft.Choice(1, 2)}), MemoryStorage()
    slow = joined(storage, SlowRandom(), others, space)
    others.act = lambda: [slow.add({"x": value}, 0.5) for value in (1, 2)] and None
    assert slow.ask().params["x"] in (1, 2)
    assert others.thoughts <= TRIES_BEFORE_A_TURN + 1


def test_no_trial_is_continued_twice_because_two_programs_thought_at_once(storage: Storage, others: Others) -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True, trace=True)})
    slow, quick = joined(storage, SlowASHA(), others, space), joined(storage, ft.ASHA(), others, space)

    def open_and_tell() -> None:
        for trial in quick.ask(2):
            quick.tell(trial, trial.params["x"])

    others.act = open_and_tell
    for _ in range(10):
        asked = slow.ask()
        slow.tell(asked, asked.params["x"])
    others.act = None
    continued = Counter(trial.resume_from for trial in slow.history if trial.resume_from is not None)
    assert continued
    assert max(continued.values()) == 1


def test_a_turn_spends_nothing_beyond_the_budget(storage: Storage, others: Others) -> None:
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Sobol(), others)
    budget = ft.Budget(trials=9)

    def open_and_tell() -> None:
        for trial in quick.ask(2, budget=budget):
            quick.tell(trial, 0.5)

    others.act = open_and_tell
    while asked := slow.ask(2, budget=budget):
        for trial in asked:
            slow.tell(trial, 0.5)
    assert len(slow.history) == 9


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_thinks_long_does_not_starve_beside_others(
    tmp_path: Path, others: Others, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """By the system's clock; every suggestion is then a slow one."""
    monkeypatch.setattr(turns_module, "LONGEST_TURN", 0.0)
    others.clock = None
    storage = open_storage(str(tmp_path / "study.db"))
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Sobol(), others)
    ended: list[int] = []

    def open_and_tell() -> None:
        quick.tell(quick.ask(), 0.5)

    def stop(study: ft.Study, trial: ft.Trial) -> None:
        ended.append(trial.number)
        if len(ended) == 5:
            study.stop()

    others.act = open_and_tell
    slow.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=500), workers=workers, callbacks=[stop])
    others.act = None
    assert len(ended) >= 5
    assert set(check_replay(slow)).isdisjoint(ended)
    assert others.thoughts <= (1 + len(ended)) * (TRIES_BEFORE_A_TURN + 1)
    storage.close()


def test_a_run_inline_that_thinks_long_does_not_starve_beside_others(storage: Storage, others: Others) -> None:
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Sobol(), others)
    others.act = lambda: quick.tell(quick.ask(), 0.5) and None
    slow.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=20), executor="inline")
    others.act = None
    assert len(slow.history) == 20
    assert set(check_replay(slow)).isdisjoint(
        trial.number for trial in slow.trials if Knowledge.of(trial) != Knowledge()
    )
    assert storage.check() == []


def test_what_one_suggests_for_all_does_not_starve_either(storage: Storage, others: Others) -> None:
    """`farthing worker` puts suggestions in line for every worker; others may open trials meanwhile."""
    slow, quick = joined(storage, SlowRandom(), others), joined(storage, ft.Random(), others)
    records = session_of(slow).records
    suggester = SuggesterForAll(records, slow.strategy, workers=1, on_answer=lambda: None)
    others.act = lambda: quick.tell(quick.ask(), 0.5) and None
    taken: Taken = {}
    while not taken:
        question = Question(records.refresh(), Remaining(), 1)
        if (answer := suggester.answer(question)) is None:
            suggester._thread._thread.join(0.01)  # type: ignore[union-attr]
        else:
            suggester.open(answer, most=1, taken=taken, waits=[0.0])
    suggester.close(waits=True)
    others.act = None
    (mine,) = taken.values()
    assert (mine.number, others.thoughts) == (TRIES_BEFORE_A_TURN, TRIES_BEFORE_A_TURN)
    assert Knowledge.of(mine).trials == TRIES_BEFORE_A_TURN - 1
    assert len({trial.params["x"] for trial in slow.history}) == len(slow.history)
    records.give_back(taken)


def test_a_population_is_suggested_for_while_others_wait_however_long_it_takes() -> None:
    history = History(Problem(SPACE))
    answer = Answer(Question(history, Remaining(), 1), (), overhead=100.0)
    free, bound = Turns(ft.Random()), Turns(ft.PB2(population=2, interval=1))
    for _ in range(TRIES_BEFORE_A_TURN - 1):
        assert not free.is_due
        free.lose(answer, history)
        bound.lose(answer, history)
    assert (free.is_due, free.is_quick, free.ahead) == (True, False, 2)
    assert (bound.is_due, bound.is_quick, bound.ahead) == (True, True, 0)
    free.win()
    assert not free.is_due
