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
from farthing.integrations.epochs import epochs_of, leave_params, refuse_without_effect
from farthing.integrations.pytorch import BuiltOptimizer, Controls, Knobs
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

    It takes the place of `trainer.train()`. Params that are settings of the optimizer (`learning_rate` or `lr`,
    `weight_decay`, `adam_beta1`) are set after the checkpoint was restored; biases and norms are not decayed, and rates
    by layers keep their ratios. Other params that change when a run is continued need a knob. Every epoch is evaluated,
    and its seconds are charged as validation. Use `lr_scheduler_type="constant"`: other schedules depend on the number
    of epochs, which a continued trial changes.

    Args:
        monitor: the metric of `trainer.evaluate()` that is reported.
        knobs: further settings that params control: `Knobs().dropout("dropout", model)`.
    """
    name = epochs_of(trial)
    trainer.args.num_train_epochs = int(trial.fidelity[name])
    trainer.args.eval_strategy = "no"  # the callback evaluates, so that it is timed
    trainer.args.save_strategy = "no"
    trainer.add_callback(TrialCallback(trial, trainer, monitor, controls=_controls(trial, trainer, knobs)))
    folder = trial.resume_dir
    trainer.train(resume_from_checkpoint=None if folder is None else str(folder / CHECKPOINT))
    _leave_checkpoint(trainer, trial.checkpoint_dir / CHECKPOINT)
    leave_params(trial)


def _controls(trial: RunningTrial, trainer: Trainer, knobs: Knobs | None) -> Controls:
    """Makes the optimizer, as the trainer would: which of its groups decay is known before a checkpoint is read."""
    trainer.args.weight_decay = trial.params.get("weight_decay", trainer.args.weight_decay)
    built = BuiltOptimizer.of(trainer.create_optimizer())
    return Controls(Knobs() if knobs is None else knobs, [built], trial.params)


class TrialCallback(TrainerCallback):  # type: ignore[misc]
    """Applies the trial's params when training begins, and evaluates and reports after every epoch."""

    def __init__(self, trial: RunningTrial, trainer: Trainer, monitor: str, *, controls: Controls) -> None:
        self._trial, self._trainer, self._monitor, self._controls = trial, trainer, monitor, controls
        self._fidelity = epochs_of(trial)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Comes after the optimizer and its scheduler were restored."""
        refuse_without_effect(self._trial, self._controls.takes)
        self._controls.apply(self._trial.params, [kwargs.get("lr_scheduler")])

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
