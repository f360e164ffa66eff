"""Drives Farthing's own strategies by ask and tell, on a study in memory."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.drivers.paying import added_cost
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Evaluation, Params, Problem
from benchmarks.problems.objectives import WithObjectives, aims_of, recommended_of_full, told
from benchmarks.problems.problem import Differentiable, TellsRows
from farthing.costs import Budget, Remaining
from farthing.execution import RunningTrial
from farthing.running.ask_tell import Told
from farthing.space import Space
from farthing.strategies import Randomness, Recommendation, Strategy
from farthing.study import Study
from farthing.trials import History, Json, Suggestion, Trial


@dataclass(frozen=True)
class Ours:
    """One strategy. What a continued trial costs is the difference to the trial it continues.

    With a `batch` this number is asked for together and evaluated at once; all are told before the next are asked for.
    With `measured` the study is told no costs and measures seconds, as those of users do: here of a look into a table.
    With `gradients` evaluations of a problem that has them are told with theirs, and pay for it. With `knows_reference`
    every objective has a limit at the reference by which the front is judged, as BoTorch is told it.
    """

    name: str
    strategy: Strategy
    batch: int = 1
    gradients: bool = False
    measured: bool = False
    knows_reference: bool = False
    packages: tuple[str, ...] = ("numpy", "scipy")

    @property
    def settings(self) -> Mapping[str, Any]:
        batch = {"batch": self.batch} if self.batch > 1 else {}
        flags = {name: True for name in ("gradients", "measured", "knows_reference") if getattr(self, name)}
        return self.strategy.to_json() | batch | flags

    def missing(self) -> str | None:
        return None

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        if self.gradients and isinstance(problem, Differentiable):
            problem = problem.with_gradient()
        with closing(self._study(problem, seed=seed)) as study:
            while step := self._step(study, problem, self._of_all(budget), seed=seed):
                yield step

    def _study(self, problem: Problem, *, seed: int) -> Study:
        unit = "seconds" if self.measured else "cost"
        strategy = ToldRows(self.strategy, problem) if isinstance(problem, TellsRows) else self.strategy
        aims = aims_of(problem)
        if self.knows_reference and isinstance(problem, WithObjectives):
            aims["constraints"] = {**problem.reference_as_limits, **problem.constraints}
        return Study(self._space(problem), **aims, strategy=strategy, seed=seed, cost_unit=unit)

    def _space(self, problem: Problem) -> Space:
        return problem.space()

    def _of_all(self, budget: Budget) -> Budget:
        """A batch costs as much as its most expensive part; the study counts the sum."""
        return budget if budget.cost is None else replace(budget, cost=self.batch * budget.cost)

    def _step(self, study: Study, problem: Problem, budget: Budget, *, seed: int) -> Step | None:
        """None when the strategy has nothing more to suggest."""
        meter = CpuMeter()
        with meter.running():
            asked = study.ask(self.batch, budget=budget)
        if not asked:
            return None
        costs = [_evaluate(study, one, problem, meter, seed=seed, measured=self.measured) for one in asked]
        with meter.running():
            best = _recommended(study, problem, asked)
        return Step(best, max(costs), meter.seconds, evaluations=len(costs))


@dataclass(frozen=True)
class ToldRows(Strategy):
    """A strategy whose new configurations become the recorded runs that they stand for, before they are trials."""

    strategy: Any
    problem: Any

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return [
            one if one.resume_from is not None else replace(one, params=self.problem.stand_in(one.params))
            for one in self.strategy.suggest(history, budget, count, rng)
        ]

    def recommend(self, history: History) -> Recommendation | None:
        found: Recommendation | None = self.strategy.recommend(history)
        return found

    def resumable(self, history: History) -> set[int]:
        found: set[int] = self.strategy.resumable(history)
        return found

    def to_json(self) -> dict[str, Json]:
        form: dict[str, Json] = self.strategy.to_json()
        return form


@dataclass(frozen=True)
class OursByRun:
    """What a user has who calls `run`: the strategy that the study chooses, and cost the seconds that were measured."""

    name: str
    packages: tuple[str, ...] = ("numpy", "scipy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"strategy": "default", "by": "run"}

    def missing(self) -> str | None:
        return None

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        aim: dict[str, Any] = {problem.direction: "value"}
        steps: list[Step] = []

        def work(trial: RunningTrial) -> float:
            return problem.evaluate(trial.params, {}, seed=seed).value

        def see(study: Study, trial: Trial) -> None:
            steps.append(Step(study.best.params, problem.full_cost, trial.overhead))

        with closing(Study(problem.space(), **aim, seed=seed)) as study:
            study.run(work, budget=budget, executor="inline", callbacks=[see], progress=False)
        yield from steps


def _evaluate(
    study: Study, asked: RunningTrial, problem: Problem, meter: CpuMeter, *, seed: int, measured: bool
) -> float:
    """Evaluates and tells one trial; what it cost."""
    before = _continued(study, asked.number)
    evaluation = problem.evaluate(asked.params, asked.fidelity, seed=seed)
    cost = added_cost(problem, asked.params, evaluation, asked.fidelity, before.fidelity if before else None, seed=seed)
    with meter.running():
        study.tell(
            asked,
            told(problem, evaluation),
            cost=None if measured else cost,
            trace=_new_points(problem, evaluation, before),
            gradient=evaluation.gradient,
        )
    return cost


def _recommended(study: Study, problem: Problem, asked: Sequence[RunningTrial]) -> Params:
    """Of several objectives everything that was trained in full counts."""
    if not isinstance(problem, WithObjectives):
        return study.best.params
    [one] = asked
    return recommended_of_full(problem, one.params, one.fidelity)


def _continued(study: Study, number: int) -> Trial | None:
    history = study.history
    source = history[number].resume_from
    return None if source is None else history[source]


def _new_points(
    problem: Problem, evaluation: Evaluation, before: Trial | None
) -> list[tuple[Mapping[str, float], Told]]:
    """The points of the curve that this trial adds, its last one apart, which is its value."""
    reached = before.fidelity if before else {}
    return [
        (point.fidelity, told(problem, point))
        for point in evaluation.trace[:-1]
        if any(amount > reached.get(name, 0.0) for name, amount in point.fidelity.items())
    ]
