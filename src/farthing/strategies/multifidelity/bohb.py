"""BOHB: Hyperband whose new configurations come from a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from farthing.fields import share
from farthing.strategies.multifidelity.halving import Hyperband, Rungs
from farthing.strategies.shared.guessing import believed
from farthing.strategies.shared.starts import FirstParams, first_params
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Params, State, Trial

if TYPE_CHECKING:
    from farthing.strategies.shared.modelling import Observations


@dataclass(frozen=True)
class BOHB(Hyperband):
    """Hyperband that learns (after Falkner et al., 2018): brackets as they are, new configurations by a model.

    The model is a Gaussian process of the losses on the highest rung that has enough of them (two more than there are
    parameters), searched by log expected improvement; the paper has kernel densities there. A share of the
    configurations stays random, as in the paper.
    """

    random_share: float = share(1 / 3)

    def _new_params(self, rungs: Rungs, numbers: range, rng: Randomness) -> Sequence[FirstParams]:
        return with_newcomers(rungs, numbers, rng, random_share=self.random_share)


def with_newcomers(rungs: Rungs, numbers: range, rng: Randomness, *, random_share: float) -> Sequence[FirstParams]:
    """Configurations to begin with: starts as they are, a share of the others drawn, and the rest by a model."""
    rung = _informed_rung(rungs)
    first = first_params(rungs.history, numbers, rng)
    is_kept = [
        rung is None or bool(one.note) or rng.at("random", number).random() < random_share
        for one, number in zip(first, numbers, strict=True)
    ]
    if rung is None or all(is_kept):
        return first
    from farthing.models.linalg import one_thread

    choose = _by_model if rungs.history.problem.is_simple else _by_models
    with one_thread():
        by_model = iter(choose(rungs, rung, is_kept.count(False), rng))
    return [one if keep else FirstParams(next(by_model), {}) for one, keep in zip(first, is_kept, strict=True)]


def _informed_rung(rungs: Rungs) -> Sequence[Trial] | None:
    """The trials of the highest rung that has enough values for a model; a front takes more than one optimum does."""
    enough = len(rungs.history.problem.objectives) * (rungs.history.problem.space.encoder.dimension + 2)
    for rung in reversed(range(len(rungs.levels))):
        measured = [trial for trial in rungs.ended(rung) if trial.state is State.DONE and trial.value is not None]
        if len(measured) >= enough:
            return measured
    return None


def _by_model(rungs: Rungs, rung: Sequence[Trial], count: int, rng: Randomness) -> list[Params]:
    from farthing.acquisition.expected_improvement import LogExpectedImprovement
    from farthing.strategies.shared.modelling import domain_of, incumbent, kernel_over
    from farthing.strategies.shared.searching import search_batch
    from farthing.strategies.shared.surrogate import Compression, fit_surrogate

    history, encoder = rungs.history, rungs.history.problem.space.encoder
    seen = _observed(history, rung)
    surrogate = fit_surrogate(seen.X, seen.loss, kernel_over(encoder), history, compression=Compression.of(seen.loss))
    rows = search_batch(
        surrogate.gp,
        count,
        lambda gp: believed(
            LogExpectedImprovement(gp, best=incumbent(gp, encoder)), history, results=len(history.done)
        ),
        domain=domain_of(encoder),
        seen=seen,
        rng=rng.at("search", len(history)),
        tried=encoder.encode([trial.params for trial in history]),
    )
    return list(encoder.decode(rows))


def _by_models(rungs: Rungs, rung: Sequence[Trial], count: int, rng: Randomness) -> list[Params]:
    """The same for several objectives and limits, by log expected hypervolume improvement.

    The latest configurations without a result on the rung are pending: those that ended below it would be chosen again.
    Limits are those that are expected to hold in the end.
    """
    from farthing.strategies.multifidelity.context import MOST_PENDING
    from farthing.strategies.shared.modelling import domain_of
    from farthing.strategies.shared.searching import search_batch
    from farthing.strategies.shared.several import fit_many, observe_many

    history, encoder = rungs.history, rungs.history.problem.space.encoder
    begun = {trial.number for trial in history if trial.resume_from is None}
    begun -= {history.lineage(trial.number)[0].number for trial in rung}
    below = [history[number].params for number in sorted(begun)[-MOST_PENDING:]]
    seen = replace(observe_many(history, rung, rungs.excess_in_the_end), pending=encoder.encode(below))
    rows = search_batch(
        fit_many(history, seen, rng).models,
        count,
        lambda models: believed(models.improvement(), history, results=len(history.done)),
        domain=domain_of(encoder),
        seen=seen,
        rng=rng.at("search", len(history)),
        tried=encoder.encode([trial.params for trial in history]),
    )
    return list(encoder.decode(rows))


def _observed(history: History, rung: Sequence[Trial]) -> "Observations":
    """The losses on a rung; pending is every configuration that has none there yet."""
    import numpy as np

    from farthing.strategies.shared.modelling import Observations

    encoder = history.problem.space.encoder
    losses = [history.loss(trial.value) for trial in rung if trial.value is not None]
    running = [trial.params for trial in history.in_flight if trial.resume_from is None]
    return Observations(
        X=encoder.encode([trial.params for trial in rung]),
        loss=np.array(losses),
        cost=np.full(len(rung), np.nan),
        pending=encoder.encode(running),
    )
