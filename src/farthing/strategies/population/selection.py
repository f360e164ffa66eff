"""Truncation selection, common to all strategies: the worst members become copies of the best."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """Members that are replaced, in their order, and the members that may be copied, the best first."""

    replaced: tuple[int, ...]
    donors: tuple[int, ...]


def select(losses: Mapping[int, float], quantile: float) -> Selection:
    """The best members replace the worst `quantile`; a failed one has the loss ∞ and is always replaced.

    n = min(⌈quantile · B⌉, ⌊B/2⌋) are replaced, so that no donor is replaced. If more than n failed, all of them
    are; if none succeeded there are no donors. Equal losses rank in the order of the members.
    """
    ranked = sorted(losses, key=lambda member: (losses[member], member))
    succeeded = [member for member in ranked if losses[member] < math.inf]
    n = replaced_count(len(ranked), quantile)
    worst = ranked[len(ranked) - max(n, len(ranked) - len(succeeded)) :]
    return Selection(tuple(sorted(worst)), tuple(succeeded[: max(1, n)]))


def replaced_count(population: int, quantile: float) -> int:
    """min(⌈quantile · B⌉, ⌊B/2⌋)."""
    return min(math.ceil(quantile * population - 1e-9), population // 2)
