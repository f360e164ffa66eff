"""The contract of every strategy, as a test suite to inherit from.

    class TestMine(StrategyContract):
        strategy = Mine(argument=3)

By default it is tried on a space with every kind of parameter and one trace fidelity.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from farthing.costs import Budget, Clock, Remaining, SystemClock
from farthing.session.questions import Question, answers_to, suggested_again, without_knowledge
from farthing.space import Choice, Fidelity, Float, Int, Space
from farthing.storage import MemoryStorage
from farthing.strategies import Randomness, Strategy, strategy_from_json
from farthing.strategies.plain.random import Random
from farthing.study import Study
from farthing.trials import History, Params, State, Suggestion, Trial
from farthing.trials.events import as_suggested

MIXED_SPACE = Space(
    {
        "rate": Float(1e-4, 1e-1, log=True),
        "units": Int(4, 64, log=True),
        "layers": Int(1, 3),
        "optimizer": Choice("adam", "sgd"),
        "momentum": Float(0.0, 0.99, when={"optimizer": "sgd"}),
    },
    fidelities={"epochs": Fidelity(1, 27, integer=True, trace=True)},
)


def learning_curve(params: Params, fidelity: Mapping[str, float]) -> float:
    """A made-up error that falls with training and depends on every parameter."""
    misfit = abs(params["rate"] - 0.01) * 20 + abs(params["units"] - 32) / 64 + abs(params["layers"] - 2) / 4
    misfit += 0.3 if params["optimizer"] == "adam" else abs(params["momentum"] - 0.9)
    return float(misfit + 1.0 / (1.0 + fidelity.get("epochs", 27)))


class BusyClock:
    """The clock of a machine that is busy now and then: each second that passes counts as one to eight."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._real = SystemClock()
        self._before = self._real.elapsed()
        self._passed = 0.0

    def now(self) -> float:
        return 1e9 + self.elapsed()

    def elapsed(self) -> float:
        now = self._real.elapsed()
        self._passed += (now - self._before) * float(self._random.uniform(1.0, 8.0))
        self._before = now
        return self._passed


class StrategyContract:
    """Inherit, and set `strategy`; also `space`, `aims` and `evaluate` where it needs another kind of problem.

    `aims` are the arguments of the study that say what is optimised: `minimize`, `maximize` and `constraints`.
    """

    strategy: ClassVar[Strategy]
    space: ClassVar[Space] = MIXED_SPACE
    aims: ClassVar[Mapping[str, Any]] = {"minimize": "error"}
    trials: ClassVar[int] = 40

    def evaluate(self, params: Params, fidelity: Mapping[str, float]) -> float | Mapping[str, float]:
        return learning_curve(params, fidelity)

    def run_alone(self, *, trials: int | None = None, storage: MemoryStorage | None = None) -> Study:
        """A study told one result after the other, every seventh of them a failure."""
        study = Study(self.space, **self.aims, strategy=self.strategy, storage=storage, seed=3)
        return self._told(study, range(trials or self.trials))

    def suggest(self, history: History, count: int = 1) -> list[Suggestion]:
        return answers_to(Question(history, Remaining(), count), self.strategy, Randomness(history.problem.seed))

    def test_suggestions_are_within_the_space(self) -> None:
        for trial in self.run_alone().trials:
            assert self.space.check(trial.params) == trial.params
            assert self.space.check_fidelity(trial.fidelity) == trial.fidelity

    def test_the_same_history_gives_the_same_suggestions_bit_for_bit(self) -> None:
        history = self.run_alone().history
        assert self.suggest(history, 3) == self.suggest(history, 3)

    def test_every_suggestion_can_be_made_again_from_the_history_before_it(self) -> None:
        history = self.run_alone().history
        for trial in history:
            before = history.before(trial.number)
            again = self.suggest(before)[0]
            assert (again.params, again.fidelity, again.resume_from, again.note) == (
                trial.params,
                trial.fidelity,
                trial.resume_from,
                trial.note,
            )

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_busy_machine_changes_no_suggestion(self, seed: int) -> None:
        """Costs are told, so that no second is measured that a suggestion may follow from."""
        quiet, busy = self._timed_by(SystemClock(), seed), self._timed_by(BusyClock(seed), seed)
        found = [
            [(trial.params, trial.fidelity, trial.resume_from) for trial in study.trials] for study in (quiet, busy)
        ]
        assert found[0] == found[1]

    def _timed_by(self, clock: Clock, seed: int) -> Study:
        storage = MemoryStorage(clock)
        study = Study(self.space, **self.aims, strategy=self.strategy, storage=storage, seed=seed, clock=clock)
        return self._told(study, range(self.trials))

    def test_a_study_that_is_opened_anew_goes_on_as_if_it_had_never_stopped(self) -> None:
        unbroken = self.run_alone()
        storage = MemoryStorage()
        self.run_alone(trials=self.trials // 2, storage=storage)
        resumed = self._continued(storage)
        assert [t.params for t in resumed.trials] == [t.params for t in unbroken.trials]

    def test_no_more_is_suggested_than_was_asked_for(self) -> None:
        history = self.run_alone().history
        assert all(len(self.suggest(history, count)) <= count for count in (1, 2, 5))

    def test_trials_in_flight_are_not_suggested_again(self) -> None:
        study = Study(self.space, **self.aims, strategy=self.strategy, seed=5)
        asked = [trial for _ in range(6) for trial in study.ask(count=1)]
        assert len({json.dumps(trial.params) for trial in asked}) == len(asked)

    def test_notes_and_arguments_are_plain_json(self) -> None:
        for trial in self.run_alone().trials:
            assert json.loads(json.dumps(trial.note)) == trial.note
        form = json.loads(json.dumps(self.strategy.to_json()))
        assert strategy_from_json(form) == self.strategy

    def test_a_study_of_failures_goes_on(self) -> None:
        study = Study(self.space, **self.aims, strategy=self.strategy)
        for _ in range(12):
            for trial in study.ask(count=1):
                study.tell(trial, failure="diverged")
        assert all(trial.state is State.FAILED for trial in study.trials)
        assert self.strategy.recommend(study.history) is None

    def test_the_recommended_trial_is_done(self) -> None:
        study = self.run_alone()
        found = self.strategy.recommend(study.history)
        assert found is not None
        assert found.trial.state is State.DONE
        assert self.space.check(found.params) == found.params

    def test_what_was_learnt_from_earlier_studies_is_tried_first(self) -> None:
        earlier = [self._earlier(seed) for seed in (1, 2)]
        study = Study(self.space, **self.aims, strategy=self.strategy, learn_from=earlier, seed=3)
        learned = study.history.learned
        assert learned is not None
        self._told(study, range(8))
        begun = [trial.params for trial in study.trials if trial.resume_from is None]
        assert begun[: len(learned.starts)] == [one.params for one in learned.starts]
        assert [trial.note["learned"] for trial in study.trials if "learned" in (trial.note or {})] == [
            [place, start.source] for place, start in enumerate(learned.starts)
        ]
        for trial in study.history:
            again = self.suggest(study.history.before(trial.number))[0]
            assert (again.params, again.note) == (trial.params, trial.note)

    def test_what_the_user_guesses_is_tried_first(self) -> None:
        if not self.strategy.takes_starts:
            pytest.skip("the strategy takes no starts, so it does not look at guesses")
        space = _with_guesses(self.space)
        study = self._told(Study(space, **self.aims, strategy=self.strategy, seed=3), range(8))
        assert study.trials[0].note["guess"] == "centre"
        for name, parameter in space.parameters.items():
            if isinstance(parameter, Float) and parameter.guess is not None:
                assert study.trials[0].params[name] == pytest.approx(parameter.guess)
        for trial in study.history:
            again = self.suggest(study.history.before(trial.number))[0]
            assert (again.params, again.note) == (trial.params, trial.note)

    def _earlier(self, seed: int) -> Study:
        """A study of random configurations whose best ones another may begin with."""
        study = Study(self.space, **self.aims, strategy=Random(), name=f"earlier-{seed}", seed=seed)
        return self._told(study, range(6))

    def test_no_new_configuration_is_suggested_when_the_budget_has_none_left(self) -> None:
        study = Study(self.space, **self.aims, strategy=self.strategy)
        budget = Budget(trials=5)
        for _ in range(200):
            asked = study.ask(count=1, budget=budget)
            if not asked:
                break
            study.tell(asked[0], self.evaluate(asked[0].params, asked[0].fidelity))
        else:
            pytest.fail("the strategy went on after its five configurations")
        assert study.history.configurations == 5

    def _continued(self, storage: MemoryStorage) -> Study:
        return self._told(Study.load("study", storage), range(self.trials // 2, self.trials))

    def _told(self, study: Study, numbers: Iterable[int]) -> Study:
        for number in numbers:
            for trial in study.ask(count=1):
                if number % 7 == 6:
                    study.tell(trial, failure="diverged")
                else:
                    study.tell(trial, self.evaluate(trial.params, trial.fidelity), cost=1.0)
        return study


def _with_guesses(space: Space) -> Space:
    """The space with a guess near the low end of every number that is always active and has no step."""
    tables = json.loads(json.dumps(space.to_json()))
    for group in tables["stages"].values() if "stages" in tables else [tables["params"]]:
        for table in group.values():
            if "float" in table and not {"when", "step"} & table.keys():
                low, high = table["float"]
                table["guess"] = low + 0.1 * (high - low)
    return Space.from_json(tables)


# ------------------------------------------------------------
# A check that a strategy is a function of the history: what it suggested it suggests again.


def check_replay(study: Study) -> list[int]:
    """The numbers of the trials that the study's strategy would not suggest again, bit for bit; none if all is well.

    Each is suggested from what its note says that it knew, however many workers there were. Trials that were enqueued
    or added are left out. The study must have its declared cost, if any, and have had one strategy.
    """
    history = study.history
    return [trial.number for trial in history if trial.overhead > 0.0 and not _is_repeated(study, history, trial)]


def _is_repeated(study: Study, history: History, trial: Trial) -> bool:
    again = suggested_again(study.strategy, history, trial.number)
    if again is None:
        return False
    space = history.before(trial.number).problem.space  # it may have been extended since
    params, fidelity = space.check(again.params), space.check_fidelity(again.fidelity)
    note = json.loads(json.dumps(again.note)) or None
    told = (as_suggested(trial, space).params, trial.fidelity, trial.resume_from, without_knowledge(trial.note))
    return (params, fidelity, again.resume_from, note) == told
