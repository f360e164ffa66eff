"""Drives BoTorch's log noisy expected hypervolume improvement as its tutorials do, on spaces of continuous numbers.

A Sobol design first, then for every evaluation a `ModelListGP` with a `SingleTaskGP` for each objective and
each limit, the reference that BoTorch infers from the feasible results, and `qLogNoisyExpectedHypervolumeImprovement`
of 128 draws maximised by `optimize_acqf`, all in the unit cube and in double precision.
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
    """The sizes are those of BoTorch's tutorials."""

    name: str
    initial: int = 10
    restarts: int = 10
    raw_samples: int = 512
    draws: int = 128
    packages: tuple[str, ...] = ("botorch", "gpytorch", "torch")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {one: getattr(self, one) for one in ("initial", "restarts", "raw_samples", "draws")}

    def missing(self) -> str | None:
        return missing_package("botorch")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        import torch

        assert isinstance(problem, WithObjectives), "it is for several objectives"
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        encoder = problem.space().encoder
        design = sobol(encoder.dimension, self.initial, seed=seed)
        rows = np.zeros((0, encoder.dimension))
        losses, excess = np.zeros((0, len(problem.objectives))), np.zeros((0, len(problem.constraints)))
        while True:
            meter = CpuMeter()
            with meter.running():
                row = design[len(rows)] if len(rows) < self.initial else self.suggest(rows, losses, excess)
                [params] = encoder.decode(row[None, :])
            evaluation = problem.evaluate(params, {}, seed=seed)
            values = values_by_name(problem, evaluation)
            beyond = [limit.excess(values[name]) for name, limit in problem.constraints.items()]
            rows, losses = np.vstack([rows, row]), np.vstack([losses, problem.losses(values)])
            excess = np.vstack([excess, beyond]) if beyond else np.zeros((len(rows), 0))
            yield Step(params, evaluation.cost, meter.seconds)

    def suggest(self, rows: Array, losses: Array, excess: Array) -> Array:
        """The row of the unit cube to evaluate next."""
        import torch
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.optim.optimize import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated
        from gpytorch.mlls import SumMarginalLogLikelihood

        m, X = losses.shape[1], torch.tensor(rows)
        Y = torch.tensor(np.hstack([-losses, excess]))
        bounds = torch.tensor([[0.0] * X.shape[1], [1.0] * X.shape[1]], dtype=torch.double)
        keeps = torch.tensor(np.all(excess <= 0.0, axis=1))
        kept = Y[keeps, :m] if bool(keeps.any()) else Y[:, :m]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ModelListGP(*(SingleTaskGP(X, Y[:, j : j + 1]) for j in range(Y.shape[1])))
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            improvement = qLogNoisyExpectedHypervolumeImprovement(
                model,
                ref_point=infer_reference_point(kept[is_non_dominated(kept)], scale=0.1).tolist(),
                X_baseline=X,
                sampler=SobolQMCNormalSampler(torch.Size([self.draws])),
                prune_baseline=True,
                objective=IdentityMCMultiOutputObjective(list(range(m))),
                constraints=[_excess(m + j) for j in range(excess.shape[1])] or None,
            )
            found, _ = optimize_acqf(improvement, bounds, 1, self.restarts, raw_samples=self.raw_samples)
        return np.asarray(found.detach()[0])


def _excess(column: int) -> Callable[[Any], Any]:
    """A quantity of the samples that must be at most zero."""
    return lambda samples: samples[..., column]
