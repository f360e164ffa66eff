"""PB2, population-based bandits (Parker-Holder, Nguyen, Roberts, 2020), and the changes that make it dependable."""

from dataclasses import dataclass
from typing import Any

from farthing.fields import number
from farthing.strategies.population.strategy import Pick, PopulationStrategy, Replacements, redrawn_picks
from farthing.strategies.shared.strategy import Randomness


@dataclass(frozen=True, kw_only=True)
class PB2(PopulationStrategy):
    """Trains a population; the params of replaced members are chosen by a time-varying Gaussian process.

    The process models the change of the score over an interval with some params. One fit serves all members that are
    replaced: members that continue and those chosen before count as running.

    Args:
        beta: weight of the uncertainty, μ + √β σ; None is 4, or without a box the paper's schedule, 0.2 + log 0.4t.
        box: params are chosen within ± box/2 of the donor's, in the unit cube; with the probability that a random
            configuration beats the donor's, they are drawn at random instead. None is the paper's method: the whole
            cube, no draws.
    """

    beta: float | None = number(None, least=0.0)
    box: float | None = number(0.4, above=0.0, most=2.0)

    @classmethod
    def paper(cls, **arguments: Any) -> "PB2":
        """The method of the paper: the maximum over the whole space, for any evidence."""
        return cls(**{"box": None, **arguments})

    def explore(self, replacements: Replacements, rng: Randomness) -> list[Pick]:
        from farthing.models.linalg import one_thread
        from farthing.strategies.population.model import fit_changes, observed_changes
        from farthing.strategies.population.picking import Picking

        members, interval = replacements.members, replacements.interval
        changes = observed_changes(members, before=interval if self.mode == "sync" else None)
        if changes.count == 0:
            return redrawn_picks(replacements, rng)
        with one_thread():
            model = fit_changes(changes, members)
            picking = Picking(members, model, interval, beta=self.beta, box=self.box)
            return picking.picks(replacements.replaced, replacements.running, rng)
