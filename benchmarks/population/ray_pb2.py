"""Ray Tune's PB2, driven directly: its own `_explore`, on the same selection of who is replaced by whom.

Ray's state between decisions, a table of results and the configurations chosen at the same time, is made again from
the history. It has no logarithms and no categories: log parameters are given to it as exponents, integers are rounded
instead of cut off, spaces with categories it cannot search. Its draws come from NumPy's global generator, which is
seeded for each decision.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.problems.data import missing_package
from farthing.space import Float, Int, Space
from farthing.strategies.population.members import Members, interval_of
from farthing.strategies.population.strategy import Pick, PopulationStrategy, Replacements
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import Params

PACKAGES = ("ray", "scikit-learn", "pandas")


def missing(space: Space) -> str | None:
    """Why Ray's PB2 cannot be compared here, or None."""
    if not all(isinstance(parameter, Float | Int) for parameter in space.parameters.values()):
        return "Ray's PB2 takes no categories"
    return missing_package("ray") or missing_package("pandas")


@dataclass(frozen=True, kw_only=True)
class RayPB2(PopulationStrategy):
    """Replaced members get what Ray's scheduler would give them."""

    def explore(self, replacements: Replacements, rng: Randomness) -> list[Pick]:
        import pandas as pd

        explore = import_module("ray.tune.schedulers.pb2")._explore
        members, interval = replacements.members, replacements.interval
        space = members.history.problem.space
        names = list(space.parameters)
        table: Any = pd.DataFrame(_rows(members, before=interval), columns=["Trial", "Time", *names, "Reward"])
        current: Any = None
        found: list[Pick] = []
        for each in replacements.replaced:
            np.random.seed(int(rng.at("ray", interval, each.member).integers(2**31)))  # noqa: NPY002  (Ray draws from it)
            donor = _exponents(space, each.source.params)
            config, table = explore(table, _bounds(space), current, str(each.donor), str(each.member), donor)
            found.append(Pick(_params(space, config)))
            chosen = np.array([[config[name] for name in names]])
            current = chosen if current is None else np.concatenate([current, chosen])
        return found


def _rows(members: Members, *, before: int) -> Iterator[list[Any]]:
    """What Ray would have written down: each result, and for each clone that it began with its donor's score."""
    space, sign = members.history.problem.space, -1.0
    for own in members.trials.values():
        for trial in own:
            if interval_of(trial) >= before:
                continue
            values = list(_exponents(space, trial.params).values())
            if trial.note["donor"] is not None:
                source = members.history[trial.resume_from or 0]
                began = [str(trial.note["member"]), interval_of(source), *values, sign * members.loss(source)]
                yield began
            yield [str(trial.note["member"]), interval_of(trial), *values, sign * members.loss(trial)]


def _bounds(space: Space) -> dict[str, list[float]]:
    numbers = {name: each for name, each in space.parameters.items() if isinstance(each, Float | Int)}
    low = _exponents(space, {name: each.low for name, each in numbers.items()})
    high = _exponents(space, {name: each.high for name, each in numbers.items()})
    return {name: [low[name], high[name]] for name in space.parameters}


def _exponents(space: Space, params: Params) -> dict[str, float]:
    return {name: math.log10(params[name]) if _is_log(space, name) else float(params[name]) for name in params}


def _params(space: Space, config: dict[str, float]) -> Params:
    """Ray computes in single precision, which may leave the bounds."""
    bounds = _bounds(space)
    within = {name: min(max(float(config[name]), bounds[name][0]), bounds[name][1]) for name in space.parameters}
    plain = {name: 10.0**value if _is_log(space, name) else value for name, value in within.items()}
    return {name: round(v) if isinstance(space.parameters[name], Int) else v for name, v in plain.items()}


def _is_log(space: Space, name: str) -> bool:
    parameter = space.parameters[name]
    return isinstance(parameter, Float | Int) and parameter.log
