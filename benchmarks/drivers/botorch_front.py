"""Drives BoTorch's log noisy expected hypervolume improvement as its tutorials do, on numbers and on categories.

A Sobol design first, then for every evaluation a `ModelListGP` with a `SingleTaskGP` for each objective and
each limit, and `qLogNoisyExpectedHypervolumeImprovement` of 128 draws maximised by `optimize_acqf`, all in the unit
cube and in double precision. Where there are categories the models are `MixedSingleTaskGP`, and
`optimize_acqf_mixed_alternating` searches.

As in the tutorials it is told the reference by which it is judged, which no other method is. With the reference that
`infer_reference_point` makes of its own results it stayed at one end of the front of zdt1-10.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.drivers.botorch import Array, sobol
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Problem
from benchmarks.problems.data import missing_package
from benchmarks.problems.objectives import WithObjectives, values_by_name
from farthing.costs import Budget


@dataclass(frozen=True)
class BoTorchFront:
    """The sizes are those of BoTorch's tutorials; a search among categories has as many starts."""

    name: str
    initial: int = 10
    restarts: int = 10
    raw_samples: int = 512
    draws: int = 128
    packages: tuple[str, ...] = ("botorch", "gpytorch", "torch")

    @property
    def settings(self) -> Mapping[str, Any]:
        sizes = {one: getattr(self, one) for one in ("initial", "restarts", "raw_samples", "draws")}
        return {**sizes, "reference": "told"}

    def missing(self) -> str | None:
        return missing_package("botorch")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        import torch

        assert isinstance(problem, WithObjectives), "it is for several objectives"
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        encoder = problem.space().encoder
        design = encoder.from_unit(sobol(encoder.dimension, self.initial, seed=seed))
        rows = np.zeros((0, encoder.dimension))
        losses, excess = np.zeros((0, len(problem.objectives))), np.zeros((0, len(problem.constraints)))
        while True:
            meter = CpuMeter()
            with meter.running():
                is_first = len(rows) < self.initial
                row = design[len(rows)] if is_first else self.suggest(problem, rows, losses, excess)
                [params] = encoder.decode(row[None, :])
            evaluation = problem.evaluate(params, problem.space().full_fidelity, seed=seed)
            values = values_by_name(problem, evaluation)
            beyond = [limit.excess(values[name]) for name, limit in problem.constraints.items()]
            rows, losses = np.vstack([rows, row]), np.vstack([losses, problem.losses(values)])
            excess = np.vstack([excess, beyond]) if beyond else np.zeros((len(rows), 0))
            yield Step(params, evaluation.cost, meter.seconds)

    def suggest(self, problem: WithObjectives, rows: Array, losses: Array, excess: Array) -> Array:
        """The row to evaluate next: numbers from 0 to 1, and the index of each category."""
        import torch
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, ModelListGP, SingleTaskGP
        from botorch.optim.optimize import optimize_acqf
        from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
        from botorch.sampling.normal import SobolQMCNormalSampler
        from gpytorch.mlls import SumMarginalLogLikelihood

        m, X, categories = losses.shape[1], torch.tensor(rows), problem.space().encoder.categories
        Y = torch.tensor(np.hstack([-losses, excess]))
        highest = [categories.get(j, 2) - 1.0 for j in range(X.shape[1])]
        bounds = torch.tensor([[0.0] * X.shape[1], highest], dtype=torch.double)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = [Y[:, j : j + 1] for j in range(Y.shape[1])]
            model = ModelListGP(
                *(MixedSingleTaskGP(X, y, list(categories)) if categories else SingleTaskGP(X, y) for y in columns)
            )
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            improvement = qLogNoisyExpectedHypervolumeImprovement(
                model,
                ref_point=[-bound for bound in problem.scale.reference],
                X_baseline=X,
                sampler=SobolQMCNormalSampler(torch.Size([self.draws])),
                prune_baseline=True,
                objective=IdentityMCMultiOutputObjective(list(range(m))),
                constraints=[_excess(m + j) for j in range(excess.shape[1])] or None,
            )
            if categories:
                options = {j: [float(i) for i in range(count)] for j, count in categories.items()}
                found, _ = optimize_acqf_mixed_alternating(
                    improvement,
                    bounds,
                    cat_dims=options,
                    raw_samples=self.raw_samples,
                    num_restarts=self.restarts,
                )
            else:
                found, _ = optimize_acqf(improvement, bounds, 1, self.restarts, raw_samples=self.raw_samples)
        return np.asarray(found.detach()[0])


def _excess(column: int) -> Callable[[Any], Any]:
    """A quantity of the samples that must be at most zero."""
    return lambda samples: samples[..., column]
