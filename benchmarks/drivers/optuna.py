"""Drives Optuna by ask and tell, as its own users would.

An ordered choice becomes an integer, its index, so that Optuna knows of the order as our strategies do. With a pruner,
a run reports every point of its curve and pays up to the point at which it is pruned. What is recommended is the best
value at the highest fidelity that any run reached, which is the rule of our own strategies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Evaluation, Params, Point, Problem, loss
from benchmarks.problems.data import missing_package
from farthing.costs import Budget
from farthing.space import Choice, Float, Int, Parameter, Space

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Optuna:
    """A sampler by its name in `optuna.samplers`, with its defaults, and with the Hyperband pruner if it `prunes`."""

    name: str
    sampler: str
    prunes: bool = False
    packages: tuple[str, ...] = ("optuna", "numpy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"sampler": self.sampler, "prunes": self.prunes}

    def missing(self) -> str | None:
        return missing_package("optuna")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        study, space = self._study(problem, seed=seed), problem.space()
        best = Incumbent(problem)
        while True:
            meter = CpuMeter()
            with meter.running():
                trial = study.ask()
                params = suggest(trial, space)
            evaluation = problem.evaluate(params, space.full_fidelity, seed=seed)
            with meter.running():
                reached = self._tell(study, trial, evaluation)
            best.see(params, reached)
            yield Step(best.params, reached.cost, meter.seconds)

    def _study(self, problem: Problem, *, seed: int) -> "optuna.Study":
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = getattr(optuna.samplers, self.sampler)(seed=seed)
        pruner = _hyperband(problem.space()) if self.prunes else optuna.pruners.NopPruner()
        return optuna.create_study(direction=problem.direction, sampler=sampler, pruner=pruner)

    def _tell(self, study: "optuna.Study", trial: "optuna.Trial", evaluation: Evaluation) -> Point:
        """Where the run ended: at the point where it was pruned, otherwise with the evaluation."""
        import optuna

        for point in evaluation.trace if self.prunes else ():
            trial.report(point.value, step=_amount(point))
            if trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return point
        study.tell(trial, evaluation.value)
        return evaluation.trace[-1] if evaluation.trace else Point({}, evaluation.value, evaluation.cost)


class Incumbent:
    """The best of the runs that went furthest."""

    def __init__(self, problem: Problem) -> None:
        self.params: Params = {}
        self._problem = problem
        self._furthest: tuple[float, float] | None = None

    def see(self, params: Params, reached: Point) -> None:
        rank = (-sum(reached.fidelity.values()), loss(self._problem, reached.value))
        if self._furthest is None or rank < self._furthest:
            self.params, self._furthest = params, rank


def suggest(trial: "optuna.Trial", space: Space) -> Params:
    """Params drawn by Optuna, parents before the parameters that depend on them."""
    params: dict[str, Any] = {}
    while names := [name for name in space.active_names(params) if name not in params]:
        params |= {name: _suggest_one(trial, name, space.parameters[name]) for name in names}
    return space.check(params)


def _suggest_one(trial: "optuna.Trial", name: str, parameter: Parameter) -> Any:
    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, log=log, step=step)
        case Int(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, log=log, step=step)
        case Choice(options=options, ordered=True):
            return options[trial.suggest_int(name, 0, len(options) - 1)]
        case Choice(options=options):
            return trial.suggest_categorical(name, options)


def _hyperband(space: Space) -> "optuna.pruners.BasePruner":
    import optuna

    [fidelity] = space.fidelities.values()
    return optuna.pruners.HyperbandPruner(min_resource=round(fidelity.low), max_resource=round(fidelity.high))


def _amount(point: Point) -> int:
    [amount] = point.fidelity.values()
    return round(amount)
