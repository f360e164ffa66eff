"""Spaces with branches: learners with parameters of their own, and made-up functions whose best branch looks bad.

The learners are the surrogates of `training_size` on all of the data, one alone or a choice of two. Evaluations cost 1.
`python -m benchmarks.problems.conditional` searches every branch and writes the best losses to `conditional.json`.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from benchmarks.problems.problem import Direction, Evaluation, Params, Problem
from benchmarks.problems.training_size import IMPUTATION, REPLICATIONS, SVM, THEIR_NAMES, XGBOOST
from benchmarks.problems.yahpo import Array, missing_surrogate, predict
from farthing.space import Choice, Float, Parameter, Space
from farthing.space.parameters import with_condition

PATH = Path(__file__).with_suffix(".json")


@runtime_checkable
class Branched(Problem, Protocol):
    """A problem whose space has branches; `best_branch` has the best value known."""

    @property
    def best_branch(self) -> str: ...

    def branch(self, params: Params) -> str: ...


@dataclass(frozen=True)
class OnBranches(ABC):
    """What all of them share. A branch is the values of `parents`, as far as they are active."""

    name: str
    declared: Space
    parents: tuple[str, ...]
    direction: Direction = "minimize"
    full_cost: float = 1.0

    def space(self) -> Space:
        return self.declared

    def branch(self, params: Params) -> str:
        return " ".join(str(params[name]) for name in self.parents if name in params)

    @property
    def best_branch(self) -> str:
        best = best_by_branch()[self.name]
        return min(best, key=lambda branch: best[branch])

    @property
    def best_value(self) -> float:
        return min(best_by_branch()[self.name].values())

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), self.full_cost)

    def full_value(self, params: Params) -> float:
        return float(self.full_values([params])[0])

    @abstractmethod
    def missing(self) -> str | None: ...

    @abstractmethod
    def full_values(self, many: Sequence[Params]) -> Array: ...


# ---------------------------------------------------------------------------------------------------- learners

BOOSTERS = Choice("gblinear", "gbtree")
"""Without dart: with much `rate_drop` its surrogate predicts no errors at all where the other learners have a fifth."""
LEARNERS: dict[str, tuple[str, dict[str, Parameter]]] = {
    "svm": ("rbv2_svm", dict(SVM.parameters)),
    "xgboost": (
        "rbv2_xgboost",
        {
            name: BOOSTERS if name == "booster" else with_condition(one, {"booster": ("gbtree",)} if one.when else {})
            for name, one in XGBOOST.parameters.items()
            if one.when.get("booster") != ("dart",)
        },
    ),
}
"""For each learner its scenario and its parameters."""


@dataclass(frozen=True)
class Learners(OnBranches):
    """The share of errors on a data set of a support vector machine, or of the learner that was chosen."""

    instance: int = 0

    def missing(self) -> str | None:
        reasons = (missing_surrogate(scenario) for scenario, _ in LEARNERS.values())
        return next((reason for reason in reasons if reason), None)

    def full_values(self, many: Sequence[Params]) -> Array:
        found = np.zeros(len(many))
        for learner in LEARNERS:
            rows = [i for i, params in enumerate(many) if params.get("learner", "svm") == learner]
            if rows:
                found[rows] = self._errors(learner, [many[i] for i in rows])
        return found

    def _errors(self, learner: str, many: Sequence[Params]) -> Array:
        fixed = {"task_id": self.instance, "trainsize": 1.0, "repl": REPLICATIONS}
        found = predict(LEARNERS[learner][0], [_in_their_names(learner, params) | fixed for params in many])
        return found["mmce"] if "mmce" in found else 1.0 - found["acc"]


def _in_their_names(learner: str, params: Params) -> dict[str, Any]:
    own = {name.removeprefix(f"{learner}_"): value for name, value in params.items() if name != "learner"}
    return {THEIR_NAMES.get(name, name): value for name, value in own.items()}


def _of_both() -> Space:
    parameters: dict[str, Parameter] = {"learner": Choice(*LEARNERS), "imputation": IMPUTATION}
    for learner, (_, own) in LEARNERS.items():
        for name in [name for name in own if name != "imputation"]:
            when = {f"{learner}_{parent}": values for parent, values in own[name].when.items()}
            parameters[f"{learner}_{name}"] = with_condition(own[name], {"learner": (learner,), **when})
    return Space(parameters)


ALONE, BOTH = Space(LEARNERS["svm"][1]), _of_both()


def _svm(*instances: int) -> tuple[Learners, ...]:
    return tuple(Learners(f"svm/{instance}", ALONE, ("kernel",), instance=instance) for instance in instances)


def _svm_or_xgboost(*instances: int) -> tuple[Learners, ...]:
    parents = ("learner", "svm_kernel", "xgboost_booster")
    return tuple(Learners(f"svm-or-xgboost/{one}", BOTH, parents, instance=one) for one in instances)


# --------------------------------------------------------------------------------------------------- functions


@dataclass(frozen=True)
class Basin:
    """A branch: `floor` at one point of its `size` numbers and the shared one, `floor + rise` far from it."""

    size: int
    floor: float
    rise: float
    width: float


@dataclass(frozen=True)
class Basins(OnBranches):
    """One basin a branch, each with numbers of its own, and a number that all of them share."""

    basins: tuple[Basin, ...] = ()
    seed: int = 0

    def missing(self) -> str | None:
        return None

    def full_values(self, many: Sequence[Params]) -> Array:
        return np.array([self._value(params) for params in many])

    def _value(self, params: Params) -> float:
        place = "abcdef".index(params["branch"])
        basin = self.basins[place]
        centre = np.random.default_rng([self.seed, place]).uniform(0.15, 0.85, basin.size + 1)
        x = np.array([params["shared"], *(params[f"{params['branch']}{i}"] for i in range(basin.size))])
        return basin.floor + basin.rise * float(1 - np.exp(-np.sum((x - centre) ** 2) / (2 * basin.width**2)))


def _basins(name: str, *basins: Basin, seed: int) -> Basins:
    letters = "abcdef"[: len(basins)]
    parameters: dict[str, Parameter] = {"branch": Choice(*letters), "shared": Float(0.0, 1.0)}
    for letter, basin in zip(letters, basins, strict=True):
        parameters |= {f"{letter}{i}": Float(0.0, 1.0, when={"branch": letter}) for i in range(basin.size)}
    return Basins(name, Space(parameters), ("branch",), basins=basins, seed=seed)


# -------------------------------------------------------------------------------------------- best of each branch

DRAWN, ROUNDS, AROUND, BEST = 5000, 4, 400, 8
"""Random configurations of all branches, then of each branch `ROUNDS` times `AROUND` more near its `BEST` ones."""


@cache
def best_by_branch() -> dict[str, dict[str, float]]:
    """Of every problem, as it was written."""
    return dict(json.loads(PATH.read_text(encoding="utf-8")))


def best_losses(problem: OnBranches) -> dict[str, float]:
    """The best loss that a dense search finds in each branch."""
    rng, encoder = np.random.default_rng(0), problem.space().encoder
    held = [name in problem.parents for name in encoder.names]
    units = rng.random((DRAWN, encoder.dimension))
    params = encoder.decode_unit(units)
    values, branches = problem.full_values(params), np.array([problem.branch(one) for one in params])
    found = {}
    for branch in sorted(set(branches.tolist())):
        own, loss = units[branches == branch], values[branches == branch]
        for spread in 0.15 / 2.0 ** np.arange(ROUNDS):
            best = np.argsort(loss, kind="stable")[:BEST]
            origin = own[best][np.arange(AROUND) % len(best)]
            moved = np.clip(origin + spread * rng.standard_normal(origin.shape), 0.0, 1.0 - 1e-9)
            near = np.where(held | (rng.random(origin.shape) < 0.5), origin, moved)
            own, loss = np.concatenate([own, near]), np.append(loss, problem.full_values(encoder.decode_unit(near)))
        found[branch] = float(f"{loss.min():.6g}")
    return found


CONDITIONAL_FOR_TUNING: tuple[OnBranches, ...] = (
    *_svm(14, 23, 54, 1479),
    *_svm_or_xgboost(54, 4134, 41142),
    _basins("basins/decoy", Basin(1, 0.4, 0.4, 0.5), Basin(3, 0.0, 1.2, 0.3), Basin(2, 0.5, 0.5, 0.4), seed=1),
)
CONDITIONAL: tuple[OnBranches, ...] = (
    *_svm(18, 188, 469),
    *_svm_or_xgboost(182, 1475, 41212),
    _basins(
        "basins/late",
        Basin(2, 0.3, 0.5, 0.5),
        Basin(2, 0.5, 0.6, 0.4),
        Basin(1, 0.6, 0.3, 0.5),
        Basin(3, 0.0, 1.0, 0.35),
        seed=2,
    ),
)
"""On each of them the best branch leads by a hundredth of errors at least. Rules are chosen on the others."""


def main() -> int:
    found = {problem.name: best_losses(problem) for problem in (*CONDITIONAL_FOR_TUNING, *CONDITIONAL)}
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
