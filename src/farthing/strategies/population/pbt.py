"""Population-based training: perturbed params, none (the null model that any other must beat), and PB2's bandit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.fields import number, share
from farthing.space import Choice, Float, Int
from farthing.space.parameters import Parameter, with_condition
from farthing.strategies.population.strategy import Pick, PopulationStrategy, Replacements, redrawn_picks
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import Params

if TYPE_CHECKING:
    import numpy as np

    from farthing.space import Space

FACTORS = (0.8, 1.2)
"""As in Jaderberg et al. (2017)."""


@dataclass(frozen=True, kw_only=True)
class PBT(PopulationStrategy):
    """Population-based training (Jaderberg et al., 2017): a replaced member takes its donor's params, perturbed.

    Each parameter is drawn again with probability `resample`, else multiplied by 0.8 or 1.2 and clipped to its bounds.
    Integers move by one at least, ordered choices to a neighbour; a category changes only when it is drawn again.
    """

    resample: float = share(0.25)

    def explore(self, replacements: Replacements, rng: Randomness) -> list[Pick]:
        space = replacements.members.history.problem.space
        return [
            Pick(
                perturbed(space, each.source.params, self.resample, rng.at("pick", replacements.interval, each.member))
            )
            for each in replacements.replaced
        ]


@dataclass(frozen=True, kw_only=True)
class Clone(PopulationStrategy):
    """Copies the strong over the weak, and draws the params of the copies at random: the null model of PBT and PB2."""

    def explore(self, replacements: Replacements, rng: Randomness) -> list[Pick]:
        return redrawn_picks(replacements, rng)


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
        from farthing.strategies.population.model import Picking, fit_changes, observed_changes

        members, interval = replacements.members, replacements.interval
        changes = observed_changes(members, before=interval if self.mode == "sync" else None)
        if changes.count == 0:
            return redrawn_picks(replacements, rng)
        with one_thread():
            model = fit_changes(changes, members)
            picking = Picking(members, model, interval, beta=self.beta, box=self.box)
            return picking.picks(replacements.replaced, replacements.running, rng)


def perturbed(space: "Space", params: Params, resample: float, rng: "np.random.Generator") -> Params:
    """The params near by; one that was inactive and has become active is drawn."""
    drawn = _unconditional_draw(space, rng)
    values: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        is_new, factor = rng.random() < resample, FACTORS[int(rng.integers(2))]
        is_kept = name in params and not is_new
        values[name] = multiplied(parameter, params[name], factor) if is_kept else drawn[name]
    return {name: values[name] for name in space.active_names(values)}


def multiplied(parameter: Parameter, value: Any, factor: float) -> Any:
    """`factor` times the value within the bounds, or a neighbour in that direction where values have no size."""
    match parameter:
        case Choice(ordered=False):
            return value
        case Float(step=None):
            return min(max(value * factor, parameter.low), parameter.high)
        case Choice():
            return parameter.value_at(_within(parameter.index_of(value) + (1 if factor > 1.0 else -1), parameter))
    here = parameter.index_of(value)
    wanted = round((value * factor - parameter.low) / (parameter.step or 1))
    moved = wanted if wanted != here else here + (1 if (factor > 1.0) == (value >= 0) else -1)
    return parameter.value_at(_within(moved, parameter))


def _within(index: int, parameter: Float | Int | Choice) -> int:
    assert parameter.count is not None
    return int(min(max(index, 0), parameter.count - 1))


def _unconditional_draw(space: "Space", rng: "np.random.Generator") -> Params:
    """A value for every parameter, whether it is active or not."""
    from farthing.space.encoding import Encoder

    encoder = Encoder({name: with_condition(p, {}) for name, p in space.parameters.items()}, {}, order=())
    return encoder.decode_unit(rng.random((1, encoder.dimension)))[0]
