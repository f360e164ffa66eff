"""The skill of a model of learning curves: how often what it chose is better than what was drawn at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median

import numpy as np

from farthing.strategies.multifidelity.loss_scale import lower_bound
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.shared.starts import is_drawn
from farthing.trials import History
from farthing.trials.trial import ADDED, is_by_model

Curve = Mapping[float, float]
"""The loss of a run at each fidelity that it has reached; empty for a run that diverged."""

HALVING = "halving"
"""The key in the notes of suggestions that are made while halving decides; its value is the skill of the model."""
FIRST, STANDING_OUT, PROGRESS = 8, 0.1, 0.02
"""The number of first looks along a trace. The best random one of them stands out if it has this much less error than
their median. A run has learnt something if it has this much less error than at its first report."""
AS_VALUE = 5
"""Of what is maximised, the same holds for a value that is higher by so many times that share: whether it has a highest
value is a guess from those seen. A guess as well, for functions whose values are far below one."""
JUDGED, LEAST_SKILL = 16, 0.85
"""The latest choices of a model that are judged, at least half as many, and the share of pairs that they must win.
These and the numbers above are guesses; `tuning-curve-rules.jsonl.xz` has the default beside none of it.
"""
LEAST_DRAWN, MOST_DRAWN = 3, 64
"""Random runs to compare with: the latest ones. The first number is a guess, the second a limit on time; not tuned."""


@dataclass(frozen=True)
class ModelSkill:
    """The share of pairs in which a late choice of the model was better than a random run, and how many were judged."""

    share: float
    chosen: int

    @property
    def is_missing(self) -> bool:
        """Whether the model must not decide yet, neither what to train nor what to recommend."""
        return self.is_unknown or self.share < LEAST_SKILL

    @property
    def is_unknown(self) -> bool:
        """Whether too few choices were judged."""
        return self.chosen < JUDGED / 2


def skill_of(history: History) -> ModelSkill | None:
    """The skill of the model so far; None where it cannot be told, is trusted, or halving cannot take over.

    It can where the only fidelity is a trace: then every run can be continued to every rung. A model is trusted where
    the first random runs give it something to go by, and must show its skill first where they do not.
    """
    if (fidelity := only_trace(history)) is None:
        return None
    judged = [run for run in runs_of(history) if run.has_diverged or run.last is not None]
    drawn = [run for run in judged if is_drawn(run.trials[0], added=ADDED)]
    if len(drawn) < LEAST_DRAWN or something_is_learnt([_curve(run, fidelity) for run in drawn[:FIRST]]):
        return None
    others = [_curve(run, fidelity) for run in drawn[-MOST_DRAWN:]]
    chosen = (_curve(run, fidelity) for run in reversed(judged) if is_chosen(run))
    compared = (share for curve in chosen if (share := share_of_wins(curve, others)) is not None)
    shares = list(islice(compared, JUDGED))
    return ModelSkill(fmean(shares) if shares else 0.0, len(shares))


def only_trace(history: History) -> str | None:
    fidelities = history.problem.space.fidelities
    return next((name for name, one in fidelities.items() if one.trace and len(fidelities) == 1), None)


def something_is_learnt(curves: Sequence[Curve]) -> bool:
    """Whether most of these runs have improved since their first report, or the best of them stands out.

    They are compared at the furthest fidelity that all have reached; after a single report only the latter can be told.
    True where nothing can be told: with losses that have no zero, or with no fidelity in common.
    """
    curves = [curve for curve in curves if curve]
    end = max(set(curves[0]).intersection(*curves[1:]), default=0.0) if curves else 0.0
    bound = lower_bound(np.array([loss for curve in curves for loss in curve.values()]))
    if len(curves) < LEAST_DRAWN or bound is None or end == 0.0:
        return True
    last = [curve[end] for curve in curves]
    improved = [_is_better(curve[end], curve[min(curve)], bound, by=PROGRESS) for curve in curves]
    return sum(improved) > len(improved) / 2 or _is_better(min(last), median(last), bound, by=STANDING_OUT)


def _is_better(loss: float, other: float, bound: float, *, by: float) -> bool:
    """Whether the error, the distance to the bound, is less by that share; or what is maximised more by enough."""
    return loss - bound <= (1.0 - by) * (other - bound) or (bound < 0.0 and loss < (1.0 + AS_VALUE * by) * other)


def share_of_wins(one: Curve, others: Sequence[Curve]) -> float | None:
    """The share of other runs than which one is better; ties count half.

    Two runs are compared by the losses at the furthest fidelity that both have reached. A run that diverged is worse
    than one that has not. None where no other can be compared.
    """
    won = [score for other in others if (score := _won(one, other)) is not None]
    return fmean(won) if won else None


def _won(one: Curve, other: Curve) -> float | None:
    if not one or not other:
        return 0.5 if not one and not other else float(bool(one))
    place = _furthest_common(one, other)
    if place is None:
        return None
    return 0.5 if one[place] == other[place] else float(one[place] < other[place])


def _furthest_common(one: Curve, other: Curve) -> float | None:
    end = min(max(one), max(other))
    return end if end in one and end in other else max(one.keys() & other.keys(), default=None)


def is_chosen(run: Run) -> bool:
    """Whether a model chose its params."""
    return is_by_model(run.trials[0])


def _curve(run: Run, fidelity: str) -> Curve:
    return {} if run.has_diverged else {point.fidelity[fidelity]: point.loss for point in run.curve}
