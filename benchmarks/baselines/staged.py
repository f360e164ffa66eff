"""Earlier methods for pipelines: one prefix remembered, or a pool of good ones."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.baselines.bounds import LogHopedGain
from benchmarks.baselines.max_value_entropy import LogMaxValueEntropy, draw_least_values
from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.confidence_bound import lambo_beta
from farthing.acquisition.expected_improvement import LogAugmentedImprovement
from farthing.acquisition.maximize import sobol
from farthing.fields import whole
from farthing.models.linalg import Array
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext
from farthing.strategies.pipeline.prefix_ei import ReuseClass, best_of_classes, chosen, those_of
from farthing.strategies.pipeline.strategy import StagedStrategy
from farthing.strategies.shared.effort import share_left
from farthing.trials import Params

ROWS_FOR_LEAST = 512
"""Spread-out rows whose least value stands for that of the box, beside those seen. A limit on time, not tuned."""


@dataclass(frozen=True)
class StagedBO(StagedStrategy):
    """Bayesian optimisation that remembers the stages of the latest configuration only, as a pipeline without a cache.

    The acquisition function is maximised for every number of stages kept, which a search of all parameters at once
    would never find, and the best value per price^γ is taken. `value` is expected improvement ("ei"), the distance of
    the lower confidence bound below the best ("lcb"), or what a measurement tells about the least value, max-value
    entropy search ("mes"); `cost` chooses γ: 0 ("none"), 1 ("price"), or the share of the budget that is left
    ("cooled").
    """

    value: Literal["ei", "lcb", "mes"] = "ei"
    cost: Literal["none", "price", "cooled"] = "cooled"

    def choose(self, context: PipelineContext) -> ChosenRow:
        latest = [purchase.params for purchase in context.pipeline.purchases.made[-1:]]
        return _best(context, those_of(context, latest), self._acquisition(context), self._exponent(context))

    def _acquisition(self, context: PipelineContext) -> Acquisition:
        if self.value == "ei":
            return LogAugmentedImprovement(context.gp, context.best)
        if self.value == "mes":
            return LogMaxValueEntropy(context.gp, _least_values(context))
        beta = lambo_beta(context.seen.count, context.gp.X.shape[1])
        return LogHopedGain(context.gp, context.best, beta)

    def _exponent(self, context: PipelineContext) -> float:
        if self.cost == "cooled":
            return share_left(context.pipeline.history, context.budget)
        return 1.0 if self.cost == "price" else 0.0


@dataclass(frozen=True)
class EEIPU(StagedStrategy):
    """Expected improvement per expected cost over a pool of memoised prefixes (after EEIPU, Ridwan et al., 2024).

    The pool has the prefixes of the `pool` best configurations. The cost counts with the share of the budget that is
    left as its exponent. Unlike the original, every number of stages kept has a search of its own.
    """

    pool: int = whole(5, least=1)

    def choose(self, context: PipelineContext) -> ChosenRow:
        exponent = share_left(context.pipeline.history, context.budget)
        improvement = LogAugmentedImprovement(context.gp, context.best)
        return _best(context, those_of(context, self._best_configurations(context)), improvement, exponent)

    def _best_configurations(self, context: PipelineContext) -> list[Params]:
        history = context.pipeline.history
        ranked = sorted(history.done, key=lambda trial: history.loss(trial.value or 0.0))
        return [trial.params for trial in ranked[: self.pool]]


def _least_values(context: PipelineContext) -> Array:
    domain = context.pipeline.domain
    spread = domain.snap(domain.from_unit(sobol(domain.width, ROWS_FOR_LEAST, rng=context.rng)))
    return draw_least_values(context.gp, np.concatenate([spread, context.gp.X]), context.best, rng=context.rng)


def _best(context: PipelineContext, classes: list[ReuseClass], value: Acquisition, exponent: float) -> ChosenRow:
    found = best_of_classes(context, classes, value, exponent=exponent)
    best = max(found, key=lambda best: (best.value, best.kept))
    return chosen(classes, best, {"why": "most value per price"})
