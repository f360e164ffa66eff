"""The skill of a model of learning curves: how often what it chose is better than what was drawn at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.shared.starts import is_drawn
from farthing.trials import History, Trial
from farthing.trials.history import ADDED

Curve = Mapping[float, float]
"""The loss of a run at each fidelity that it has reached; empty for a run that diverged."""

HALVING = "halving"
"""The key in the notes of suggestions that are made while halving decides; its value is the skill of the model."""
FEW, ENOUGH, JUDGED = 3, 5, 8
"""Choices of the model from which on it must do better than chance, and have skill, by the latest `JUDGED` of them."""
CHANCE, LEAST_SKILL = 0.5, 0.7
"""The shares of pairs that a few of its choices must win, and enough of them. These and the numbers above were chosen
on the problems for tuning of `docs/systems/multifidelity.md`, where other numbers are listed."""
RECOMMENDING_SKILL = 0.8
"""The share below which measured values are recommended rather than predicted ones. A guess, no other is on record."""
RETURNING, RETURNING_SKILL = 16, 0.85
"""The same once halving has taken over: the latest choices that are judged, and the share that they must win. Above
what choices at the lowest rung reach on rows; no other is on record."""
LEAST_DRAWN, MOST_DRAWN = 3, 64
"""Random runs to compare with: the latest ones. The first number is a guess, the second a limit on time; not tuned."""


@dataclass(frozen=True)
class Skill:
    """The share of pairs in which a late choice of the model was better than a random run, and how many were compared.

    It is returning if halving decides at the moment.
    """

    share: float
    chosen: int
    is_returning: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether the model must not decide what to train."""
        return self.chosen >= FEW and self.share < self._needed

    @property
    def is_low(self) -> bool:
        """Whether the model must not decide what to recommend."""
        return self.is_missing or (self.chosen >= ENOUGH and self.share < RECOMMENDING_SKILL)

    @property
    def _needed(self) -> float:
        if self.is_returning:
            return RETURNING_SKILL
        return CHANCE if self.chosen < ENOUGH else LEAST_SKILL


def skill_of(history: History) -> Skill | None:
    """The skill of the model so far; None where it cannot be told, or halving cannot take over.

    It can where the only fidelity is a trace: then every run can be continued to every rung. The first choices are not
    judged if several are in flight, as many as those: they were made side by side, before any of them had a result.
    """
    if (fidelity := only_trace(history)) is None:
        return None
    is_returning = _has_taken_over(history)
    judged = [run for run in runs_of(history) if run.has_diverged or run.last is not None]
    drawn = [_curve(run, fidelity) for run in _latest_drawn(judged)]
    chosen = [run for run in judged if is_chosen(run)][len(history.in_flight) :]
    latest = (share_of_wins(_curve(run, fidelity), drawn) for run in reversed(chosen))
    compared = (share for share in latest if share is not None)
    shares = list(islice(compared, RETURNING if is_returning else JUDGED))
    return Skill(fmean(shares), len(shares), is_returning) if shares and len(drawn) >= LEAST_DRAWN else None


def _latest_drawn(runs: Sequence[Run]) -> list[Run]:
    drawn = (run for run in reversed(runs) if is_drawn(run.trials[0], added=ADDED))
    return list(islice(drawn, MOST_DRAWN))[::-1]


def only_trace(history: History) -> str | None:
    fidelities = history.problem.space.fidelities
    return next((name for name, one in fidelities.items() if one.trace and len(fidelities) == 1), None)


def _has_taken_over(history: History) -> bool:
    """Whether the last suggestion that says how it was chosen was made by halving."""
    notes = (trial.note for trial in reversed(history) if isinstance(trial.note, dict))
    return next((HALVING in note for note in notes if HALVING in note or "form" in note), False)


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
    return is_of_model(run.trials[0])


def is_of_model(trial: Trial) -> bool:
    """Whether a model suggested it."""
    return isinstance(trial.note, dict) and "theta" in trial.note


def _curve(run: Run, fidelity: str) -> Curve:
    return {} if run.has_diverged else {point.fidelity[fidelity]: point.loss for point in run.curve}
