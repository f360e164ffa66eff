"""Drives BoTorch's log expected improvement as its tutorials do, on spaces of continuous numbers.

A Sobol design first, then for every evaluation a `SingleTaskGP` fitted again with its default priors and
`LogExpectedImprovement` maximised by `optimize_acqf`, all in the unit cube and in double precision.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Problem, loss
from benchmarks.problems.data import missing_package
from farthing.costs import Budget

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BoTorch:
    """The sizes are those of BoTorch's tutorials."""

    name: str
    initial: int = 10
    restarts: int = 10
    raw_samples: int = 512
    packages: tuple[str, ...] = ("botorch", "gpytorch", "torch")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"initial": self.initial, "restarts": self.restarts, "raw_samples": self.raw_samples}

    def missing(self) -> str | None:
        return missing_package("botorch")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        encoder = problem.space().encoder
        design = sobol(encoder.dimension, self.initial, seed=seed)
        rows, losses = np.zeros((0, encoder.dimension)), np.zeros(0)
        while True:
            meter = CpuMeter()
            with meter.running():
                row = design[len(rows)] if len(rows) < self.initial else self.suggest(rows, losses)
                [params] = encoder.decode(row[None, :])
            evaluation = problem.evaluate(params, {}, seed=seed)
            rows, losses = np.vstack([rows, row]), np.append(losses, loss(problem, evaluation.value))
            [best] = encoder.decode(rows[losses.argmin()][None, :])
            yield Step(best, evaluation.cost, meter.seconds)

    def suggest(self, rows: Array, losses: Array) -> Array:
        """The row of the unit cube to evaluate next."""
        import torch
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim.optimize import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        X, Y = torch.tensor(rows), -torch.tensor(losses)[:, None]
        bounds = torch.tensor([[0.0] * X.shape[1], [1.0] * X.shape[1]], dtype=torch.double)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SingleTaskGP(X, Y)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            improvement = LogExpectedImprovement(model, best_f=Y.max())
            found, _ = optimize_acqf(improvement, bounds, 1, self.restarts, raw_samples=self.raw_samples)
        return np.asarray(found.detach()[0])


def sobol(dimension: int, count: int, *, seed: int) -> Array:
    from torch.quasirandom import SobolEngine

    engine = SobolEngine(dimension, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
    return np.asarray(engine.draw(count).double())
