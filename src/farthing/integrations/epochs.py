"""The common parts of training loops: epochs or rounds as a trace fidelity, and params that change at a restore."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from farthing.errors import InvalidArgument, WorkError
from farthing.execution import RunningTrial
from farthing.fields import Whole
from farthing.trials import Params
from farthing.validation import shown


def epochs_of(trial: RunningTrial) -> str:
    """The name of the trial's one trace fidelity, in whole epochs."""
    fidelities = trial.problem.space.fidelities
    traces = [name for name, fidelity in fidelities.items() if fidelity.trace and fidelity.integer]
    if len(traces) != 1:
        raise WorkError(
            f"A training loop needs one trace fidelity, in whole epochs, got {shown(dict(fidelities))}. Declare "
            'fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)}.'
        )
    return traces[0]


def require_best_so_far(trial: RunningTrial, name: str) -> None:
    """Refuses work that stops by itself where a run is worth its last point: it would count as trained to the end."""
    fidelity = trial.problem.space.fidelities[name]
    if not fidelity.best_so_far:
        raise InvalidArgument(
            f"Early stopping needs a fidelity whose runs are worth their best point, got {fidelity!r}. "
            "Add best_so_far=True."
        )


PARAMS_FILE = "params.json"
"""Beside the library's own checkpoint: the params that it was trained with."""

ABSENT = "none"


class Continued(Protocol):
    """The part of a trial that says what it continues."""

    @property
    def params(self) -> Params: ...

    @property
    def resume_dir(self) -> Path | None: ...


def leave_params(trial: RunningTrial) -> None:
    """Writes the trial's params into its checkpoint."""
    (trial.checkpoint_dir / PARAMS_FILE).write_text(json.dumps(trial.params))


def refuse_without_effect(trial: Continued, takes: Callable[[str], bool]) -> None:
    """Refuses params that are others than the checkpoint's, if nothing takes them: the restored ones would count."""
    before, now = _params_before(trial), json.loads(json.dumps(trial.params))
    changed = [name for name in {**before, **now} if before.get(name, ABSENT) != now.get(name, ABSENT)]
    lost = [name for name in changed if not takes(name)]
    if lost:
        name = lost[0]
        raise WorkError(
            f"A param that changes when a run is continued must take effect, got {name}={now.get(name, ABSENT)} after "
            f"{before.get(name, ABSENT)}, which is no setting of the optimizer and has no knob. Give it one: "
            f"Knobs().hook({name!r}, …), or Knobs().elsewhere({name!r}) if your code uses it already."
        )


def _params_before(trial: Continued) -> dict[str, Any]:
    """The params that the checkpoint was trained with; those of the trial if it does not say."""
    file = None if trial.resume_dir is None else trial.resume_dir / PARAMS_FILE
    text = file.read_text() if file is not None and file.exists() else json.dumps(trial.params)
    return dict(json.loads(text))


# ------------------------------------------------------------
# XGBoost and LightGBM: models that are continued by rounds.

STATE_FILE = "boosting.json"
"""Beside the model in a checkpoint: how many rounds it has, and the best of its values."""


class BoostingRun:
    """One trial of boosting: from the rounds that its checkpoint has to those that it is to reach.

    Args:
        model: the name of the model's file in a checkpoint.
        every: rounds from one report to the next; the last one is always reported.
        early_stopping: rounds without a better value after which the trial stops by itself.
    """

    def __init__(self, trial: RunningTrial, *, model: str, every: int, early_stopping: int | None) -> None:
        self._every = Whole(least=1).checked(every, what="every", advice="Write for example every=10.")
        if early_stopping is not None:
            Whole(least=1).checked(early_stopping, what="early_stopping", advice="Write for example 50.")
        self._trial, self._model, self._patience = trial, model, early_stopping
        self._fidelity = _only_trace(trial, early_stopping)
        state = _read_state(trial.resume_dir)
        self.done: int = state.get("rounds", 0)
        self._best: float | None = state.get("best")
        self._best_round: int = state.get("best_round", 0)
        self._last: tuple[int, float] | None = None
        if self.left < 1:
            raise WorkError(
                f"A continued trial must go further than its checkpoint, got {self._wanted} rounds and a checkpoint of "
                f"{self.done}. Ask for more rounds."
            )

    @property
    def _wanted(self) -> int:
        return int(self._trial.fidelity[self._fidelity])

    @property
    def left(self) -> int:
        """The rounds to train now."""
        return self._wanted - self.done

    @property
    def best_round(self) -> int:
        """The round with the best value so far, from 1."""
        return self._best_round

    @property
    def saved_model(self) -> Path | None:
        """The model to continue from."""
        folder = self._trial.resume_dir
        return folder / self._model if folder is not None and self.done else None

    def see(self, rounds: int, value: float) -> bool:
        """Takes the value after this many rounds in all; True when the trial is to stop here."""
        sign = self._trial.problem.sign
        if self._best is None or sign * value < sign * self._best:
            self._best, self._best_round = float(value), rounds
        stops = self._patience is not None and rounds - self._best_round >= self._patience
        if rounds % self._every == 0 or rounds == self._wanted or stops:
            place: dict[str, Any] = {self._fidelity: rounds}
            self._trial.report(value, **place)
        self._last = (rounds, float(value))
        return stops

    def save(self, write: Callable[[Path], Any]) -> None:
        """Leaves the model, written to a path by `write`, to be continued."""
        if self._last is None:
            raise WorkError("Boosting must be measured, but the library evaluated nothing. Give a validation set.")
        folder = self._trial.checkpoint_dir
        write(folder / self._model)
        state = {"rounds": self._last[0], "best": self._best, "best_round": self._best_round}
        (folder / STATE_FILE).write_text(json.dumps(state))


def _only_trace(trial: RunningTrial, early_stopping: int | None) -> str:
    fidelities = trial.problem.space.fidelities
    traces = [name for name, fidelity in fidelities.items() if fidelity.trace and fidelity.integer]
    if len(traces) != 1:
        raise WorkError(
            f"Boosting needs one trace fidelity, in whole rounds, got {shown(dict(fidelities))}. Declare "
            'fidelities={"rounds": ft.Fidelity(10, 500, integer=True, trace=True, best_so_far=True)}.'
        )
    if early_stopping is not None:
        require_best_so_far(trial, traces[0])
    return traces[0]


def _read_state(folder: Path | None) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        state = json.loads((folder / STATE_FILE).read_text())
    except (OSError, ValueError) as error:
        raise WorkError(
            f"A checkpoint of boosting must hold its rounds in {STATE_FILE}, got none in {str(folder)!r}. Continue "
            "only from trials of the same integration."
        ) from error
    return dict(state)


def pick_metric(names: list[str], wanted: str | None) -> int:
    """The place of the metric that counts: the one wanted, else the first."""
    if wanted is None:
        return 0
    if wanted not in names:
        raise InvalidArgument(
            f"The metric must be one that the library computes, got {wanted!r} beside {names}. Add it to params."
        )
    return names.index(wanted)
