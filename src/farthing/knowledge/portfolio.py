"""Which of the earlier studies' best configurations to try first: a portfolio that covers what those studies knew.

    R_j(c) = clip((h_j(c) − min h_j)/(median h_j − min h_j), 0, 1.5)

h_j is the posterior mean of study j at full fidelity; its least value and its median are over points that fill the
space. The next configuration is always the one that lowers Σ_j min_c R_j(c), over those chosen, the most.
Before the first, each study counts as 1: a random configuration is as good as the median.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.analysis.model import quick_model_of
from farthing.knowledge.earlier import carried_over
from farthing.models.linalg import Array, one_thread
from farthing.models.sobol import sobol_points
from farthing.space import Space
from farthing.trials import History, Params

MOST_STARTS = 5
"""Starts that are learnt: as many as `TraceKG` begins with. Measured with five; no other number is on record."""
POWER = 9
"""2^9 = 512 points over which a model's least value and its median are taken; as it was measured."""
WORST = 1.5
"""The highest R that counts: a configuration that is bad somewhere counts as bad, however bad; as it was measured."""
FEWEST = 3
"""Values below which a study has no model of its own to speak of. A guess, not tuned."""


@dataclass(frozen=True)
class EarlierBest:
    """The recommendation of an earlier study, in its own space and as one of today's."""

    source: str
    own: Params
    params: Params
    history: History


def ordered_by_cover(bests: Sequence[EarlierBest], *, most: int = MOST_STARTS) -> list[EarlierBest]:
    """The portfolio, the best start first. Configurations that two studies agree on are taken once."""
    distinct = [best for i, best in enumerate(bests) if best.params not in [one.params for one in bests[:i]]]
    with one_thread():
        R = np.stack([_regrets(best, distinct) for best in bests])
    return [distinct[place] for place in greedy_cover(R)[:most]]


def greedy_cover(R: Array) -> list[int]:
    """The columns of R (studies, configurations) in the order of the greedy rule; ties go to the first."""
    chosen: list[int] = []
    covered = np.ones(R.shape[0])
    for _ in range(R.shape[1]):
        totals = np.minimum(covered[:, None], R).sum(axis=0)
        totals[chosen] = np.inf
        chosen.append(int(np.argmin(totals)))
        covered = np.minimum(covered, R[:, chosen[-1]])
    return chosen


def _regrets(study: EarlierBest, candidates: Sequence[EarlierBest]) -> Array:
    """R_j of every candidate; without a model, 0 for the study's own best and 1, the median, for the others."""
    mean = posterior_mean(study.history)
    if mean is None:
        return np.array([0.0 if one.params == study.params else 1.0 for one in candidates])
    space = study.history.problem.space
    spread = mean(_filling(space))
    here = mean(space.encoder.encode([_in_space_of(study, one) for one in candidates]))
    least, middle = min(float(spread.min()), float(here.min())), float(np.median(spread))
    return np.clip((here - least) / max(middle - least, 1e-12), 0.0, WORST)


def _in_space_of(study: EarlierBest, candidate: EarlierBest) -> Params:
    """A candidate as the study would have seen it: what it did not tune there stays at the study's own best."""
    space = study.history.problem.space
    middle = space.encoder.unit_values([0.5] * space.encoder.dimension)
    return carried_over(candidate.params, space, fill=lambda name: study.own.get(name, middle[name]))


def _filling(space: Space) -> Array:
    encoder = space.encoder
    return encoder.from_unit(sobol_points(encoder.dimension, POWER, rng=np.random.default_rng(0)))


def posterior_mean(history: History) -> Callable[[Array], Array] | None:
    """The expected loss at full fidelity of encoded rows, on the model's own scale; None where too little is known."""
    if sum(trial.value is not None for trial in history.done) < FEWEST:
        return None
    model = quick_model_of(history, fewest=1)
    return lambda X: model.gp.mean(model.rows(X))
