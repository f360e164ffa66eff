"""Deletes the checkpoints that no living or possible trial can need."""

from farthing.execution import Checkpoints
from farthing.study.records import Records
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
    return sources | strategy.resumable(history) | strategy.recommendable(history)
