"""A strategy that trains one run and continues it along a schedule, each time under params of its own."""

from dataclasses import dataclass

import farthing as ft
from farthing.extending import Strategy, Suggestion


@dataclass(frozen=True)
class Continuing(Strategy):
    """`schedule` has an amount for each trial, and `params` what each is trained with."""

    schedule: tuple = ()
    params: tuple = ()
    has_end = True

    def suggest(self, history, budget, count, rng):
        place = len(history)
        if place >= len(self.schedule) or history.in_flight:
            return []
        [fidelity] = history.problem.space.fidelities
        amount, before = {fidelity: self.schedule[place]}, place - 1 if place else None
        return [Suggestion(dict(self.params[place]), amount, resume_from=before)]

    def resumable(self, history):
        return {trial.number for trial in history.done}


def run_along(space, work, schedule, params, **settings):
    """The study after a run along the schedule, in which no trial failed."""
    strategy = Continuing(tuple(schedule), tuple(params))
    study = ft.Study(space, minimize="loss", strategy=strategy, seed=0)
    study.run(work, executor="inline", progress=False, **settings)
    for trial in study.trials:
        assert trial.failure is None, trial.failure.traceback
    assert len(study.trials) == len(schedule)
    return study
