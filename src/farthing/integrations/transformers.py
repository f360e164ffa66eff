"""Hugging Face's `Trainer`: trials that are paused and continued from its checkpoints.

def work(trial):
    trainer = Trainer(model=…, args=TrainingArguments(…), train_dataset=…, eval_dataset=…)
    train_epochs(trial, trainer, monitor="eval_loss")
"""

import shutil
from pathlib import Path
from typing import Any

from farthing.errors import MissingExtra, WorkError
from farthing.execution import RunningTrial
from farthing.integrations.epochs import epochs_of
from farthing.integrations.pytorch import Knobs, apply_to_optimizer
from farthing.validation import shown

try:
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.transformers needs Hugging Face's transformers, which is absent. "
        "Run: pip install 'farthing[transformers]'."
    ) from error

CHECKPOINT = "checkpoint"


def train_epochs(
    trial: RunningTrial, trainer: Trainer, *, monitor: str = "eval_loss", knobs: Knobs | None = None
) -> None:
    """Trains up to the trial's epochs, from its checkpoint if there is one; evaluates, reports, and leaves another.

    It takes the place of `trainer.train()`. Params that are settings of the optimizer (`lr`, `weight_decay`) are set
    after the checkpoint was restored. Every epoch is evaluated, and its seconds are charged as validation. Use
    `lr_scheduler_type="constant"`: other schedules depend on the number of epochs, which a continued trial changes.

    Args:
        monitor: the metric of `trainer.evaluate()` that is reported.
        knobs: further settings that params control: `Knobs().dropout("dropout", model)`.
    """
    name = epochs_of(trial)
    trainer.args.num_train_epochs = int(trial.fidelity[name])
    trainer.args.eval_strategy = "no"  # the callback evaluates, so that it is timed
    trainer.args.save_strategy = "no"
    callback = TrialCallback(trial, trainer, monitor, knobs=knobs)
    trainer.add_callback(callback)
    folder = trial.resume_dir
    trainer.train(resume_from_checkpoint=None if folder is None else str(folder / CHECKPOINT))
    _leave_checkpoint(trainer, trial.checkpoint_dir / CHECKPOINT)


class TrialCallback(TrainerCallback):  # type: ignore[misc]
    """Applies the trial's params when training begins, and evaluates and reports after every epoch."""

    def __init__(self, trial: RunningTrial, trainer: Trainer, monitor: str, *, knobs: Knobs | None = None) -> None:
        self._trial, self._trainer, self._monitor = trial, trainer, monitor
        self._knobs = Knobs() if knobs is None else knobs
        self._fidelity = epochs_of(trial)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Comes after the optimizer and its scheduler were restored."""
        params = self._trial.params
        self._knobs.apply({name: params[name] for name in self._knobs.names})
        rest = {name: value for name, value in params.items() if name not in self._knobs.names}
        apply_to_optimizer(kwargs["optimizer"], kwargs.get("lr_scheduler"), rest)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        with self._trial.timing("validation"):
            metrics = self._trainer.evaluate()
        if self._monitor not in metrics:
            raise WorkError(
                f"The trainer must evaluate {self._monitor!r}, got {shown(sorted(metrics))}. Add it to compute_metrics."
            )
        place: dict[str, Any] = {self._fidelity: round(state.epoch)}
        self._trial.report(metrics[self._monitor], **place)


def _leave_checkpoint(trainer: Trainer, target: Path) -> None:
    """Writes what `resume_from_checkpoint` reads: the trainer has one way to do so, to a folder of its own choice."""
    trainer._save_checkpoint(trainer.model, trial=None)
    written = Path(trainer.args.output_dir) / f"checkpoint-{trainer.state.global_step}"
    shutil.move(written, target)
