"""Studies whose user believes to know where good values are: rightly, at random, or wrongly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.drivers.ours import Ours
from benchmarks.problems import Params, Problem
from benchmarks.problems.problem import Judged, loss
from farthing.space import Parameter, Space
from farthing.study import Study

Quality: TypeAlias = Literal["good", "useless", "bad"]
"""The guess is the best, any, or the worst of `CONSIDERED` random configurations."""

QUALITIES: tuple[Quality, ...] = ("good", "useless", "bad")
CONSIDERED = 200


@dataclass(frozen=True)
class OursGuessing(Ours):
    """A strategy in a space with a guess for every parameter."""

    quality: Quality = field(kw_only=True)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "guess": self.quality}

    def _study(self, problem: Problem, *, seed: int) -> Study:
        aim: dict[str, Any] = {problem.direction: "value"}
        space = with_guess(problem.space(), guessed(problem, self.quality, seed=seed))
        return Study(space, **aim, strategy=self.strategy, seed=seed, cost_unit="cost")


def guessed(problem: Problem, quality: Quality, *, seed: int) -> Params:
    """The configuration that the user believes in. Which ones are considered depends on the seed."""
    encoder = problem.space().encoder
    drawn = encoder.decode_unit(np.random.default_rng([seed, CONSIDERED]).random((CONSIDERED, encoder.dimension)))
    if quality == "useless":
        return drawn[0]
    many = problem.full_values(drawn) if isinstance(problem, Judged) else [problem.full_value(one) for one in drawn]
    losses = [loss(problem, float(value)) for value in many]
    return drawn[int(np.argmin(losses) if quality == "good" else np.argmax(losses))]


def with_guess(space: Space, params: Params) -> Space:
    parameters = {name: _with_guess(one, params.get(name)) for name, one in space.parameters.items()}
    return Space(parameters, fidelities=space.fidelities)


def _with_guess(parameter: Parameter, guess: Any) -> Parameter:
    """The same parameter with a guess, by way of its table."""
    if guess is None:
        return parameter
    table = Space({"it": parameter}).to_json()["params"]["it"]
    return Space.from_json({"params": {"it": {**table, "guess": [guess] if "choice" in table else guess}}}).parameters[
        "it"
    ]
