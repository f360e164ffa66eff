"""The best value against what was spent."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from farthing.trials import History, Json, Problem, Trial
from farthing.views.lines import FAILED_CODES, Lines
from farthing.views.sampling import Array, chosen_places, plain_list


@dataclass(frozen=True)
class ProgressStep:
    """A finished trial, what all trials up to it had cost, and the best value by then."""

    trial: Trial
    spent: float
    best: float | None


def progress_of(history: History) -> list[ProgressStep]:
    """In the order in which the trials ended."""
    ended = sorted((trial for trial in history if trial.is_finished), key=lambda trial: trial.finished_at or 0.0)
    steps: list[ProgressStep] = []
    spent, best = 0.0, None
    for trial in ended:
        spent += trial.cost
        if trial.value is not None and (best is None or history.problem.better(trial.value, best)):
            best = trial.value
        steps.append(ProgressStep(trial, spent, best))
    return steps


def progress(lines: Lines, problem: Problem, *, most: int) -> Mapping[str, Json]:
    """The finished trials in the order in which they ended, at most that many: all that improved on the best stay."""
    order, spent = lines.order, lines.spent
    value = np.where(np.isin(lines.codes[order], FAILED_CODES), np.nan, lines.value[order])
    best = running_best(value, problem)
    improves = np.concatenate([[True], best[1:] != best[:-1]]) if best.size else np.zeros(0, bool)
    shown = chosen_places(order.size, most, keep=improves & np.isfinite(best))
    return {
        "number": lines.number[order][shown].tolist(),
        "spent": plain_list(spent[shown]),
        "value": plain_list(value[shown]),
        "best": plain_list(best[shown]),
        "of": int(order.size),
    }


def worth(lines: Lines, problem: Problem, *, parts: int = 4) -> list[dict[str, Json]]:
    """What each part of the spend has bought: the best value at its end, and the gain over the part before."""
    order, spent, best = lines.order, lines.spent, running_best(lines.value[lines.order], problem)
    if not order.size or spent[-1] <= 0 or not np.isfinite(best[-1]):
        return []
    found: list[dict[str, Json]] = []
    before: float | None = None
    for part in range(1, parts + 1):
        at = int(np.searchsorted(spent, spent[-1] * part / parts * (1 - 1e-12)))
        here = float(best[min(at, order.size - 1)])
        now = here if np.isfinite(here) else None
        gain = None if now is None or before is None else abs(now - before)
        found.append({"share": part / parts, "spent": float(spent[-1]) / parts, "best": now, "gain": gain})
        before = now
    return found


def running_best(values: Array, problem: Problem) -> Array:
    """The best of the values so far, NaN before the first."""
    losses = np.where(np.isfinite(values), problem.sign * values, np.inf)
    best = np.minimum.accumulate(losses) if losses.size else losses
    return np.asarray(np.where(np.isfinite(best), problem.sign * best, np.nan))


def trend(values: list[float], problem: Problem, *, most: int = 40) -> list[float]:
    """The best value after each result, thinned to a small picture."""
    best = running_best(np.array(values, dtype=float), problem)
    if best.size <= most:
        return [float(number) for number in best]
    return [float(best[place]) for place in np.linspace(0, best.size - 1, most).astype(int)]
