"""Drives SMAC3's multi-fidelity facade by ask and tell: Hyperband brackets over a random forest.

An ordered choice becomes an integer, its index. Conditions are declared as ConfigSpace's own. A promoted configuration
is charged for what it adds. What is recommended is the best value at the highest budget, which is SMAC's own incumbent.
"""

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.drivers.promoting import Incumbent, PausedRuns, plain_value, rounded, the_fidelity
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Params, Point, Problem, loss
from benchmarks.problems.data import missing_package
from farthing.costs import Budget
from farthing.space import Choice, Float, Int, Parameter, Space


@dataclass(frozen=True)
class SMAC:
    """`trials` is about what the brackets come to within the budget: SMAC sizes its initial design by it."""

    name: str
    trials: int = 100
    packages: tuple[str, ...] = ("smac", "ConfigSpace", "scikit-learn", "numpy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"facade": "MultiFidelityFacade", "trials": self.trials}

    def missing(self) -> str | None:
        return missing_package("smac")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        from smac.runhistory.dataclasses import TrialValue

        space, runs, best = problem.space(), PausedRuns(problem, seed=seed), Incumbent(problem)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            smac = self._facade(space, folder, seed=seed)
            while True:
                meter = CpuMeter()
                with meter.running():
                    asked = smac.ask()
                params, fidelity = params_of(space, dict(asked.config)), rounded(space, asked.budget)
                evaluation, cost = runs.evaluate(params, fidelity)
                with meter.running():
                    smac.tell(asked, TrialValue(cost=loss(problem, evaluation.value), time=cost), save=False)
                best.see(params, Point(fidelity, evaluation.value, evaluation.cost))
                yield Step(best.params, cost, meter.seconds)

    def _facade(self, space: Space, folder: str, *, seed: int) -> Any:
        from smac import MultiFidelityFacade, Scenario

        declared = space.fidelities[the_fidelity(space)]
        scenario = Scenario(
            config_space(space, seed=seed),
            deterministic=True,
            n_trials=self.trials,
            min_budget=declared.low,
            max_budget=declared.high,
            seed=seed,
            output_directory=Path(folder),
        )
        return MultiFidelityFacade(scenario, target_function=_never_called, logging_level=False, overwrite=True)


def _never_called(config: Any, seed: int = 0, budget: float = 0.0) -> float:
    raise AssertionError("SMAC is asked and told, it evaluates nothing itself")


def config_space(space: Space, *, seed: int) -> Any:
    """The parameters as ConfigSpace has them, conditions included."""
    from ConfigSpace import ConfigurationSpace, InCondition

    declared = ConfigurationSpace(seed=seed)
    own = {name: _hyperparameter(name, parameter) for name, parameter in space.parameters.items()}
    declared.add(*own.values())
    for name, parameter in space.parameters.items():
        for parent, values in parameter.when.items():
            declared.add(InCondition(own[name], own[parent], list(values)))
    return declared


def _hyperparameter(name: str, parameter: Parameter) -> Any:
    from ConfigSpace import CategoricalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter

    match parameter:
        case Float(low=low, high=high, log=log):
            return UniformFloatHyperparameter(name, low, high, log=log)
        case Int(low=low, high=high, log=log):
            return UniformIntegerHyperparameter(name, low, high, log=log)
        case Choice(options=options, ordered=True):
            return UniformIntegerHyperparameter(name, 0, len(options) - 1)
        case Choice(options=options):
            return CategoricalHyperparameter(name, list(options))


def params_of(space: Space, config: Mapping[str, Any]) -> Params:
    """Plain numbers instead of NumPy's, in the space's order."""
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in config.items()}
    return space.check({name: plain_value(space, name, value) for name, value in plain.items()})
