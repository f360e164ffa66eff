"""The cost of each stage of a pipeline: declared, or learnt from the costs so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.optimize import nnls

from farthing.acquisition.prefix_classes import ConstantCost, LogCost, StageCosts
from farthing.costs.learned import Paid, learn_cost
from farthing.errors import InvalidArgument
from farthing.fields import Named, Number
from farthing.models.linalg import Array
from farthing.strategies.pipeline.purchases import Layout, Purchases
from farthing.strategies.shared.modelling import kernel_over
from farthing.strategies.shared.surrogate import is_recent, last_fit
from farthing.trials import History, Json, Trial
from farthing.trials.prefixes import was_cached
from farthing.validation import refuse_unknown

FEWEST_COSTS = 5
"""Costs of a stage before a process is fitted to them; a guess, not tuned."""
LEAST_SPREAD = 0.05
"""Deviation of log cost below which the costs of a stage count as equal. A guess, not tuned."""
EQUAL_SHARES = 1e-3
"""Weight of the prior that all stages cost the same, against one trial of known cost. Small: data decide."""
CHEAPEST = 1e-9
"""Relative to the most expensive stage: a stage that seems to cost nothing costs this."""

DeclaredCosts = Literal["learn"] | Annotated[Mapping[str, float], Named(Number(above=0.0), fewest=1)]
"""`"learn"`, or what each stage costs, by name."""


@dataclass(frozen=True, eq=False)
class PricedStages:
    """The costs, whether any cost is known at all, and what to remember of fitting them."""

    costs: StageCosts
    is_known: bool
    note: dict[str, Json]


def price_stages(
    history: History,
    layout: Layout,
    purchases: Purchases,
    declared: DeclaredCosts,
    *,
    is_frugal: bool = False,
) -> PricedStages:
    """Declared costs as they are. Measured ones by stage where trials have them, otherwise split from their totals."""
    if isinstance(declared, Mapping):
        return PricedStages(_declared_costs(layout, declared), is_known=True, note={})
    measured = _measured(history, layout)
    if any(costs for costs, _ in measured):
        return _learnt(history, layout, measured, is_frugal=is_frugal)
    amounts = _split(purchases, layout.count)
    is_known = amounts is not None
    stages = [ConstantCost(float(amount)) for amount in (amounts if amounts is not None else np.ones(layout.count))]
    return PricedStages(StageCosts(stages), is_known, note={})


def _declared_costs(layout: Layout, declared: Mapping[str, float]) -> StageCosts:
    refuse_unknown(declared, layout.stage_names, what="Stages with a cost", error=InvalidArgument)
    missing = [name for name in layout.stage_names if name not in declared]
    if missing:
        raise InvalidArgument(
            f"Every stage needs a cost where one is declared, got none for {missing[0]!r}. Add it, or use 'learn'."
        )
    return StageCosts([ConstantCost(float(declared[name])) for name in layout.stage_names])


# ------------------------------------------------------------------------------------------------ cost by stage

Observed = tuple[list[float], list[Trial]]


def _measured(history: History, layout: Layout) -> list[Observed]:
    """For each stage what it cost when it ran, and the trials it ran in."""
    found: list[Observed] = [([], []) for _ in range(layout.count)]
    for trial in history:
        for point in trial.measurements:
            cost = sum(point.cost.values())
            if point.step is not None and 0 <= point.step < layout.count and cost > 0 and not was_cached(point):
                found[point.step][0].append(cost)
                found[point.step][1].append(trial)
    return found


def _learnt(history: History, layout: Layout, measured: list[Observed], *, is_frugal: bool) -> PricedStages:
    """Each stage by itself: a process on log cost over the parameters up to it, or one number if costs hardly vary."""
    typical = float(np.median([cost for costs, _ in measured for cost in costs]))
    stages: list[LogCost] = []
    note: dict[str, Json] = {}
    for index, (costs, trials) in enumerate(measured):
        if len(costs) < FEWEST_COSTS or np.std(np.log(costs)) < LEAST_SPREAD:
            stages.append(ConstantCost(float(np.exp(np.mean(np.log(costs)))) if costs else typical))
            continue
        key = f"stage_theta_{index}"
        model, theta = _learn_stage(history, layout, index, np.array(costs), trials, key, is_frugal=is_frugal)
        stages.append(model)
        note[key] = theta
    return PricedStages(StageCosts(stages), is_known=True, note=note)


def _learn_stage(
    history: History, layout: Layout, index: int, costs: Array, trials: list[Trial], key: str, *, is_frugal: bool
) -> tuple[LogCost, list[float]]:
    encoder = layout.space.encoder
    kernel = kernel_over(encoder, columns=np.flatnonzero(layout.columns(index + 1)))
    warm_start, fitted_on = last_fit(history, key, size=len(kernel.parameters) + 1)
    model = learn_cost(
        encoder.encode([trial.params for trial in trials]),
        Paid.whole(costs),
        kernel,
        warm_start=warm_start,
        keeps_theta=warm_start is not None and is_recent(fitted_on, len(history.done), is_frugal=is_frugal),
    )
    return model, [float(value) for value in model.theta]


# ---------------------------------------------------------------------------------------------- cost of a trial


def _split(purchases: Purchases, count: int) -> Array | None:
    """Stage costs that add up best to what trials paid for the stages they did not keep; None where none is known.

    While nothing tells the stages apart their costs are equal shares.
    """
    known = [(purchase.kept, purchase.cost) for purchase in purchases.made if purchase.cost is not None]
    if not known:
        return None
    kept, cost = (np.array(column, dtype=float) for column in zip(*known, strict=True))
    scale = float(np.exp(np.median(np.log(cost))))
    relative = np.clip(cost / scale, CHEAPEST, 1.0 / CHEAPEST)
    paid = np.asarray(np.arange(count) >= kept[:, None], dtype=float)
    weight, share = np.sqrt(EQUAL_SHARES), float(np.mean(relative / (count - kept)))
    rows = np.concatenate([paid, weight * np.eye(count)])
    amounts, _ = nnls(rows, np.concatenate([relative, np.full(count, weight * share)]))
    return np.asarray(scale * np.maximum(amounts, CHEAPEST * max(float(amounts.max()), CHEAPEST)))
