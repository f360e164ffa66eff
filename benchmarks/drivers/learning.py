"""Studies that learn from earlier ones, beside Optuna started with the same configurations.

An earlier study is what `TraceKG` leaves at a budget of five full trainings on another problem of the same family. It
is made once and kept in `build/earlier-studies.db`; it depends on nothing but its problem and its seed.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from benchmarks.drivers.optuna import Optuna
from benchmarks.drivers.ours import Ours
from benchmarks.method import Step
from benchmarks.problems import PROBLEMS, Evaluation, Params, Problem
from benchmarks.problems.data import REPOSITORY
from benchmarks.problems.problem import for_one_run
from benchmarks.suites import Allowance
from farthing.costs import Budget
from farthing.session import session_of
from farthing.storage import Storage, open_storage
from farthing.strategies.multifidelity import TraceKG
from farthing.study import Study
from farthing.trials import Problem as StudyProblem

if TYPE_CHECKING:
    import optuna

Relation: TypeAlias = Literal["related", "negated", "unrelated"]

KEPT = REPOSITORY / "build" / "earlier-studies.db"
EARLIER_SEED = 1000
"""Of the earlier studies, so that none has the random starts of a study that learns from it."""
EARLIER_BUDGET = Allowance(5, "full runs")
ENDED = "ended"


@dataclass(frozen=True)
class Earlier:
    """`count` earlier studies: of other problems of the family, of those with values negated, or of another space.

    The unrelated ones are of `opda/convnext`, which shares the names of three parameters with lcbench, and of lcbench
    for TaskSet, which share one.
    """

    count: int
    relation: Relation = "related"

    def studies(self, problem: Problem, *, seed: int) -> list[Study]:
        """Which ones depends on the seed, and is the same for all methods."""
        names = self._names(problem)
        chosen = np.random.default_rng([seed, len(names)]).permutation(len(names))[: self.count]
        return [earlier_study(names[place], problem.direction, relation=self.relation) for place in sorted(chosen)]

    def _names(self, problem: Problem) -> list[str]:
        family = problem.name.partition("/")[0]
        if self.relation == "unrelated":
            family = "opda" if family == "lcbench" else "lcbench"
        return [name for name in PROBLEMS if name.startswith(f"{family}/") and name != problem.name]


@dataclass(frozen=True)
class OursLearning(Ours):
    """A strategy whose study learns from earlier ones. Its first step costs nothing: what it recommends before it."""

    earlier: Earlier = field(kw_only=True)

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        with closing(self._study(problem, seed=seed)) as study:
            yield Step(study.best.params, 0.0, 0.0, evaluations=0)
            while step := self._step(study, problem, budget, seed=seed):
                yield step

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "earlier": vars(self.earlier)}

    def _study(self, problem: Problem, *, seed: int) -> Study:
        aim: dict[str, Any] = {problem.direction: "value"}
        studies = self.earlier.studies(problem, seed=seed)
        return Study(problem.space(), **aim, strategy=self.strategy, seed=seed, cost_unit="cost", learn_from=studies)


@dataclass(frozen=True)
class OptunaLearning(Optuna):
    """Optuna with `enqueue_trial` of the configurations that a study of ours would begin with."""

    earlier: Earlier = field(kw_only=True)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "earlier": vars(self.earlier)}

    def _study(self, problem: Problem, *, seed: int) -> "optuna.Study":
        study = super()._study(problem, seed=seed)
        for params in starts(self.earlier, problem, seed=seed):
            study.enqueue_trial(dict(params))
        return study


def starts(earlier: Earlier, problem: Problem, *, seed: int) -> list[Params]:
    from farthing.knowledge.earlier import learned_from

    own = StudyProblem(problem.space(), minimize=problem.direction == "minimize", seed=seed, cost_unit="cost")
    studies = [session_of(study) for study in earlier.studies(problem, seed=seed)]
    return [start.params for start in learned_from(studies, own).starts]


@dataclass(frozen=True)
class Negated:
    """A problem whose values have the other sign: its best configuration is the worst one."""

    problem: Problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        found = self.problem.evaluate(params, fidelity, seed=seed)
        return found._replace(
            value=-found.value, trace=tuple(point._replace(value=-point.value) for point in found.trace)
        )


@cache
def _storage() -> Storage:
    KEPT.parent.mkdir(exist_ok=True)
    return open_storage(KEPT)


@cache
def earlier_study(name: str, direction: str, *, relation: Relation) -> Study:
    """The study, run to its end if it was not yet. One of another direction than its problem's has values negated."""
    original = PROBLEMS[name]
    is_negated = (relation == "negated") != (original.direction != direction)
    title = f"{name}{' negated' if is_negated else ''} {direction}"
    aim: dict[str, Any] = {direction: "value"}
    study = Study(
        original.space(),
        **aim,
        strategy=TraceKG(),
        storage=_storage(),
        name=title,
        seed=EARLIER_SEED,
        cost_unit="cost",
    )
    if not session_of(study).settings.get(ENDED):
        _run_to_the_end(study, Negated(original) if is_negated else for_one_run(original), original)
        session_of(study).remember(**{ENDED: True})
    return study


def _run_to_the_end(study: Study, problem: Any, original: Problem) -> None:
    budget = EARLIER_BUDGET.budget(original)
    method = Ours("earlier", TraceKG())
    while study.history.cost < (budget.cost or 0.0) and method._step(study, problem, budget, seed=EARLIER_SEED):
        pass
