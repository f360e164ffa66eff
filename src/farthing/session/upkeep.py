"""Keeps a study's files and its history in step."""

import logging
from collections.abc import Mapping

from farthing.execution import CarriesOut, Checkpoints, HasStages, KeepsOutputs
from farthing.session.records import Records
from farthing.strategies import Strategy
from farthing.trials import Attempt, History, State, Trial
from farthing.trials.events import CHANGED, change
from farthing.trials.prefixes import Eviction, cached_prefixes

log = logging.getLogger("farthing")

KEPT_FOR_EACH_TOO_MANY = 20
"""Checkpoints that are needed for each that is not and may stay for a while."""


def collect_checkpoints(records: Records, strategy: Strategy, checkpoints: Checkpoints, *, ended: Trial) -> None:
    """Deletes the checkpoints that no living or possible trial can need; to be called when a trial has ended.

    A study whose trials leave no checkpoints pays nothing for it.
    """
    if ended.checkpoint is not None or ended.resume_checkpoint is not None:
        _retire(records.refresh(), records, strategy, checkpoints)


class CheckpointCollector:
    """Collects checkpoints for a loop, trial by trial, at a price for each that does not grow with the study.

    What is needed follows from the whole history. So it is gone through again when a twentieth as many trials have
    ended as checkpoints were kept the last time; that share of checkpoints more may lie about meanwhile.
    """

    def __init__(self, records: Records, strategy: Strategy, checkpoints: Checkpoints) -> None:
        self._records = records
        self._strategy = strategy
        self._checkpoints = checkpoints
        self._kept = 0
        self._ended = 0

    def trial_ended(self, trial: Trial) -> None:
        self._ended += trial.checkpoint is not None or trial.resume_checkpoint is not None
        if self._ended > self._kept // KEPT_FOR_EACH_TOO_MANY:
            self._kept = _retire(self._records.refresh(), self._records, self._strategy, self._checkpoints)
            self._ended = 0


def collect_leftovers(records: Records, strategy: Strategy, checkpoints: Checkpoints) -> None:
    """Deletes what killed processes left: half-written folders, checkpoints that no trial names, and those that became
    needless with a trial's end, when the process was killed before it could delete them.

    To be called when a run begins and when it ends. Keeps the files that any process may still work on.
    """
    history = records.refresh()
    _retire(history, records, strategy, checkpoints)
    named = {trial.checkpoint for trial in history} | {trial.resume_checkpoint for trial in history.in_flight}
    checkpoints.collect(named, may_live=lambda attempt: _may_live(history, attempt))


def _retire(history: History, records: Records, strategy: Strategy, checkpoints: Checkpoints) -> int:
    """Deletes the needless ones; returns how many are needed."""
    left = {trial.number: trial.checkpoint for trial in history if trial.checkpoint is not None and trial.is_finished}
    needed = needed_checkpoints(history, strategy) if left else set()
    for number in left.keys() - needed:
        if records.retire_checkpoint(number):
            checkpoints.delete(left[number])
    return len(left.keys() & needed)


def _may_live(history: History, attempt: Attempt) -> bool:
    """Whether the attempt may still bring a result: an earlier one may too, as long as its trial has none."""
    if attempt.number >= len(history):
        return True
    trial = history[attempt.number]
    return not trial.is_finished or trial.state is State.LOST


def needed_checkpoints(history: History, strategy: Strategy) -> set[int]:
    """Numbers the trials that must keep their checkpoints.

    Running trials start from them, or the strategy may resume or recommend them.
    """
    sources = {trial.resume_from for trial in history.in_flight if trial.resume_from is not None}
    return sources | strategy.resumable(history) | strategy.recommendable(history)


def log_lost_prefixes(records: Records, work: CarriesOut, checkpoints: Checkpoints) -> None:
    """Notes, and says, which outputs of stages are gone although the history has them."""
    if not isinstance(work, KeepsOutputs):
        return
    cached = cached_prefixes(records.refresh())
    lost = work.lost_prefixes(cached, checkpoints.root)
    for prefix in lost:
        records.log_eviction(Eviction(prefix, cached[prefix], "missing"))
    if lost:
        log.warning(
            "%d of %d outputs of stages cannot be used again: the source or what a stage's code refers to has changed "
            "since, or files are gone. They are computed again if needed",
            len(lost),
            len(cached),
        )


CODE = "code"
"""The setting of a study that has the versions of the stages that ran last."""


def note_code(records: Records, work: CarriesOut, *, harmless: bool) -> None:
    """Notes that stages changed since the last run, and says what becomes of the trials before."""
    now = dict(work.code()) if isinstance(work, HasStages) else {}
    if not now:
        return
    last = records.settings.get(CODE)
    outdated = [trial for trial in records.refresh() if records.history.is_outdated(trial)]
    if last is None:
        records.remember({CODE: now})
    elif last != now:
        records.log_code_change(change(last, now, harmless=harmless))
        records.remember({CODE: now})
        _say_what_changed(records, last, now)
    elif harmless and outdated:
        before = next(event.payload["before"] for event in reversed(records.history.events) if event.kind == CHANGED)
        records.log_code_change(change(before, now, harmless=True))


def _say_what_changed(records: Records, last: Mapping[str, str], now: Mapping[str, str]) -> None:
    count = sum(map(records.history.is_outdated, records.history))
    if count:
        names = [name for name in now if last.get(name) != now[name]]
        log.warning(
            "%s changed since the last run: %d trials of the older code leave the best and the model. "
            "If values stay as they were, run with harmless_change=True",
            " and ".join(names),
            count,
        )
