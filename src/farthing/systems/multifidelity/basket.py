"""The basket: paused runs that can be carried on, and what carrying on saves."""

import numpy as np

from farthing.models.linalg import Array
from farthing.systems.multifidelity.levels import Fidelities
from farthing.systems.multifidelity.runs import Run
from farthing.trials import History, Trial


def paused(runs: list[Run], fidelities: Fidelities) -> list[int]:
    """Runs, by their place in the list, that have a result, are not being continued now and are not complete."""
    return [
        i
        for i, run in enumerate(runs)
        if run.last is not None and not run.is_running and not fidelities.is_complete(reached(run, fidelities))
    ]


def reached(run: Run, fidelities: Fidelities) -> Array:
    """How far a run has come, (m,)."""
    assert run.last is not None, "only runs with a result have come anywhere"
    return fidelities.space.encoder.encode_fidelity([run.last.fidelity])[0]


def starts_at(run: Run, fidelities: Fidelities, *, is_saving: bool) -> Array:
    """From where a continuation pays: where the run stands, or nothing where it would have to begin again."""
    assert run.last is not None, "only runs with a result are carried on"
    return reached(run, fidelities) * (is_saving or run.last.checkpoint is not None)


def continuing_saves(history: History) -> bool:
    """Whether a run that left no checkpoint with us can be carried on all the same, by whoever trains it.

    A declared cost knows no other way than a checkpoint; neither does a study whose trials leave some. Else it is
    believed until continuations are seen to cost as much as runs from nothing.
    """
    if history.problem.declared_cost is not None or any(trial.checkpoint for trial in history):
        return False
    shares = [share for trial in history.done if (share := _share_paid(history, trial)) is not None]
    return not shares or float(np.median(shares)) < 0.5


def _share_paid(history: History, trial: Trial) -> float | None:
    """0 where a continuation paid for its new part only, 1 where it paid for everything, by the cost so far."""
    if trial.resume_from is None or trial.cost <= 0:
        return None
    source = history[trial.resume_from]
    before = sum(earlier.cost for earlier in history.lineage(source.number))
    work, done = (np.prod(history.problem.space.encoder.encode_fidelity([t.fidelity])) for t in (trial, source))
    if before <= 0 or work <= done:
        return None
    rate = before / done
    return float((trial.cost - rate * (work - done)) / (rate * done))
