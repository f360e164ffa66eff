"""Drives BoTorch's multi-fidelity knowledge gradient as its tutorial does, on the augmented functions.

A Sobol design over params and the lower half of the fidelities first, then for every evaluation a
`SingleTaskMultiFidelityGP` refitted and `qMultiFidelityKnowledgeGradient` maximised with the true cost known and the
floor of the space for its fidelities. What is recommended is the minimum of the posterior mean at s = 1 over the whole
space. It sees the end of each run; it has no traces and continues none.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.drivers.botorch import Array, sobol
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Problem, loss
from benchmarks.problems.augmented import FIXED_COST, FLOOR
from benchmarks.problems.data import missing_package
from farthing.costs import Budget


@dataclass(frozen=True)
class BoTorchMFKG:
    """It ends after `most` evaluations: a suggestion takes seconds."""

    name: str
    initial: int = 6
    most: int = 24
    fantasies: int = 16
    restarts: int = 3
    raw_samples: int = 64
    iterations: int = 100
    packages: tuple[str, ...] = ("botorch", "gpytorch", "torch")

    @property
    def settings(self) -> Mapping[str, Any]:
        sizes = ("initial", "most", "fantasies", "restarts", "raw_samples", "iterations")
        return {size: getattr(self, size) for size in sizes}

    def missing(self) -> str | None:
        return missing_package("botorch")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        encoder, m = problem.space().encoder, len(problem.space().fidelities)
        design = _design(encoder.dimension, m, self.initial, seed=seed)
        rows, losses = np.zeros((0, encoder.dimension + m)), np.zeros(0)
        while len(rows) < self.most:
            meter = CpuMeter()
            with meter.running(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = design[len(rows)] if len(rows) < self.initial else self.suggest(rows, losses, m)
            [params] = encoder.decode(row[None, :-m])
            [fidelity] = encoder.decode_fidelity(row[None, -m:])
            evaluation = problem.evaluate(params, fidelity, seed=seed)
            rows, losses = np.vstack([rows, row]), np.append(losses, loss(problem, evaluation.value))
            with meter.running(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                [best] = encoder.decode(self._recommended(rows, losses, m)[None, :])
            yield Step(best, evaluation.cost, meter.seconds)

    def _recommended(self, rows: Array, losses: Array, m: int) -> Array:
        """(d,); the best seen while there is only a design."""
        if len(rows) < self.initial:
            return np.asarray(rows[np.lexsort((losses, -rows[:, -1]))[0], :-m])
        x, _ = self._lowest_mean(_fitted(rows, losses, m), m)
        return np.asarray(x)

    def _lowest_mean(self, model: Any, m: int) -> tuple[Array, Any]:
        from botorch.acquisition.analytic import PosteriorMean
        from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
        from botorch.optim.optimize import optimize_acqf

        bounds = _bounds(model, m)
        D = bounds.shape[1]
        at_full = FixedFeatureAcquisitionFunction(
            PosteriorMean(model), d=D, columns=list(range(D - m, D)), values=[1.0] * m
        )
        found, value = optimize_acqf(
            at_full, bounds[:, : D - m], q=1, num_restarts=self.restarts, raw_samples=self.raw_samples
        )
        return np.asarray(found.detach()[0]), value

    def suggest(self, rows: Array, losses: Array, m: int) -> Array:
        """The row (x, s) to evaluate next, from rows of which the last m columns are fidelities."""
        from botorch.acquisition.cost_aware import InverseCostWeightedUtility
        from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
        from botorch.acquisition.utils import project_to_target_fidelity
        from botorch.models.deterministic import GenericDeterministicModel
        from botorch.optim.initializers import gen_one_shot_kg_initial_conditions
        from botorch.optim.optimize import optimize_acqf

        model = _fitted(rows, losses, m)
        bounds = _bounds(model, m)
        columns = list(range(rows.shape[1] - m, rows.shape[1]))
        targets = dict.fromkeys(columns, 1.0)
        cost = GenericDeterministicModel(lambda Z: FIXED_COST + Z[..., columns].prod(dim=-1, keepdim=True))
        knowledge = qMultiFidelityKnowledgeGradient(
            model=model,
            num_fantasies=self.fantasies,
            current_value=self._lowest_mean(model, m)[1],
            cost_aware_utility=InverseCostWeightedUtility(cost_model=cost),
            project=lambda Z: project_to_target_fidelity(Z, d=rows.shape[1], target_fidelities=targets),
        )
        search: dict[str, Any] = {"num_restarts": self.restarts, "raw_samples": self.raw_samples}
        found, _ = optimize_acqf(
            knowledge,
            bounds,
            q=1,
            batch_initial_conditions=gen_one_shot_kg_initial_conditions(knowledge, bounds, q=1, **search),
            options={"batch_limit": 5, "maxiter": self.iterations},
            **search,
        )
        return np.asarray(found.detach()[0])


def _design(d: int, m: int, count: int, *, seed: int) -> Array:
    rows = sobol(d + m, count, seed=seed)
    rows[:, d:] = FLOOR + (0.5 - FLOOR) * rows[:, d:]
    return rows


def _fitted(rows: Array, losses: Array, m: int) -> Any:
    import torch
    from botorch.exceptions.errors import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.gp_regression_fidelity import SingleTaskMultiFidelityGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskMultiFidelityGP(
        torch.tensor(rows),
        -torch.tensor(losses)[:, None],
        outcome_transform=Standardize(m=1),
        data_fidelities=list(range(rows.shape[1] - m, rows.shape[1])),
    )
    with suppress(ModelFittingError):  # all its attempts failed: it goes on with where the last one ended
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _bounds(model: Any, m: int) -> Any:
    import torch

    D = model.train_inputs[0].shape[-1]
    bounds = torch.stack([torch.zeros(D), torch.ones(D)]).double()
    bounds[0, D - m :] = FLOOR
    return bounds
