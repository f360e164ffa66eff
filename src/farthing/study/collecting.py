"""Deletes the checkpoints that no living or possible trial can need."""

from farthing.execution import Checkpoints
from farthing.study.records import Records
from farthing.study.verifying import furthest
from farthing.systems import Strategy
from farthing.trials import History, Trial


def collect_checkpoints(records: Records, strategy: Strategy, checkpoints: Checkpoints, *, ended: Trial) -> None:
    """To be called when a trial has ended. A study whose trials leave no checkpoints pays nothing for it."""
    if ended.checkpoint is None and ended.resume_checkpoint is None:
        return
    history = records.refresh()
    needed = needed_checkpoints(history, strategy)
    for trial in history:
        if trial.checkpoint is None or not trial.is_finished or trial.number in needed:
            continue
        if records.storage.retire_checkpoint(records.name, trial.number):
            checkpoints.delete(trial.checkpoint)


def needed_checkpoints(history: History, strategy: Strategy) -> set[int]:
    """Numbers of the trials that what runs starts from, that the strategy may resume, or that it may recommend."""
    sources = {trial.resume_from for trial in history.in_flight if trial.resume_from is not None}
    return sources | strategy.resumable(history) | _recommendable(history, strategy)


def _recommendable(history: History, strategy: Strategy) -> set[int]:
    """What is recommended now, with what a verification of it would start from.

    A strategy that recommends by what a model predicts at full fidelity may come back to any run, so that the end of
    each is kept.
    """
    best = strategy.recommend(history)
    if best is None:
        return set()
    start = furthest(history, best.params)
    now = {best.trial.number} | ({start.number} if start else set())
    return now | _ends_of_runs(history) if best.predicted and history.problem.space.fidelities else now


def _ends_of_runs(history: History) -> set[int]:
    """The last checkpoint of each run."""
    with_checkpoint = [trial for trial in history.done if trial.checkpoint is not None]
    return {trial.number for trial in with_checkpoint} - {trial.resume_from for trial in with_checkpoint}
