"""What going on is expected to bring, for a page: of a long study by some of its runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from farthing.study.outlook import Outlook, Prospects
from farthing.trials import History, Problem, State, Trial
from farthing.views.lines import CODES, Lines
from farthing.views.sampling import chosen_places

Read = Callable[[Sequence[int]], Sequence[Trial]]
"""Reads some trials whole, by their numbers."""


def outlook_of_some(lines: Lines, problem: Problem, read: Read, *, most: int) -> Outlook:
    """The outlook by at most `most` runs; the price of a configuration is that of the whole study."""
    configurations = sum(source is None for source in lines.resume_from)
    history = History(problem, renumbered(read(promising_runs(lines, problem, most=most))))
    return Prospects.of(history, price=lines.total / max(1, configurations)).outlook(None)


def promising_runs(lines: Lines, problem: Problem, *, most: int) -> list[int]:
    """The trials of some runs: those that went furthest with the best values, and an even choice of the others."""
    sources = np.array([-1 if source is None else source for source in lines.resume_from], dtype=int)
    is_last = np.ones(len(lines), dtype=bool)
    is_last[sources[sources >= 0]] = False
    last = np.flatnonzero(is_last & (lines.codes == CODES[State.DONE.value]) & np.isfinite(lines.value))
    ranked = np.lexsort((problem.sign * lines.value[last], -lines.reach(problem, last)))
    keep = np.zeros(last.size, dtype=bool)
    keep[ranked[: most // 2]] = True
    found: set[int] = set()
    for place in last[chosen_places(last.size, most, keep=keep)].tolist():
        while place >= 0 and place not in found:
            found.add(place)
            place = int(sources[place])
    return sorted(found)


def renumbered(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with numbers without gaps, as a history has them; what they continue is renumbered with them."""
    place = {trial.number: at for at, trial in enumerate(trials)}
    sources = [None if trial.resume_from is None else place[trial.resume_from] for trial in trials]
    return [
        replace(trial, number=at, suggestion=replace(trial.suggestion, resume_from=source))
        for at, (trial, source) in enumerate(zip(trials, sources, strict=True))
    ]
