"""Drives Optuna by ask and tell, as its own users would.

An ordered choice becomes an integer, its index, so that Optuna knows of the order as our strategies do. With a pruner,
a run reports every point of its curve and pays up to the point at which it is pruned; where there is no curve it is
trained again at each rung of the pruner, and pays for each. What is recommended is the best value at the highest
fidelity that any run reached, which is the rule of our own strategies without a model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.drivers.promoting import Incumbent
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Evaluation, Params, Point, Problem
from benchmarks.problems.data import missing_package
from benchmarks.problems.objectives import WithObjectives, recommended_of_full, values_by_name
from benchmarks.problems.problem import Direction, TellsRows
from farthing.costs import Budget
from farthing.space import Choice, Fidelity, Float, Int, Parameter, Space
from farthing.strategies import Strategy
from farthing.strategies.plain.bayesian import LogEI

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
        has_several = isinstance(problem, WithObjectives)
        while True:
            meter = CpuMeter()
            with meter.running():
                trial = study.ask()
                params = suggest(trial, space)
                if isinstance(problem, TellsRows):
                    trial, params = _replaced(study, trial, problem, params)
            reached = self._evaluated(study, trial, problem, params, meter, seed=seed)
            best.see(params, reached)
            recommended = recommended_of_full(problem, params, reached.fidelity) if has_several else best.params
            yield Step(recommended, reached.cost, meter.seconds, reached=reached.fidelity)

    def _study(self, problem: Problem, *, seed: int) -> "optuna.Study":
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        pruner = _hyperband(problem.space()) if self.prunes else optuna.pruners.NopPruner()
        return optuna.create_study(
            study_name=f"{problem.name}, {seed}",  # by which Hyperband draws the bracket of a trial
            directions=directions_of(problem),
            sampler=self._sampler(seed),
            pruner=pruner,
        )

    def _sampler(self, seed: int) -> "optuna.samplers.BaseSampler":
        import optuna

        sampler: optuna.samplers.BaseSampler = getattr(optuna.samplers, self.sampler)(seed=seed)
        return sampler

    def _evaluated(
        self,
        study: "optuna.Study",
        trial: "optuna.Trial",
        problem: Problem,
        params: Params,
        meter: CpuMeter,
        *,
        seed: int,
    ) -> Point:
        """Where the run ended, and what it cost: at the point where it was pruned, otherwise at full fidelity."""
        import optuna

        space = problem.space()
        for point in _points(problem, params, seed=seed) if self.prunes else ():
            with meter.running():
                trial.report(point.value, step=_step(space, point))
                if trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    return point
        full = problem.evaluate(params, space.full_fidelity, seed=seed)
        with meter.running():
            if isinstance(problem, WithObjectives):
                _tell_all(study, trial, problem, full)
            else:
                study.tell(trial, full.value)
        return point if self.prunes else Point(space.full_fidelity, full.value, full.cost)


def directions_of(problem: Problem) -> list[Direction]:
    if isinstance(problem, WithObjectives):
        return ["minimize" if one.minimize else "maximize" for one in problem.objectives]
    return [problem.direction]


def _tell_all(study: "optuna.Study", trial: "optuna.Trial", problem: WithObjectives, found: Evaluation) -> None:
    values = values_by_name(problem, found)
    for name, limit in problem.constraints.items():
        trial.set_constraint(name, limit.excess(values[name]))
    study.tell(trial, [values[one.name] for one in problem.objectives])


@dataclass(frozen=True)
class OursInOptuna(Optuna):
    """A strategy of ours as the sampler of an Optuna study, which does not know the space before it runs."""

    sampler: str = "FarthingSampler"
    strategy: Strategy = field(default_factory=LogEI)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"sampler": self.sampler, **self.strategy.to_json()}

    def _sampler(self, seed: int) -> "optuna.samplers.BaseSampler":
        from farthing.integrations.optuna import FarthingSampler

        return FarthingSampler(self.strategy, seed=seed)


def tpe_study(direction: Direction, *, seed: int) -> "optuna.Study":
    """A study with the defaults of TPE, which says nothing."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=seed))


def suggest(trial: "optuna.Trial", space: Space) -> Params:
    """Params drawn by Optuna, parents before the parameters that depend on them."""
    params: dict[str, Any] = {}
    while names := [name for name in space.active_names(params) if name not in params]:
        params |= {name: _suggest_one(trial, name, space.parameters[name]) for name in names}
    return space.check(params)


def _replaced(
    study: "optuna.Study", trial: "optuna.Trial", problem: TellsRows, params: Params
) -> "tuple[optuna.Trial, Params]":
    """The trial of the row that the params stand for, in place of their own, which fails: no sampler learns from it."""
    import optuna

    space = problem.space()
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    row = problem.stand_in(params)
    study.enqueue_trial({name: _their_value(space.parameters[name], value) for name, value in row.items()})
    trial = study.ask()
    return trial, suggest(trial, space)


def _their_value(parameter: Parameter, value: Any) -> Any:
    return parameter.index_of(value) if isinstance(parameter, Choice) and parameter.ordered else value


def _suggest_one(trial: "optuna.Trial", name: str, parameter: Parameter) -> Any:
    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, log=log, step=step)
        case Int(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, log=log, step=step)
        case Choice(options=options, ordered=True):
            return options[trial.suggest_int(name, 0, len(options) - 1)]
        case Choice(options=options):
            names: Any = options
            return trial.suggest_categorical(name, names)


def _points(problem: Problem, params: Params, *, seed: int) -> Iterator[Point]:
    """What a run reports on its way, the last at full fidelity; costs are those of all that was trained."""
    if trace := problem.evaluate(params, problem.space().full_fidelity, seed=seed).trace:
        yield from trace
        return
    cost = 0.0
    for fidelity in _rungs(problem.space()):
        found = problem.evaluate(params, fidelity, seed=seed)
        cost += found.cost
        yield Point(fidelity, found.value, cost)


REDUCTION = 3
"""Optuna's default."""

PARTS = 100
"""Steps are whole numbers: a fidelity that is not counts in hundredths of the whole."""


def _hyperband(space: Space) -> "optuna.pruners.BasePruner":
    import optuna

    [fidelity] = space.fidelities.values()
    return optuna.pruners.HyperbandPruner(
        min_resource=_whole(fidelity, fidelity.low),
        max_resource=_whole(fidelity, fidelity.high),
        reduction_factor=REDUCTION,
    )


def _rungs(space: Space) -> Iterator[dict[str, float]]:
    """Where the pruner looks: the least amount times powers of the reduction factor, and the whole."""
    [(name, fidelity)] = space.fidelities.items()
    amount = fidelity.low
    while amount < fidelity.high:
        yield {name: amount}
        amount *= REDUCTION
    yield {name: fidelity.high}


def _step(space: Space, point: Point) -> int:
    [fidelity], [amount] = space.fidelities.values(), point.fidelity.values()
    return _whole(fidelity, amount)


def _whole(fidelity: Fidelity, amount: float) -> int:
    return round(amount) if fidelity.integer else round(PARTS * amount / fidelity.high)
