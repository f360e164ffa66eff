"""The common part of training loops: the fidelity that counts epochs, and params that change at a restore."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from farthing.errors import InvalidArgument, WorkError
from farthing.execution import RunningTrial
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
